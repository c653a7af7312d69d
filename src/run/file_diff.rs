//! Diff of one file that a session changed, between its stored earlier content and the present one.

use agent_core::file_change::FileState;
use agent_journal::file_history::Restoration;
use agent_messages as messages;
use agent_text::diff;
use agent_text::lines::escape_controls;
use agent_workspace::Workspace;
use agent_workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use agent_workspace::path::RelPath;

/// Returns the diff from the state before the session's changes to the present state `now` of the file at `at`; a line instead
/// if a content is unknown or not text.
pub fn file_diff(
    workspace: &Workspace,
    contents: &ContentStore,
    Restoration { path, wanted, .. }: &Restoration,
    (at, now): (&RelPath, &FileState),
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
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes?).ok().filter(|text| !text.contains('\0'));
    match (text(old), text(new)) {
        (Some(old), Some(new)) => format!("{note}{}", diff::unified_full(&escape_controls(path), &old, &new)),
        _ => format!("{note}{}", messages::no_diff(path)),
    }
}
