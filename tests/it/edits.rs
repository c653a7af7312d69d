//! Edits through the whole binary: several in one call, patches of several files, what is refused because it would destroy,
//! and what is left when the process is killed.

use crate::support::calls::{call, edit, script, told, told_with, write};
use crate::support::run::Lab;
use crate::support::server::Server;
use agent_workspace::file::hash;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Three lines.
const LINES: &str = "one\ntwo\nthree\n";

fn envelope(sections: &str) -> Value {
    call("apply_patch", &json!({"patch": format!("*** Begin Patch\n{sections}*** End Patch\n")}))
}

#[test]
fn t04_several_edits_of_one_call_are_all_of_the_file_as_it_is_or_none_is_made() {
    let lab = Lab::new().file("a.txt", LINES);
    let edits = |pairs: &[[&str; 2]]| {
        let edits: Vec<Value> =
            pairs.iter().map(|[old, new]| json!({"old_str": old, "new_str": new})).collect();
        call("edit_file", &json!({"path": "a.txt", "edits": edits}))
    };
    let said = told(
        &lab,
        vec![
            edits(&[["one", "three"], ["four", "4"]]),
            edits(&[["one\ntwo", "x"], ["two\nthree", "y"]]),
            edits(&[["one", "three"], ["three", "one"]]),
        ],
    );
    assert!(
        said[0].starts_with("Error: edit 2 of 2 failed, so none was made: old_str not found"),
        "{}",
        said[0]
    );
    assert_eq!(said[1], "Error: edits 1 and 2 overlap in a.txt: combine them into one edit");
    assert!(
        said[2].starts_with("File a.txt edited:\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n"),
        "{}",
        said[2]
    );
    assert_eq!(lab.read("a.txt"), "three\ntwo\none\n");
}

#[test]
fn t04_a_passage_is_found_apart_from_what_cannot_mean_another_and_the_answer_says_so() {
    let lab = Lab::new()
        .file("blank.txt", "one  \ntwo\n")
        .file("quotes.txt", "say \u{201c}hi\u{201d}\n")
        .file("deep.txt", "{\n    {\n        one\n    }\n}\n")
        .file("twice.txt", "one \ntwo\none\t\ntwo\n");
    let said = told(
        &lab,
        vec![
            edit("blank.txt", "one\ntwo", "one\n2"),
            edit("quotes.txt", "say \"hi\"", "say \"bye\""),
            edit("deep.txt", "{\n    one\n}\n", "{\n    two\n}\n"),
            edit("twice.txt", "one\ntwo", "x"),
        ],
    );
    assert!(said[0].contains("(old_str matched apart from white space at the ends of lines)"), "{}", said[0]);
    assert!(
        said[1].contains("(old_str matched apart from the form of quotes, dashes and spaces)"),
        "{}",
        said[1]
    );
    assert!(said[2].contains("(old_str matched apart from indentation"), "{}", said[2]);
    assert!(said[3].contains("it appears 2 times in twice.txt (lines 1, 3)"), "{}", said[3]);
    assert_eq!(lab.read("blank.txt"), "one  \n2\n");
    assert_eq!(lab.read("quotes.txt"), "say \"bye\"\n");
    assert_eq!(lab.read("deep.txt"), "{\n    {\n        two\n    }\n}\n");
    assert_eq!(lab.read("twice.txt"), "one \ntwo\none\t\ntwo\n");
}

#[test]
fn t04_an_edit_that_would_destroy_or_change_nothing_is_refused_with_its_reason() {
    let lab = Lab::new().file("a.txt", LINES).file("far.txt", format!("one{}\ntwo\n", " ".repeat(3000)));
    let said = told(
        &lab,
        vec![
            edit("a.txt", "two\nthree", "2\n// ... rest of the file ..."),
            edit("a.txt", "zwei", "two"),
            edit("a.txt", "two", "two"),
            edit("far.txt", "one\ntwo", "x"),
            call("read_file", &json!({"path": "a.txt"})),
            write("a.txt", "1\n# ... existing code ...\n"),
            call("apply_patch", &json!({"path": "a.txt", "patch": "@@\n-two\n+# ... existing code ...\n"})),
            call("apply_patch", &json!({"path": "a.txt", "patch": "@@\n one\n-zwei\n+two\n"})),
        ],
    );
    let reasons = [
        "leaves code out: the line \"// ... rest of the file ...\"",
        "new_str is in line 2: this edit seems to be already applied",
        "nothing would change",
        "the passage that it would match in far.txt has 3007 (line 1)",
        "Contents of a.txt",
        "content omits text of the file, and the line \"# ... existing code ...\"",
        "leaves code out: the line \"# ... existing code ...\"",
        "it seems to be already applied",
    ];
    for (said, reason) in said.iter().zip(reasons) {
        assert!(said.contains(reason), "{said}");
    }
    assert_eq!(lab.read("a.txt"), LINES);
}

#[test]
fn t06_an_envelope_adds_changes_and_moves_files_and_deletes_them_where_that_is_allowed() {
    let sections = "*** Add File: d/new.txt\n+x\n*** Update File: a.txt\n@@\n-two\n+2\n*** Update File: b.sh\n*** Move to: d/b.sh\n";
    let lab = Lab::new().file("a.txt", LINES).script("b.sh", "#!/bin/sh\n").file("c.txt", LINES);
    let heredoc = format!("apply_patch <<'EOF'\n*** Begin Patch\n{sections}*** End Patch\nEOF\n");
    let said = told(
        &lab,
        vec![
            envelope(&format!("{sections}*** Delete File: c.txt\n")),
            call("apply_patch", &json!({"patch": heredoc})),
        ],
    );
    assert!(said[0].starts_with("Error: Delete operations are disabled."), "{}", said[0]);
    assert_eq!(
        said[1],
        "Patch applied to 3 files: +2 -1.\nFile d/new.txt created (1 line).\nPatch applied to a.txt. 1 hunk(s), 2 lines changed.\n\
         File b.sh moved to d/b.sh.\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    );
    assert_eq!((lab.read("d/new.txt"), lab.read("a.txt")), ("x\n".to_owned(), LINES.replace("two", "2")));
    assert!(!lab.exists("b.sh") && lab.read("d/b.sh") == "#!/bin/sh\n");
    let lab = lab.config("workspace: {allow_delete: true}\n");
    let said = told(&lab, vec![envelope("*** Delete File: c.txt\n")]);
    assert_eq!(said[0], "File c.txt deleted.");
    assert!(!lab.exists("c.txt"));
}

#[test]
fn t06_a_patch_of_several_files_changes_all_of_them_or_none() {
    let lab = Lab::new().file("a.txt", LINES).file("b.txt", LINES).file("locked/c.txt", LINES).unprivileged();
    fs::set_permissions(lab.ws().join("locked"), std::os::unix::fs::PermissionsExt::from_mode(0o555))
        .unwrap();
    let part = |path: &str, old: &str| format!("*** Update File: {path}\n@@\n-{old}\n+2\n");
    let said = told(
        &lab,
        vec![
            envelope(&[part("a.txt", "two"), part("b.txt", "four")].concat()),
            envelope(
                &["*** Add File: new.txt\n+x\n", &part("a.txt", "two"), &part("locked/c.txt", "two")]
                    .concat(),
            ),
        ],
    );
    assert!(said[0].contains("no file is touched: b.txt: hunk 1 does not fit"), "{}", said[0]);
    assert!(said[1].contains("locked/c.txt") && said[1].ends_with("No file was changed."), "{}", said[1]);
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), (LINES.to_owned(), LINES.to_owned()));
    assert!(!lab.exists("new.txt"));
}

#[test]
fn s11_every_file_that_a_patch_names_is_judged() {
    let lab = Lab::new()
        .file("a.txt", LINES)
        .file(".env", "KEY=1\n")
        .config("guardrails: {protected_files: [.env]}\nworkspace: {allow_delete: true}\n");
    let good = "*** Update File: a.txt\n@@\n-two\n+2\n";
    let calls = [
        "*** Update File: .env\n@@\n-KEY=1\n+KEY=2\n",
        "*** Update File: .env\n*** Move to: env\n",
        "*** Delete File: .env\n",
        "*** Add File: sub/../.env\n+x\n",
    ];
    let mut calls: Vec<Value> = calls.iter().map(|bad| envelope(&format!("{good}{bad}"))).collect();
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-two\n+2\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-KEY=1\n+KEY=2\n";
    calls.push(call("apply_patch", &json!({"patch": diff})));
    calls.push(envelope("*** Update File: a.txt\n*** Move to: .env\n"));
    for said in told(&lab, calls) {
        assert!(said.contains("Protected file blocked by guardrail"), "{said}");
    }
    assert_eq!((lab.read("a.txt"), lab.read(".env")), (LINES.to_owned(), "KEY=1\n".to_owned()));
}

#[test]
fn s03_a_patch_without_a_path_is_asked_about_like_one_with() {
    let lab = Lab::new().file("a.txt", LINES);
    let said = told_with(&lab, &[], vec![envelope("*** Add File: b.txt\n+x\n")]);
    assert!(said[0].contains("yolo") && !lab.exists("b.txt"), "{}", said[0]);
}

/// Where this workspace's state is.
fn state(lab: &Lab) -> PathBuf {
    lab.journal().ancestors().nth(3).unwrap().to_owned()
}

/// The record of a change of two files by a process that was killed after the first.
fn interrupted_change(lab: &Lab, after: &str) -> PathBuf {
    let before = json!({"text": LINES, "mode": 0o640});
    let record = json!([
        {"path": "a.txt", "before": before, "after": hash(after.as_bytes())},
        {"path": "b.txt", "before": before, "after": hash(b"never written")},
        {"path": "new.txt", "before": null, "after": hash(b"x\n")},
    ]);
    let file = state(lab).join("transactions/1.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, record.to_string()).unwrap();
    file
}

#[test]
fn class_07_a_change_of_several_files_that_was_killed_is_undone_at_the_next_start() {
    let lab = Lab::new().file("a.txt", LINES).file("b.txt", LINES);
    told(&lab, vec![]);
    let lab = lab.file("a.txt", "half\n").file("new.txt", "x\n");
    let record = interrupted_change(&lab, "half\n");
    let server = Server::start(&script(&[]));
    let stderr = lab.run(&server, &[]).exits(0).stderr;
    assert!(stderr.contains("a.txt was restored to its earlier content"), "{stderr}");
    assert!(!stderr.contains("b.txt"), "{stderr}");
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), (LINES.to_owned(), LINES.to_owned()));
    assert!(!lab.exists("new.txt") && !record.exists());

    let lab = lab.file("a.txt", "a person's save\n");
    interrupted_change(&lab, "half\n");
    let server = Server::start(&script(&[]));
    let stderr = lab.run(&server, &[]).exits(0).stderr;
    assert!(stderr.contains("a.txt was changed since"), "{stderr}");
    assert_eq!(lab.read("a.txt"), "a person's save\n");
    let aside = record.with_extension("aside");
    assert!(stderr.contains(aside.to_str().unwrap()), "{stderr}");
    assert!(fs::read_to_string(aside).unwrap().contains("one"), "what the file was is not lost");
}

#[test]
fn class_07_a_record_that_cannot_be_read_is_told_once_and_kept_for_a_later_look() {
    let lab = Lab::new().file("a.txt", "half\n").file("b.txt", LINES);
    told(&lab, vec![]);
    let record = interrupted_change(&lab, "half\n");
    let whole = fs::read_to_string(&record).unwrap();
    let torn = &whole[..whole.len() - 10];
    fs::write(&record, torn).unwrap();
    let aside = record.with_extension("aside");
    let server = Server::start(&script(&[]));
    let stderr = lab.run(&server, &[]).exits(0).stderr;
    assert!(stderr.contains(&format!("check {}", aside.display())), "{stderr}");
    for words in [&["undo"][..], &["apply-patch", "/dev/null"]] {
        let stderr = lab.agent(words).stderr;
        assert!(!stderr.contains("interrupted"), "{words:?}: {stderr}");
    }
    assert_eq!((fs::read_to_string(aside).unwrap().as_str(), record.exists()), (torn, false));
    assert_eq!(lab.read("a.txt"), "half\n", "what nobody understands changes nothing");
}

#[test]
fn a_patch_is_applied_from_a_file_or_a_pipe_as_the_tool_would() {
    let lab = Lab::new().file("a.txt", LINES).file("b.txt", LINES);
    let patch = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -2 +2 @@\n-two\n+2\n");
    fs::write(lab.outside().join("p.diff"), patch("a.txt")).unwrap();
    let file = lab.outside().join("p.diff");
    let file = file.to_str().unwrap();
    let refused = lab.agent(&["apply-patch", file]).exits(1);
    assert!(refused.stderr.contains("yolo") && refused.stdout.is_empty(), "{}", refused.stderr);
    let done = lab.agent(&["apply-patch", file, "--mode", "yolo"]).exits(0);
    assert!(
        done.stdout.starts_with("Patch applied to a.txt. 1 hunk(s), 2 lines changed.\n---"),
        "{}",
        done.stdout
    );
    let again = lab.agent(&["apply-patch", file, "--mode", "yolo"]).exits(1);
    assert!(again.stderr.contains("already applied"), "{}", again.stderr);
    let lab = lab.stdin(patch("b.txt"));
    lab.agent(&["apply-patch", "-", "--mode", "yolo"]).exits(0);
    assert_eq!(
        (lab.read("a.txt"), lab.read("b.txt")),
        (LINES.replace("two", "2"), LINES.replace("two", "2"))
    );
    lab.agent(&["apply-patch", "no/such/file"]).exits(3);
    let lab = lab.stdin([0xff]);
    assert!(lab.agent(&["apply-patch"]).exits(3).stderr.contains("not UTF-8"));
}

#[test]
fn a_model_is_offered_the_tools_for_the_form_in_which_it_writes_changes() {
    let offered = |lab: Lab, model: &str| {
        let server = Server::start(&script(&[]));
        let url = server.url();
        lab.agent(&["run", "task", "--model", model, "--api-base", &url, "--api-key", "k"]).exits(0);
        let request = server.requests().remove(0);
        let tools = request.body["tools"].as_array().unwrap().clone();
        let name =
            |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap().to_owned();
        let names: Vec<String> = tools.iter().map(name).collect();
        ["apply_patch", "edit_file", "write_file"].map(|name| names.iter().any(|it| it == name))
    };
    assert_eq!(offered(Lab::new(), "openai/gpt-4.1"), [true, true, true]);
    assert_eq!(offered(Lab::new(), "openai/gpt-5-codex"), [true, false, true]);
    let whole = || Lab::new().config("tools: {edit_format: whole}\n");
    assert_eq!(offered(whole(), "openai/gpt-5-codex"), [false, false, true]);
    assert_eq!(
        offered(Lab::new().config("tools: {edit_format: all}\n"), "openai/gpt-5-codex"),
        [true, true, true]
    );
}
