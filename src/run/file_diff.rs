//! What a session changed in files, between their stored earlier contents and the present ones: a diff, or the number of lines.

use agent_core::file_change::{ChangeAction, FileState};
use agent_core::run_result::{ChangedLines, ModifiedFile};
use agent_journal::file_history::Restoration;
use agent_messages as messages;
use agent_text::diff;
use agent_text::lines::escape_controls;
use agent_workspace::Workspace;
use agent_workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use agent_workspace::path::RelPath;
use std::collections::BTreeMap;

/// Maximum bytes of all contents whose changed lines are counted at the end of a run, which bounds the time that this takes.
const MAX_COUNTED_BYTES: usize = 4 << 20;

/// Returns the diff from the state before the session's changes to the present state `now` of the file at `at`; a line instead
/// if a content is unknown or not text.
pub fn file_diff(
    workspace: &Workspace,
    contents: &ContentStore,
    Restoration { path, wanted, .. }: &Restoration,
    at: &RelPath,
    now: &FileState,
) -> String {
    let mut note = String::new();
    if let (Some(old), Some(new)) = (wanted.mode(), now.mode())
        && old != new
    {
        note.push_str(&messages::mode_changed(path, old, new));
    }
    let new = match now {
        FileState::Absent => Some(Vec::new()),
        FileState::Content { .. } | FileState::Unknown => workspace.content_of(at, MAX_FILE_BYTES).ok(),
    };
    let old = match wanted {
        FileState::Absent => Some(Vec::new()),
        FileState::Content { hash, .. } => contents.get(hash),
        FileState::Unknown => None,
    };
    match (as_text(old), as_text(new)) {
        (Some(old), Some(new)) => format!("{note}{}", diff::unified_full(&escape_controls(path), &old, &new)),
        _ => format!("{note}{}", messages::no_diff(path)),
    }
}

/// Counts the lines of files that differ from their contents before the session; `before` has the hashes of these by path.
pub fn count_changed_lines(
    workspace: &Workspace,
    files: &mut [ModifiedFile],
    before: &BTreeMap<String, String>,
) {
    let Some(contents) = workspace.content_store() else { return };
    let mut bytes_left = MAX_COUNTED_BYTES;
    for file in files {
        let versions = versions(workspace, contents, file, before.get(&file.path));
        let Some((old, new)) = versions else { continue };
        let Some(left) = bytes_left.checked_sub(old.len().saturating_add(new.len())) else { continue };
        bytes_left = left;
        let changed = diff::changed_lines(&old, &new).into_iter();
        file.lines = Some(
            changed.map(|lines| ChangedLines { added: lines.new.len(), removed: lines.old.len() }).sum(),
        );
    }
}

/// Returns the text of a file before the session, whose hash is `before`, and now; `None` if one is unknown or not text.
fn versions(
    workspace: &Workspace,
    contents: &ContentStore,
    file: &ModifiedFile,
    before: Option<&String>,
) -> Option<(String, String)> {
    let old = if file.action == ChangeAction::Created { Vec::new() } else { contents.get(before?)? };
    let new = match file.action {
        ChangeAction::Deleted => Vec::new(),
        _ => workspace.content_of(&workspace.path(&file.path).ok()?, MAX_COUNTED_BYTES as u64).ok()?,
    };
    Some((as_text(Some(old))?, as_text(Some(new))?))
}

fn as_text(bytes: Option<Vec<u8>>) -> Option<String> {
    String::from_utf8(bytes?).ok().filter(|text| !text.contains('\0'))
}
