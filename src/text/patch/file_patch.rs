//! What a patch does to one file.

use crate::text::patch::hunk::{Hunk, Line};

/// The part of a patch for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// The file, as the patch or the call names it.
    pub path: String,
    /// What becomes of it.
    pub action: Action,
}

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It is made, with this text.
    Add(String),
    /// It goes; with hunks, only if they remove all of it.
    Delete(Vec<Hunk>),
    /// It changes.
    Update {
        /// The name it gets.
        to: Option<String>,
        /// The changes; none when it only gets another name.
        hunks: Vec<Hunk>,
    },
}

impl FilePatch {
    /// The hunks of the part.
    pub fn hunks(&self) -> &[Hunk] {
        match &self.action {
            Action::Add(_) => &[],
            Action::Delete(hunks) | Action::Update { hunks, .. } => hunks,
        }
    }

    /// How many lines it adds and removes.
    pub fn line_counts(&self) -> (usize, usize) {
        let new = if let Action::Add(text) = &self.action { text.lines().count() } else { 0 };
        let lines = || self.hunks().iter().flat_map(|hunk| &hunk.lines);
        let added = lines().filter(|line| matches!(line, Line::Added(_))).count();
        let removed = lines().filter(|line| matches!(line, Line::Removed(_))).count();
        (new + added, removed)
    }
}
