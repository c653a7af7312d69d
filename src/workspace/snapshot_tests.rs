//! Tests of snapshots on real files.

#![expect(clippy::disallowed_methods, reason = "the test is the command that changes files")]

use super::*;
use crate::walk::project_walk;

fn take(root: &Path) -> Snapshot {
    Snapshot::take(root, Duration::ZERO).unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Returns the path of each difference, and whether the file exists before and after.
fn seen(before: &Snapshot, after: &Snapshot) -> Vec<(String, bool, bool)> {
    let path = |it: &Difference| match (it.before, it.after) {
        (_, Some(at)) => after.files[at].path.to_string(),
        (Some(at), None) => before.files[at].path.to_string(),
        (None, None) => unreachable!(),
    };
    let differences = before.differences(after);
    differences.iter().map(|it| (path(it), it.before.is_some(), it.after.is_some())).collect()
}

#[test]
fn a_tree_with_too_many_entries_is_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        std::fs::File::create(dir.path().join(name)).unwrap();
    }
    assert_eq!(Snapshot::take_up_to(2, dir.path(), Duration::ZERO), None);
    assert!(Snapshot::take_up_to(3, dir.path(), Duration::ZERO).is_some());
    std::fs::create_dir(dir.path().join("d")).unwrap();
    assert_eq!(Snapshot::take_up_to(3, dir.path(), Duration::ZERO), None);
}

#[test]
fn created_changed_and_deleted_files_are_found_and_ignored_files_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| write(dir.path(), path, text);
    write(".gitignore", "target/\n");
    write("built/CACHEDIR.TAG", "");
    write("kept", "a");
    write("changed", "a");
    write("gone", "a");
    let before = take(dir.path());
    write("changed", "longer");
    write("sub/new", "a");
    write("target/out", "a");
    write("built/out", "a");
    std::fs::remove_file(dir.path().join("gone")).unwrap();
    let seen = seen(&before, &take(dir.path()));
    let seen: Vec<(&str, bool, bool)> =
        seen.iter().map(|(path, before, after)| (path.as_str(), *before, *after)).collect();
    assert_eq!(seen, [("gone", true, false), ("changed", true, true), ("sub/new", false, true)]);
    assert_eq!((before.missing_directories("sub/new"), before.missing_directories("new")), (1, 0));
}

/// Returns the directories and the files that a walk with the same ignore files visits.
fn walked(root: &Path) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let is_scanned = |entry: &ignore::DirEntry| {
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        let is_cache = NEVER_WALKED.iter().any(|name| entry.file_name() == *name);
        let is_tagged = || entry.path().join(CACHE_TAG).exists();
        entry.depth() == 0
            || !is_directory
            || !is_cache && !is_tagged() && has_plain_ignore_files(entry.path())
    };
    let walk = project_walk(root).filter_entry(is_scanned).build().map(Result::unwrap);
    let (directories, files): (Vec<_>, Vec<_>) = walk.partition(|entry| entry.file_type().unwrap().is_dir());
    let names = |entries: Vec<ignore::DirEntry>| {
        entries.iter().map(|entry| entry.path().strip_prefix(root).unwrap().to_owned()).collect()
    };
    (names(directories), names(files))
}

// Large trees: the scan sees what a walk with the same ignore files visits.
#[test]
fn a_scan_finds_what_a_walk_with_the_same_ignore_files_finds() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for path in [
        "a.log",
        "b/a.log",
        "b/kept.log",
        "b/c/deep.tmp",
        "b/c/x",
        "b/d/only/x",
        "b-c/x",
        "b.d/x",
        "b0",
        "built/x",
        "cache/x",
        "node_modules/x",
        ".git/config",
        ".hidden/x",
        "closed/x",
        "e/target/x",
        "e/f/target/x",
        "white/a.log",
        "white/b.tmp",
        "ü/é",
    ] {
        write(root, path, path);
    }
    write(root, ".gitignore", "\u{feff}*.log\n!kept.log\n/built\n# comment\n[unclosed\n");
    write(root, ".ignore", "*.tmp\n");
    write(root, "b/.gitignore", "/d/only/\n!a.log\n");
    write(root, "e/.gitignore", "target/\n");
    write(root, "e/f/.ignore", "!target/\n");
    write(root, "white/.ignore", "!*.log\n");
    write(root, "white/.gitignore", "!*.tmp\n");
    write(root, "cache/CACHEDIR.TAG", "");
    std::os::unix::fs::symlink("/dev/zero", root.join("closed/.gitignore")).unwrap();
    std::os::unix::fs::symlink("b", root.join("link")).unwrap();
    for has_rules in [true, false] {
        if !has_rules {
            std::fs::remove_file(root.join(".gitignore")).unwrap();
            std::os::unix::fs::symlink("/dev/zero", root.join(".gitignore")).unwrap();
        }
        let (directories, files) = walked(root);
        let scan = take(root);
        let scanned = scan.files.iter().map(|file| PathBuf::from(&*file.path)).collect();
        assert_eq!(files, scanned, "with rules: {has_rules}");
        assert_eq!(directories, scan.directories.iter().map(PathBuf::from).collect());
        assert!(scan.files.is_sorted_by(|a, b| compare_paths(&a.path, &b.path) == Ordering::Less));
        assert_eq!(scan.differences(&take(root)), []);
    }
}

// Large trees: names that are not UTF-8 are neither lost nor compared with others.
#[test]
fn names_that_are_not_utf_8_do_not_hide_others() {
    let dir = tempfile::tempdir().unwrap();
    for name in [&b"a\xff"[..], b"a\xfe", b"a\xf0z", b"z"] {
        std::fs::File::create(dir.path().join(OsStr::from_bytes(name))).unwrap();
    }
    write(dir.path(), "a", "");
    write(dir.path(), "b", "");
    let before = take(dir.path());
    write(dir.path(), "b", "longer");
    assert_eq!(seen(&before, &take(dir.path())), [("b".to_owned(), true, true)]);
}

// Large trees: as in git's index, metadata of a file that changed just before the scan prove nothing.
#[test]
fn metadata_are_reliable_only_after_a_tick() {
    let at = |seconds, nanoseconds| FileStamp {
        size: 1,
        mode: 0o100_644,
        inode: 1,
        modified: Timestamp { seconds: 1, nanoseconds: 1 },
        changed: Timestamp { seconds, nanoseconds },
    };
    let scan = Snapshot { began: Duration::new(1_000, 500_000_000), ..Snapshot::default() };
    for (stamp, is_reliable) in [
        (at(1_000, 400_000_000), true),
        (at(1_000, 485_000_000), false),
        (at(1_000, 500_000_000), false),
        (at(2_000, 1), false),
        (at(999, 1), true),
        // The file system may store whole seconds, or even ones.
        (at(999, 0), false),
        (at(998, 0), true),
    ] {
        assert_eq!(scan.is_reliable(&stamp), is_reliable, "{stamp:?}");
    }
}
