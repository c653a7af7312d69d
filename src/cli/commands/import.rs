//! `agent import`: carries the settings of other agents over into a configuration of this one, and lists the rest.

use crate::commands::common_args::CommonArgs;
use crate::commands::project_files::{self, NewFile, WriteOptions};
use crate::commands::trust;
use agent_config::environment::Directories;
use agent_config::error::ConfigError;
use agent_config::import::{self, ForeignSetting, Imported, Target, claude, codex, instructions};
use agent_config::load::{self, USER_FILE};
use agent_config::project::{MAX_CONFIG_BYTES, PROJECT_FILE};
use agent_config::text_file::{read_own_text, read_text, resolve_inside};
use agent_core::failure::FailureKind;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_runtime::private_file::create_private_dir;
use agent_terminal::one_line;
use agent_workspace::Workspace;
use clap::{Args, ValueEnum};
use rustix::fs::Mode;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Characters shown of a setting and of a reason, and the number of settings in a list.
const SHOWN_CHARS: usize = 120;
const REASON_CHARS: usize = 300;
const MAX_SHOWN: usize = 100;

/// `agent import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The other agent; without it, each that has settings here
    #[arg(value_enum)]
    pub agent: Option<ForeignAgent>,
    /// Import your own settings of that agent into your own configuration
    #[arg(long)]
    pub user: bool,
    /// How the configuration is written.
    #[command(flatten)]
    pub write: WriteOptions,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// An agent whose settings can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ForeignAgent {
    /// Claude Code: `.claude`, `.mcp.json`, `CLAUDE.md`
    Claude,
    /// Codex: `.codex`, `AGENTS.md`
    Codex,
}

/// Where settings are read from and written to.
struct Source<'a> {
    app: &'a App,
    target: Target,
    /// The workspace, or the home directory.
    root: PathBuf,
}

/// What was read.
#[derive(Default)]
struct Found {
    files: Vec<String>,
    settings: Vec<ForeignSetting>,
    instructions: Vec<&'static str>,
}

/// Writes the configuration with the imported settings and lists what was not carried over.
///
/// # Errors
/// Fails when there is nothing to import, for a file that cannot be read or parsed, and when the configuration cannot be
/// written.
pub fn import(app: &App, args: &ImportArgs) -> AppResult<()> {
    let (_, workspace) =
        load::state_and_workspace(&args.common.overrides(), &app.environment).map_err(wrong)?;
    let source = if args.user {
        let home = app.environment.home();
        let home = home.ok_or_else(|| AppError::new(FailureKind::Config, messages::IMPORT_NO_HOME))?;
        Source { app, target: Target::User, root: home.to_owned() }
    } else {
        Source { app, target: Target::Project, root: workspace.clone() }
    };
    let mut found = Found::default();
    for agent in [ForeignAgent::Claude, ForeignAgent::Codex] {
        if args.agent.is_none_or(|wanted| wanted == agent) {
            source.find(agent, &mut found)?;
        }
    }
    if found.files.is_empty() && found.settings.is_empty() && found.instructions.is_empty() {
        let (claude, codex) = (source.shown(claude::USER_FILE), source.shown(codex::FILE));
        return Err(AppError::new(FailureKind::Request, messages::nothing_to_import(&claude, &codex)));
    }
    let has_secret = |text: &str| app.redact(text) != text;
    let imported = import::combine(found.settings, source.target, has_secret).map_err(wrong)?;
    let read = found.files.iter().map(|file| messages::import_read(file));
    let kept = found.instructions.iter().map(|file| messages::import_instructions(file));
    let lines: String = read.chain(kept).map(|line| line + "\n").collect();
    print(&app.terminal, &lines)?;
    let written = write(&source, &workspace, &found.files, &imported, args)?;
    print(&app.terminal, &app.redact(&lists(&imported)))?;
    if written && !args.user && !args.write.dry_run {
        trust::offer(app, &args.common, None)?;
    }
    Ok(())
}

impl Source<'_> {
    /// Adds the settings of `agent` to `found`.
    fn find(&self, agent: ForeignAgent, found: &mut Found) -> AppResult<()> {
        let is_user = self.target == Target::User;
        match agent {
            ForeignAgent::Claude => {
                let files = if is_user { &[claude::USER_FILE][..] } else { &claude::PROJECT_FILES };
                for file in files {
                    if let Some(text) = self.read(file, found)? {
                        found
                            .settings
                            .extend(claude::settings(&self.shown(file), &text, self.target).map_err(wrong)?);
                    }
                }
                if !is_user && let Some(text) = self.read(claude::MCP_FILE, found)? {
                    found.settings.extend(claude::mcp_servers(claude::MCP_FILE, &text).map_err(wrong)?);
                }
                self.add_instructions("CLAUDE.md", found);
            }
            ForeignAgent::Codex => {
                if let Some(text) = self.read(codex::FILE, found)? {
                    found.settings.extend(codex::settings(&self.shown(codex::FILE), &text).map_err(wrong)?);
                }
                self.add_instructions("AGENTS.md", found);
            }
        }
        Ok(())
    }

    /// Reads a settings file; one of the project only below its root, one of the user only if no other user may write it.
    fn read(&self, file: &'static str, found: &mut Found) -> AppResult<Option<String>> {
        let text = match self.target {
            Target::User => read_own_text(&self.root.join(file), MAX_CONFIG_BYTES),
            Target::Project => resolve_inside(&self.root, file.as_ref())
                .and_then(|path| path.map_or(Ok(None), |path| read_text(&path, MAX_CONFIG_BYTES))),
        };
        let text = text.map_err(|error| wrong(error.file(self.shown(file))))?;
        found.files.extend(text.is_some().then(|| self.shown(file)));
        Ok(text)
    }

    /// Adds the instructions of the project; those for all projects have no counterpart here.
    fn add_instructions(&self, file: &'static str, found: &mut Found) {
        if self.target == Target::Project {
            let (skipped, is_read) = instructions::settings(&self.root, file);
            found.settings.extend(skipped);
            found.instructions.extend(is_read.then_some(file));
        }
    }

    /// Returns the name of a file for the user.
    fn shown(&self, file: &str) -> String {
        if self.target == Target::User { format!("~/{file}") } else { file.to_owned() }
    }
}

/// Writes the configuration, or prints it in a dry run; returns false if no setting has a counterpart.
fn write(
    source: &Source<'_>,
    workspace: &Path,
    files: &[String],
    imported: &Imported,
    args: &ImportArgs,
) -> AppResult<bool> {
    if imported.config.is_empty() {
        print(&source.app.terminal, &format!("{}\n", messages::IMPORT_NO_SETTINGS))?;
        return Ok(false);
    }
    let text = messages::import_header(&files.join(", ")) + "\n" + &imported.config;
    let (root, file) = match source.target {
        Target::Project => {
            let file = NewFile { path: PROJECT_FILE, shown: PROJECT_FILE.to_owned(), text, mode: None };
            (workspace.to_owned(), file)
        }
        Target::User => {
            let root = Directories::from_environment(&source.app.environment).map_err(wrong)?.config;
            let shown = root.join(USER_FILE).display().to_string();
            if args.write.dry_run && !root.exists() {
                let heading = messages::file_preview(&shown, false, args.write.overwrite);
                return project_files::preview(source.app, &heading, &text).map(|()| true);
            }
            create_private_dir(&root).map_err(|error| {
                AppError::new(FailureKind::Request, format!("cannot create {}: {error}", root.display()))
            })?;
            (root, NewFile { path: USER_FILE, shown, text, mode: Some(Mode::RUSR | Mode::WUSR) })
        }
    };
    let root = Workspace::open(&root)
        .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
    project_files::write(source.app, &root, &[file], args.write)?;
    Ok(true)
}

/// Returns the settings to check and those that were not carried over.
fn lists(imported: &Imported) -> String {
    let mut text = String::new();
    for (heading, settings) in
        [(messages::IMPORT_NOTES, &imported.notes), (messages::IMPORT_SKIPPED, &imported.skipped)]
    {
        if settings.is_empty() {
            continue;
        }
        let _infallible = writeln!(text, "\n{heading}");
        for (name, why) in settings.iter().take(MAX_SHOWN) {
            let why = one_line(why, REASON_CHARS);
            let _infallible = writeln!(text, "  {}\n      {why}", one_line(name, SHOWN_CHARS));
        }
        if settings.len() > MAX_SHOWN {
            let _infallible = writeln!(text, "{}", messages::import_more(settings.len() - MAX_SHOWN));
        }
    }
    text
}

fn wrong(error: ConfigError) -> AppError {
    AppError { kind: FailureKind::Config, cause: error.into() }
}
