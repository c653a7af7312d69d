//! `agent trust`: shows the settings of a project that need trust, and stores or revokes the user's trust in them.

use crate::commands::common_args::CommonArgs;
use crate::commands::project_files::NewFile;
use agent_config::error::ConfigError;
use agent_config::fact_cache::FactCache;
use agent_config::load::{self, LoadedConfig};
use agent_config::overrides::Overrides;
use agent_config::pipeline::{Action, Pipeline};
use agent_config::project::ProjectCommand;
use agent_config::trust::manifest::{
    TrustManifest, referencing_keys, uncovered_by_pipeline, uncovered_patterns,
};
use agent_config::trust::pipelines::{self, WorkspacePipeline};
use agent_config::trust::{self, TrustFlag, TrustStatus};
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_flows::pipeline_command::source::read_pipeline;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::output::print;
use agent_terminal::{self as terminal, PromptAnswer, Style, one_line, sanitize};
use clap::Args;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// `agent trust`.
#[derive(Debug, Clone, Args)]
pub struct TrustArgs {
    /// Only show it, with its hash
    #[arg(long)]
    pub show: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "show")]
    pub revoke: bool,
    /// Trust it without asking, where you know what it is
    #[arg(short, long, conflicts_with_all = ["show", "revoke"])]
    pub yes: bool,
    /// Also a pipeline of the workspace, with the files that its commands name
    #[arg(long, value_name = "FILE", conflicts_with = "revoke")]
    pub pipeline: Option<PathBuf>,
}

/// Shows, requests, stores or revokes trust.
///
/// # Errors
/// Fails for an invalid configuration, a refusal, no user to ask, and a record that cannot be written.
pub fn trust(app: &App, args: &TrustArgs, common: &CommonArgs) -> AppResult<()> {
    if args.revoke {
        return revoke(app, common);
    }
    let (loaded, status) = review(app, common)?;
    let pipeline = args.pipeline.as_ref().map(|file| ReviewedPipeline::read(&loaded, file)).transpose()?;
    let mut text = listing(&loaded);
    let mut manifest = loaded.trust.manifest.clone();
    if let Some(reviewed) = &pipeline {
        reviewed.list(&mut text);
        manifest = manifest.joined(&reviewed.own.manifest);
    }
    let _ = writeln!(text, "hash    {}", manifest.hash());
    let is_trusted = is_settled(&status) && pipeline.as_ref().is_none_or(|reviewed| reviewed.is_trusted);
    if args.show || is_trusted {
        let _ = writeln!(text, "status  {}", describe_status(&status));
        if let Some(reviewed) = &pipeline {
            let _ = writeln!(
                text,
                "pipeline {}",
                if reviewed.is_trusted { "trusted as it is" } else { "not trusted" }
            );
        }
        return print(&app.terminal, &text);
    }
    if args.yes {
        print(&app.terminal, &text)?;
    } else if !app.terminal.can_ask() {
        return Err(AppError::new(FailureKind::Usage, messages::TRUST_NEEDS_TERMINAL));
    } else if !ask(app, &text)? {
        return Err(AppError::new(FailureKind::Usage, messages::NOT_TRUSTED));
    }
    if let Some(reviewed) = &pipeline {
        let settings = &loaded.settings;
        reviewed.own.store(pipelines::fact_cache(&settings.state, &settings.workspace)).map_err(wrong)?;
    }
    if is_settled(&status) {
        app.notify(Style::Success, messages::TRUSTED);
        return Ok(());
    }
    store(app, &loaded)
}

fn wrong(error: ConfigError) -> AppError {
    AppError { kind: FailureKind::Config, cause: error.into() }
}

/// A pipeline of the workspace, as the user reviews it.
struct ReviewedPipeline {
    own: WorkspacePipeline,
    text: String,
    pipeline: Pipeline,
    /// Patterns in its commands that match files which the trust does not cover.
    uncovered: BTreeSet<String>,
    is_trusted: bool,
}

impl ReviewedPipeline {
    /// Reads the pipeline in `file`.
    fn read(loaded: &LoadedConfig, file: &Path) -> AppResult<Self> {
        let settings = &loaded.settings;
        let (text, pipeline) = read_pipeline(settings, file)?;
        let own = WorkspacePipeline::new(&settings.workspace, file, &text, &pipeline).map_err(wrong)?;
        let own = own.ok_or_else(|| {
            AppError::new(FailureKind::Usage, messages::pipeline_needs_no_trust(&file.to_string_lossy()))
        })?;
        let cache = pipelines::fact_cache(&settings.state, &settings.workspace);
        let is_trusted = own.is_stored(cache).map_err(wrong)?;
        let uncovered = uncovered_by_pipeline(&settings.workspace, &pipeline).map_err(wrong)?;
        Ok(Self { own, text, pipeline, uncovered, is_trusted })
    }

    /// Adds its steps with their commands to the listing, and the files that these name.
    fn list(&self, text: &mut String) {
        let _ = writeln!(text, "\n{}", name(&self.own.path));
        for step in self.pipeline.all_steps() {
            let kind = match &step.action {
                Action::Prompt(_) => "a prompt",
                Action::Chain { .. } => "a chain",
                Action::Run(_) => "a command",
                Action::Parallel(_) => "the next steps, at the same time",
                Action::Consolidate(_) => "a question to several models",
            };
            let _ = writeln!(text, "  step {}: {kind}", name(&step.name));
            step.commands().for_each(|command| indented(command, "    ", text));
        }
        let _ = writeln!(text, "  the whole file:");
        indented(&self.text, "    ", text);
        for file in self.own.manifest.files.keys().filter(|file| **file != self.own.path) {
            let _ = writeln!(text, "\n{}", name(file));
            let _ = writeln!(text, "  named by the pipeline: read it before you trust it");
        }
        for pattern in &self.uncovered {
            let _ = writeln!(text, "\n{}", messages::trust_pattern_uncovered(&name(pattern), "the pipeline"));
        }
        let (steps, files) = (self.pipeline.all_steps().count(), self.own.manifest.files.len() - 1);
        let _ = writeln!(text, "\npipeline {steps} steps, which name {files} other files");
    }
}

/// Shows what needs trust after a command has written the project's configuration. Trusts it at once if nothing but `written`
/// is covered, else asks at a terminal; without an answer, names the command for later.
///
/// # Errors
/// Fails for an invalid configuration, a record that cannot be written, and without a terminal when the trust would cover more
/// than `written`.
pub fn offer(app: &App, common: &CommonArgs, written: Option<&Vec<NewFile>>) -> AppResult<()> {
    let (loaded, status) = review(app, common)?;
    if is_settled(&status) {
        return Ok(());
    }
    let other = written.and_then(|written| other_content(&loaded.trust.manifest, written));
    let text = format!("\n{}", listing(&loaded));
    if written.is_some() && other.is_none() {
        print(&app.terminal, &text)?;
        return store(app, &loaded);
    }
    if app.terminal.can_ask() {
        if ask(app, &text)? {
            return store(app, &loaded);
        }
    } else {
        print(&app.terminal, &text)?;
    }
    if let Some(file) = other {
        return Err(AppError::new(FailureKind::Request, messages::trust_covers_more(&name(&file))));
    }
    app.notify(Style::Plain, messages::TRUST_LATER);
    Ok(())
}

/// Returns the first file of the manifest whose content is not that of one of `written`.
fn other_content(manifest: &TrustManifest, written: &[NewFile]) -> Option<String> {
    let is_written = |path: &str, hash: &str| {
        let same = |file: &&NewFile| file.path == path;
        written
            .iter()
            .find(same)
            .is_some_and(|file| blake3::hash(file.text.as_bytes()).to_hex().as_str() == hash)
    };
    manifest.files.iter().find(|(path, hash)| !is_written(path, hash)).map(|(path, _)| path.clone())
}

/// Loads the project as if it were trusted, so that problems with the trusted settings are reported first, and its status.
fn review(app: &App, common: &CommonArgs) -> AppResult<(LoadedConfig, TrustStatus)> {
    let status = app.load(&common.overrides())?.trust.status;
    let loaded = app.load(&Overrides { trust: TrustFlag::ThisRun, ..common.overrides() })?;
    Ok((loaded, status))
}

fn is_settled(status: &TrustStatus) -> bool {
    matches!(status, TrustStatus::NothingToTrust | TrustStatus::Trusted)
}

fn store(app: &App, loaded: &LoadedConfig) -> AppResult<()> {
    let settings = &loaded.settings;
    let stored =
        trust::fact_cache(&settings.state, &settings.workspace).store(loaded.trust.manifest.files.clone());
    stored.map_err(|error| {
        AppError::new(FailureKind::Config, messages::trust_not_stored(&error.to_string()))
    })?;
    app.notify(Style::Success, messages::TRUSTED);
    Ok(())
}

fn revoke(app: &App, common: &CommonArgs) -> AppResult<()> {
    let wrong = |cause: anyhow::Error| AppError { kind: FailureKind::Config, cause };
    let (state, workspace) = load::state_and_workspace(&common.overrides(), &app.environment)
        .map_err(|error| wrong(error.into()))?;
    let delete = |cache: FactCache<'_>| cache.delete().map_err(|error| wrong(error.into()));
    let was_trusted = delete(trust::fact_cache(&state, &workspace))?;
    let had_pipelines = delete(pipelines::fact_cache(&state, &workspace))?;
    let text =
        if was_trusted || had_pipelines { messages::TRUST_REVOKED } else { messages::NO_TRUST_TO_REVOKE };
    app.notify(Style::Plain, text);
    Ok(())
}

/// Shows the whole listing at the terminal and asks whether to trust it.
fn ask(app: &App, listing: &str) -> AppResult<bool> {
    app.notify(Style::Plain, listing.trim_end());
    let question = terminal::PromptQuestion {
        language: Language::En,
        title: messages::TRUST_QUESTION,
        reason: messages::TRUST_REASON,
        notes: &[],
        preview: None,
        lasting: None,
        saved: None,
    };
    let answer = app.block_on(async { Ok(app.terminal.ask(&question, &CancellationToken::new()).await) })?;
    Ok(answer == PromptAnswer::Yes)
}

/// Describes the trust status of the project.
pub fn describe_status(status: &TrustStatus) -> String {
    match status {
        TrustStatus::NothingToTrust => "nothing here needs trust".to_owned(),
        TrustStatus::Untrusted => "not trusted".to_owned(),
        TrustStatus::Changed { changes } => format!("no longer trusted: {changes}"),
        TrustStatus::Trusted | TrustStatus::ThisRun { .. } => "trusted as it is".to_owned(),
    }
}

/// Lists every relevant file with its keys that need trust and their values, complete.
fn listing(loaded: &LoadedConfig) -> String {
    let mut text = format!("{}\n", name(&loaded.settings.workspace.to_string_lossy()));
    for file in &loaded.project.files {
        let _ = writeln!(text, "\n{}", name(&file.path));
        for (key, layer_value) in file.restricted.needs_trust.layer_values() {
            let _ = writeln!(text, "  {} (line {})", name(key), layer_value.origin.line);
            show(&layer_value.value, &mut text);
        }
        if file.restricted.needs_trust.is_empty() {
            let _ = writeln!(text, "  nothing that needs trust");
        }
        for (key, _) in file.restricted.never_from_project.layer_values() {
            let _ = writeln!(text, "  {} is ignored, trusted or not", name(key));
        }
    }
    let named: Vec<&Path> = trust::other_files(&loaded.trust.manifest, &loaded.project).collect();
    for file in &named {
        let _ = writeln!(text, "\n{}", name(&file.to_string_lossy()));
        let _ = writeln!(text, "  {}", references(loaded, file));
        if let Some(command) = slash_command(loaded, file) {
            indented(&command.text, "    ", &mut text);
        }
    }
    let files = &loaded.project.files;
    for file in files {
        let root = &loaded.settings.workspace;
        for (key, pattern) in uncovered_patterns(root, &file.restricted.needs_trust).unwrap_or_default() {
            let _ = writeln!(text, "\n{}", messages::trust_pattern_uncovered(&name(&pattern), &name(&key)));
        }
    }
    let settings: usize = files.iter().map(|file| file.restricted.needs_trust.layer_values().count()).sum();
    let _ = writeln!(text, "\n{}", messages::trust_totals(settings, files.len(), named.len()));
    text
}

/// Sanitizes a name chosen by the project, in full and on one line; otherwise it could forge lines of this listing.
fn name(text: &str) -> String {
    one_line(text, usize::MAX)
}

/// Returns the slash command in a file.
fn slash_command<'a>(loaded: &'a LoadedConfig, file: &Path) -> Option<&'a ProjectCommand> {
    loaded.project.commands.values().find(|command| Path::new(&command.path) == file)
}

/// Explains why a file other than a configuration file is relevant.
fn references(loaded: &LoadedConfig, file: &Path) -> String {
    let root = &loaded.settings.workspace;
    if slash_command(loaded, file).is_some() {
        return "a slash command: its text is sent to the model as your message".to_owned();
    }
    let waiting = loaded.project.files.iter().map(|file| &file.restricted.needs_trust);
    let file = file.to_string_lossy();
    let keys: Vec<&str> = waiting.flat_map(|waiting| referencing_keys(root, waiting, &file)).collect();
    format!("named by {}: read it before you trust it", name(&keys.join(", ")))
}

/// Formats a value for the decision: commands and other texts verbatim, each item of a list separately.
fn show(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| show(item, text)),
        Value::Object(fields) => {
            let command = fields.get("command").and_then(Value::as_str);
            indented(command.unwrap_or_default(), "    ", text);
            let more = fields.iter().filter(|(field, _)| command.is_none() || *field != "command");
            let more: Vec<String> = more.map(|(field, value)| format!("{field}: {value}")).collect();
            indented(&more.join("\n"), "      ", text);
        }
        Value::String(value) => indented(value, "    ", text),
        other => indented(&other.to_string(), "    ", text),
    }
}

fn indented(value: &str, indent: &str, text: &mut String) {
    for line in sanitize(value).lines() {
        let _ = writeln!(text, "{indent}{line}");
    }
}
