//! What the files of the workspace look like from outside, to see what a command changed.

use crate::change::{Change, ChangeAction, ChangedBy};
use crate::workspace::walk::{NEVER_WALKED, has_plain_ignore_files};
use ignore::{DirEntry, WalkBuilder};
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// Entries looked at; a workspace with more is not compared, because the comparison would cost more than it tells.
const MAX_ENTRIES: usize = 50_000;

/// Time for one look at all files.
const MAX_TIME: Duration = Duration::from_millis(150);

/// The file by which a tool marks a directory as its cache (bford.info/cachedir): `target` of cargo has one.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// Size, modification time and inode of every file that is not ignored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<String, Look>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    size: u64,
    modified_s: i64,
    modified_ns: i64,
    inode: u64,
}

impl Snapshot {
    /// Looks at every file below `root`; `None` when there are too many to be quick.
    pub fn take(root: &Path) -> Option<Self> {
        Self::take_up_to(MAX_ENTRIES, root)
    }

    fn take_up_to(entries: usize, root: &Path) -> Option<Self> {
        let began = Instant::now();
        let mut looks = BTreeMap::new();
        let plain = has_plain_ignore_files(root);
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .ignore(plain)
            .git_ignore(plain)
            .require_git(false)
            .git_global(false)
            .git_exclude(false)
            .parents(false)
            .filter_entry(is_looked_at)
            .build();
        for (count, entry) in walk.enumerate() {
            if count > entries || (count % 256 == 0 && began.elapsed() > MAX_TIME) {
                return None;
            }
            let Ok(entry) = entry else { continue };
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let (Ok(path), Ok(metadata)) = (entry.path().strip_prefix(root), entry.metadata()) else {
                continue;
            };
            let look = Look {
                size: metadata.size(),
                modified_s: metadata.mtime(),
                modified_ns: metadata.mtime_nsec(),
                inode: metadata.ino(),
            };
            looks.insert(path.to_string_lossy().into_owned(), look);
        }
        Some(Self(looks))
    }

    /// Every file with its size in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(path, look)| (path.as_str(), look.size))
    }

    /// The size of one file in bytes; nothing when there is none.
    pub fn size(&self, path: &str) -> Option<u64> {
        self.0.get(path).map(|look| look.size)
    }

    /// What is different in `after`, by path.
    pub fn changes(&self, after: &Self) -> Vec<Change> {
        let by = ChangedBy::Command;
        let change =
            |path: &str, action| Change { path: path.to_owned(), action, by, before: None, after: None };
        let gone = self.0.keys().filter(|path| !after.0.contains_key(*path));
        let new = after.0.iter().filter_map(|(path, look)| match self.0.get(path) {
            None => Some(change(path, ChangeAction::Created)),
            Some(before) if before != look => Some(change(path, ChangeAction::Modified)),
            Some(_) => None,
        });
        gone.map(|path| change(path, ChangeAction::Deleted)).chain(new).collect()
    }
}

/// Whether to look at an entry: not into what tools made and can make again, nor where ignore files cannot be read.
fn is_looked_at(entry: &DirEntry) -> bool {
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
        let changes = before.changes(&Snapshot::take(dir.path()).unwrap());
        let seen: Vec<(&str, ChangeAction)> = changes.iter().map(|c| (c.path.as_str(), c.action)).collect();
        assert_eq!(
            seen,
            [
                ("gone", ChangeAction::Deleted),
                ("changed", ChangeAction::Modified),
                ("sub/new", ChangeAction::Created)
            ]
        );
    }
}
