//! What a call makes of a file, worked out before anything happens.

use crate::text::diff;
use crate::workspace::file::HashedContent;
use crate::workspace::path::RelPath;

/// A text file as it was loaded.
#[derive(Debug)]
pub struct LoadedFile {
    /// Where it really is.
    pub path: RelPath,
    /// Its content.
    pub text: String,
    /// Its hash.
    pub hash: String,
    /// Its permission bits.
    pub mode: u32,
}

impl LoadedFile {
    /// Its content and hash.
    pub fn known(&self) -> HashedContent<'_> {
        HashedContent { bytes: self.text.as_bytes(), hash: &self.hash }
    }
}

/// What becomes of a file.
#[derive(Debug)]
pub struct Rewrite {
    /// The file, as it is named.
    pub path: RelPath,
    /// What it is; absent when it is to be made, or is no text.
    pub old: Option<LoadedFile>,
    /// What it becomes; absent when it is to go.
    pub new: Option<String>,
    /// The permission bits of a file that is made; absent: the usual ones.
    pub mode: Option<u32>,
}

impl Rewrite {
    /// The rewrite of what is there, or of nothing, to `new`.
    pub fn to(path: RelPath, old: Option<LoadedFile>, new: String) -> Self {
        Self { path, old, new: Some(new), mode: None }
    }

    /// What it is; empty where there is nothing.
    pub fn old_text(&self) -> &str {
        self.old.as_ref().map_or("", |old| &old.text)
    }

    /// The diff that it makes; empty when nothing changes.
    pub fn diff(&self) -> String {
        diff::unified_full(self.path.as_str(), self.old_text(), self.new.as_deref().unwrap_or_default())
    }
}
