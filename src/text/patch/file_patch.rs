//! Data types for the changes of a patch to one file.

use crate::patch::hunk::{Hunk, Line};

/// Part of a patch for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// Path of the file, as in the patch or the call.
    pub path: String,
    /// Change of the file.
    pub action: Action,
}

/// Change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Creates the file with this text.
    Add(String),
    /// Deletes the file; with hunks, only if they remove all of it.
    Delete(Vec<Hunk>),
    /// Changes or renames the file.
    Update {
        /// New path, if any.
        to: Option<String>,
        /// Changes; empty for a rename only.
        hunks: Vec<Hunk>,
    },
}

impl FilePatch {
    /// Returns the hunks of the part.
    pub fn hunks(&self) -> &[Hunk] {
        match &self.action {
            Action::Add(_) => &[],
            Action::Delete(hunks) | Action::Update { hunks, .. } => hunks,
        }
    }

    /// Counts added and removed lines.
    pub fn line_counts(&self) -> (usize, usize) {
        let new = if let Action::Add(text) = &self.action { text.lines().count() } else { 0 };
        let lines = || self.hunks().iter().flat_map(|hunk| &hunk.lines);
        let added = lines().filter(|line| matches!(line, Line::Added(_))).count();
        let removed = lines().filter(|line| matches!(line, Line::Removed(_))).count();
        (new + added, removed)
    }
}
