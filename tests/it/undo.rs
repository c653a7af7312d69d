//! Undo and redo of what a session did to files, by tools and by commands, and what stands in their way.

use crate::support::calls::{call, command, write};
use crate::support::run::{Lab, holding};
use crate::support::server::Server;
use crate::support::tree::{Tree, tree};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Names and contents.
type Files = Vec<(String, String)>;

/// The files of the workspace with their contents, sorted by path.
fn files(lab: &Lab) -> Files {
    let entries = fs::read_dir(lab.ws()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .filter(|path| path.is_file())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn set(lab: &Lab, path: &str, content: &str) {
    fs::write(lab.ws().join(path), content).unwrap();
}

/// A project and a session that made, changed and deleted files in three steps, with tools and with a command.
fn worked() -> (Lab, Files, Files) {
    let lab = Lab::new()
        .config("workspace: {allow_delete: true}\n")
        .file("a.txt", "one\ntwo\n")
        .file("b.txt", "bytes \u{feff}\r\n")
        .file("c.txt", "c\n")
        .file(".gitignore", "ignored\n")
        .file("ignored", "an ignored file\n");
    let before = files(&lab);
    let edit = json!({"name": "edit_file", "arguments": {"path": "a.txt", "old_str": "two", "new_str": "2"}});
    let read = json!({"name": "read_file", "arguments": {"path": "ignored"}});
    let server = Server::turns(json!([
            {"calls": [edit, write("new.txt", "new\n"), read]},
            {"calls": [command("printf three >> a.txt; rm b.txt; echo made > made.txt"), write("ignored", "other\n")]},
            {"calls": [json!({"name": "delete_file", "arguments": {"path": "c.txt"}}), write("new.txt", "newer\n")]},
            {"text": "done"}]));
    lab.run_yolo(&server, &[]).exits(0);
    let after = files(&lab);
    (lab, before, after)
}

// Fault E3: undo restored files that the file tools may not change.
#[test]
fn a_protected_file_is_restored_after_a_command_changed_it_and_not_after_a_tool_did() {
    let (lab, _, _) = worked();
    let lab = lab.config("guardrails: {protected_files: [new.txt, b.txt]}\n");
    let undone = lab.agent(&["undo", "--force"]).exits(1);
    assert!(undone.stderr.contains("new.txt"), "{}", undone.stderr);
    assert_eq!((lab.read("new.txt"), lab.read("a.txt")), ("newer\n".into(), "one\ntwo\n".into()));
    assert!(lab.exists("b.txt"));
}

#[test]
fn a14_undo_restores_every_byte_and_redo_brings_the_work_back() {
    let (lab, before, after) = worked();
    assert_ne!(before, after);
    let told = lab.agent(&["undo"]).exits(0).stdout;
    assert_eq!(files(&lab), before);
    assert!(told.contains("undone: made.txt is removed again"), "{told}");
    assert!(told.contains("undone: b.txt exists again"), "{told}");
    assert!(lab.agent(&["undo"]).exits(0).stdout.contains("nothing to undo"));
    lab.agent(&["redo"]).exits(0);
    assert_eq!(files(&lab), after);
    assert!(lab.agent(&["redo"]).exits(0).stdout.contains("nothing to redo"));
    lab.agent(&["undo"]).exits(0);
    assert_eq!(files(&lab), before);
}

#[test]
fn a14_undo_goes_back_to_a_step_and_takes_single_files() {
    let (lab, before, after) = worked();
    let id = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let steps = lab.agent(&["history", &id]).exits(0).stdout;
    for line in ["    1  ", "    2  ", "    3  "] {
        assert!(steps.contains(line), "{steps}");
    }
    lab.agent(&["rollback", "--to-step", "1"]).exits(0);
    let at_one: Vec<_> = files(&lab);
    let of = |files: &[(String, String)], name: &str| files.iter().find(|file| file.0 == name).cloned();
    assert_eq!(of(&at_one, "a.txt").unwrap().1, "one\n2\n");
    assert_eq!(of(&at_one, "new.txt").unwrap().1, "new\n");
    for name in ["b.txt", "c.txt", "ignored", "made.txt"] {
        assert_eq!(of(&at_one, name), of(&before, name), "{name}");
    }
    lab.agent(&["redo"]).exits(0);
    assert_eq!(files(&lab), after);
    lab.agent(&["undo", &id, "--file", "b.txt"]).exits(0);
    assert_eq!(of(&files(&lab), "b.txt"), of(&before, "b.txt"));
    assert_eq!(of(&files(&lab), "a.txt"), of(&after, "a.txt"));
}

#[test]
fn a14_what_somebody_else_changed_since_stays_without_force_and_can_be_had_back_with_it() {
    let (lab, before, _) = worked();
    set(&lab, "a.txt", "mine\n");
    let mixed = files(&lab);
    let refused = lab.agent(&["undo"]).exits(1);
    assert!(refused.stderr.contains("a.txt") && refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(files(&lab), mixed, "all or nothing");
    lab.agent(&["undo", "--file", "c.txt"]).exits(0);
    lab.agent(&["undo", "--force"]).exits(0);
    assert_eq!(files(&lab), before);
    lab.agent(&["redo", "--force"]).exits(0);
    assert_ne!(files(&lab), before);
}

#[test]
fn a14_what_a_forced_undo_displaces_is_kept() {
    let (lab, ..) = worked();
    set(&lab, "a.txt", "mine, which exists nowhere else\n");
    lab.agent(&["undo", "--force"]).exits(0);
    let kept = holding(&lab.home(), "mine, which exists nowhere else");
    assert_eq!(kept.len(), 1, "{kept:?}");
    let mode = fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn a_diff_shows_what_the_session_changed_until_it_is_undone() {
    let (lab, ..) = worked();
    set(&lab, "c.txt", "again\n");
    let diff = lab.agent(&["diff"]).exits(0).stdout;
    for part in ["--- a/a.txt", "-two\n+2\n+three", "+++ b/made.txt", "-an ignored file\n+other"] {
        assert!(diff.contains(part), "{part}: {diff}");
    }
    assert!(diff.contains("c.txt was changed outside the session since"), "{diff}");
    assert!(!diff.contains('\u{1b}'), "no colour into a pipe");
    let one = lab.agent(&["diff", "--file", "new.txt", "--since-step", "1"]).exits(0).stdout;
    assert!(one.contains("-new\n+newer") && !one.contains("a.txt"), "{one}");
    lab.agent(&["undo", "--force"]).exits(0);
    assert!(lab.agent(&["diff"]).exits(0).stdout.contains("this session has no file changes"));
    let colored = lab.env("CLICOLOR_FORCE", "1");
    colored.agent(&["redo"]).exits(0);
    assert!(colored.agent(&["diff"]).exits(0).stdout.contains("\u{1b}[32m+2\u{1b}[0m"));
}

#[test]
fn what_cannot_be_undone_is_said_when_it_happens_and_the_rest_is_undone() {
    let lab = Lab::new().env("DEPLOY_TOKEN", "correct-horse-battery-9").file("small.txt", "small");
    fs::File::create_new(lab.ws().join("large.bin")).unwrap().set_len((32 << 20) + 1).unwrap();
    set(&lab, "token.txt", "correct-horse-battery-9");
    let server = Server::calls([command("echo x > large.bin; echo x > small.txt; echo x > token.txt")]);
    let ended = lab.run_yolo(&server, &[]).exits(0);
    assert!(ended.stderr.contains("large.bin, token.txt"), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot be undone"), "{}", ended.stderr);
    let told = lab.agent(&["undo"]).exits(1);
    assert!(told.stdout.contains("undone: small.txt") && told.stderr.contains("large.bin"), "{told:?}");
    assert_eq!((lab.read("small.txt"), lab.read("large.bin")), ("small".to_owned(), "x\n".to_owned()));
    assert_eq!(holding(&lab.home(), "correct-horse-battery-9"), Vec::<String>::new());
}

#[test]
fn a14_what_redo_could_not_bring_back_is_not_undone_unless_it_is_forced() {
    let lab =
        Lab::new().env("DEPLOY_TOKEN", "correct-horse-battery-9").file("a.txt", "a\n").file("b.txt", "b\n");
    let server = Server::calls([command(
        "echo correct-horse-battery-9 > made.txt; echo A > a.txt; echo B > b.txt; head -c 33554433 /dev/zero > large.bin",
    )]);
    lab.run_yolo(&server, &[]).exits(0);
    set(&lab, "b.txt", "mine\n");
    let before = files(&lab);
    let refused = lab.agent(&["undo"]).exits(1);
    for part in [
        "large.bin (it is larger than 32 MiB)",
        "made.txt (it contains a secret",
        "`--force`",
        "cannot restore",
    ] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert!(refused.stderr.contains("in between: b.txt;"), "both at once: {}", refused.stderr);
    assert!(files(&lab) == before, "all or nothing");
    lab.agent(&["undo", "--file", "a.txt"]).exits(0);
    assert_eq!(lab.read("a.txt"), "a\n");
    lab.agent(&["redo"]).exits(0);
    let forced = lab.agent(&["undo", "--force"]).exits(0);
    assert!(forced.stderr.contains("made.txt cannot be undone: it contains a secret"), "{}", forced.stderr);
    assert!(!lab.exists("made.txt") && !lab.exists("large.bin"));
    let again = lab.agent(&["redo"]).exits(1);
    assert!(again.stderr.contains("were not stored: large.bin, made.txt"), "{}", again.stderr);
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("A\n".to_owned(), "mine\n".to_owned()));
    assert_eq!(holding(&lab.home(), "correct-horse-battery-9"), Vec::<String>::new());
}

#[test]
fn a14_caches_that_commands_fill_are_neither_listed_nor_undone_and_what_tools_write_there_is() {
    let lab = Lab::new().file(".gitignore", "ignored/\n");
    let calls = [
        command(
            "mkdir -p pkg/__pycache__ ignored; echo x > pkg/__pycache__/a.pyc; echo x > ignored/out; echo x > pkg/a.py",
        ),
        write("own/__pycache__/tool.txt", "tool\n"),
    ];
    let document = lab.run_yolo(&Server::calls(calls.iter().cloned()), &["--json"]).exits(0).json();
    let listed: Vec<_> =
        document["files_modified"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(listed, ["pkg/a.py", "own/__pycache__/tool.txt"], "{document}");
    let diff = lab.agent(&["diff"]).exits(0).stdout;
    assert!(
        diff.contains("+++ b/pkg/a.py") && diff.contains("tool.txt") && !diff.contains("pyc\n"),
        "{diff}"
    );
    lab.agent(&["undo"]).exits(0);
    assert!(!lab.exists("pkg/a.py") && !lab.exists("own"));
    assert!(lab.exists("pkg/__pycache__/a.pyc") && lab.exists("ignored/out"));
}

#[test]
fn a_session_that_goes_on_is_told_which_files_were_put_back() {
    let (lab, ..) = worked();
    lab.agent(&["undo", "--file", "a.txt"]).exits(0);
    let server = Server::calls([write("a.txt", "blind")]);
    lab.resume(&server, &["--mode", "yolo", "go on"]).exits(0);
    let first = server.requests()[0].body["messages"].to_string();
    assert!(first.contains("restored files") && first.contains("a.txt"), "{first}");
    let last = server.requests().last().unwrap().body["messages"].to_string();
    assert!(last.contains("read_file it first"), "what the model has seen is not what is there: {last}");
    assert_eq!(lab.read("a.txt"), "one\ntwo\n");
    let shown = lab.agent(&["sessions", "list"]).exits(0).stdout;
    assert!(shown.contains("success"), "{shown}");
}

#[test]
fn a_session_that_runs_is_not_undone() {
    let lab = Lab::new().file("a.txt", "a");
    let server = Server::calls([command("touch begun; sleep 60")]);
    let running = lab.start_run(&server, &["--mode", "yolo"]);
    lab.wait_for_file("begun");
    let busy = lab.agent(&["undo"]).exits(3);
    assert!(busy.stderr.contains("busy"), "{}", busy.stderr);
    running.signal(rustix::process::Signal::INT);
    running.finish().exits(130);
    lab.agent(&["undo"]).exits(0);
    assert!(!lab.exists("begun"));
}

/// Does `calls` in one run, undoes and redoes them, and undoes them again: everything is as it was, kind and permissions too.
fn goes_back_and_forth(lab: &Lab, calls: &[Value]) {
    let before = tree(&lab.ws());
    lab.run_yolo(&Server::calls(calls.iter().cloned()), &[]).exits(0);
    let after = tree(&lab.ws());
    assert_ne!(before, after);
    for (words, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        lab.agent(&[words]).exits(0);
        assert_eq!(tree(&lab.ws()), *wanted, "{words}");
    }
}

#[test]
fn a14_permission_bits_go_back_and_forth_whatever_changed_or_removed_the_file() {
    let lab = Lab::new()
        .config("workspace: {allow_delete: true}\n")
        .script("deleted.sh", "#!/bin/sh\n")
        .script("moved.sh", "#!/bin/sh\necho\n")
        .script("removed.sh", "#!/bin/sh\n# removed\n")
        .script("edited.sh", "#!/bin/sh\n# edited\n")
        .file("plain.txt", "plain\n");
    let patch = "*** Begin Patch\n*** Update File: moved.sh\n*** Move to: elsewhere.sh\n*** End Patch\n";
    goes_back_and_forth(
        &lab,
        &[
            call("delete_file", &json!({"path": "deleted.sh"})),
            call("apply_patch", &json!({"patch": patch})),
            call("edit_file", &json!({"path": "edited.sh", "old_str": "# edited", "new_str": "true"})),
            command("rm removed.sh; chmod 600 edited.sh; chmod +x plain.txt"),
        ],
    );
    let told = lab.agent(&["redo"]).exits(0).stdout;
    assert!(told.contains("redone: plain.txt has its earlier permissions again"), "{told}");
    let diff = lab.agent(&["diff", "--file", "plain.txt"]).exits(0).stdout;
    assert_eq!(diff, "# plain.txt: mode 100644 became 100755\n");
    fs::set_permissions(lab.ws().join("plain.txt"), fs::Permissions::from_mode(0o700)).unwrap();
    let refused = lab.agent(&["undo", "--file", "plain.txt"]).exits(1);
    assert!(refused.stderr.contains("other programs or people changed"), "{}", refused.stderr);
}

#[test]
fn a14_links_that_were_made_changed_replaced_or_removed_go_back_and_forth() {
    let lab = Lab::new()
        .config("workspace: {allow_delete: true}\n")
        .file("a.txt", "a\n")
        .file("b.txt", "b\n")
        .file("becomes-link", "a file\n");
    for (link, to) in [("led", "a.txt"), ("gone", "nowhere"), ("becomes-file", "a.txt"), ("deleted", "b.txt")]
    {
        std::os::unix::fs::symlink(to, lab.ws().join(link)).unwrap();
    }
    goes_back_and_forth(
        &lab,
        &[
            command("ln -s a.txt made; ln -sfn b.txt led; rm gone; rm becomes-file; echo x > becomes-file"),
            command("rm becomes-link; ln -s ../outside becomes-link"),
            call("delete_file", &json!({"path": "deleted"})),
        ],
    );
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("a\n".to_owned(), "b\n".to_owned()));
}

#[test]
fn a14_directories_made_for_files_go_with_them_and_one_in_which_somebody_works_stays() {
    let lab = Lab::new().file("a.txt", "a\n");
    let calls = [
        write("new/deep/x.txt", "x\n"),
        write("new/deep/y.txt", "y\n"),
        command("mkdir -p sub/dir; echo z > sub/dir/z"),
    ];
    goes_back_and_forth(&lab, &calls);
    lab.agent(&["redo"]).exits(0);
    set(&lab, "new/mine", "mine\n");
    lab.agent(&["undo"]).exits(0);
    assert!(lab.exists("new/mine") && !lab.exists("new/deep") && !lab.exists("sub"));
}

/// Files and links alone: a directory that a redo empties stays.
fn without_directories(tree: &Tree) -> Tree {
    let mut files = tree.clone();
    files.retain(|_, (_, mode)| *mode & 0o170_000 != 0o040_000);
    files
}

#[test]
fn a14_what_a_command_did_until_the_run_was_killed_is_undone_and_redone() {
    let lab = Lab::new().file("a.txt", "a\n").file("d/b.txt", "b\n");
    let before = tree(&lab.ws());
    let server =
        Server::calls([command("echo x > a.txt; rm -r d; mkdir e; echo y > e/y; touch begun; sleep 60")]);
    let running = lab.start_run(&server, &["--mode", "yolo"]);
    lab.wait_for_file("begun");
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    let after = tree(&lab.ws());
    let shown = lab.agent(&["diff"]).exits(0).stdout;
    assert!(shown.contains("-a\n+x") && shown.contains("--- a/d/b.txt"), "{shown}");
    for (words, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        lab.agent(&[words]).exits(0);
        assert_eq!(without_directories(&tree(&lab.ws())), without_directories(wanted), "{words}");
    }
}

// Large trees: a later run knows the files that it need not read, and still restores what was there before its command.
#[test]
fn a_later_run_restores_what_was_written_since_the_last_one() {
    let lab = Lab::new()
        .file("large.bin", "x".repeat(2 << 20))
        .file("same.txt", "same\n")
        .file("mine.txt", "first\n")
        .file("moved/a.txt", "a\n");
    let run = |text: &str| lab.run_yolo(&Server::calls([command(text)]), &[]).exits(0);
    let file = lab.ws().join("mine.txt");
    let time = fs::metadata(&file).unwrap().modified().unwrap();
    run("true");
    set(&lab, "mine.txt", "other\n");
    fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
    fs::rename(lab.ws().join("moved"), lab.ws().join("there")).unwrap();
    let before = tree(&lab.ws());
    run(
        "for file in large.bin same.txt mine.txt there/a.txt; do echo gone > $file; done; chmod 700 same.txt",
    );
    assert_ne!(tree(&lab.ws()), before);
    lab.agent(&["undo"]).exits(0);
    assert_eq!(tree(&lab.ws()), before);
}

// Large trees: what runs have noted about the files of a workspace goes with its last session.
#[test]
fn notes_on_the_files_go_with_the_last_session() {
    let lab = Lab::new().file("large.bin", "x".repeat(2 << 20));
    for _ in 0..2 {
        lab.run_yolo(&Server::calls([command("true")]), &[]).exits(0);
    }
    let contents = lab.journal().parent().unwrap().parent().unwrap().with_file_name("displaced");
    let notes = || {
        let names = fs::read_dir(&contents).unwrap().map(|entry| entry.unwrap());
        names.filter(|entry| entry.file_name().to_string_lossy().starts_with("files-")).collect::<Vec<_>>()
    };
    let found = notes();
    assert_eq!((found.len(), found[0].metadata().unwrap().permissions().mode() & 0o777), (1, 0o600));
    for (is_last, journal) in [(false, 1), (true, 0)] {
        let id = lab.journals()[journal].parent().unwrap().file_name().unwrap().to_owned();
        lab.age(id.to_str().unwrap(), 9);
        lab.agent(&["sessions", "cleanup", "--older-than", "8"]).exits(0);
        assert_eq!(notes().is_empty(), is_last);
    }
}

#[test]
fn a_workspace_with_too_many_files_is_looked_at_twice_in_a_row_and_no_more() {
    const MANY: usize = 51_000;
    for (commands, is_listed) in [
        (&["rm -r many", "echo x > new"][..], true),
        (&["true", "rm -r many", "echo x > new", "true"], false),
    ] {
        let lab = Lab::new();
        fs::create_dir(lab.ws().join("many")).unwrap();
        // Names of one file: a file system takes its time to make so many after it has removed as many.
        fs::write(lab.ws().join("one"), "").unwrap();
        for number in 0..MANY {
            fs::hard_link(lab.ws().join("one"), lab.ws().join(format!("many/{number}"))).unwrap();
        }
        let calls: Vec<Value> = commands.iter().map(|text| command(text)).collect();
        let run = lab.run_yolo(&Server::calls(calls.iter().cloned()), &["--json", "-v"]).exits(0);
        let document = run.json();
        let modified = document["files_modified"].as_array().unwrap();
        assert_eq!(modified.iter().any(|file| file["path"] == "new"), is_listed, "{document}");
        let said = |text: &str| run.stderr.matches(text).count();
        assert_eq!(said("changed by this command are not listed"), 1, "{}", run.stderr);
        assert_eq!(said("in the rest of this run"), usize::from(!is_listed), "{}", run.stderr);
    }
}

// Fault C2: the session that started last was taken, and not named.
#[test]
fn without_an_id_the_session_that_ended_last_with_changes_is_taken_and_named() {
    let lab = Lab::new();
    let wait = "touch begun; while ! test -e go; do sleep 0.02; done; echo a > a.txt";
    let first = Server::calls([command(wait)]);
    let running = lab.start_run(&first, &["--mode", "yolo", "--json"]);
    lab.wait_for_file("begun");
    let second = lab.run_yolo(&Server::calls([write("b.txt", "b")]), &["--json"]).exits(0).json();
    set(&lab, "go", "");
    let first = running.finish().exits(0).json();
    let third = lab.run(&Server::calls([]), &["--json"]).exits(0).json();
    let id = |document: &Value| document["session_id"].as_str().unwrap().to_owned();
    for words in
        [&["diff"][..], &["history"], &["undo", "--file", "a.txt"], &["undo", "--file", "a.txt"], &["redo"]]
    {
        let done = lab.agent(words).exits(0);
        assert!(done.stderr.contains(&format!("session {}", id(&first))), "{words:?}: {}", done.stderr);
    }
    assert_eq!(lab.read("a.txt"), "a\n");
    assert!(lab.agent(&["diff"]).exits(0).stdout.contains("+a"));
    let report = lab.agent(&["report"]).exits(0).stdout;
    assert!(
        report.contains(&id(&first)) && !report.contains(&id(&third)) && !report.contains(&id(&second)),
        "{report}"
    );
}
