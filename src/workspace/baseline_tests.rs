//! Tests of the baseline on real files.

#![expect(clippy::disallowed_methods, reason = "the test is the command that changes files")]

use super::*;
use crate::content_store::ContentStore;
use crate::file::hash;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn baseline(dir: &Path, stores_contents: bool) -> Baseline {
    let root = dir.join("ws");
    std::fs::create_dir_all(&root).unwrap();
    let workspace = Workspace::open(&root).unwrap();
    if stores_contents {
        workspace.set_content_store(ContentStore::new(dir.join("contents"), std::sync::Arc::default()));
    }
    Baseline::new(workspace, None)
}

#[test]
fn what_a_command_displaces_was_kept_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut baseline = baseline(dir.path(), true);
    let root = dir.path().join("ws");
    for name in ["changed", "gone", "same"] {
        std::fs::write(root.join(name), name).unwrap();
    }
    assert!(baseline.before_command());
    std::fs::write(root.join("changed"), "otherwise").unwrap();
    std::fs::remove_file(root.join("gone")).unwrap();
    std::fs::write(root.join("made"), "made").unwrap();
    let found = baseline.after_command().unwrap();
    let found_changes: Vec<_> = found
        .listed
        .iter()
        .map(|change| (change.path.as_str(), change.before.clone(), change.after.clone()))
        .collect();
    let some = |text: &str| Some(hash(text.as_bytes()));
    assert_eq!(
        found_changes,
        [
            ("gone", some("gone"), None),
            ("changed", some("changed"), some("otherwise")),
            ("made", None, some("made"))
        ]
    );
    assert!(found.not_stored.is_empty());
    let contents = baseline.workspace.content_store().unwrap();
    for text in ["gone", "changed"] {
        assert_eq!(contents.get(&hash(text.as_bytes())), Some(text.as_bytes().to_vec()));
    }
    assert!(baseline.before_command());
    assert_eq!(baseline.after_command(), Some(CommandChanges::default()));
}

#[test]
fn what_is_written_is_what_was_there_before_the_last_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut baseline = baseline(dir.path(), true);
    let (file, file_path) = (dir.path().join("ws/a"), dir.path().join("written"));
    baseline.file_path = Some(file_path.clone());
    let found_dead = |baseline: &Baseline| {
        let mut dead = Baseline::load(baseline.workspace.clone(), &file_path).unwrap();
        dead.after_command().unwrap().listed.into_iter().map(|change| change.path).collect::<Vec<_>>()
    };
    for text in ["one", "other", "third"] {
        std::fs::write(&file, text).unwrap();
        assert!(baseline.before_command());
        assert!(found_dead(&baseline).is_empty(), "{text}");
    }
    std::fs::remove_file(&file_path).unwrap();
    assert!(baseline.before_command());
    assert!(!file_path.exists(), "written again, with nothing new");
    std::fs::write(&file, "by a command").unwrap();
    assert_eq!(baseline.after_command().unwrap().listed.len(), 1);
    assert!(baseline.before_command());
    assert!(found_dead(&baseline).is_empty());
}

#[test]
fn a_file_that_is_only_touched_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut baseline = baseline(dir.path(), true);
    let file = dir.path().join("ws/a");
    std::fs::write(&file, "a").unwrap();
    assert!(baseline.before_command());
    let touched = File::options().write(true).open(&file).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(baseline.after_command(), Some(CommandChanges::default()));
}

#[test]
fn a_file_that_is_too_large_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut baseline = baseline(dir.path(), true);
    let file = File::create_new(dir.path().join("ws/large")).unwrap();
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    assert!(baseline.before_command());
    file.set_len(1).unwrap();
    let found = baseline.after_command().unwrap();
    assert_eq!(found.not_stored, ["large"]);
    assert_eq!(found.listed[0].after, Some(hash(b"\0")));
}

#[test]
fn without_a_place_to_keep_them_changes_are_listed_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut baseline = baseline(dir.path(), false);
    assert!(baseline.before_command());
    std::fs::write(dir.path().join("ws/a"), "a").unwrap();
    let found = baseline.after_command().unwrap();
    assert_eq!((found.listed.len(), &found.listed[0].after, found.not_stored.len()), (1, &None, 0));
}

/// Size of a file that is worth noting for later runs.
const LARGE: usize = 2 << 20;

/// Creates a workspace with a large file and these files. Their metadata are reliable.
fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("ws");
    std::fs::create_dir_all(&root).unwrap();
    for (path, text) in files {
        std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        std::fs::write(root.join(path), text).unwrap();
    }
    std::fs::write(root.join("large"), "x".repeat(LARGE)).unwrap();
    wait_for_tick(dir.path());
    dir
}

/// Returns when the metadata of the files that were changed before are reliable.
fn wait_for_tick(dir: &Path) {
    std::fs::write(dir.join("tick"), "").unwrap();
    let is_reliable = |scan: &Snapshot| {
        let mark = scan.files.iter().find(|file| &*file.path == "tick").unwrap();
        Snapshot { began: Clock::new().unix_time(), ..Snapshot::default() }.is_reliable(&mark.stamp)
    };
    let scan = Snapshot::take(dir, Duration::ZERO).unwrap();
    while !is_reliable(&scan) {}
}

/// Scans like a run before its first command. Returns the cost of what it read, or `None` if that was so much that it noted all
/// files again.
fn start(dir: &Path) -> (Baseline, Option<u64>) {
    let mut run = baseline(dir, true);
    let number =
        || shared(dir).symlink_metadata().map(|file| std::os::unix::fs::MetadataExt::ino(&file)).ok();
    let before = number();
    assert!(run.before_command());
    let cost = (before == number()).then_some(run.unshared_bytes);
    (run, cost)
}

fn shared(dir: &Path) -> PathBuf {
    baseline_file::shared_path(&dir.join("contents"), &dir.join("ws")).unwrap()
}

/// Returns the stored text of a file before the next command.
fn known(run: &Baseline, path: &str) -> String {
    let file = run.last_scan.as_ref().unwrap().files.iter().find(|file| &*file.path == path).unwrap();
    let bytes = run.workspace.content_store().unwrap().get(&file.hash.unwrap().to_string()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn listed(changes: &CommandChanges) -> Vec<(&str, Option<String>, Option<String>)> {
    let change = |it: &Change| (it.before.clone(), it.after.clone());
    changes
        .listed
        .iter()
        .map(|it| (it.path.as_str(), change(it)))
        .map(|(path, (was, is))| (path, was, is))
        .collect()
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the fields that it is compared with")]
fn some(text: &str) -> Option<String> {
    Some(hash(text.as_bytes()))
}

fn set_modified(path: &Path, time: std::time::SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

// Large trees: a later run reads what has changed since the last one, and nothing else.
#[test]
fn a_later_run_reads_only_the_files_that_changed() {
    let dir = workspace(&[("a", "one"), ("sub/b", "b")]);
    assert_eq!(start(dir.path()).1, None);
    assert_eq!(start(dir.path()).1, Some(0));
    std::fs::write(dir.path().join("ws/a"), "other").unwrap();
    std::fs::write(dir.path().join("ws/new"), "new").unwrap();
    let (run, cost) = start(dir.path());
    assert_eq!(cost, Some(2 * PAGE_BYTES + 8));
    assert_eq!(
        (known(&run, "a"), known(&run, "sub/b"), known(&run, "new")),
        ("other".into(), "b".into(), "new".into())
    );
}

// Large trees: what changes within one tick of the clock has the same metadata.
#[test]
fn a_file_that_changes_within_one_tick_with_the_same_metadata_is_listed() {
    let dir = workspace(&[("a", "one"), ("same", "same")]);
    let file = dir.path().join("ws/a");
    let stamp = |run: &Baseline| {
        let now = Snapshot::take(run.workspace.root(), Duration::ZERO).unwrap();
        now.files.into_iter().find(|file| &*file.path == "a").unwrap().stamp
    };
    for is_racy in [true, false] {
        std::fs::write(&file, "one").unwrap();
        let (mut run, _) = start(dir.path());
        std::fs::write(&file, "two").unwrap();
        let after = stamp(&run);
        // As if both writes had the same times, and the scan was within the tick or after it.
        let scan = run.last_scan.as_mut().unwrap();
        scan.began = if is_racy { Duration::ZERO } else { Duration::from_secs(u64::from(u32::MAX)) };
        scan.files.iter_mut().find(|file| &*file.path == "a").unwrap().stamp = after;
        let found = run.after_command().unwrap();
        let expected: &[_] = if is_racy { &[("a", some("one"), some("two"))] } else { &[] };
        assert_eq!(listed(&found), expected);
    }
}

// Large trees: what an earlier run noted within the tick is read again.
#[test]
fn a_later_run_reads_files_again_whose_metadata_were_not_reliable() {
    let dir = workspace(&[("a", "one")]);
    let (run, _) = start(dir.path());
    let racy = Snapshot { began: Duration::ZERO, ..run.last_scan.unwrap() };
    baseline_file::share(&shared(dir.path()), &racy).unwrap();
    assert_eq!(start(dir.path()).1, None);
    assert_eq!(start(dir.path()).1, Some(0));
}

// Large trees: the change time shows what the modification time hides.
#[test]
fn a_change_with_a_restored_modification_time_is_found() {
    let dir = workspace(&[("a", "one"), ("b", "one")]);
    let (file, other) = (dir.path().join("ws/a"), dir.path().join("ws/b"));
    let time = file.metadata().unwrap().modified().unwrap();
    let (mut run, _) = start(dir.path());
    std::fs::write(&file, "two").unwrap();
    set_modified(&file, time);
    assert_eq!(listed(&run.after_command().unwrap()), [("a", some("one"), some("two"))]);
    let time = other.metadata().unwrap().modified().unwrap();
    std::fs::write(&other, "two").unwrap();
    set_modified(&other, time);
    let (mut run, _) = start(dir.path());
    assert_eq!((known(&run, "a"), known(&run, "b")), ("two".to_owned(), "two".to_owned()));
    std::fs::write(&other, "end").unwrap();
    set_modified(&other, time);
    assert_eq!(listed(&run.after_command().unwrap()), [("b", some("two"), some("end"))]);
}

// Large trees: another file with the same name, size and times is another inode.
#[test]
fn a_replaced_file_with_the_same_times_is_found() {
    let dir = workspace(&[("a", "one"), ("new/a", "two")]);
    let (file, new) = (dir.path().join("ws/a"), dir.path().join("ws/new/a"));
    let time = file.metadata().unwrap().modified().unwrap();
    set_modified(&new, time);
    start(dir.path());
    std::fs::rename(&new, &file).unwrap();
    let (mut run, _) = start(dir.path());
    assert_eq!(known(&run, "a"), "two");
    std::fs::write(&new, "end").unwrap();
    set_modified(&new, time);
    assert!(run.before_command());
    std::fs::rename(&new, &file).unwrap();
    assert_eq!(
        listed(&run.after_command().unwrap()),
        [("new/a", some("end"), None), ("a", some("two"), some("end"))]
    );
}

// Large trees: permissions are part of the state.
#[test]
fn a_changed_mode_is_found() {
    let dir = workspace(&[("a", "one")]);
    let file = dir.path().join("ws/a");
    let set = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o644);
    start(dir.path());
    set(0o600);
    let (mut run, _) = start(dir.path());
    set(0o755);
    let found = run.after_command().unwrap();
    assert_eq!(listed(&found), [("a", some("one"), some("one"))]);
    let modes = [found.listed[0].before_state(), found.listed[0].after_state()].map(|state| state.mode());
    assert_eq!(modes.map(|mode| mode.map(|mode| mode & 0o777)), [Some(0o600), Some(0o755)]);
}

// Large trees: the files of directories that change places keep their inodes and times.
#[test]
fn directories_that_are_renamed_are_found() {
    let dir = workspace(&[("one/a", "one"), ("two/a", "two")]);
    let root = dir.path().join("ws");
    let swap = || {
        for (from, to) in [("one", "other"), ("two", "one"), ("other", "two")] {
            std::fs::rename(root.join(from), root.join(to)).unwrap();
        }
    };
    start(dir.path());
    swap();
    let (mut run, _) = start(dir.path());
    assert_eq!((known(&run, "one/a"), known(&run, "two/a")), ("two".to_owned(), "one".to_owned()));
    swap();
    let found = run.after_command().unwrap();
    assert_eq!(listed(&found), [("one/a", some("two"), some("one")), ("two/a", some("one"), some("two"))]);
    assert!(found.not_stored.is_empty());
}

// Large trees: ignore files change what is compared.
#[test]
fn files_are_known_only_while_they_are_not_ignored() {
    let dir = workspace(&[("a", "one"), ("b", "one"), (".gitignore", "a\n")]);
    let root = dir.path().join("ws");
    let paths = |run: &Baseline| {
        run.last_scan.as_ref().unwrap().files.iter().map(|file| file.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(&start(dir.path()).0), [".gitignore", "b", "large"]);
    std::fs::write(root.join("a"), "two").unwrap();
    std::fs::write(root.join(".gitignore"), "b\n").unwrap();
    let (run, _) = start(dir.path());
    assert_eq!(
        (paths(&run), known(&run, "a")),
        (vec![".gitignore".into(), "a".into(), "large".into()], "two".into())
    );
    std::fs::write(root.join("b"), "two").unwrap();
    std::fs::remove_file(root.join(".gitignore")).unwrap();
    let (mut run, _) = start(dir.path());
    assert_eq!((known(&run, "a"), known(&run, "b")), ("two".to_owned(), "two".to_owned()));
    std::fs::remove_file(root.join("b")).unwrap();
    assert_eq!(listed(&run.after_command().unwrap()), [("b", some("two"), None)]);
}

// Large trees: a shared file that is not whole, of this version and private is as good as none.
#[test]
fn a_damaged_shared_file_is_ignored_and_made_anew() {
    let dir = workspace(&[("a", "one")]);
    start(dir.path());
    let shared = shared(dir.path());
    let good = std::fs::read(&shared).unwrap();
    assert_eq!(shared.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let mut damaged: Vec<Vec<u8>> = (0..good.len()).step_by(good.len() / 40).map(flipped).collect();
    damaged.extend([
        Vec::new(),
        good[..good.len() - 1].to_vec(),
        [&good[..], b"x"].concat(),
        vec![0xff; 4096],
    ]);
    let mut other_version = good[..good.len() - 32].to_vec();
    other_version[15] = b'2';
    other_version.extend_from_slice(blake3::hash(&other_version).as_bytes());
    // Numbers of entries that the file does not contain, with a checksum that is right.
    let mut too_many = good[..good.len() - 32].to_vec();
    too_many[28..32].fill(0xff);
    too_many.extend_from_slice(blake3::hash(&too_many).as_bytes());
    damaged.extend([other_version, too_many]);
    for bytes in damaged {
        std::fs::write(&shared, &bytes).unwrap();
        assert!(baseline_file::read(&shared).is_none());
    }
    let (run, cost) = start(dir.path());
    assert_eq!((known(&run, "a"), cost), ("one".to_owned(), None));
    assert_eq!(start(dir.path()).1, Some(0), "made anew");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(start(dir.path()).1, None, "others may have written it");
    std::fs::rename(&shared, dir.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("moved"), &shared).unwrap();
    assert_eq!(start(dir.path()).1, None, "a link");
}

// Large trees: hashes are worth nothing without the contents.
#[test]
fn contents_that_were_removed_are_read_and_stored_again() {
    let dir = workspace(&[("a", "one")]);
    start(dir.path());
    for file in std::fs::read_dir(dir.path().join("contents")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some() {
            std::fs::remove_file(path).unwrap();
        }
    }
    assert!(shared(dir.path()).exists());
    assert_eq!(known(&start(dir.path()).0, "a"), "one");
}

// Large trees: runs at the same time write the shared file, none sees a part of it, and none waits.
#[test]
fn runs_at_the_same_time_share_hashes() {
    let dir = workspace(&[("a", "one"), ("b", "one")]);
    let root = dir.path().join("ws");
    let left_over = shared(dir.path()).with_extension("new");
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (dir, root) = (dir.path(), &root);
            scope.spawn(move || {
                for round in 0..8 {
                    let (mut run, _) = start(dir);
                    assert_eq!(known(&run, "a"), "one");
                    std::fs::write(root.join(format!("large-{number}")), format!("{round}").repeat(LARGE))
                        .unwrap();
                    run.after_command().unwrap();
                }
            });
        }
    });
    assert!(baseline_file::read(&shared(dir.path())).is_some());
    assert!(!left_over.exists());
    // A process was killed while it wrote.
    std::fs::write(&left_over, "half").unwrap();
    std::fs::write(root.join("large"), "y".repeat(LARGE)).unwrap();
    start(dir.path());
    assert!(left_over.exists(), "it may be in use");
    set_modified(&left_over, std::time::SystemTime::UNIX_EPOCH);
    start(dir.path());
    assert!(!left_over.exists());
    wait_for_tick(dir.path());
    start(dir.path());
    assert_eq!(start(dir.path()).1, Some(0));
}

// Large trees: a file that has become sensitive since an earlier run is not restored from what that run stored.
#[test]
fn a_file_that_has_become_sensitive_is_not_known() {
    let dir = workspace(&[("a", "one"), ("key", "one")]);
    start(dir.path());
    let mut run = baseline(dir.path(), true);
    run.workspace.protect_files(crate::FileProtection {
        sensitive: std::sync::Arc::new(|path| path == "key"),
        protected: std::sync::Arc::new(|_| false),
        named: Vec::new(),
    });
    assert!(run.before_command());
    for name in ["a", "key"] {
        std::fs::remove_file(dir.path().join("ws").join(name)).unwrap();
    }
    let found = run.after_command().unwrap();
    assert_eq!(listed(&found), [("a", some("one"), None), ("key", None, None)]);
    assert_eq!(found.not_stored, ["key"]);
}

// Large trees: worktrees come and go, and the files for later runs with them.
#[test]
fn the_number_of_shared_files_is_bounded() {
    let dir = workspace(&[]);
    start(dir.path());
    for number in 0..40 {
        std::fs::write(dir.path().join(format!("contents/files-{number}-1")), "").unwrap();
    }
    set_modified(&shared(dir.path()), std::time::SystemTime::UNIX_EPOCH);
    std::fs::write(dir.path().join("ws/large"), "y".repeat(LARGE)).unwrap();
    start(dir.path());
    let count = || {
        let names =
            std::fs::read_dir(dir.path().join("contents")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("files-")).count()
    };
    assert_eq!((count(), shared(dir.path()).exists()), (16, true));
    baseline_file::remove_shared(&dir.path().join("contents"), 0);
    assert_eq!(count(), 0);
}
