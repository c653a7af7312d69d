//! Puts files back, for `agent undo` and `agent redo`: all of them or, where somebody else changed one since, none.

use crate::change::{Change, ChangedBy, FileState, Way};
use crate::cli::app::App;
use crate::cli::args::RestoreArgs;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::past::{Past, unwritten};
use crate::event::Event;
use crate::failure::ErrorKind;
use crate::journal::history::Restoration;
use crate::messages;
use crate::terminal::Style;

/// One file, as it is to be and as it is.
struct Task {
    restoration: Restoration,
    now: FileState,
}

/// What is to be done, and what cannot be.
#[derive(Default)]
struct Tasks {
    ready: Vec<Task>,
    /// Changed by somebody else since.
    changed: Vec<String>,
    /// What they hold now is not kept, and why.
    unkept: Vec<(String, String)>,
    /// Their content was not kept.
    lost: Vec<String>,
}

/// What was done.
#[derive(Default)]
struct Done {
    changed: Vec<Change>,
    /// What was displaced and could not be kept.
    warnings: Vec<String>,
    problems: Vec<String>,
}

/// Puts back what `way` and the arguments say, and tells the session's journal.
///
/// # Errors
/// When there is no such session, it is busy, somebody else changed a file since, or one cannot be put back.
pub fn restore(app: &App, args: &RestoreArgs, way: Way, to_step: u32) -> CliResult<()> {
    let past = Past::hold(app, &args.place, args.session.as_deref())?;
    let file = args.file.as_deref().map(|file| past.name_of(file)).transpose()?;
    let planned = match way {
        Way::Undo => past.history.undo(to_step, file.as_deref()),
        Way::Redo => past.history.redo(file.as_deref()),
    };
    if planned.is_empty() {
        return print(&app.terminal, messages::nothing_to_restore(way));
    }
    let tasks = sorted(&past, planned)?;
    if !(tasks.changed.is_empty() && tasks.unkept.is_empty() || args.force) {
        let message = messages::in_the_way(way, &tasks.changed, &tasks.unkept);
        return Err(CliError::new(ErrorKind::Request, past.clean(&message)));
    }
    let Done { changed, mut problems, warnings } = put_all_back(&past, tasks.ready);
    if !tasks.lost.is_empty() {
        problems.insert(0, messages::not_kept(&tasks.lost));
    }
    for warning in warnings {
        app.tell(Style::Caution, &past.clean(&warning));
    }
    if !changed.is_empty() {
        let said = past.clean(&messages::restored(way, &changed));
        let event = Event::Restored { way, to_step, changed };
        past.emitter.emit(event).and_then(|_| past.emitter.sync()).map_err(unwritten)?;
        past.contents.prune();
        print(&app.terminal, &said)?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(CliError::new(ErrorKind::Request, past.clean(&problems.join("\n"))))
}

/// Puts back one file after the other, however it goes with those before; then the directories go that were made for them.
fn put_all_back(past: &Past, tasks: Vec<Task>) -> Done {
    let mut done = Done::default();
    let mut emptied = Vec::new();
    for task in tasks {
        let Restoration { path, left, wanted, directories, .. } = &task.restoration;
        // One that was killed may have put it back.
        let was = if task.now.agrees(wanted) { left } else { &task.now };
        match put_back(past, &task) {
            Ok(unkept) => {
                done.changed.push(Change::between(path, ChangedBy::Person, was, wanted));
                done.warnings.extend(unkept.map(|why| messages::cannot_be_undone(path, &why)));
                emptied.extend(past.workspace.path(path).ok().map(|path| (path, *directories)));
            }
            Err(problem) => done.problems.push(problem),
        }
    }
    past.workspace.remove_directories(emptied);
    done
}

/// Looks at every file before any is touched, and keeps what it holds.
fn sorted(past: &Past, planned: Vec<Restoration>) -> CliResult<Tasks> {
    let mut tasks = Tasks::default();
    for restoration in planned {
        let path = restoration.path.clone();
        let now = past.state_of(&path)?;
        let is_done = now.agrees(&restoration.wanted);
        let is_kept = match &restoration.wanted {
            FileState::Absent => true,
            FileState::Content { hash, .. } => is_done || past.contents.get(hash).is_some(),
            FileState::Unknown => false,
        };
        if !is_kept {
            tasks.lost.push(path);
            continue;
        }
        if !is_done && let Some(why) = unkept(past, &path, &now)? {
            tasks.unkept.push((path, why));
        } else if !is_done && (!now.agrees(&restoration.left) || restoration.mixed) {
            tasks.changed.push(path);
        }
        tasks.ready.push(Task { restoration, now });
    }
    Ok(tasks)
}

/// Why what `path` holds now is not kept; nothing where it is.
fn unkept(past: &Past, path: &str, now: &FileState) -> CliResult<Option<String>> {
    if *now == FileState::Absent {
        return Ok(None);
    }
    let kept = past.workspace.keep(&past.path(path)?, &past.contents);
    Ok(kept.err().map(|why| why.to_string()))
}

/// Puts one file back, unless somebody changes it at this moment; says why what it displaced could not be kept.
fn put_back(past: &Past, task: &Task) -> Result<Option<String>, String> {
    let Task { restoration: Restoration { path, wanted, left, .. }, now } = task;
    let rel = past.path(path).map_err(|error| error.to_string())?;
    // What an undo has left that was killed.
    past.workspace.clear_leftovers(&rel, left.hash());
    if now.agrees(wanted) {
        return Ok(None);
    }
    let displaced = match wanted.hash() {
        Some(hash) => {
            let bytes =
                past.contents.get(hash).ok_or_else(|| messages::not_kept(std::slice::from_ref(path)))?;
            past.workspace.put_back(&rel, now, &bytes, wanted)
        }
        None => past.workspace.take_away(&rel, now),
    }
    .map_err(|error| error.to_string())?;
    Ok(displaced.unkept)
}
