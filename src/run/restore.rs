//! Restores files for `agent undo` and `agent redo`: all of them, or none if someone else changed one since.

use crate::app::App;
use crate::error::{AppError, AppResult};
use crate::output::print;
use crate::session_history::{SessionHistory, journal_write_error};
use agent_config::overrides::Overrides;
use agent_core::event::Event;
use agent_core::failure::FailureKind;
use agent_core::file_change::{Change, ChangedBy, FileState, RestoreDirection};
use agent_journal::file_history::Restoration;
use agent_messages as messages;
use agent_terminal::Style;

/// Which files are restored.
#[derive(Debug)]
pub struct RestoreRequest {
    /// Configuration and workspace.
    pub flags: Overrides,
    /// The session; without it, the session of the workspace that ended last with file changes.
    pub session: Option<String>,
    /// The only file.
    pub file: Option<String>,
    /// Whether files are restored that somebody else has changed since, and files whose content cannot be kept.
    pub force: bool,
    /// Undo, or redo.
    pub direction: RestoreDirection,
    /// The last step whose changes stay.
    pub to_step: u32,
}

/// One file with its wanted and its current state.
struct FileRestore {
    restoration: Restoration,
    now: FileState,
}

/// The files to restore, and those that cannot be restored.
#[derive(Default)]
struct RestorePlan {
    ready: Vec<FileRestore>,
    /// Files that someone else changed since.
    changed: Vec<String>,
    /// Files whose current content cannot be stored, with the reason.
    not_storable: Vec<(String, String)>,
    /// Files whose earlier content is not stored.
    missing: Vec<String>,
}

/// The result of restoring files.
#[derive(Default)]
struct RestoreOutcome {
    changed: Vec<Change>,
    /// Warnings on replaced content that could not be stored.
    warnings: Vec<String>,
    problems: Vec<String>,
}

/// What was restored.
#[derive(Default)]
pub struct Restored {
    /// The changes.
    pub changed: Vec<Change>,
    /// Warnings on replaced content that could not be stored.
    pub warnings: Vec<String>,
    /// Why some of the files could not be restored.
    pub problem: Option<String>,
}

/// Restores the files of a request, and prints what was done.
///
/// # Errors
/// Fails as [`restore_files`] does, when some files could not be restored, and when standard output cannot be written.
pub fn restore(app: &App, request: &RestoreRequest) -> AppResult<()> {
    let Restored { changed, warnings, problem } = restore_files(app, request)?;
    let direction = request.direction;
    for warning in warnings {
        app.notify(Style::Warning, &warning);
    }
    if !changed.is_empty() {
        print(&app.terminal, &app.redact(&messages::restored(direction, &changed)))?;
    }
    match problem {
        Some(problem) => Err(AppError::new(FailureKind::Request, problem)),
        None if changed.is_empty() => print(&app.terminal, messages::nothing_to_restore(direction)),
        None => Ok(()),
    }
}

/// Restores the files of a request, and records it in the session's journal.
///
/// # Errors
/// Fails for an unknown session or one in use, a file that someone else changed since, and when the journal cannot be written.
pub fn restore_files(app: &App, request: &RestoreRequest) -> AppResult<Restored> {
    let RestoreRequest { flags, session, file, force, direction, to_step } = request;
    let (direction, to_step) = (*direction, *to_step);
    let loaded_session = SessionHistory::open_locked(app, flags, session.as_deref())?;
    let file = file.as_deref().map(|file| loaded_session.history_path(file)).transpose()?;
    let planned = match direction {
        RestoreDirection::Undo => loaded_session.history.undo(to_step, file.as_deref()),
        RestoreDirection::Redo => loaded_session.history.redo(file.as_deref()),
    };
    if planned.is_empty() {
        return Ok(Restored::default());
    }
    let tasks = plan(&loaded_session, planned)?;
    if !(tasks.changed.is_empty() && tasks.not_storable.is_empty() || *force) {
        let message = messages::restore_refused(direction, &tasks.changed, &tasks.not_storable);
        return Err(AppError::new(FailureKind::Request, loaded_session.redact(&message)));
    }
    let RestoreOutcome { changed, mut problems, warnings } = restore_all(&loaded_session, tasks.ready);
    if !tasks.missing.is_empty() {
        problems.insert(0, messages::contents_not_stored(&tasks.missing));
    }
    if !changed.is_empty() {
        let event = Event::Restored { direction, to_step, changed: changed.clone() };
        loaded_session
            .emitter
            .emit(event)
            .and_then(|_| loaded_session.emitter.sync())
            .map_err(journal_write_error)?;
        loaded_session.contents.prune();
    }
    let problem = (!problems.is_empty()).then(|| loaded_session.redact(&problems.join("\n")));
    let warnings = warnings.iter().map(|warning| loaded_session.redact(warning)).collect();
    Ok(Restored { changed, warnings, problem })
}

/// Restores each file, even if others fail, and then removes the directories that were created for them.
fn restore_all(loaded_session: &SessionHistory, tasks: Vec<FileRestore>) -> RestoreOutcome {
    let mut done = RestoreOutcome::default();
    let mut emptied = Vec::new();
    for task in tasks {
        let Restoration { path, left, wanted, directories, .. } = &task.restoration;
        // An earlier undo that was killed may have restored the file already.
        let was = if task.now.is_consistent_with(wanted) { left } else { &task.now };
        match restore_file(loaded_session, &task) {
            Ok(unkept) => {
                done.changed.push(Change::between(path, ChangedBy::Person, was, wanted));
                done.warnings.extend(unkept.map(|why| messages::cannot_be_undone(path, &why)));
                emptied.extend(loaded_session.workspace.path(path).ok().map(|path| (path, *directories)));
            }
            Err(problem) => done.problems.push(problem),
        }
    }
    loaded_session.workspace.remove_directories(emptied);
    done
}

/// Checks every file before any is changed, and stores its current content.
fn plan(loaded_session: &SessionHistory, planned: Vec<Restoration>) -> AppResult<RestorePlan> {
    let mut tasks = RestorePlan::default();
    for restoration in planned {
        let path = restoration.path.clone();
        let now = loaded_session.state_of(&path)?;
        let is_done = now.is_consistent_with(&restoration.wanted);
        let is_kept = match &restoration.wanted {
            FileState::Absent => true,
            FileState::Content { hash, .. } => is_done || loaded_session.contents.get(hash).is_some(),
            FileState::Unknown => false,
        };
        if !is_kept {
            tasks.missing.push(path);
            continue;
        }
        if !is_done && let Some(why) = storage_error(loaded_session, &path, &now)? {
            tasks.not_storable.push((path, why));
        } else if !is_done && (!now.is_consistent_with(&restoration.left) || restoration.has_foreign_changes)
        {
            tasks.changed.push(path);
        }
        tasks.ready.push(FileRestore { restoration, now });
    }
    Ok(tasks)
}

/// Returns the reason why the current content of `path` cannot be stored; `None` if it was stored.
fn storage_error(loaded_session: &SessionHistory, path: &str, now: &FileState) -> AppResult<Option<String>> {
    if *now == FileState::Absent {
        return Ok(None);
    }
    let kept = loaded_session.workspace.store(&loaded_session.path(path)?, &loaded_session.contents);
    Ok(kept.err().map(|why| why.to_string()))
}

/// Restores one file, unless it changes concurrently; returns the reason if the replaced content could not be stored.
fn restore_file(loaded_session: &SessionHistory, task: &FileRestore) -> Result<Option<String>, String> {
    let FileRestore { restoration: Restoration { path, wanted, left, is_of_commands, .. }, now } = task;
    let rel = loaded_session.path(path).map_err(|error| error.to_string())?;
    // Temporary files of an undo that was killed.
    loaded_session.workspace.clear_leftovers(&rel, left.hash());
    if now.is_consistent_with(wanted) {
        return Ok(None);
    }
    let SessionHistory { workspace, guarded, contents, .. } = loaded_session;
    let workspace = if *is_of_commands { workspace } else { guarded };
    let restored =
        workspace.restore_stored(&rel, now, wanted, contents).map_err(|error| error.to_string())?;
    let restored = restored.ok_or_else(|| messages::contents_not_stored(std::slice::from_ref(path)))?;
    Ok(restored.store_error)
}
