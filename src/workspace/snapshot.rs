//! What the files of the workspace look like from outside, to see what a command changed.

use crate::workspace::walk::{NEVER_WALKED, has_plain_ignore_files};
use ignore::{DirEntry, WalkBuilder};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Entries looked at; a workspace with more is not compared, because the comparison would cost more than it tells.
const MAX_ENTRIES: usize = 50_000;

/// Time for one look at all files.
const MAX_TIME: Duration = Duration::from_millis(150);

/// The file by which a tool marks a directory as its cache (bford.info/cachedir): `target` of cargo has one.
pub(super) const CACHE_TAG: &str = "CACHEDIR.TAG";

/// What every file and link that is not ignored looks like, and which directories there are.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    files: BTreeMap<String, FileStamp>,
    directories: BTreeSet<String>,
}

/// What a file looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStamp {
    /// Bytes.
    pub size: u64,
    /// Its kind and permission bits (`st_mode`).
    pub mode: u32,
    modified_s: i64,
    modified_ns: i64,
    inode: u64,
}

/// A file that looks different in one snapshot than in another; nothing where it is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The file.
    pub path: String,
    /// What it looked like.
    pub before: Option<FileStamp>,
    /// What it looks like.
    pub after: Option<FileStamp>,
}

impl Snapshot {
    /// Looks at every file below `root`; `None` when there are too many to be quick.
    pub fn take(root: &Path) -> Option<Self> {
        Self::take_up_to(MAX_ENTRIES, root)
    }

    fn take_up_to(entries: usize, root: &Path) -> Option<Self> {
        let began = Instant::now();
        let mut snapshot = Self::default();
        let plain = has_plain_ignore_files(root);
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .ignore(plain)
            .git_ignore(plain)
            .require_git(false)
            .git_global(false)
            .git_exclude(false)
            .parents(false)
            .filter_entry(is_scanned)
            .build();
        for (count, entry) in walk.enumerate() {
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

    /// Every file with its size in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(path, look)| (path.as_str(), look.size))
    }

    /// How many of the directories that `path` is in, from the innermost, are not in this snapshot.
    pub fn missing_directories(&self, path: &str) -> u32 {
        let above = Path::new(path).ancestors().skip(1).filter_map(Path::to_str);
        let missing = above.take_while(|directory| !self.directories.contains(*directory)).count();
        u32::try_from(missing).unwrap_or(u32::MAX)
    }

    /// What is different in `after`: what is gone, and then the rest, by path.
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

/// Whether to look at an entry: not into what tools made and can make again, nor where ignore files cannot be read.
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
    fn what_a_command_created_changed_and_deleted_is_seen_and_ignored_files_are_not() {
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
