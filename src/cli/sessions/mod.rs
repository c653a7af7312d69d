//! `agent sessions`: what happened in this workspace so far; one file per command.

pub mod args;
mod export;
mod exported;
mod fork;
mod import;
mod list;
mod remove;
mod search;
mod show;

use crate::cli::app::App;
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::place::PlaceArgs;
use crate::config::settings::Settings;
use crate::failure::ErrorKind;
use crate::journal::read::{self, Reading};
use crate::journal::store::Store;
use crate::redactor::Redactor;
use crate::terminal::Terminal;
use args::SessionsCommand;
use export::Places;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

/// How much of a task is shown, in characters.
const TASK_CHARS: usize = 80;

/// What these commands work with. What they tell is without the secrets that are known now, whatever was known then.
struct Archive<'a> {
    terminal: &'a Terminal,
    store: Store,
    redactor: Arc<Redactor>,
}

impl Archive<'_> {
    /// What session `id` holds.
    fn read(&self, id: &str) -> CliResult<Reading> {
        let path = self.store.journal_path(id)?;
        read::read(&path).map_err(|error| unreadable(&path, &error))
    }
}

/// Does what `command` says.
///
/// # Errors
/// When the configuration is wrong, there is no such session, it cannot be read or changed, or standard output cannot be
/// written.
pub fn sessions(app: &App, command: SessionsCommand, place: &PlaceArgs) -> CliResult<()> {
    let settings = app.load_place(place)?.settings;
    let store = store(&settings);
    let archive = Archive { terminal: &app.terminal, store, redactor: app.redactor(&settings) };
    let new_id = || app.source.session_id();
    match command {
        SessionsCommand::List(args) => list::list(&archive, &args),
        SessionsCommand::Show { id } => show::show(&archive, &id),
        SessionsCommand::Search { text, limit } => search::search(&archive, &text, limit),
        SessionsCommand::Fork { id, to_step } => fork::fork(&archive, &id, to_step, &new_id()),
        SessionsCommand::Export { id, output, redact } => {
            let places = if redact { places(app, &settings) } else { Places::default() };
            export::export(&archive, &id, output.as_deref(), &places)
        }
        SessionsCommand::Import { file } => {
            import::import(&archive, &file, &new_id(), &settings.workspace.to_string_lossy())
        }
        SessionsCommand::Rm { ids } => remove::rm(app, &settings, &archive, &ids),
        SessionsCommand::Cleanup { older_than, dry_run } => {
            let days = older_than.or(settings.sessions.cleanup_after_days);
            remove::cleanup(app, &settings, &archive, days, dry_run)
        }
    }
}

/// The paths that may name a person.
fn places(app: &App, settings: &Settings) -> Places {
    let workspace = Some((settings.workspace.as_path(), "/workspace"));
    let home = app.environment.home().map(|home| (home, "/home/user"));
    let named = |(path, other): (&Path, _)| (path.to_string_lossy().into_owned(), other);
    // A root would be found in every path.
    let told = |(path, _): &(String, _)| path.len() > 1;
    Places { names: workspace.into_iter().chain(home).map(named).filter(told).collect() }
}

/// Makes a directory that only its owner reads.
fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn unreadable(path: &Path, error: &io::Error) -> CliError {
    CliError::new(ErrorKind::Session, format!("cannot read {}: {error}", path.display()))
}
