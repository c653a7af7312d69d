//! Where it is kept what undoes the changes of a session.

use crate::cli::compose::app::App;
use crate::cli::compose::session::session_store;
use crate::cli::error::CliResult;
use crate::config::schema::CheckpointSettings;
use crate::config::settings::Settings;
use crate::engine::checkpoints::Checkpoints;
use crate::journal::file_history::FileHistory;
use crate::workspace::content_store::ContentStore;
use std::path::PathBuf;

/// What undoes the changes of a session.
pub struct UndoStore {
    /// The contents that changes displace.
    pub contents: ContentStore,
    /// Where the files are written as they were before a command.
    pub baseline: PathBuf,
    /// The commits that are made of them, where they are asked for.
    pub checkpoints: Option<Checkpoints>,
}

impl UndoStore {
    /// That of session `id`, with this `history`.
    ///
    /// # Errors
    /// When `id` does not have the form of an id.
    pub fn new(app: &App, settings: &Settings, id: &str, history: &FileHistory) -> CliResult<Self> {
        let CheckpointSettings { enabled, every_n_steps } = settings.checkpoints;
        let checkpoints = enabled.then(|| {
            let files = history.files().map(str::to_owned).collect();
            Checkpoints::new(id.to_owned(), every_n_steps, history.last_step(), files)
        });
        let baseline = session_store(settings).baseline_path(id)?;
        Ok(Self { contents: content_store(app, settings), baseline, checkpoints })
    }
}

/// Where what changes displace is kept: outside of the workspace, for all of its sessions.
pub fn content_store(app: &App, settings: &Settings) -> ContentStore {
    ContentStore::new(settings.state.join("displaced"), app.redactor(settings))
}

/// Where changes of several files are recorded while they are under way.
pub fn transactions_dir(settings: &Settings) -> PathBuf {
    settings.state.join("transactions")
}
