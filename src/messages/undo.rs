//! What is said about undoing: what cannot be, and what stands in its way.

use crate::core::file_change::{Change, ChangeAction, RestoreDirection};
use crate::core::language::Language;
use crate::text::lines::one_line;
use jiff::Timestamp;
use std::path::Path;

/// Characters of a path that is named.
const PATH_CHARS: usize = 200;
/// Paths that are named.
const MAX_LISTED: usize = 10;

/// A change of several files was cut off, and one of them is again as it was.
pub fn transaction_undone(path: &str) -> String {
    format!(
        "a change of several files was interrupted; {} is again as it was before",
        one_line(path, PATH_CHARS)
    )
}

/// A change of several files was cut off, and one of them could not be put back.
pub fn transaction_not_undone(path: &str, record: &Path) -> String {
    format!(
        "a change of several files was interrupted; {} was changed since, or cannot be written, and stays as it is: look at it. \
         {} holds what it was before; remove that then",
        one_line(path, PATH_CHARS),
        record.display()
    )
}

/// A change of several files was cut off, and nobody can tell which they are.
pub fn transaction_unreadable(record: &Path, why: &str) -> String {
    format!(
        "a change of several files was interrupted, and its record cannot be read ({}), so some of them may be changed and others \
         not: look at {}, which names them and holds what they were before, then remove it",
        one_line(why, PATH_CHARS),
        record.display()
    )
}

/// A change of a file tool whose content before was not kept.
pub fn cannot_be_undone(path: &str, why: &str) -> String {
    format!("the change of {} cannot be undone: {why}", one_line(path, PATH_CHARS))
}

/// Changes of a command whose contents before were not kept.
pub fn commands_not_undone(paths: &[&str], mebibytes: u64) -> String {
    format!(
        "what the command did to these files cannot be undone, because they are sensitive, hold a secret, are larger than {mebibytes} MiB, or \
         were too many to be kept: {}",
        list_paths(paths)
    )
}

/// Changes of a command beyond those that are listed.
pub fn changes_left_out(more: usize) -> String {
    format!("the command changed {more} more files, which are not listed and cannot be undone")
}

/// A checkpoint that was made.
pub fn checkpoint(reference: &str, left_out: &[String], language: Language) -> String {
    let word = language.pick("checkpoint", "punto de control");
    if left_out.is_empty() {
        return format!("{word}: {reference}");
    }
    let without = language.pick(
        "without these, which are sensitive, hold a secret, are too large or belong to another repository",
        "sin estos, que son sensibles, contienen un secreto, son demasiado grandes o pertenecen a otro repositorio",
    );
    format!("{word}: {reference}, {without}: {}", list_paths(left_out))
}

/// Why there are no checkpoints in this run, although they are asked for.
pub fn no_checkpoints(reason: &str) -> String {
    format!(
        "no checkpoints are made (checkpoints.enabled), `agent undo` works all the same: {}",
        one_line(reason, PATH_CHARS)
    )
}

/// Why the checkpoints of sessions that were removed are there still.
pub fn checkpoints_stay(reason: &str) -> String {
    format!(
        "the checkpoints of the removed sessions stay in the repository: {}. `agent help undo` says how to let all of them go",
        one_line(reason, PATH_CHARS)
    )
}

/// A session without changes of files that stand.
pub const NO_FILE_CHANGES: &str = "no change of a file stands in this session\n";

/// Nothing to put back.
pub fn nothing_to_restore(way: RestoreDirection) -> &'static str {
    match way {
        RestoreDirection::Undo => "nothing to undo\n",
        RestoreDirection::Redo => "nothing to redo\n",
    }
}

/// Which files were put back, and what that made of each, one a line.
pub fn restored(way: RestoreDirection, changed: &[Change]) -> String {
    let word = match way {
        RestoreDirection::Undo => "undone",
        RestoreDirection::Redo => "redone",
    };
    let lines = changed.iter().map(|change| {
        let what = match change.action {
            ChangeAction::Modified if change.before.is_some() && change.before == change.after => {
                "has its earlier permissions again"
            }
            ChangeAction::Created => "is there again",
            ChangeAction::Modified => "has its earlier content again",
            ChangeAction::Deleted => "is removed again",
        };
        format!("{word}: {} {what}", one_line(&change.path, PATH_CHARS))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Why nothing is put back.
pub fn restore_refused(way: RestoreDirection, changed: &[String], unkept: &[(String, String)]) -> String {
    let (word, back) = match way {
        RestoreDirection::Undo => ("undone", "redo"),
        RestoreDirection::Redo => ("redone", "undo"),
    };
    let mut reasons = Vec::new();
    if !changed.is_empty() {
        reasons.push(format!(
            "somebody else has changed files in between: {}; `--force` takes them too, and `agent {back}` would bring back what \
             they hold now",
            list_paths(changed)
        ));
    }
    if !unkept.is_empty() {
        let each: Vec<String> = unkept.iter().map(|(path, why)| format!("{path} ({why})")).collect();
        reasons.push(format!(
            "what files hold now cannot be kept: {}; `--force` takes them too, and `agent {back}` could not bring back what they \
             hold now",
            list_paths(&each)
        ));
    }
    let reasons = reasons.join(". And ");
    format!("nothing was {word}, because {reasons}. `--file FILE` takes one that is not among them")
}

/// Files that stay as they are because there is nothing to put back.
pub fn contents_not_stored(paths: &[String]) -> String {
    format!("these files stay as they are, because their contents were not kept: {}", list_paths(paths))
}

/// Said above a diff of a file that is not what the session left.
pub fn changed_by_others(path: &str) -> String {
    format!("# somebody else has changed {} since\n", one_line(path, PATH_CHARS))
}

/// Said above a diff of a file that had other permissions, or was a link.
pub fn mode_changed(path: &str, old: u32, new: u32) -> String {
    format!("# {}: mode {old:06o} became {new:06o}\n", one_line(path, PATH_CHARS))
}

/// Said instead of a diff.
pub fn no_diff(path: &str) -> String {
    format!("# {} changed; it is no text, or was not kept\n", one_line(path, PATH_CHARS))
}

/// What the model is told about files that were put back since it last worked on the session.
pub fn files_restored(paths: &[String]) -> String {
    format!(
        "[SYSTEM] Since your last step the person has put files back with `agent undo` or `agent redo`. They are not what you \
         left, so read them again before you go on: {}",
        list_paths(paths)
    )
}

/// A time to the minute, UTC; empty where it is none.
pub fn minute(wall_ms: u64) -> String {
    let time = i64::try_from(wall_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The day of a moment, UTC.
pub fn day(wall_ms: u64) -> String {
    minute(wall_ms).chars().take("2026-01-01".len()).collect()
}

/// `paths` on one line, as many as a person reads.
pub fn list_paths(paths: &[impl AsRef<str>]) -> String {
    let shown = paths.iter().take(MAX_LISTED).map(|path| one_line(path.as_ref(), PATH_CHARS));
    let mut names: Vec<String> = shown.collect();
    if paths.len() > MAX_LISTED {
        names.push(format!("{} more", paths.len() - MAX_LISTED));
    }
    names.join(", ")
}
