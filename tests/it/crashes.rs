//! The agent dies in the middle of a change, wherever that may be: every file is old or new, at the next start every change
//! is whole or never was, nothing lies beside the files, and what was done can be undone.

use crate::support::calls::{call, command, edit, script, write};
use crate::support::extent::cases;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use crate::support::syscall_faults::{Fault, Kind, REFUSES, Watched, watched};
use crate::support::tree::{Tree, tree};
use agent_workspace::replace::TEMPORARY_PREFIX;
use nix::errno::Errno;
use serde_json::{Value, json};

/// Every how many calls it dies where not every point is tried.
const STRIDE: u64 = 3;
/// Every so many calls by default.
const FEW_STRIDE: u64 = 12;

/// Two texts, a script, and a directory; the sandbox is known, so that every run makes the same calls.
fn project() -> Lab {
    let lab = Lab::new()
        .started()
        .config("workspace: {allow_delete: true}\n")
        .file("a.txt", "one\ntwo\nthree\n")
        .file("b.txt", "one\ntwo\nthree\n")
        .script("d/run.sh", "#!/bin/sh\n")
        .unprivileged();
    lab.agent(&["tools", "call", "run_command", r#"{"command":"true"}"#, "--mode", "yolo"]).exits(0);
    lab
}

fn run_watched(lab: &Lab, calls: &[Value], fault: Fault) -> Option<Watched> {
    let server = Server::start(&script(&[calls.to_vec()]));
    let url = server.url();
    // Of a streamed answer it is a matter of time how many pieces are written.
    let more =
        ["--model", "openai/mock", "--api-base", &url, "--api-key", KEY, "--mode", "yolo", "--no-stream"];
    watched(lab, &[&["run", "task"], &more[..]].concat(), fault)
}

/// The next start.
fn start_again(lab: &Lab) {
    let server = Server::start(&script(&[]));
    lab.resume(&server, &["--mode", "yolo"]).exits(0);
}

/// The calls at which to die, of so many.
fn points(count: usize) -> impl Iterator<Item = usize> {
    let stride = usize::try_from(cases(FEW_STRIDE, STRIDE, 1)).unwrap();
    eprintln!("{} of {count} calls", count.div_ceil(stride));
    (0..count).step_by(stride)
}

/// Every file is as before or as after, and nothing else is there but what a change may be writing.
#[track_caller]
fn are_old_or_new(now: &Tree, before: &Tree, after: &Tree, what: &str) {
    for path in before.keys().chain(after.keys()) {
        let is = now.get(path);
        assert!(is == before.get(path) || is == after.get(path), "{what}: {path} is {is:?}");
    }
}

/// Dies at one call after another of a run that makes `calls`, and once at none.
fn dies_anywhere(calls: &[Value]) {
    let whole = project();
    let before = tree(&whole.ws());
    let Some(untouched) = run_watched(&whole, calls, Fault::None) else { return };
    assert_eq!(untouched.code, Some(0), "{}", untouched.stderr);
    let after = tree(&whole.ws());
    assert_ne!(before, after);
    for point in points(untouched.calls.len()) {
        let lab = project();
        let died = run_watched(&lab, calls, Fault::Death(point)).unwrap();
        let what = format!("{} of {:?}", point, untouched.calls);
        assert_eq!((died.code, died.calls.len()), (None, point + 1), "{what}: {}", died.stderr);
        are_old_or_new(&tree(&lab.ws()), &before, &after, &what);
        if point % 2 == 0 {
            start_again(&lab);
            let now = tree(&lab.ws());
            assert!(now == before || now == after, "{what}: {now:?}");
        }
        lab.agent(&["undo"]).exits(0);
        assert_eq!(tree(&lab.ws()), before, "{what}");
    }
}

#[test]
fn class_07_a_file_that_is_written_when_the_agent_dies_is_old_or_new() {
    dies_anywhere(&[write("new/deep/file.txt", "new\n")]);
}

#[test]
fn class_07_a_file_that_is_edited_when_the_agent_dies_is_old_or_new() {
    dies_anywhere(&[edit("d/run.sh", "/bin/sh", "/bin/bash")]);
}

#[test]
fn class_07_a_file_that_is_deleted_when_the_agent_dies_is_there_or_gone() {
    dies_anywhere(&[call("delete_file", &json!({"path": "d/run.sh"}))]);
}

#[test]
fn class_07_an_envelope_of_several_files_is_applied_whole_or_not_wherever_the_agent_dies() {
    let sections = "*** Update File: a.txt\n@@\n-two\n+2\n*** Delete File: b.txt\n*** Add File: e/new.txt\n+x\n\
                    *** Update File: d/run.sh\n*** Move to: moved.sh\n";
    let patch = format!("*** Begin Patch\n{sections}*** End Patch\n");
    dies_anywhere(&[call("apply_patch", &json!({ "patch": patch }))]);
}

#[test]
fn class_07_a_diff_of_several_files_is_applied_whole_or_not_wherever_the_agent_dies() {
    let part = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -2 +2 @@\n-two\n+2\n");
    dies_anywhere(&[call("apply_patch", &json!({"patch": part("a.txt") + &part("b.txt")}))]);
}

#[test]
fn class_07_a_command_never_begins_where_the_journal_cannot_be_made_durable() {
    let lab = project();
    let Some(failed) = run_watched(&lab, &[command("printf x > marker")], Fault::Refusal(0, Errno::EIO))
    else {
        return;
    };
    assert_eq!((failed.calls.first(), failed.code), (Some(&Kind::Sync), Some(1)), "{}", failed.stderr);
    assert!(failed.stderr.contains("the session journal cannot be written"), "{}", failed.stderr);
    assert!(!lab.ws().join("marker").exists());
}

#[test]
fn class_07_what_a_command_did_is_undone_wherever_the_agent_dies() {
    dies_anywhere(&[command("printf x > f && mv f a.txt")]);
}

#[test]
fn class_07_an_undo_that_dies_is_done_again() {
    let worked = || {
        let lab = project();
        let patch = json!({"patch": "*** Begin Patch\n*** Delete File: b.txt\n*** Add File: e/new.txt\n+x\n*** End Patch\n"});
        let server = Server::start(&script(&[vec![call("apply_patch", &patch)]]));
        lab.run_yolo(&server, &[]).exits(0);
        lab
    };
    let (before, whole) = (tree(&project().ws()), worked());
    let after = tree(&whole.ws());
    let Some(untouched) = watched(&whole, &["undo"], Fault::None) else { return };
    for point in points(untouched.calls.len()) {
        let lab = worked();
        let died = watched(&lab, &["undo"], Fault::Death(point)).unwrap();
        let what = format!("{} of {:?}", point, untouched.calls);
        assert_eq!((died.code, died.calls.len()), (None, point + 1), "{what}: {}", died.stderr);
        are_old_or_new(&tree(&lab.ws()), &before, &after, &what);
        lab.agent(&["undo"]).exits(0);
        assert_eq!(tree(&lab.ws()), before, "{what}");
    }
}

#[test]
fn class_07_what_the_disk_refuses_changes_a_file_whole_or_not() {
    let patch = json!({"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+2\n*** Delete File: b.txt\n*** End Patch\n"});
    let calls = [call("apply_patch", &patch)];
    let whole = project();
    let before = tree(&whole.ws());
    let Some(untouched) = run_watched(&whole, &calls, Fault::None).filter(|_| REFUSES) else { return };
    let after = tree(&whole.ws());
    for point in points(untouched.calls.len()) {
        let errno = if point % 2 == 0 { Errno::EIO } else { Errno::ENOSPC };
        let lab = project();
        let done = run_watched(&lab, &calls, Fault::Refusal(point, errno)).unwrap();
        let what = format!("{errno} at {point} of {:?}: {}", untouched.calls, done.stderr);
        assert!(done.code.is_some(), "{what}");
        let mut now = tree(&lab.ws());
        if untouched.calls[point] == Kind::Unlink {
            // What cannot be removed stays, hidden.
            now.retain(|path, _| !path.starts_with(TEMPORARY_PREFIX));
        }
        assert!(now == before || now == after, "{what}: {now:?}");
    }
}
