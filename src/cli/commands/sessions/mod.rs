//! `agent sessions`: lists, shows, searches and manages the sessions of this workspace; one file per command.

pub mod args;
pub mod export;
mod export_format;
mod fork;
mod import;
mod list;
mod remove;
mod search;
mod show;

use crate::commands::common_args::CommonArgs;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_journal::read::{self, JournalContents};
use agent_journal::session_store::SessionStore;
use agent_redactor::Redactor;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::session::{session_store, use_state_with};
use agent_terminal::Terminal;
use args::SessionsCommand;
use export::PathReplacements;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum length of a displayed task in characters.
const TASK_CHARS: usize = 80;

/// The context of these commands. Their output is redacted with the secrets known now.
struct CommandContext<'a> {
    terminal: &'a Terminal,
    store: SessionStore,
    redactor: Arc<Redactor>,
}

impl CommandContext<'_> {
    /// Reads the journal of session `id`.
    fn read(&self, id: &str) -> AppResult<JournalContents> {
        read_session(&self.store, id)
    }
}

/// Reads the journal of session `id`.
fn read_session(store: &SessionStore, id: &str) -> AppResult<JournalContents> {
    let path = store.journal_path(id)?;
    read::read(&path).map_err(|error| unreadable(&path, &error))
}

/// Runs `command`.
///
/// # Errors
/// Fails for an invalid configuration, a session that is unknown, unreadable or locked, and when standard output cannot be
/// written.
pub fn sessions(app: &App, command: SessionsCommand, common: &CommonArgs) -> AppResult<()> {
    let mut settings = app.load_and_notify(&common.overrides())?.settings;
    if let SessionsCommand::Show { id }
    | SessionsCommand::Fork { id, .. }
    | SessionsCommand::Export { id, .. } = &command
    {
        use_state_with(&mut settings, Some(id));
    }
    let store = session_store(&settings);
    let context = CommandContext { terminal: &app.terminal, store, redactor: app.redactor(&settings) };
    let new_id = || app.source.session_id();
    match command {
        SessionsCommand::List(args) => list::list(&context, &settings, &args),
        SessionsCommand::Show { id } => show::show(&context, &id),
        SessionsCommand::Search { text, limit } => search::search(&context, &text, limit),
        SessionsCommand::Fork { id, to_step } => fork::fork(&context, &id, to_step, &new_id()),
        SessionsCommand::Export { id, output, redact } => {
            let path_replacements =
                if redact { path_replacements(app, &settings) } else { PathReplacements::default() };
            export::export(&context, &id, output.as_deref(), &path_replacements)
        }
        SessionsCommand::Import { file } => {
            import::import(&context, &file, &new_id(), &settings.workspace.to_string_lossy())
        }
        SessionsCommand::Rm { ids } => remove::rm(app, &settings, &ids),
        SessionsCommand::Cleanup { older_than, dry_run } => {
            let days = older_than.or(settings.sessions.cleanup_after_days);
            remove::cleanup(app, &settings, &context, days, dry_run)
        }
    }
}

/// Returns replacements for the paths that may identify the user.
fn path_replacements(app: &App, settings: &Settings) -> PathReplacements {
    let workspace = Some((settings.workspace.as_path(), "/workspace"));
    let home = app.environment.home().map(|home| (home, "/home/user"));
    let named = |(path, other): (&Path, _)| (path.to_string_lossy().into_owned(), other);
    // The path `/` would match in every path.
    let is_replaceable = |(path, _): &(String, _)| path.len() > 1;
    PathReplacements { pairs: workspace.into_iter().chain(home).map(named).filter(is_replaceable).collect() }
}

fn unreadable(path: &Path, error: &io::Error) -> AppError {
    AppError::new(FailureKind::Session, format!("cannot read {}: {error}", path.display()))
}
