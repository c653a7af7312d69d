//! Messages about undo, redo, checkpoints and interrupted changes.

use agent_core::file_change::{Change, ChangeAction, RestoreDirection};
use agent_core::language::Language;
use agent_text::lines::one_line;
use jiff::Timestamp;
use std::path::Path;

/// Characters shown of a path.
const PATH_CHARS: usize = 200;
/// Characters of an error of git, which can contain two paths.
const REASON_CHARS: usize = 800;
/// Maximum number of paths listed.
const MAX_LISTED: usize = 10;

/// Notice that an interrupted change of several files was rolled back for one file.
pub fn transaction_undone(path: &str) -> String {
    format!(
        "a change of several files was interrupted; {} was restored to its earlier content",
        one_line(path, PATH_CHARS)
    )
}

/// Warning that an interrupted change of several files could not be rolled back for one file.
pub fn transaction_not_undone(path: &str, record: &Path) -> String {
    format!(
        "a change of several files was interrupted; {} was changed since, or cannot be written, and was not restored: check it. \
         {} contains its earlier content; remove it afterwards",
        one_line(path, PATH_CHARS),
        record.display()
    )
}

/// Warning that the record of an interrupted change of several files is unreadable.
pub fn transaction_unreadable(record: &Path, why: &str) -> String {
    format!(
        "a change of several files was interrupted, and its record cannot be read ({}), so only some of them may be \
         changed: check {}, which contains their names and earlier contents, then remove it",
        one_line(why, PATH_CHARS),
        record.display()
    )
}

/// Warning that a change by a file tool cannot be undone, because the earlier content was not stored.
pub fn cannot_be_undone(path: &str, why: &str) -> String {
    format!("the change of {} cannot be undone: {why}", one_line(path, PATH_CHARS))
}

/// Warning that changes by a command cannot be undone, because the earlier contents were not stored.
pub fn commands_not_undone(paths: &[&str], mebibytes: u64) -> String {
    format!(
        "the command's changes to these files cannot be undone, because they are sensitive, contain a secret, are larger than {mebibytes} MiB, or \
         were too many to store: {}",
        list_paths(paths)
    )
}

/// Warning about changed files of a command beyond those listed.
pub fn changes_left_out(more: usize) -> String {
    format!("the command changed {more} more files, which are not listed and cannot be undone")
}

/// Notice of a checkpoint; `left_out` are the paths that it does not contain.
pub fn checkpoint(reference: &str, left_out: &[String], language: Language) -> String {
    let word = language.pick("checkpoint", "punto de control");
    if left_out.is_empty() {
        return format!("{word}: {reference}");
    }
    let without = language.pick(
        "without these, which are sensitive, contain a secret, are too large or belong to another repository",
        "sin estos, que son sensibles, contienen un secreto, son demasiado grandes o pertenecen a otro repositorio",
    );
    format!("{word}: {reference}, {without}: {}", list_paths(left_out))
}

/// Warning that the enabled checkpoints are not available in this run.
pub fn no_checkpoints(reason: &str) -> String {
    format!(
        "no checkpoints are made (checkpoints.enabled), but `agent undo` still works: {}",
        one_line(reason, REASON_CHARS)
    )
}

/// Error for a session that began in the workspace `other`.
pub fn other_workspace(other: &str) -> String {
    format!("it belongs to another workspace, {other} (work there, or with --workspace {other})")
}

/// Heading of the listed sessions of a workspace that is no longer at `path`.
pub fn sessions_of_gone_workspace(path: &str) -> String {
    format!("Of {path}, which was renamed or removed (`agent resume ID` continues one here):")
}

/// Notice on a session that began when the workspace had another path.
pub fn workspace_renamed(before: &str) -> String {
    format!("the session began in {before}, where nothing is any more: it continues here")
}

/// Error of git in a working tree whose `.git` file leads to a repository that does not name it.
pub fn repository_read_only(why: &str, repository: &Path) -> String {
    let directory = repository.display();
    format!(
        "{why}; commands and git may not write to {directory}, because that repository does not name this working tree as \
         its own: `git worktree repair` there, or --allow-write {directory}"
    )
}

/// Warning that the checkpoints of removed sessions could not be deleted.
pub fn checkpoints_stay(reason: &str) -> String {
    format!(
        "the checkpoints of the removed sessions stay in the repository: {}. See `agent help undo` for how to delete all of them",
        one_line(reason, PATH_CHARS)
    )
}

/// Output for a session without file changes, or with all of them undone.
pub const NO_FILE_CHANGES: &str = "this session has no file changes, or all of them were undone\n";

/// Names the session that a command takes when none is given.
pub fn session_taken(id: &str, language: Language) -> String {
    match language {
        Language::En => format!("session {id}"),
        Language::Es => format!("sesión {id}"),
    }
}

/// Output for a session with nothing to undo or redo.
pub fn nothing_to_restore(direction: RestoreDirection) -> &'static str {
    match direction {
        RestoreDirection::Undo => "nothing to undo\n",
        RestoreDirection::Redo => "nothing to redo\n",
    }
}

/// Lists the restored files and their new state, one per line.
pub fn restored(direction: RestoreDirection, changed: &[Change]) -> String {
    let word = match direction {
        RestoreDirection::Undo => "undone",
        RestoreDirection::Redo => "redone",
    };
    let lines = changed.iter().map(|change| {
        let what = match change.action {
            ChangeAction::Modified if change.before.is_some() && change.before == change.after => {
                "has its earlier permissions again"
            }
            ChangeAction::Created => "exists again",
            ChangeAction::Modified if direction == RestoreDirection::Redo => "has its changed content again",
            ChangeAction::Modified => "has its earlier content again",
            ChangeAction::Deleted => "is removed again",
        };
        format!("{word}: {} {what}", one_line(&change.path, PATH_CHARS))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Error for an undo or redo that restores nothing: files `changed` by others, or files whose content cannot be stored (`unkept`).
pub fn restore_refused(
    direction: RestoreDirection,
    changed: &[String],
    unkept: &[(String, String)],
) -> String {
    let (word, back) = match direction {
        RestoreDirection::Undo => ("undone", "redo"),
        RestoreDirection::Redo => ("redone", "undo"),
    };
    let mut reasons = Vec::new();
    if !changed.is_empty() {
        reasons.push(format!(
            "other programs or people changed these files in between: {}; `--force` includes them, and `agent {back}` can restore \
             their current content",
            list_paths(changed)
        ));
    }
    if !unkept.is_empty() {
        let each: Vec<String> = unkept.iter().map(|(path, why)| format!("{path} ({why})")).collect();
        reasons.push(format!(
            "the current content of these files cannot be stored: {}; `--force` includes them, and `agent {back}` cannot restore \
             their current content",
            list_paths(&each)
        ));
    }
    let reasons = reasons.join("; also, ");
    format!("nothing was {word}, because {reasons}. `--file FILE` selects a file that is not among them")
}

/// Notice about files that were not restored because their contents were not stored.
pub fn contents_not_stored(paths: &[String]) -> String {
    format!("these files were not restored, because their contents were not stored: {}", list_paths(paths))
}

/// Line above a diff of a file that was changed after the session.
pub fn changed_by_others(path: &str) -> String {
    format!("# {} was changed outside the session since\n", one_line(path, PATH_CHARS))
}

/// Line above a diff of a file whose mode changed (permissions or file type).
pub fn mode_changed(path: &str, old: u32, new: u32) -> String {
    format!("# {}: mode {old:06o} became {new:06o}\n", one_line(path, PATH_CHARS))
}

/// Line in place of a diff that is not available.
pub fn no_diff(path: &str) -> String {
    format!(
        "# {} changed; no diff, because it is not text or its content was not stored\n",
        one_line(path, PATH_CHARS)
    )
}

/// Message to the model about files restored since its last step.
pub fn files_restored(paths: &[String]) -> String {
    format!(
        "[SYSTEM] Since your last step the user has restored files with `agent undo` or `agent redo`. Their contents have \
         changed, so read them again before you continue: {}",
        list_paths(paths)
    )
}

/// Formats milliseconds since 1970 as date and time to the minute, UTC; empty if out of range.
pub fn minute(wall_ms: u64) -> String {
    let time = i64::try_from(wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Formats milliseconds since 1970 as date and time of ISO 8601 with seconds, UTC, without zone: `2026-01-01T12:30:00`.
pub fn iso_time(wall_ms: u64) -> String {
    let time = i64::try_from(wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

/// Formats milliseconds since 1970 as a date, UTC.
pub fn day(wall_ms: u64) -> String {
    minute(wall_ms).chars().take("2026-01-01".len()).collect()
}

/// Lists `paths` on one line, at most `MAX_LISTED` of them.
pub fn list_paths(paths: &[impl AsRef<str>]) -> String {
    let shown = paths.iter().take(MAX_LISTED).map(|path| one_line(path.as_ref(), PATH_CHARS));
    let mut names: Vec<String> = shown.collect();
    if paths.len() > MAX_LISTED {
        names.push(format!("{} more", paths.len() - MAX_LISTED));
    }
    names.join(", ")
}

/// The files of a session cannot be restored: its workspace is gone.
pub fn session_workspace_gone(id: &str, workspace: &str) -> String {
    format!(
        "the session {id} changed files in {workspace}, which no longer exists: there is nothing to restore"
    )
}
