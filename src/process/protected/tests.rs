//! Tests of restoring protected files in a directory, without running commands.

use super::safe_repository::is_safe_config;
use super::snapshot::Extent;
use super::workspace_scan::WorkspaceScan;
use super::{ChangeKind, ProtectedChange, ProtectionTracker, Snapshot, report};
use crate::sandbox::SandboxPolicy;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Creates a workspace with the protected paths `names`, and a directory for moved items.
fn protected_workspace(names: &[&str]) -> (tempfile::TempDir, SandboxPolicy, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let workspace = root.join("ws");
    fs::create_dir(&workspace).unwrap();
    let read_only = names.iter().map(|name| workspace.join(name)).collect();
    let policy = SandboxPolicy { writable: vec![workspace], read_only, ..SandboxPolicy::default() };
    (dir, policy, root.join("quarantine"))
}

fn workspace(policy: &SandboxPolicy) -> &Path {
    &policy.writable[0]
}

fn look(policy: &SandboxPolicy) -> Snapshot {
    let restore_lock = rustix::fs::memfd_create("turn", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    Snapshot::take(policy, Extent::All, restore_lock)
}

#[test]
fn untouched_files_are_not_reported() {
    let (_place, policy, quarantine) = protected_workspace(&["file", "directory", "absent", "deep/absent"]);
    fs::write(workspace(&policy).join("file"), "x").unwrap();
    fs::create_dir(workspace(&policy).join("directory")).unwrap();
    let snapshot = look(&policy);
    assert_eq!(snapshot.restore(&quarantine), []);
    assert!(!quarantine.exists());
}

#[test]
fn a_change_of_the_same_size_with_the_old_time_is_found() {
    let (_place, policy, quarantine) = protected_workspace(&["file"]);
    let file = workspace(&policy).join("file");
    fs::write(&file, "good").unwrap();
    let old = fs::metadata(&file).unwrap().modified().unwrap();
    let snapshot = look(&policy);
    fs::write(&file, "evil").unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
    let found = snapshot.restore(&quarantine);
    assert_eq!((found.len(), found[0].kind), (1, ChangeKind::Changed));
    assert_eq!(fs::read(&file).unwrap(), b"good");
    assert_eq!(fs::read(found[0].moved_to.as_ref().unwrap()).unwrap(), b"evil");
}

// Fault A4: the data of a linked worktree that git had removed came back. What only has such a name is put back.
#[test]
fn only_a_linked_worktree_may_be_removed() {
    let names = [".git/worktrees/x/commondir", ".git/modules/worktrees/x/config", "worktrees/.git/config"];
    let (_place, policy, quarantine) = protected_workspace(&names);
    let path = |name: &str| workspace(&policy).join(name);
    for name in names {
        fs::create_dir_all(path(name).parent().unwrap()).unwrap();
        fs::write(path(name), "x").unwrap();
    }
    fs::write(path(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    let snapshot = look(&policy);
    for removed in [".git/worktrees/x", ".git/modules/worktrees/x", "worktrees/.git"] {
        fs::remove_dir_all(path(removed)).unwrap();
    }
    let found = snapshot.restore(&quarantine);
    assert!(found.iter().all(|change| !change.path.contains(".git/worktrees")), "{found:?}");
    assert_eq!(names.map(|name| path(name).exists()), [false, true, true]);
}

#[test]
fn a_changed_file_is_cut_off_from_its_other_names() {
    let (_place, policy, quarantine) = protected_workspace(&["file"]);
    let file = workspace(&policy).join("file");
    fs::write(&file, "good").unwrap();
    let snapshot = look(&policy);
    let other = workspace(&policy).join("other");
    fs::hard_link(&file, &other).unwrap();
    fs::write(&other, "evil").unwrap();
    snapshot.restore(&quarantine);
    fs::write(&other, "evil again").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"good");
}

#[test]
fn a_fifo_in_the_place_of_a_file_does_not_block() {
    let (_place, policy, quarantine) = protected_workspace(&["file"]);
    let file = workspace(&policy).join("file");
    fs::write(&file, "good").unwrap();
    let snapshot = look(&policy);
    fs::remove_file(&file).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &file,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    assert_eq!(snapshot.restore(&quarantine).len(), 1);
    assert_eq!(fs::read(&file).unwrap(), b"good");
}

#[test]
fn repositories_beyond_the_limits_of_the_first_scan_are_not_new_later() {
    let (_place, policy, _quarantine) = protected_workspace(&[]);
    for number in 0..2100 {
        fs::create_dir_all(workspace(&policy).join(format!("{number}/.git"))).unwrap();
    }
    let (mut scan, found) = WorkspaceScan::start(workspace(&policy)).unwrap();
    assert!(found.repositories.len() < 2000);
    for number in 0..2100 {
        fs::write(workspace(&policy).join(format!("{number}/new")), "").unwrap();
    }
    assert!(scan.judge_new(|repositories, _| repositories.is_empty()));
    fs::create_dir_all(workspace(&policy).join("new/er/.git")).unwrap();
    let found = scan.judge_new(|repositories, _| repositories.clone());
    assert_eq!(found, BTreeSet::from([workspace(&policy).join("new/er/.git")]));
}

#[test]
fn changes_while_no_command_runs_are_accepted() {
    let (_place, policy, quarantine) = protected_workspace(&[]);
    let part = workspace(&policy).join("part");
    fs::create_dir(&part).unwrap();
    let protection = ProtectionTracker::new(policy);
    let command = |act: &dyn Fn()| {
        let ((), active) = protection.start_command(|_| Ok(())).unwrap();
        act();
        protection.finish_command(active, Some(Vec::new()), &quarantine)
    };
    assert_eq!(command(&|| ()), []);
    fs::write(part.join(".envrc"), "the person's").unwrap();
    assert_eq!(command(&|| ()), []);
    let moved = command(&|| fs::write(part.join(".mcp.json"), "a command's").unwrap());
    assert_eq!(
        (moved.len(), part.join(".envrc").exists(), part.join(".mcp.json").exists()),
        (1, true, false)
    );
}

#[test]
fn a_command_runs_until_what_says_so_is_gone() {
    let (_place, policy, _quarantine) = protected_workspace(&[]);
    let protection = ProtectionTracker::new(policy);
    let is_first = || protection.start_command(Ok).unwrap();
    let (first, running) = is_first();
    let (second, other) = is_first();
    assert_eq!((first, second), (true, false));
    drop((running, other));
    protection.start_command(|_| Err::<(), _>(std::io::Error::other("it could not be started"))).unwrap_err();
    assert!(is_first().0);
}

#[test]
fn a_guard_killed_before_its_report_blocks_all_commands() {
    let (_place, policy, quarantine) = protected_workspace(&["file"]);
    let protection = ProtectionTracker::new(policy);
    let start = || protection.start_command(|_| Ok(())).unwrap().1;
    assert_eq!(protection.finish_command(start(), Some(Vec::new()), &quarantine), []);
    assert_eq!(protection.block_reason(), None);
    protection.finish_command(start(), None, &quarantine);
    assert!(protection.block_reason().unwrap().contains("was killed before it could compare"));
}

#[test]
fn only_what_runs_nothing_is_a_plain_repository() {
    for (text, plain) in [
        ("[core]\n\trepositoryformatversion = 0\n\tbare = false\n[user]\n\tname = Me\n", true),
        (
            "[remote \"origin\"]\n\turl = https://x/y\n\tfetch = +refs/*:refs/*\n[branch \"main\"]\nmerge = x",
            true,
        ),
        ("[core]\n\tfsmonitor = ./evil\n", false),
        ("[core] pager = evil\n", false),
        ("[core]\n\tfsmonitor = false\n", true),
        ("[core \"x\"]\n\tbare = true\n", true),
        ("[remote \"o\"] uploadpack = evil #]\n", false),
        ("[remote \"o\"] uploadpack = \"evil\" #\"]\n", false),
        ("[include]\n\tpath = /evil\n", false),
        ("[remote \"o\"]\n\tuploadpack = evil\n", false),
        ("[user]\n\tname = a\\\n[core]\n", false),
        ("\u{feff}[core]\n", false),
    ] {
        assert_eq!(is_safe_config(text), plain, "{text:?}");
    }
}

proptest! {
    #[test]
    fn a_report_is_decoded_after_replies(paths: Vec<String>, answers in 0_usize..3) {
        let one = |path: String| ProtectedChange { path, kind: ChangeKind::Removed, restore_error: None, moved_to: None, ran_concurrently: false };
        let changes: Vec<_> = paths.into_iter().map(one).collect();
        let mut reply = b"x\0\0\0\0".repeat(answers);
        reply.extend(report::encode(&changes).unwrap());
        prop_assert_eq!(report::decode(&reply, 5), Some(changes));
    }

    #[test]
    fn garbage_is_not_a_report(bytes: Vec<u8>) {
        let _any = report::decode(&bytes, 5);
    }
}
