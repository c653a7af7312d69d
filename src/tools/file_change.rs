//! Shared steps of the tools that change files: load as text, check that the model saw this version, store.

use crate::arguments::nearest;
use crate::rewrite::{LoadedFile, Rewrite};
use crate::{ToolContext, ToolOutput};
use agent_core::file_change::{Change, ChangedBy, FileState, ObservedFile};
use agent_messages as messages;
use agent_text::lines::{BOM, LineEnding};
use agent_workspace::error::FileError;
use agent_workspace::file::{HashedContent, hash};
use agent_workspace::path::RelPath;
use agent_workspace::replace::{AppliedChange, Expected};
use agent_workspace::transaction::{FileEdit, OriginalFile};

/// Size in bytes of the largest file that is edited or overwritten.
pub const MAX_EDIT_BYTES: u64 = 16 * 1024 * 1024;

/// Maximum number of directory entries searched for "did you mean".
const MAX_NEIGHBOURS: usize = 2000;

/// Parses a path argument and checks that it is neither outside the workspace nor sensitive.
///
/// # Errors
/// A message for the model.
pub fn checked_path(cx: &ToolContext, raw: &str) -> Result<RelPath, String> {
    let path = cx.workspace.path(raw).map_err(|error| error.to_string())?;
    let real = cx.workspace.resolve(&path).unwrap_or_else(|_| path.clone());
    if (cx.hidden)(path.as_str()) || (cx.hidden)(real.as_str()) {
        return Err(format!(
            "Security error: '{path}' is a sensitive file; no file tool shows or changes it."
        ));
    }
    Ok(path)
}

/// Loads `path` for a change; returns `None` when there is no such file.
///
/// # Errors
/// A message for the model: not a file, too large, or not text.
pub fn load(cx: &ToolContext, path: &RelPath) -> Result<Option<LoadedFile>, String> {
    let content = match cx.workspace.read(path, MAX_EDIT_BYTES) {
        Ok(content) => content,
        Err(FileError::Missing(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    match String::from_utf8(content.bytes) {
        Ok(text) => {
            let mode = content.mode.as_raw_mode();
            Ok(Some(LoadedFile { path: content.path, text, hash: content.hash, mode }))
        }
        Err(_) => Err(format!("File {path} is not a valid text file (UTF-8)")),
    }
}

/// Loads `path`, which must exist and, if the model has seen it, be the version it saw last.
///
/// # Errors
/// A message for the model, as [`load`], and for a missing or changed file.
pub fn load_unchanged(cx: &ToolContext, path: &RelPath) -> Result<LoadedFile, String> {
    let loaded = load(cx, path)?.ok_or_else(|| missing_file_text(cx, path))?;
    match cx.observed_files.hash(loaded.path.as_str()) {
        Some(seen) if seen != loaded.hash => {
            Err(FileError::Changed { path: path.clone(), other_version: None }.to_string())
        }
        _ => Ok(loaded),
    }
}

/// Stores `text` as the content of `path`, which must still be `old`. Returns `message` with the recorded change.
///
/// # Errors
/// A message for the model; the file is then unchanged.
pub fn store(
    cx: &ToolContext,
    path: &RelPath,
    old: Option<&LoadedFile>,
    text: &str,
    message: String,
) -> Result<ToolOutput, String> {
    let expected = old.map_or(Expected::Absent, |old| Expected::Content(old.known()));
    let new = hash(text.as_bytes());
    announce(cx, vec![intended_change(cx, path, old, Some(&new))])?;
    let new = HashedContent { bytes: text.as_bytes(), hash: &new };
    let displaced = cx.workspace.replace(path, &expected, new);
    Ok(change_output(cx, &displaced.map_err(|error| error.to_string())?, message))
}

/// Makes all changes or none. Returns `message` with the recorded changes.
///
/// # Errors
/// A message for the model.
pub fn store_all(cx: &ToolContext, rewrites: Vec<Rewrite>, message: String) -> Result<ToolOutput, String> {
    let changes = rewrites.iter().map(|it| {
        let new = it.new.as_ref().map(|text| hash(text.as_bytes()));
        intended_change(cx, &it.path, it.old.as_ref(), new.as_deref())
    });
    announce(cx, changes.collect())?;
    let version = |old: LoadedFile| OriginalFile { text: old.text, mode: old.mode };
    let steps: Vec<FileEdit> = rewrites
        .into_iter()
        .map(|Rewrite { path, old, new, mode }| FileEdit { path, before: old.map(version), after: new, mode })
        .collect();
    let displaced = cx.workspace.replace_all(&steps).map_err(|failed| failed.to_string())?;
    let mut output = ToolOutput::ok(message);
    for displaced in displaced {
        record_change(cx, &displaced, &mut output);
    }
    Ok(output)
}

/// Records the intended changes in the journal, so that a later run can find them if this process is killed.
///
/// # Errors
/// A message for the model when they cannot be recorded; the caller must then change nothing.
pub fn announce(cx: &ToolContext, changes: Vec<Change>) -> Result<(), String> {
    (cx.announce)(changes).map_err(|error| format!("nothing was changed: {error}"))
}

/// Returns the planned change of `path` from `old` to the content with the hash `new`.
fn intended_change(cx: &ToolContext, path: &RelPath, old: Option<&LoadedFile>, new: Option<&str>) -> Change {
    let real = cx.workspace.resolve(path).unwrap_or_else(|_| path.clone());
    let was = old.map_or(FileState::Absent, |old| FileState::regular_file(old.hash.clone(), old.mode));
    let became = new.map_or(FileState::Absent, |hash| match old {
        Some(old) => FileState::regular_file(hash.to_owned(), old.mode),
        None => FileState::Content { hash: hash.to_owned(), mode: None },
    });
    let directories = if old.is_none() { cx.workspace.missing_directories(&real) } else { 0 };
    Change { directories, ..Change::between(real.as_str(), ChangedBy::Tool, &was, &became) }
}

/// Returns `message` with the change that was made, and updates `observed_files`.
pub fn change_output(cx: &ToolContext, displaced: &AppliedChange, message: String) -> ToolOutput {
    let mut output = ToolOutput::ok(message);
    record_change(cx, displaced, &mut output);
    output
}

/// Adds a change that was made to `output`.
///
/// A file that the model had not read before the change stays unobserved, so that it cannot be overwritten unread.
fn record_change(cx: &ToolContext, displaced: &AppliedChange, output: &mut ToolOutput) {
    let path = displaced.path.as_str().to_owned();
    let known = displaced.was == FileState::Absent || cx.observed_files.hash(&path).is_some();
    if let Some(reason) = &displaced.sync_error {
        let note = "The change is made, but the system did not confirm that it is on disk";
        output.text = format!("{}\n[{note}: {reason}]", output.text.trim_end_matches('\n'));
    }
    if let Some(why) = &displaced.store_error {
        let note = messages::cannot_be_undone(&path, why);
        output.warning =
            Some(output.warning.take().map_or_else(|| note.clone(), |before| format!("{before}; {note}")));
    }
    match displaced.became.hash() {
        Some(hash) if known => {
            cx.observed_files.record(&path, hash);
            output.seen.push(ObservedFile { path: path.clone(), hash: hash.to_owned() });
        }
        Some(_) => {}
        None => cx.observed_files.forget(&path),
    }
    let change = Change::between(&path, ChangedBy::Tool, &displaced.was, &displaced.became);
    output.changed.push(Change { directories: displaced.directories, ..change });
}

/// Converts `content` to the line endings and byte order mark of `old`, the text that it replaces or extends.
pub fn match_file_format(old: &str, content: &str) -> String {
    let mut text = match LineEnding::dominant(old) {
        Some(LineEnding::CrLf) if !content.contains('\r') => LineEnding::CrLf.apply(content),
        _ => content.to_owned(),
    };
    if old.starts_with(BOM) && !text.starts_with(BOM) {
        text.insert(0, BOM);
    }
    text
}

/// Returns the text of a file without its byte order mark.
pub fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// Returns the message about a missing file, with a similar name in the same directory if there is one.
pub fn missing_file_text(cx: &ToolContext, path: &RelPath) -> String {
    let text = FileError::Missing(path.clone()).to_string();
    let Some((parent, name)) = path.split_last() else { return text };
    let Ok(listing) = cx.workspace.list(&parent, None, MAX_NEIGHBOURS) else {
        return format!("{text} (directory {parent} does not exist either)");
    };
    let names: Vec<&str> =
        listing.entries.iter().filter_map(|entry| entry.path.split_last().map(|it| it.1)).collect();
    match nearest(name, names.into_iter()) {
        Some(name) => format!("{text}. Did you mean {}?", parent.join(name)),
        None => format!("{text}. find_files finds a file by its name."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_fixture::Fixture;

    #[test]
    fn a_change_that_is_not_known_to_be_on_disk_is_a_change_all_the_same() {
        let fixture = Fixture::new();
        let path = fixture.cx.workspace.path("a.txt").unwrap();
        let (was, became) = (FileState::Absent, FileState::regular_file("hash".to_owned(), 0o644));
        let sync_error = Some("Input/output error".to_owned());
        let displaced = AppliedChange { path, was, became, directories: 0, sync_error, store_error: None };
        let output = change_output(&fixture.cx, &displaced, "File a.txt created\n".to_owned());
        assert_eq!(output.changed.len(), 1);
        assert_eq!(fixture.cx.observed_files.hash("a.txt"), Some("hash".to_owned()));
        assert!(output.text.starts_with("File a.txt created\n[The change is made"), "{}", output.text);
        assert!(output.text.ends_with("Input/output error]"), "{}", output.text);
    }
}
