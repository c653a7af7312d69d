//! A planned change of one file, as checked by guardrails.

use agent_core::file_change::FileState;
use agent_text::diff::LineReplacement;
use agent_workspace::file::hash;

/// A planned change of one file.
#[derive(Debug)]
pub struct Edit {
    /// The path with resolved links.
    pub path: String,
    /// The path as the model wrote it.
    pub display_path: String,
    /// The new text; absent when the file is to be deleted.
    pub new: Option<String>,
    /// The replaced lines.
    pub replaced: Vec<LineReplacement>,
}

impl Edit {
    /// Returns the number of lines that it adds and removes.
    pub fn lines(&self) -> u64 {
        lines(&self.replaced)
    }

    /// Returns the state of the file after the change.
    pub fn new_state(&self) -> FileState {
        self.new
            .as_ref()
            .map_or(FileState::Absent, |text| FileState::Content { hash: hash(text.as_bytes()), mode: None })
    }
}

/// Counts the added and removed lines of replacements.
pub fn lines(replaced: &[LineReplacement]) -> u64 {
    replaced.iter().map(|part| (part.old.len() + part.new.len()) as u64).sum()
}
