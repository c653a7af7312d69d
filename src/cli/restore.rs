//! Puts files back, for `agent undo` and `agent redo`: all of them or, where somebody else changed one since, none.

use crate::change::{Change, ChangedBy, FileState};
use crate::cli::app::App;
use crate::cli::args::RestoreArgs;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::past::Past;
use crate::event::{Event, Way};
use crate::failure::ErrorKind;
use crate::journal::history::Restoration;
use crate::messages;
use crate::terminal::Style;
use crate::workspace::replace::Expected;

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
    let (past, journal) = Past::hold(app, &args.place, args.session.as_deref())?;
    let file = args.file.as_deref().map(|file| past.name_of(file)).transpose()?;
    let planned = match way {
        Way::Undo => past.history.undo(to_step, file.as_deref()),
        Way::Redo => past.history.redo(file.as_deref()),
    };
    if planned.is_empty() {
        return print(&app.terminal, messages::nothing_to_restore(way));
    }
    let tasks = sorted(&past, planned)?;
    let clean = |text: String| past.redactor.text(&text).into_owned();
    if !tasks.changed.is_empty() && !args.force {
        let message = messages::changed_since(way, &tasks.changed);
        return Err(CliError::new(ErrorKind::Request, clean(message)));
    }
    let Done { changed, mut problems, warnings } = put_all_back(&past, tasks.ready);
    if !tasks.lost.is_empty() {
        problems.insert(0, messages::not_kept(&tasks.lost));
    }
    for warning in warnings {
        app.tell(Style::Caution, &clean(warning));
    }
    if !changed.is_empty() {
        let said = clean(messages::restored(way, &changed));
        let event = Event::Restored { way, to_step, changed };
        past.tell(app, journal, event)?;
        past.contents.prune();
        print(&app.terminal, &said)?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(CliError::new(ErrorKind::Request, clean(problems.join("\n"))))
}

/// Puts back one file after the other, however it goes with those before.
fn put_all_back(past: &Past, tasks: Vec<Task>) -> Done {
    let mut done = Done::default();
    for task in tasks {
        let Restoration { path, left, wanted, .. } = &task.restoration;
        match put_back(past, &task) {
            Ok(unkept) => {
                done.changed.push(Change::between(path, ChangedBy::Person, left, wanted));
                done.warnings.extend(unkept.map(|why| messages::cannot_be_undone(path, &why)));
            }
            Err(problem) => done.problems.push(problem),
        }
    }
    done
}

/// Looks at every file before any is touched.
fn sorted(past: &Past, planned: Vec<Restoration>) -> CliResult<Tasks> {
    let mut tasks = Tasks::default();
    for restoration in planned {
        let path = restoration.path.clone();
        let now = past.state_of(&path)?;
        let is_done = now == restoration.wanted;
        let is_kept = match &restoration.wanted {
            FileState::Absent => true,
            FileState::Content(hash) => is_done || past.contents.get(hash).is_some(),
            FileState::Unknown => false,
        };
        if !is_kept {
            tasks.lost.push(path);
            continue;
        }
        if !is_done && (now != restoration.left || restoration.mixed) {
            tasks.changed.push(path);
        }
        tasks.ready.push(Task { restoration, now });
    }
    Ok(tasks)
}

/// Puts one file back, unless somebody changes it at this moment; says why what it displaced could not be kept.
fn put_back(past: &Past, task: &Task) -> Result<Option<String>, String> {
    let Restoration { path, wanted, .. } = &task.restoration;
    if task.now == *wanted {
        return Ok(None);
    }
    let expected = match &task.now {
        FileState::Absent => Expected::Absent,
        FileState::Content(hash) => Expected::Hash(hash.clone()),
        FileState::Unknown => Expected::Any,
    };
    let rel = past.path(path).map_err(|error| error.to_string())?;
    let displaced = match wanted {
        FileState::Content(hash) => {
            let bytes =
                past.contents.get(hash).ok_or_else(|| messages::not_kept(std::slice::from_ref(path)))?;
            past.workspace.replace(&rel, &expected, &bytes)
        }
        FileState::Absent | FileState::Unknown => past.workspace.remove(&rel, &expected),
    }
    .map_err(|error| error.to_string())?;
    Ok(displaced.unkept)
}
