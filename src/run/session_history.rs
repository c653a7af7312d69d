//! A session opened for inspection or undo: its changes to files, and the current files.

use crate::app::App;
use crate::assemble;
use crate::error::{AppError, AppResult};
use crate::interrupted_calls;
use crate::session::{check_workspace, is_in_state, session_store, use_state_with};
use crate::undo_store;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::file_change::FileState;
use agent_journal::approvals::Approvals;
use agent_journal::file_history::FileHistory;
use agent_journal::interrupted_calls::UnfinishedCalls;
use agent_journal::read;
use agent_journal::session_store::{SessionError, SessionStore};
use agent_messages as messages;
use agent_runtime::emitter::{EmitError, Emitter};
use agent_terminal::Style;
use agent_workspace::Workspace;
use agent_workspace::content_store::ContentStore;
use agent_workspace::path::RelPath;
use std::path::Path;
use std::rc::Rc;

/// A session, its workspace and the stored contents of changed files.
pub struct SessionHistory {
    /// The session's id.
    pub id: String,
    /// Its changes to files.
    pub history: FileHistory,
    /// Its pending approvals.
    pub approvals: Approvals,
    /// Writes events to the session's journal if it is locked, and otherwise discards them.
    pub emitter: Emitter,
    /// The workspace.
    pub workspace: Workspace,
    /// The workspace, in which files that tools may not change cannot be restored.
    pub guarded: Workspace,
    /// The earlier contents of changed files.
    pub contents: ContentStore,
}

impl SessionHistory {
    /// Opens session `id` for reading, or the one that ended last with file changes, which is named.
    ///
    /// # Errors
    /// Fails for an invalid configuration, and when there is no such session or it is unreadable.
    pub fn open_read_only(app: &App, flags: &Overrides, id: Option<&str>) -> AppResult<Self> {
        let mut settings = app.load_and_notify(flags)?.settings;
        use_state_with(&mut settings, id);
        let store = session_store(&settings);
        let id = id.map_or_else(|| last_with_changes(app, &settings, &store), |id| Ok(id.to_owned()))?;
        Self::open(app, &settings, &store, id, Vec::new())
    }

    /// Opens and locks session `id`, or the one that ended last with file changes, which is named; and cleans up after a killed process.
    ///
    /// # Errors
    /// Fails as [`open_read_only`](Self::open_read_only) does, and when another process uses the session or its journal cannot be written.
    pub fn open_locked(app: &App, flags: &Overrides, id: Option<&str>) -> AppResult<Self> {
        let mut settings = app.load_and_notify(flags)?.settings;
        use_state_with(&mut settings, id);
        let store = session_store(&settings);
        let id = id.map_or_else(|| last_with_changes(app, &settings, &store), |id| Ok(id.to_owned()))?;
        let journal = store.open(&id)?;
        Self::open(app, &settings, &store, id, vec![Box::new(journal)])
    }

    /// Reads the journal after locking it, because another process may write to it until then.
    fn open(
        app: &App,
        settings: &Settings,
        store: &SessionStore,
        id: String,
        journal: Vec<Box<dyn EventSink>>,
    ) -> AppResult<Self> {
        let is_held = !journal.is_empty();
        let mut reading = read::read(&store.journal_path(&id)?)
            .map_err(|error| SessionError::Unreadable(id.clone(), error.to_string()))?;
        let began = workspace_of(&reading.records);
        let is_gone = |path: &&str| is_in_state(settings, path) && !Path::new(path).exists();
        if let Some(gone) = began.filter(is_gone).filter(|_| is_held) {
            return Err(AppError::new(FailureKind::Session, messages::session_workspace_gone(&id, gone)));
        }
        if settings.state != settings.directories.workspace_state(&settings.workspace) {
            check_workspace(settings, &id, began)?;
        }
        let workspace = Workspace::open(&settings.workspace)
            .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })?;
        let contents = undo_store::content_store(app, settings);
        let guarded = assemble::workspace_for_undo(app, settings)?;
        for workspace in [&workspace, &guarded] {
            workspace.set_content_store(contents.clone());
            workspace.set_undo_log_dir(undo_store::transactions_dir(settings));
        }
        let (source, run) = (Rc::clone(&app.source), app.source.short_id());
        let emitter =
            Emitter::new(source, run, reading.next_seq(), journal).with_redactor(app.redactor(settings));
        let calls = UnfinishedCalls::from_records(&reading.records).into_interrupted();
        if is_held {
            let cleared = calls.iter().flat_map(|call| interrupted_calls::remove_leftovers(&workspace, call));
            for text in assemble::recover_transactions(&workspace).into_iter().chain(cleared) {
                app.notify(Style::Warning, &emitter.redactor().text(&text));
            }
        }
        let baseline = store.baseline_path(&id)?;
        for call in calls {
            let changed = interrupted_calls::changes_made(&workspace, &baseline, &call);
            let ended =
                emitter.emit(interrupted_calls::unknown_outcome_event(call.call, call.summary, changed));
            reading.records.push(ended.map_err(journal_write_error)?);
        }
        let history = FileHistory::from_records(&reading.records);
        let approvals = Approvals::from_records(&reading.records);
        Ok(Self { id, history, approvals, emitter, workspace, guarded, contents })
    }

    /// Returns the path in the history for `file` as typed by the user.
    ///
    /// # Errors
    /// Fails for a file outside the workspace.
    pub fn history_path(&self, file: &str) -> AppResult<String> {
        let real = self.workspace.resolve(&self.path(file)?);
        let real = real.map_err(|error| AppError { kind: FailureKind::Usage, cause: error.into() })?;
        Ok(real.as_str().to_owned())
    }

    /// Returns the current state of `path`.
    ///
    /// # Errors
    /// Fails for something other than a file or link, and for an unreadable file.
    pub fn state_of(&self, path: &str) -> AppResult<FileState> {
        let found = self.workspace.state_of(&self.path(path)?);
        found.map_err(|error| AppError { kind: FailureKind::Request, cause: error.into() })
    }

    /// Returns `text` without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.emitter.redactor().text(text).into_owned()
    }

    /// Converts a path from the user or the journal.
    ///
    /// # Errors
    /// Fails for a path outside the workspace.
    pub fn path(&self, raw: &str) -> AppResult<RelPath> {
        self.workspace.path(raw).map_err(|error| AppError { kind: FailureKind::Usage, cause: error.into() })
    }
}

/// Creates the error for a journal that cannot be written.
pub fn journal_write_error(error: EmitError) -> AppError {
    AppError { kind: FailureKind::Internal, cause: error.into() }
}

/// Returns the workspace in which a session began.
fn workspace_of(records: &[Record]) -> Option<&str> {
    records.iter().find_map(|record| match &record.event {
        Event::SessionStart { workspace, .. } => Some(workspace.as_str()),
        _ => None,
    })
}

/// Returns the session that ended last of those with file changes, also undone ones, in the workspace itself; without any the one that ended last.
/// No imported session is taken. The session is named.
fn last_with_changes(app: &App, settings: &Settings, store: &SessionStore) -> AppResult<String> {
    let (imported, ids): (Vec<_>, Vec<_>) = store.list()?.partition(|id| store.is_imported(id));
    let has_changes = |id: &&String| {
        let Some(reading) = store.journal_path(id).ok().and_then(|path| read::read(&path).ok()) else {
            return false;
        };
        let is_elsewhere = check_workspace(settings, id, workspace_of(&reading.records)).is_err();
        let is_changed = || {
            let calls = UnfinishedCalls::from_records(&reading.records).into_interrupted();
            !calls.is_empty() || !FileHistory::from_records(&reading.records).steps().is_empty()
        };
        !is_elsewhere && is_changed()
    };
    let none = || imported.into_iter().next().map_or(SessionError::NoSessions, SessionError::OnlyImported);
    let id = ids.iter().find(has_changes).or(ids.first()).ok_or_else(none)?;
    store.check_directory(id)?;
    app.notify(Style::Plain, &messages::session_taken(id, settings.language));
    Ok(id.clone())
}
