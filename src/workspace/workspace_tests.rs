//! Tests of the workspace on real directories, with openat2 and renameat2 and without.

use super::Workspace;
use super::error::FileError;
use super::file::hash;
use super::path::RelPath;
use super::replace::{Expected, TEMPORARY_PREFIX};
use agent_core::file_change::FileState;
use proptest::prelude::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct TestDir {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl TestDir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        Self { _dir: dir, root }
    }

    #[expect(clippy::disallowed_methods, reason = "tests write files")]
    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    #[expect(clippy::disallowed_methods, reason = "tests read files")]
    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path)).unwrap()
    }

    /// Opens the workspace with and without the new system calls.
    fn both(&self) -> [Workspace; 2] {
        [Workspace::open(&self.root).unwrap(), Workspace::open_with_old_calls(&self.root)]
    }

    fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(path)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn rel(path: &str) -> RelPath {
    RelPath::parse(path, &[]).unwrap()
}

#[test]
fn an_absent_workspace_a_file_and_an_unreadable_one_are_told_apart() {
    let test_dir = TestDir::new();
    test_dir.write("file", "");
    let message = |path: &Path| Workspace::open(path).unwrap_err().to_string();
    assert!(message(&test_dir.root.join("none")).starts_with("workspace does not exist: "));
    assert!(message(&test_dir.root.join("file")).starts_with("workspace is not a directory: "));
}

#[test]
fn s01_links_inside_are_followed_and_all_others_refused() {
    let test_dir = TestDir::new();
    test_dir.write("d/real", "inside");
    test_dir.write("../outside/secret", "SECRET");
    symlink("d/../d/real", test_dir.root.join("ok")).unwrap();
    symlink("d", test_dir.root.join("dir")).unwrap();
    symlink("../ok", test_dir.root.join("d/up")).unwrap();
    symlink("../outside/secret", test_dir.root.join("out")).unwrap();
    symlink(test_dir.root.join("d/real"), test_dir.root.join("absolute")).unwrap();
    symlink("loop", test_dir.root.join("loop")).unwrap();
    symlink("../outside", test_dir.root.join("outdir")).unwrap();
    for workspace in test_dir.both() {
        for path in ["ok", "dir/real", "dir/up", "d/up"] {
            let content = workspace.read(&rel(path), 100).unwrap();
            assert_eq!(
                (content.bytes.as_slice(), content.path.as_str()),
                (&b"inside"[..], "d/real"),
                "{path}"
            );
        }
        for path in ["out", "absolute", "outdir/secret", "loop"] {
            let error = workspace.read(&rel(path), 100).unwrap_err().to_string();
            assert!(error.starts_with("Security error: "), "{path}: {error}");
            assert!(workspace.replace_with_mode(&rel(path), &Expected::Any, b"x", None).is_err());
        }
    }
    assert_eq!(test_dir.text("../outside/secret"), "SECRET");
}

#[test]
fn special_files_and_directories_are_refused_without_waiting() {
    let test_dir = TestDir::new();
    test_dir.write("d/x", "");
    let fifo = test_dir.root.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(test_dir.root.join("socket")).unwrap();
    for workspace in test_dir.both() {
        assert!(matches!(workspace.read(&rel("fifo"), 9), Err(FileError::Special(_))));
        assert!(matches!(workspace.read(&rel("socket"), 9), Err(FileError::Special(_))));
        assert!(matches!(workspace.read(&rel("d"), 9), Err(FileError::Directory(_))));
        assert!(matches!(workspace.read(&rel("none"), 9), Err(FileError::Missing(_))));
        assert!(matches!(workspace.read(&rel("d/x/y"), 9), Err(FileError::NotDirectory(_))));
        assert!(matches!(
            workspace.replace_with_mode(&rel("fifo"), &Expected::Any, b"", None),
            Err(FileError::Special(_))
        ));
        assert!(matches!(workspace.remove(&rel("fifo"), &Expected::Any), Err(FileError::Special(_))));
    }
}

#[test]
fn a_file_of_two_gigabytes_is_never_loaded() {
    let test_dir = TestDir::new();
    std::fs::File::create(test_dir.root.join("big")).unwrap().set_len(2 << 30).unwrap();
    let workspace = Workspace::open(&test_dir.root).unwrap();
    assert!(matches!(workspace.read(&rel("big"), 1 << 20), Err(FileError::TooLarge { .. })));
}

#[test]
fn replacing_keeps_mode_and_link_and_leaves_nothing_behind() {
    let test_dir = TestDir::new();
    test_dir.write("d/script", "old");
    let path = test_dir.root.join("d/script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o751)).unwrap();
    symlink("d/script", test_dir.root.join("link")).unwrap();
    for workspace in test_dir.both() {
        let done = workspace.replace_with_mode(&rel("link"), &Expected::Any, b"new", None).unwrap();
        assert_eq!(done.path.as_str(), "d/script");
        assert_eq!(done.became.hash(), Some(hash(b"new").as_str()));
        assert_eq!(test_dir.text("d/script"), "new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o751);
        assert!(test_dir.root.join("link").symlink_metadata().unwrap().is_symlink());
        assert_eq!(test_dir.names("d"), ["script"]);
    }
}

#[test]
fn a_file_is_replaced_only_if_it_is_as_expected() {
    let test_dir = TestDir::new();
    for workspace in test_dir.both() {
        test_dir.write("a", "theirs");
        let wrong = workspace.replace_with_mode(&rel("a"), &Expected::Hash(hash(b"mine")), b"new", None);
        assert!(matches!(wrong, Err(FileError::Changed { other_version: None, .. })));
        assert!(matches!(
            workspace.replace_with_mode(&rel("a"), &Expected::Absent, b"new", None),
            Err(FileError::Exists(_))
        ));
        assert!(matches!(
            workspace.remove(&rel("a"), &Expected::Hash(hash(b"mine"))),
            Err(FileError::Changed { .. })
        ));
        assert_eq!(test_dir.text("a"), "theirs");
        assert_eq!(test_dir.names("."), ["a"]);
        let gone = workspace.replace_with_mode(&rel("b"), &Expected::Hash(hash(b"x")), b"new", None);
        assert!(matches!(gone, Err(FileError::Changed { .. })));
        workspace.replace_with_mode(&rel("a"), &Expected::Hash(hash(b"theirs")), b"new", None).unwrap();
        let removed = workspace.remove(&rel("a"), &Expected::Hash(hash(b"new"))).unwrap();
        assert_eq!((removed.was.hash(), removed.became), (Some(hash(b"new").as_str()), FileState::Absent));
        assert!(test_dir.names(".").is_empty());
    }
}

#[test]
fn a_hard_link_outside_is_not_written_through() {
    let test_dir = TestDir::new();
    test_dir.write("../outside", "SECRET");
    std::fs::hard_link(test_dir.root.join("../outside"), test_dir.root.join("inside")).unwrap();
    let workspace = Workspace::open(&test_dir.root).unwrap();
    workspace.replace_with_mode(&rel("inside"), &Expected::Any, b"new", None).unwrap();
    assert_eq!(test_dir.text("../outside"), "SECRET");
}

#[test]
fn a_new_file_gets_its_directories_and_a_plain_mode() {
    let test_dir = TestDir::new();
    for (workspace, name) in test_dir.both().into_iter().zip(["x/y/one", "x/z/two"]) {
        let done = workspace.replace_with_mode(&rel(name), &Expected::Absent, b"new", None).unwrap();
        assert_eq!(done.was, FileState::Absent);
        let mode = test_dir.root.join(name).metadata().unwrap().mode() & 0o777;
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(mode & 0o111, 0);
    }
}

#[test]
fn removing_a_link_leaves_its_target() {
    let test_dir = TestDir::new();
    test_dir.write("target", "x");
    symlink("target", test_dir.root.join("link")).unwrap();
    Workspace::open(&test_dir.root).unwrap().remove(&rel("link"), &Expected::Any).unwrap();
    assert_eq!(test_dir.names("."), ["target"]);
}

#[test]
fn a_directory_swapped_meanwhile_never_leads_a_write_out() {
    let test_dir = TestDir::new();
    test_dir.write("../outside/f", "SECRET");
    test_dir.write("dir/f", "0");
    let root = test_dir.root.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = std::sync::Arc::clone(&stop);
    let swapper = std::thread::spawn(move || {
        symlink("../outside", root.join("evil")).unwrap();
        let dir = std::fs::File::open(&root).unwrap();
        while !flag.load(std::sync::atomic::Ordering::Relaxed) {
            rustix::fs::renameat_with(&dir, "dir", &dir, "evil", rustix::fs::RenameFlags::EXCHANGE).unwrap();
        }
    });
    for workspace in test_dir.both() {
        for round in 0..200 {
            // Each write either happens inside or is refused.
            let _ = workspace.replace_with_mode(
                &rel("dir/f"),
                &Expected::Any,
                round.to_string().as_bytes(),
                None,
            );
            if let Ok(content) = workspace.read(&rel("dir/f"), 100) {
                assert_ne!(content.bytes, b"SECRET");
            }
        }
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(test_dir.text("../outside/f"), "SECRET");
    assert_eq!(test_dir.names("../outside"), ["f"]);
}

#[test]
fn temporary_names_are_recognisable_and_never_listed() {
    let test_dir = TestDir::new();
    test_dir.write(&format!("{TEMPORARY_PREFIX}0123"), "left over");
    let workspace = Workspace::open(&test_dir.root).unwrap();
    assert_eq!(workspace.list(&RelPath::root(), None, 10).unwrap().total, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_links_there_are_what_is_read_lies_inside(
        links in prop::collection::vec(("(a|b|d/c|d/e)", "(\\.\\./){0,2}(a|b|d|d/c|outside/f|real|d/\\.\\.|\\.)?"), 1..5),
        path in "(a|b|d|d/c|d/e)(/(a|b|c|f|real)){0,2}"
    ) {
        let test_dir = TestDir::new();
        test_dir.write("../outside/f", "SECRET");
        test_dir.write("real", "inside");
        test_dir.write("d/real", "inside");
        for (name, target) in &links {
            let _ = symlink(target, test_dir.root.join(name));
        }
        let [new, old] = test_dir.both().map(|workspace| workspace.read(&rel(&path), 100).ok());
        prop_assert_eq!(&new, &old);
        if let Some(content) = new {
            prop_assert_eq!(&content.bytes, b"inside");
            let canonical = test_dir.root.canonicalize().unwrap().join(content.path.as_str());
            prop_assert_eq!(test_dir.root.join(&path).canonicalize().unwrap(), canonical);
        }
    }
}
