//! Storage from which the changes of a session are undone.

use crate::app::App;
use crate::error::AppResult;
use crate::session::session_store;
use agent_config::environment::WORKTREES;
use agent_config::schema::CheckpointSettings;
use agent_config::settings::Settings;
use agent_engine::checkpoints::Checkpoints;
use agent_journal::file_history::FileHistory;
use agent_workspace::content_store::{CONTENTS_DIR, ContentStore};
use std::path::PathBuf;

/// Storage from which the changes of a session are undone.
pub struct UndoStore {
    /// The earlier contents of changed files.
    pub contents: ContentStore,
    /// The directory with the file states before the last command.
    pub baseline: PathBuf,
    /// The git commits of the session's changes, if they are enabled.
    pub checkpoints: Option<Checkpoints>,
}

impl UndoStore {
    /// Creates the storage of session `id`, with this `history` of changes.
    ///
    /// # Errors
    /// Fails when `id` is not a valid id.
    pub fn new(app: &App, settings: &Settings, id: &str, history: &FileHistory) -> AppResult<Self> {
        let CheckpointSettings { enabled, every_n_steps } = settings.checkpoints;
        let checkpoints = enabled.then(|| {
            let files = history.files().map(str::to_owned).collect();
            Checkpoints::new(id.to_owned(), every_n_steps, history.last_step(), files)
        });
        let baseline = session_store(settings).baseline_path(id)?;
        Ok(Self { contents: content_store(app, settings), baseline, checkpoints })
    }
}

/// Returns the store of earlier file contents, which is outside the workspace and shared by all its sessions.
pub fn content_store(app: &App, settings: &Settings) -> ContentStore {
    ContentStore::new(settings.state.join(CONTENTS_DIR), app.redactor(settings))
}

/// Returns the directory in which changes to several files are recorded while they are in progress: each worktree has its own.
pub fn transactions_dir(settings: &Settings) -> PathBuf {
    let below = settings.workspace.strip_prefix(settings.state.join(WORKTREES));
    match below.ok().and_then(|below| below.iter().next()) {
        Some(name) => settings.state.join("worktree-transactions").join(name),
        None => settings.state.join("transactions"),
    }
}
