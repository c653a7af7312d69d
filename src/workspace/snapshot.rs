//! Snapshot of the workspace files' metadata, to find what a command changed.

use crate::workspace::walk::{NEVER_WALKED, has_plain_ignore_files, project_walk};
use ignore::DirEntry;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of entries. A larger workspace is not compared, because that would take too long.
const MAX_ENTRIES: usize = 50_000;

/// Time limit for one scan of all files.
const MAX_TIME: Duration = Duration::from_millis(150);

/// File that marks a directory as a tool's cache (bford.info/cachedir), such as cargo's `target`.
pub(super) const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Metadata of every file and link that is not ignored, and the existing directories.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    files: BTreeMap<String, FileStamp>,
    directories: BTreeSet<String>,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Size in bytes.
    pub size: u64,
    /// Kind and permission bits (`st_mode`).
    pub mode: u32,
    modified_s: i64,
    modified_ns: i64,
    inode: u64,
}

/// File whose metadata differs between two snapshots. `None` if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Path of the file.
    pub path: String,
    /// Metadata before.
    pub before: Option<FileStamp>,
    /// Metadata after.
    pub after: Option<FileStamp>,
}

impl Snapshot {
    /// Scans every file below `root`. `None` if there are too many.
    pub fn take(root: &Path) -> Option<Self> {
        Self::take_up_to(MAX_ENTRIES, root)
    }

    fn take_up_to(entries: usize, root: &Path) -> Option<Self> {
        let began = Instant::now();
        let mut snapshot = Self::default();
        for (count, entry) in project_walk(root).filter_entry(is_scanned).build().enumerate() {
            if count > entries || (count % 256 == 0 && began.elapsed() > MAX_TIME) {
                return None;
            }
            if let Ok(entry) = entry {
                snapshot.add(root, &entry);
            }
        }
        Some(snapshot)
    }

    fn add(&mut self, root: &Path, entry: &DirEntry) {
        let (Some(kind), Ok(path)) = (entry.file_type(), entry.path().strip_prefix(root)) else { return };
        let path = path.to_string_lossy().into_owned();
        if kind.is_dir() {
            self.directories.insert(path);
        } else if let (true, Ok(metadata)) = (kind.is_file() || kind.is_symlink(), entry.metadata()) {
            let look = FileStamp {
                size: metadata.size(),
                mode: metadata.mode(),
                modified_s: metadata.mtime(),
                modified_ns: metadata.mtime_nsec(),
                inode: metadata.ino(),
            };
            self.files.insert(path, look);
        }
    }

    /// Returns every file with its size in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(path, look)| (path.as_str(), look.size))
    }

    /// Counts the parent directories of `path`, from the innermost, that are not in this snapshot.
    pub fn missing_directories(&self, path: &str) -> u32 {
        let above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
        let missing = above.take_while(|directory| !self.directories.contains(*directory)).count();
        u32::try_from(missing).unwrap_or(u32::MAX)
    }

    /// Returns the differences to `after`: first the removed files, then the others, by path.
    pub fn differences(&self, after: &Self) -> Vec<Difference> {
        let gone = self.files.iter().filter(|(path, _)| !after.files.contains_key(*path));
        let gone =
            gone.map(|(path, look)| Difference { path: path.clone(), before: Some(*look), after: None });
        let new = after.files.iter().filter_map(|(path, look)| {
            let before = self.files.get(path).copied();
            (before != Some(*look)).then(|| Difference { path: path.clone(), before, after: Some(*look) })
        });
        gone.chain(new).collect()
    }
}

/// Checks whether to scan an entry. Skips caches of tools and directories whose ignore files cannot be read.
fn is_scanned(entry: &DirEntry) -> bool {
    if entry.depth() == 0 || !entry.file_type().is_some_and(|kind| kind.is_dir()) {
        return true;
    }
    let cache = NEVER_WALKED.iter().any(|name| entry.file_name() == *name);
    !cache && !entry.path().join(CACHE_TAG).exists() && has_plain_ignore_files(entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_too_many_entries_is_not_compared() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::File::create(dir.path().join(name)).unwrap();
        }
        assert_eq!(Snapshot::take_up_to(2, dir.path()), None);
        assert!(Snapshot::take_up_to(3, dir.path()).is_some());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test is the command that changes files")]
    fn created_changed_and_deleted_files_are_found_and_ignored_files_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".gitignore", "target/\n");
        write("built/CACHEDIR.TAG", "");
        write("kept", "a");
        write("changed", "a");
        write("gone", "a");
        let before = Snapshot::take(dir.path()).unwrap();
        write("changed", "longer");
        write("sub/new", "a");
        write("target/out", "a");
        write("built/out", "a");
        std::fs::remove_file(dir.path().join("gone")).unwrap();
        let differences = before.differences(&Snapshot::take(dir.path()).unwrap());
        let seen: Vec<(&str, bool, bool)> = differences
            .iter()
            .map(|it| (it.path.as_str(), it.before.is_some(), it.after.is_some()))
            .collect();
        assert_eq!(seen, [("gone", true, false), ("changed", true, true), ("sub/new", false, true)]);
        assert_eq!((before.missing_directories("sub/new"), before.missing_directories("new")), (1, 0));
    }
}
