//! `agent skills`: lists the skills, creates one from a template, installs those of a repository, or removes one.

use crate::commands::common_args::CommonArgs;
use crate::commands::skill_install::install;
use agent_config::settings::Settings;
use agent_config::skills::{self, SKILL_FILE, is_name};
use agent_config::text_file::resolve_inside;
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_runtime::private_file::create_new;
use agent_terminal::Style;
use clap::Subcommand;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Directory of the project's own skills, and of those installed into it.
const OWN: &str = ".agent/skills";
const INSTALLED: &str = ".agent/installed-skills";

/// Subcommands of `agent skills`.
#[derive(Debug, Subcommand)]
pub enum SkillsCommand {
    /// List the skills that are found, with their directories
    List,
    /// Create a skill from a template in the project, or with `--user` in your configuration
    Create {
        /// Name: a-z, 0-9 and -
        name: String,
        /// In your configuration directory
        #[arg(long)]
        user: bool,
    },
    /// Install the skills of a git repository into the project, or with `--user` into your configuration
    Install {
        /// https, ssh or file address, or a path; `#NAME` selects a branch or tag
        source: String,
        /// Into your configuration directory
        #[arg(long)]
        user: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Remove a skill from `.agent/installed-skills`, or with `--user` from your configuration
    Remove {
        /// Name of the skill
        name: String,
        /// From your configuration directory
        #[arg(long)]
        user: bool,
    },
}

/// Runs a subcommand; without one, lists the skills.
///
/// # Errors
/// Fails for an invalid configuration or name, a skill that exists or is missing, and when a file cannot be written.
pub fn skills(app: &App, command: Option<SkillsCommand>, common: &CommonArgs) -> AppResult<()> {
    let settings = app.load_and_notify(&common.overrides())?.settings;
    match command {
        None | Some(SkillsCommand::List) => list(app, &settings),
        Some(SkillsCommand::Create { name, user }) => {
            let file = directory(&settings, &name, user, OWN)?.join(SKILL_FILE);
            create(&file, &name, user).map_err(|error| failed("create", &file, &error))?;
            print(&app.terminal, &messages::skill_created(&file.to_string_lossy()))
        }
        Some(SkillsCommand::Install { source, user, yes }) => {
            install(app, &settings, &source, &parent(&settings, user, INSTALLED)?, user, yes)
        }
        Some(SkillsCommand::Remove { name, user }) => {
            let directory = directory(&settings, &name, user, INSTALLED)?;
            remove(&directory).map_err(|error| failed("remove", &directory, &error))?;
            print(&app.terminal, &messages::skill_removed(&directory.to_string_lossy()))
        }
    }
}

fn list(app: &App, settings: &Settings) -> AppResult<()> {
    let found = skills::find(&settings.skills, &settings.workspace, &settings.directories.config);
    for warning in &found.warnings {
        app.notify(Style::Warning, &app.redact(warning));
    }
    if found.skills.is_empty() {
        return print(&app.terminal, messages::NO_SKILLS);
    }
    let mut text = String::new();
    for skill in &found.skills {
        let _infallible = writeln!(text, "{} ({})\n    {}", skill.name, skill.directory, skill.description);
    }
    print(&app.terminal, &text)
}

/// Returns the directory of the skill `name`.
fn directory(settings: &Settings, name: &str, user: bool, project: &str) -> AppResult<PathBuf> {
    if !is_name(name) {
        let message = "the name of a skill has a-z, 0-9 and -, at most 64 characters";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    Ok(parent(settings, user, project)?.join(name))
}

/// Returns the directory of the user's skills, or the directory `project` of the workspace, which no link may lead out of it.
fn parent(settings: &Settings, user: bool, project: &str) -> AppResult<PathBuf> {
    if user {
        return Ok(settings.directories.config.join("skills"));
    }
    for directory in [".agent", project] {
        resolve_inside(&settings.workspace, Path::new(directory))
            .map_err(|error| AppError { kind: FailureKind::Config, cause: error.file(directory).into() })?;
    }
    Ok(settings.workspace.join(project))
}

/// Creates the file of a skill with a template; a file that exists stays.
fn create(file: &Path, name: &str, is_private: bool) -> io::Result<()> {
    create_new(file, is_private)?.write_all(messages::skill_template(name).as_bytes())
}

/// Removes the directory of a skill, which must be a directory itself and not a link to one.
#[expect(
    clippy::disallowed_methods,
    reason = "the user names the skill, and only a directory with its file is removed"
)]
fn remove(directory: &Path) -> io::Result<()> {
    if !directory.symlink_metadata()?.is_dir() || !directory.join(SKILL_FILE).symlink_metadata()?.is_file() {
        return Err(io::Error::other("it is no directory of a skill"));
    }
    std::fs::remove_dir_all(directory)
}

fn failed(verb: &str, path: &Path, error: &io::Error) -> AppError {
    AppError::new(FailureKind::Request, format!("cannot {verb} {}: {error}", path.display()))
}
