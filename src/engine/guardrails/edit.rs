//! A change of one file as guardrails look at it, before it happens.

use crate::core::file_change::FileState;
use crate::text::diff::{self, LineReplacement};
use crate::tools::rewrite::Rewrite;
use crate::workspace::file::hash;

/// A change of one file.
#[derive(Debug)]
pub struct Edit {
    /// Where the file really is.
    pub path: String,
    /// What it is called.
    pub display_path: String,
    /// What it becomes; absent when it is to go.
    pub new: Option<String>,
    /// The lines that others take the place of.
    pub replaced: Vec<LineReplacement>,
}

impl Edit {
    /// The change that `rewrite` makes of the file that is really at `path`.
    pub fn new(path: String, rewrite: Rewrite) -> Self {
        let replaced = diff::changed_lines(rewrite.old_text(), rewrite.new.as_deref().unwrap_or_default());
        Self { path, display_path: rewrite.path.as_str().to_owned(), new: rewrite.new, replaced }
    }

    /// How many lines it adds and removes.
    pub fn lines(&self) -> u64 {
        lines(&self.replaced)
    }

    /// What the file is afterwards.
    pub fn new_state(&self) -> FileState {
        self.new
            .as_ref()
            .map_or(FileState::Absent, |text| FileState::Content { hash: hash(text.as_bytes()), mode: None })
    }
}

/// How many lines are added and removed where these are replaced.
pub fn lines(replaced: &[LineReplacement]) -> u64 {
    replaced.iter().map(|part| (part.old.len() + part.new.len()) as u64).sum()
}
