//! Finds executables that a run left behind, with one bounded scan at its end.
//!
//! A file counts if its inode changed during the run. No program can set that time: writing, `chmod`, renaming and linking all
//! update it. Ignore files are not used, because a command may write them.

use crate::snapshot::{CACHE_TAG, FileEntry, Snapshot};
use agent_core::run_result::Executables;
use std::collections::VecDeque;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of entries to scan, those near the root first: some 20 ms.
const MAX_ENTRIES: usize = 20_000;
/// Time limit for the scan.
const MAX_TIME: Duration = Duration::from_millis(50);
/// Number of entries between two checks of the clock.
const CLOCK_INTERVAL: usize = 256;
/// Maximum number of listed files.
const MAX_FILES: usize = 100;
/// Maximum lag of the kernel's timestamp clock: one tick.
const TICK: Duration = Duration::from_millis(10);
/// Execute permissions of owner, group and others.
const EXECUTABLE: u32 = 0o111;

/// Finds the executables below `root` that changed since `began` (wall clock). Skips git's own directories and caches of tools
/// that existed before. Does not follow links. With `known`, a snapshot since which nothing changed,
/// looks only at what it leaves out.
pub fn executables_changed_since(root: &Path, began: Duration, known: Option<&Snapshot>) -> Executables {
    scan(root, began.saturating_sub(TICK), known, MAX_ENTRIES, MAX_TIME)
}

fn scan(
    root: &Path,
    since: Duration,
    known: Option<&Snapshot>,
    max_entries: usize,
    max_time: Duration,
) -> Executables {
    let started = Instant::now();
    let mut found = Executables::default();
    let mut directories = VecDeque::from([root.to_owned()]);
    if let Some(known) = known {
        directories = left_out_directories(&mut found, root, known, since);
        let new = |file: &&FileEntry| is_new(file.stamp.mode, file.stamp.changed(), since);
        for file in known.files.iter().filter(|file| !file.stamp.is_link()).filter(new) {
            note(&mut found, root, Path::new(&*file.path));
        }
    }
    let mut entries = 0_usize;
    'tree: while let Some(directory) = directories.pop_front() {
        let Ok(listed) = std::fs::read_dir(&directory) else {
            // A directory made inaccessible during the run may hide an executable.
            let was_closed = directory.symlink_metadata().is_ok_and(|now| has_changed(&now, since));
            found.complete &= !was_closed;
            continue;
        };
        for entry in listed.flatten() {
            entries = entries.saturating_add(1);
            let is_late = entries.is_multiple_of(CLOCK_INTERVAL) && started.elapsed() > max_time;
            if entries > max_entries || is_late {
                found.complete = false;
                break 'tree;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() && is_looked_into(&entry.path(), since) {
                directories.push_back(entry.path());
            } else if kind.is_file() && entry.metadata().is_ok_and(|file| is_new_file(&file, since)) {
                note(&mut found, root, &entry.path());
            }
        }
    }
    found.files.sort();
    found
}

/// Returns the directories that the snapshot `known` leaves out, those near the root first. Notes the executables that it leaves out.
fn left_out_directories(
    found: &mut Executables,
    root: &Path,
    known: &Snapshot,
    since: Duration,
) -> VecDeque<PathBuf> {
    let mut directories = Vec::new();
    for path in known.left_out.iter().map(|path| root.join(path)) {
        match path.symlink_metadata() {
            Ok(file) if file.is_dir() && is_looked_into(&path, since) => directories.push(path),
            Ok(file) if file.is_file() && is_new_file(&file, since) => note(found, root, &path),
            _ => {}
        }
    }
    directories.sort_by_key(|path| path.components().count());
    directories.into()
}

fn note(found: &mut Executables, root: &Path, path: &Path) {
    if found.files.len() < MAX_FILES {
        let path = path.strip_prefix(root).unwrap_or(path);
        found.files.push(path.to_string_lossy().into_owned());
    } else {
        found.more = found.more.saturating_add(1);
    }
}

fn is_new_file(file: &Metadata, since: Duration) -> bool {
    is_new(file.mode(), changed_at(file), since)
}

fn is_new(mode: u32, changed: Duration, since: Duration) -> bool {
    mode & EXECUTABLE != 0 && changed >= since
}

fn has_changed(file: &Metadata, since: Duration) -> bool {
    changed_at(file) >= since
}

/// Returns the time of the last change of the inode, since the Unix epoch.
fn changed_at(file: &Metadata) -> Duration {
    let seconds = u64::try_from(file.ctime()).unwrap_or_default();
    Duration::new(seconds, u32::try_from(file.ctime_nsec()).unwrap_or_default())
}

fn is_looked_into(directory: &Path, since: Duration) -> bool {
    let tag = directory.join(CACHE_TAG).symlink_metadata();
    let is_old_cache = tag.is_ok_and(|tag| tag.is_file() && !has_changed(&tag, since));
    !directory.ends_with(".git") && !is_old_cache
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test is the program that leaves files behind")]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn make(root: &Path, path: &str, mode: u32) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
    }

    /// Returns a time after the last change, by the clock of file timestamps.
    fn now(root: &Path) -> Duration {
        let mark = root.join("mark");
        let stamp = || {
            fs::write(&mark, "").unwrap();
            let file = mark.metadata().unwrap();
            Duration::new(file.ctime().try_into().unwrap(), file.ctime_nsec().try_into().unwrap())
        };
        let first = stamp();
        loop {
            let now = stamp();
            if now > first {
                return now;
            }
        }
    }

    #[test]
    fn class_28_what_was_made_changed_renamed_or_given_the_right_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for path in ["old", "chmod", "rewritten", "renamed", "cache/old", ".git/old"] {
            make(root, path, 0o755);
        }
        make(root, "text", 0o644);
        make(root, "cache/CACHEDIR.TAG", 0o644);
        fs::set_permissions(root.join("chmod"), Permissions::from_mode(0o644)).unwrap();
        let began = now(root);
        make(root, "new", 0o700);
        make(root, ".venv/bin/python", 0o755);
        make(root, "rewritten", 0o755);
        make(root, "plain", 0o644);
        make(root, "cache/new", 0o755);
        make(root, ".git/new", 0o755);
        make(root, "fresh/CACHEDIR.TAG", 0o644);
        make(root, "fresh/new", 0o755);
        make(root, ".gitignore", 0o644);
        fs::write(root.join(".gitignore"), "*\n").unwrap();
        fs::set_permissions(root.join("chmod"), Permissions::from_mode(0o755)).unwrap();
        fs::rename(root.join("renamed"), root.join("other-name")).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.join("link")).unwrap();
        let set = Duration::from_secs(1);
        let file = fs::File::options().write(true).open(root.join("new")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + set).unwrap();
        // Large trees: a snapshot spares the scan the files that it contains, and nothing else.
        let hidden = Snapshot::take(root, began).unwrap();
        assert!(hidden.files.is_empty(), "the run wrote an ignore file that hides all");
        fs::remove_file(root.join(".gitignore")).unwrap();
        make(root, "sub/.gitignore", 0o644);
        let known = Snapshot::take(root, began).unwrap();
        for known in [None, Some(&hidden), Some(&known)] {
            let found = scan(root, began, known, MAX_ENTRIES, Duration::MAX);
            assert!(found.complete);
            assert_eq!(
                found.files,
                [".venv/bin/python", "chmod", "fresh/new", "new", "other-name", "rewritten"]
            );
        }
    }

    #[test]
    fn class_28_a_look_that_is_cut_says_so_and_begins_at_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for at in 0..MAX_FILES + 5 {
            make(root, &format!("deep/er/{at}"), 0o755);
        }
        make(root, "near", 0o755);
        let began = Duration::ZERO;
        let all = scan(root, began, None, MAX_ENTRIES, Duration::MAX);
        assert_eq!((all.files.len(), all.more, all.complete), (MAX_FILES, 6, true));
        let cut = scan(root, began, None, 10, Duration::MAX);
        assert!(!cut.complete && cut.files.contains(&"near".to_owned()));
        let late = scan(root, began, None, MAX_ENTRIES, Duration::ZERO);
        assert!(late.complete, "a small tree is scanned even on a slow machine");
        for at in 0..CLOCK_INTERVAL {
            make(root, &format!("many/{at}"), 0o644);
        }
        assert!(!scan(root, began, None, MAX_ENTRIES, Duration::ZERO).complete);
    }
}
