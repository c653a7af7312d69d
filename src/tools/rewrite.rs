//! Planned change of one file: the text before and after.

use agent_text::diff;
use agent_workspace::file::HashedContent;
use agent_workspace::path::RelPath;

/// A loaded text file.
#[derive(Debug)]
pub struct LoadedFile {
    /// Its path after resolving links.
    pub path: RelPath,
    /// Its content.
    pub text: String,
    /// Its hash.
    pub hash: String,
    /// Its permission bits.
    pub mode: u32,
}

impl LoadedFile {
    /// Returns the content and its hash.
    pub fn known(&self) -> HashedContent<'_> {
        HashedContent { bytes: self.text.as_bytes(), hash: &self.hash }
    }
}

/// The planned change of a file.
#[derive(Debug)]
pub struct Rewrite {
    /// The file's path as the model wrote it.
    pub path: RelPath,
    /// The file before the change; absent when it does not exist or is not text.
    pub old: Option<LoadedFile>,
    /// The text after the change; absent when the file is to be deleted.
    pub new: Option<String>,
    /// Permission bits of a file that is created; absent: the default ones.
    pub mode: Option<u32>,
}

impl Rewrite {
    /// Creates the change from `old` (absent: no file) to `new`.
    pub fn to(path: RelPath, old: Option<LoadedFile>, new: String) -> Self {
        Self { path, old, new: Some(new), mode: None }
    }

    /// Returns the text before the change; empty when there is no file.
    pub fn old_text(&self) -> &str {
        self.old.as_ref().map_or("", |old| &old.text)
    }

    /// Returns the diff; empty when nothing changes.
    pub fn diff(&self) -> String {
        diff::unified_full(self.path.as_str(), self.old_text(), self.new.as_deref().unwrap_or_default())
    }
}
