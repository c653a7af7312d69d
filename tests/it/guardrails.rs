//! Guardrails: limits that hold for every call and every text, in every mode.

use crate::support::calls::{call, command, edit, results, told, write};
use crate::support::run::{Finished, Lab, YOLO};
use crate::support::server::Server;
use serde_json::{Value, json};

fn append(path: &str, content: &str) -> Value {
    call("write_file", &json!({"path": path, "content": content, "mode": "append"}))
}

fn patch(patch: &str) -> Value {
    call("apply_patch", &json!({"patch": patch}))
}

/// A workspace whose user has configured these guardrails.
fn guarded(guardrails: &Value) -> Lab {
    let workspace = json!({"allow_delete": true});
    let unbroken = json!({"max_consecutive_errors": 0, "max_same_errors": 0});
    Lab::with_a_txt()
        .file("b.txt", "beta\n")
        .config(&json!({"guardrails": guardrails, "workspace": workspace, "loop": unbroken}).to_string())
}

/// What the model is told when it makes `calls` one after another.
fn one_by_one(lab: &Lab, calls: &[Value]) -> Vec<String> {
    let server = Server::calls(calls.iter().cloned());
    lab.run_yolo(&server, &[]).exits(0);
    results(&server)
}

fn rules(json: &Value) -> Vec<&str> {
    let denials = json["permission_denials"].as_array().unwrap();
    denials.iter().map(|denial| denial["rule"].as_str().unwrap()).collect()
}

/// Which of `results` are refusals that name `word`.
fn refused(results: &[String], word: &str) -> Vec<bool> {
    results.iter().map(|result| result.starts_with("Error: ") && result.contains(word)).collect()
}

#[test]
fn s13_every_refusal_is_read_by_the_model_and_stands_in_the_document_with_its_reason() {
    let lab = guarded(&json!({
        "protected_files": ["a.txt"],
        "sensitive_files": ["b.txt"],
        "blocked_commands": ["^make"],
        "code_rules": [{"pattern": "eval", "message": "no eval", "severity": "block"}],
        "max_commands_executed": 0,
        "max_files_modified": 1,
        "max_lines_changed": 2,
        "require_test_after_edit": true,
    }));
    let server = Server::calls([
        append("a.txt", "x"),
        call("read_file", &json!({"path": "b.txt"})),
        command("env make all"),
        command("true"),
        write("c.py", "eval\n"),
        write("long.txt", "1\n2\n3\n"),
        write("c.py", "fine\n"),
        write("d.py", "fine\n"),
    ]);
    let document = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let keys = [
        "protected_files",
        "sensitive_files",
        "blocked_commands",
        "max_commands_executed",
        "code_rules[0]",
        "max_lines_changed",
        "require_test_after_edit",
    ];
    assert_eq!(rules(&document), keys.map(|key| format!("guardrails.{key}")));
    let told = results(&server);
    let denials = document["permission_denials"].as_array().unwrap();
    for (result, denial) in [0, 1, 2, 3, 4, 5, 7].map(|at| &told[at]).into_iter().zip(denials) {
        let reason = denial["reason"].as_str().unwrap();
        assert!(reason.len() > 40 && result.contains(reason), "{reason:?} in {result:?}");
    }
    assert_eq!((lab.exists("c.py"), lab.exists("d.py"), lab.exists("long.txt")), (true, false, false));
}

#[test]
fn s14_blocked_commands_never_run_however_they_are_wrapped() {
    let lab = guarded(&json!({"blocked_commands": ["^touch made", "b\\.txt\\s*\\|"]}));
    for text in [
        "touch made",
        "true; env A=1 TOUCH made",
        "sh -c 'touch made'",
        "timeout 5 /usr/bin/touch made",
        "find . -name a.txt -exec touch made ';'",
        "cat b.txt | wc",
    ] {
        let told = told(&lab, vec![command(text)]).remove(0);
        assert!(told.contains("Command blocked by guardrail (pattern: "), "{text}: {told}");
    }
    assert!(told(&lab, vec![command("echo touch made")])[0].contains("exit_code: 0"));
    assert!(!lab.exists("made"));
}

#[test]
fn s14_s16_s19_a_pattern_that_is_none_is_a_configuration_error_with_its_place() {
    for (yaml, line, key) in [
        ("guardrails:\n  blocked_commands:\n    - ok\n    - '('\n", 4, "guardrails.blocked_commands[1]"),
        (
            "guardrails:\n  code_rules:\n    - pattern: '['\n      message: m\n",
            3,
            "guardrails.code_rules[0].pattern",
        ),
        (
            "guardrails:\n  text_rules:\n    - {name: n, on: input, action: halt, message: m, pattern: 'a{2,1}'}\n",
            3,
            "guardrails.text_rules[0].pattern",
        ),
    ] {
        let lab = Lab::new().config(yaml);
        let finished = lab.agent(&["config", "validate"]).exits(3);
        assert!(finished.stderr.contains(&format!("config.yaml:{line}: {key}: ")), "{}", finished.stderr);
        assert!(finished.stderr.contains("is not a regular expression"), "{}", finished.stderr);
    }
}

#[test]
fn s15_files_beyond_the_limit_are_not_changed_and_refused_calls_do_not_count() {
    let lab = guarded(&json!({"max_files_modified": 2, "protected_files": ["kept.txt"]}));
    let two = "*** Begin Patch\n*** Add File: d.txt\n+d\n*** Add File: e.txt\n+e\n*** End Patch\n";
    let told = one_by_one(
        &lab,
        &[
            append("kept.txt", "x"),
            edit("a.txt", "nothing of the kind", "x"),
            patch(two),
            append("f.txt", "refused"),
            edit("d.txt", "d", "dd"),
            command("echo x > f.txt"),
            command("echo x >> e.txt && cat e.txt"),
            call("delete_file", &json!({"path": "a.txt"})),
        ],
    );
    let word = "2 of at most 2 files were already changed in this session (d.txt, e.txt)";
    let expected = [false, false, false, true, false, true, false, true];
    assert_eq!(refused(&told, word), expected, "{told:#?}");
    assert_eq!((lab.read("d.txt"), lab.read("e.txt")), ("dd\n".into(), "e\nx\n".into()));
    assert!(!lab.exists("f.txt") && lab.exists("a.txt"));
}

#[test]
fn s15_a_patch_of_more_files_than_are_left_changes_none() {
    let lab = guarded(&json!({"max_files_modified": 1}));
    let two = "*** Begin Patch\n*** Add File: d.txt\n+d\n*** Add File: e.txt\n+e\n*** End Patch\n";
    let told = one_by_one(&lab, &[patch(two), append("a.txt", "x\n")]);
    assert!(told[0].contains("it would change d.txt, e.txt, and 0 of at most 1 files"), "{}", told[0]);
    assert_eq!((lab.exists("d.txt"), lab.read("a.txt")), (false, "alpha\nx\n".into()));
}

#[test]
fn s15_what_commands_change_counts_and_afterwards_only_those_that_read_run() {
    let lab = guarded(&json!({"max_files_modified": 2, "max_lines_changed": 100}));
    let told = one_by_one(
        &lab,
        &[
            command("for f in 1 2 3; do echo x > $f; done"),
            command("cat 1 a.txt"),
            command("for f in 4; do echo x > $f; done"),
            append("1", "more\n"),
            append("a.txt", "more\n"),
        ],
    );
    assert_eq!(refused(&told, "guardrail"), [false, false, true, false, true], "{told:#?}");
    assert!(told[2].contains("the number of changed files to 3; at most 2"), "{}", told[2]);
    assert!(!lab.exists("4"));
}

#[test]
fn s15_lines_are_those_of_edits_patches_and_commands() {
    let lab = guarded(&json!({"max_lines_changed": 14})).file("data.bin", [0xff, b'\n']);
    let told = one_by_one(
        &lab,
        &[
            edit("a.txt", "alpha", "one\ntwo"),
            patch("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1,2 @@\n beta\n+gamma\n"),
            command("printf '1\\n2\\n3\\n' > c.txt"),
            command("sed -i s/beta/delta/ b.txt; rm c.txt; echo x >> data.bin"),
            write("long.txt", "1\n2\n3\n"),
            write("d.txt", "1\n2\n"),
            append("d.txt", "3\n"),
            command("ls"),
        ],
    );
    assert!(told[4].contains("adds and removes 3 lines, and 12 of at most 14 are used"), "{}", told[4]);
    let expected = [false, false, false, false, true, false, true, false];
    assert_eq!(refused(&told, "guardrail"), expected, "{told:#?}");
}

#[test]
fn s15_commands_are_counted_when_they_run_together_too() {
    let config = json!({
        "tools": {"parallel": "all"},
        "guardrails": {"max_commands_executed": 2, "blocked_commands": ["^make"]},
    });
    let lab = Lab::new().config(&config.to_string());
    let commands = ["make", "touch 1", "", "touch 2", "touch 3", "touch 4"].map(command);
    let told = told(&lab, commands.to_vec());
    assert_eq!(
        refused(&told, "2 of at most 2 commands"),
        [false, false, false, false, true, true],
        "{told:#?}"
    );
    assert_eq!(["1", "2", "3", "4"].map(|name| lab.exists(name)), [true, true, false, false]);
}

#[test]
fn s15_a_session_that_goes_on_has_its_counts() {
    let lab = guarded(&json!({"max_files_modified": 1, "max_lines_changed": 5, "max_commands_executed": 1}));
    one_by_one(&lab, &[write("c.txt", "1\n2\n3\n"), command("true")]);
    let server = Server::calls([
        append("d.txt", "x\n"),
        append("c.txt", "4\n5\n6\n"),
        command("true"),
        append("c.txt", "4\n5\n"),
    ]);
    let document = lab.resume(&server, &["--mode", "yolo", "--json"]).exits(0).json();
    let keys = ["max_files_modified", "max_lines_changed", "max_commands_executed"];
    assert_eq!(rules(&document), keys.map(|key| format!("guardrails.{key}")));
    assert_eq!(lab.read("c.txt"), "1\n2\n3\n4\n5\n");
}

#[test]
fn s15_a_dry_run_counts_nothing() {
    let lab = guarded(&json!({"max_files_modified": 1, "max_commands_executed": 1}));
    let server =
        Server::calls([append("a.txt", "x"), append("b.txt", "x"), command("true"), command("true")]);
    let document = lab.run(&server, &["--dry-run", "--json"]).exits(0).json();
    assert!(rules(&document).is_empty(), "{document}");
}

#[test]
fn s16_a_code_rule_holds_for_every_form_of_edit() {
    let lab = guarded(&json!({"code_rules": [
        {"pattern": "^import pdb$", "message": "no debugger", "severity": "block"},
    ]}));
    let told = one_by_one(
        &lab,
        &[
            write("c.py", "x = 1\nimport pdb\n"),
            append("a.txt", "import pdb\n"),
            edit("a.txt", "alpha", "import pdb"),
            call(
                "edit_file",
                &json!({"path": "a.txt", "edits": [
                {"old_str": "al", "new_str": "import "}, {"old_str": "pha", "new_str": "pdb"}]}),
            ),
            patch("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1,2 @@\n beta\n+import pdb\n"),
            call("apply_patch", &json!({"path": "b.txt", "patch": "@@ -1 +1 @@\n-beta\n+import pdb\n"})),
            patch("*** Begin Patch\n*** Add File: d.py\n+import pdb\n*** End Patch\n"),
            patch("*** Begin Patch\n*** Update File: b.txt\n@@\n-beta\n+import pdb\n*** End Patch\n"),
            patch(
                "*** Begin Patch\n*** Update File: a.txt\n*** Move to: e.py\n@@\n-alpha\n+import pdb\n*** End Patch\n",
            ),
            edit("a.txt", "alpha", "import pdbx"),
        ],
    );
    let (last, all) = told.split_last().unwrap();
    for result in all {
        assert!(
            result.contains("Change blocked by a code rule: ") && result.contains("no debugger"),
            "{result}"
        );
        assert!(result.contains("Nothing was written"), "{result}");
    }
    assert!(last.starts_with("File a.txt edited"), "{last}");
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("import pdbx\n".into(), "beta\n".into()));
    assert_eq!(["c.py", "d.py", "e.py"].map(|name| lab.exists(name)), [false; 3]);
}

#[test]
fn s16_a_warning_is_appended_to_the_result_and_old_code_is_left_alone() {
    let lab = guarded(&json!({"code_rules": [
        {"pattern": "LATER", "message": "finish it"},
        {"pattern": "println!", "message": "log instead", "severity": "block", "path": "src/"},
    ]}))
    .file("src/old.rs", "println!();\nfn f() {}\n");
    let told = one_by_one(
        &lab,
        &[
            write("c.txt", "1\nLATER\n"),
            edit("src/old.rs", "fn f() {}", "fn g() {}"),
            write("d.rs", "println!();\n"),
            edit("src/old.rs", "fn g() {}", "println!();"),
            edit("c.txt", "LATER", "LATER again and LATER"),
        ],
    );
    assert!(told[0].ends_with("Code rule: c.txt:2: finish it (pattern: LATER)"), "{}", told[0]);
    assert!(!told[1].contains("ode rule") && !told[2].contains("ode rule"), "{told:#?}");
    assert!(told[3].contains("src/old.rs:2: log instead"), "{}", told[3]);
    assert_eq!(told[4].matches("Code rule").count(), 1, "{}", told[4]);
    assert_eq!(lab.read("src/old.rs"), "println!();\nfn g() {}\n");
}

#[test]
fn s16_a_code_rule_holds_for_arguments_that_a_hook_rewrote_and_without_a_model() {
    let answer = json!({"updatedInput": {"path": "c.txt", "content": "secret plan\n"}});
    let config = json!({
        "hooks": {"pre_tool_use": [{"command": format!("echo '{answer}'"), "matcher": "write_file"}]},
        "guardrails": {"code_rules": [{"pattern": "secret", "message": "no", "severity": "block"}]},
    });
    let lab = Lab::with_a_txt().config(&config.to_string());
    assert!(told(&lab, vec![write("c.txt", "fine\n")])[0].contains("code rule"));
    let finished = lab.agent(&[
        "tools",
        "call",
        "--mode",
        "yolo",
        "edit_file",
        &json!({
        "path": "a.txt", "old_str": "alpha", "new_str": "secret"})
        .to_string(),
    ]);
    assert!(finished.stderr.contains("code rule"), "{}", finished.stderr);
    let tested = lab
        .agent(&["policy", "test", "--mode", "yolo", "write_file", r#"{"path": "x", "content": "secret"}"#])
        .exits(0);
    assert!(
        tested.stdout.starts_with("deny: ") && tested.stdout.contains("guardrails.code_rules[0]"),
        "{}",
        tested.stdout
    );
    assert!(!lab.exists("c.txt") && lab.read("a.txt") == "alpha\n");
}

#[test]
fn s17_files_are_changed_again_only_when_a_test_has_passed() {
    let lab = guarded(&json!({"require_test_after_edit": true, "test_commands": ["./check"]}))
        .script("check", "#!/bin/sh\ngrep -q good a.txt\n");
    let told = one_by_one(
        &lab,
        &[
            edit("a.txt", "alpha", "bad"),
            edit("a.txt", "bad", "worse"),
            append("b.txt", "x\n"),
            command("echo x > b.txt"),
            command("./check || true"),
            command("./check"),
            edit("a.txt", "bad", "good"),
            edit("a.txt", "bad", "alpha"),
            edit("a.txt", "alpha", "good"),
            command("cat a.txt"),
            command("cd . && ./check"),
            append("b.txt", "more\n"),
        ],
    );
    let no_test = "no test has passed since a.txt changed";
    let expected = [false, true, true, true, false, false, true, false, false, false, false, false];
    assert_eq!(refused(&told, no_test), expected, "{told:#?}");
    assert!(told[5].contains("exit_code: 1") && told[10].contains("exit_code: 0"), "{told:#?}");
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("good\n".into(), "beta\nmore\n".into()));
}

#[test]
fn s17_built_in_tests_count_in_the_foreground_and_a_session_that_goes_on_knows() {
    let lab = guarded(&json!({"require_test_after_edit": true})).script("bin/pytest", "#!/bin/sh\nexit 0\n");
    let background = call("run_command", &json!({"command": "bin/pytest", "background": true}));
    let told = one_by_one(&lab, &[append("a.txt", "x\n"), background, append("a.txt", "y\n")]);
    assert_eq!(refused(&told, "no test has passed"), [false, false, true], "{told:#?}");
    let server = Server::calls([append("a.txt", "y\n"), command("bin/pytest -q"), append("a.txt", "z\n")]);
    lab.resume(&server, &YOLO).exits(0);
    let told = results(&server);
    assert_eq!(refused(&told[3..], "no test has passed"), [true, false, false], "{told:#?}");
    assert_eq!(lab.read("a.txt"), "alpha\nx\nz\n");
}

/// A rule about texts.
fn rule(on: &str, pattern: &str, action: &str) -> Value {
    json!({"name": "marked", "on": on, "pattern": pattern, "message": "not for models", "severity": "high", "action": action})
}

fn texts(rules: &[Value]) -> Lab {
    guarded(&json!({"text_rules": rules}))
}

fn ended_by_a_guardrail(finished: Finished, output: &str) -> Value {
    let document = finished.exits(2).json();
    assert_eq!((&document["stop_reason"], &document["status"]), (&json!("guardrail"), &json!("partial")));
    assert_eq!(document["output"], output);
    document
}

#[test]
fn s19_an_answer_that_trips_ends_the_run_and_is_shown_to_nobody() {
    let lab = texts(&[rule("output", "CODEWORD-\\d+", "halt")]);
    let turns = json!([{"text": "it is CODEWORD-7", "calls": [append("a.txt", "x")]}]);
    let finished = lab.run_yolo(&Server::turns(turns), &["--json"]);
    assert!(!finished.stderr.contains("CODEWORD-7"), "{}", finished.stderr);
    let document = ended_by_a_guardrail(finished, "not for models");
    let expected = json!([{"name": "marked", "on": "output", "severity": "high", "action": "halt", "message": "not for models"}]);
    assert_eq!(document["guardrails"], expected);
    assert_eq!(lab.read("a.txt"), "alpha\n");
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    assert!(!journal.contains("CODEWORD-7") && journal.contains(r#""type":"guardrail""#), "{journal}");
    let shown = lab.agent(&["sessions", "show", document["session_id"].as_str().unwrap()]);
    assert!(shown.stdout.contains("guardrail marked (high) ends the run"), "{shown:?}");
}

#[test]
fn s19_a_streamed_answer_is_looked_at_before_anybody_sees_it() {
    for (text, code) in [("it is CODEWORD-7", 2), ("nothing of the kind", 0)] {
        let lab = texts(&[rule("output", "CODEWORD", "halt")]);
        let finished = lab.run_yolo(&Server::turns(json!([{"text": text, "chunk": 3}])), &[]).exits(code);
        let (shown, told) =
            (finished.stdout.clone() + &finished.stderr, finished.stderr.contains("not for models"));
        assert!(!shown.contains("CODEWORD"), "{shown}");
        assert_eq!((finished.stdout.contains(text), told), (code == 0, code == 2), "{shown}");
    }
}

#[test]
fn s19_a_blocked_answer_is_asked_for_again_and_no_more_than_twice() {
    let lab = texts(&[rule("output", "CODEWORD", "block")]);
    let server = Server::turns(json!([
        {"calls": [append("a.txt", "CODEWORD")]}, {"text": "CODEWORD"}, {"text": "fine"}]));
    let document = lab.run_yolo(&server, &["--json"]).exits(0).json();
    assert_eq!((&document["output"], &document["tool_calls"]), (&json!("fine"), &json!(0)));
    assert_eq!(document["guardrails"].as_array().unwrap().len(), 2);
    let last = server.requests().last().unwrap().body.to_string();
    assert!(last.contains("[Withheld by the guardrail `marked`: not for models]"), "{last}");
    assert!(last.contains("the text in its place gives the reason") && !last.contains("CODEWORD"), "{last}");

    let server = Server::turns(json!([{"text": "CODEWORD {i}", "repeat": 3}]));
    ended_by_a_guardrail(lab.run_yolo(&server, &["--json"]), "not for models");
    assert_eq!((server.requests().len(), lab.read("a.txt")), (3, "alpha\n".into()));
}

#[test]
fn s19_a_closing_summary_is_looked_at_too() {
    for (action, code, reason, output) in [
        ("block", 2, "max_steps", "[Withheld by the guardrail `marked`: not for models]"),
        ("halt", 2, "guardrail", "not for models"),
    ] {
        let lab = texts(&[rule("output", "CODEWORD", action)]);
        let server = Server::turns(json!([{"calls": [append("a.txt", "x")]}, {"text": "CODEWORD"}]));
        let finished = lab.run_yolo(&server, &["--json", "--max-steps", "1"]);
        let document = finished.exits(code).json();
        assert_eq!((&document["stop_reason"], &document["output"]), (&json!(reason), &json!(output)));
    }
}

#[test]
fn s19_a_prompt_that_trips_is_sent_to_no_model() {
    for action in ["halt", "block"] {
        let lab = texts(&[rule("input", "task", action)]);
        let server = Server::turns(json!([{"text": "never"}]));
        let document = ended_by_a_guardrail(lab.run(&server, &["--json"]), "not for models");
        assert_eq!((document["steps"].as_u64(), document["requests"].as_u64()), (Some(0), Some(0)));
        assert_eq!(document["guardrails"][0]["action"], "halt");
        assert_eq!(server.requests().len(), 0);
    }
}

#[test]
fn s19_a_result_that_trips_ends_the_run_before_the_model_reads_it_and_again_when_it_goes_on() {
    let lab = texts(&[rule("input", "beta", "halt")]);
    let server = Server::calls([call("read_file", &json!({"path": "b.txt"}))]);
    ended_by_a_guardrail(lab.run(&server, &["--json"]), "not for models");
    assert_eq!(server.requests().len(), 1);
    let again = Server::turns(json!([{"text": "never"}]));
    ended_by_a_guardrail(lab.resume(&again, &["--json"]), "not for models");
    assert_eq!(again.requests().len(), 0);
}

#[test]
fn s19_a_blocked_result_is_withheld_and_the_run_goes_on() {
    let lab = texts(&[rule("input", "beta", "block")]);
    let server = Server::calls([
        call("read_file", &json!({"path": "b.txt"})),
        write("b.txt", "unseen\n"),
        command("cat a.txt b.txt"),
        call("read_file", &json!({"path": "a.txt"})),
    ]);
    let document = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let told = results(&server);
    for at in [0, 2] {
        assert_eq!(told[at], "[Withheld by the guardrail `marked`: not for models]");
    }
    assert!(told[1].contains("you have not read it") && told[3].contains("alpha"), "{told:#?}");
    assert_eq!(document["guardrails"].as_array().unwrap().len(), 2);
    assert!(!std::fs::read_to_string(lab.journal()).unwrap().contains("beta"));
}

#[test]
fn s19_what_a_hook_says_is_looked_at_too() {
    let config = json!({
        "hooks": {"pre_llm_call": [{"command": "echo CODEWORD"}]},
        "guardrails": {"text_rules": [rule("input", "CODEWORD", "halt")]},
    });
    let lab = Lab::new().config(&config.to_string());
    let server = Server::turns(json!([{"text": "never"}]));
    ended_by_a_guardrail(lab.run(&server, &["--json"]), "not for models");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_project_may_only_tighten_guardrails() {
    let project = "guardrails:
  enabled: false
  blocked_commands: ['^touch']
  max_commands_executed: 9
  max_files_modified: 1
  require_test_after_edit: false
  test_commands: ['true']
  code_rules: [{pattern: evil, message: no, severity: block}]
";
    let lab = guarded(
        &json!({"max_commands_executed": 2, "max_files_modified": 5, "require_test_after_edit": true}),
    )
    .file(".agent/config.yaml", project);
    let told = one_by_one(
        &lab,
        &[
            command("touch x"),
            append("a.txt", "evil"),
            append("a.txt", "x"),
            command("true"),
            append("a.txt", "y"),
        ],
    );
    assert!(told[0].contains("guardrail (pattern: ^touch)") && told[1].contains("code rule"), "{told:#?}");
    assert!(told[2].contains("successfully") && told[4].contains("no test has passed"), "{told:#?}");
    let ignored = lab.agent(&["config", "validate"]).stderr;
    for key in ["enabled", "max_commands_executed", "require_test_after_edit", "test_commands"] {
        assert!(ignored.contains(&format!("guardrails.{key}")), "{key}: {ignored}");
    }
    assert!(!ignored.contains("max_files_modified"), "{ignored}");
}

#[test]
fn guardrails_that_are_switched_off_leave_what_is_built_in() {
    let lab = guarded(&json!({"enabled": false, "protected_files": ["a.txt"], "max_files_modified": 0}));
    let told = one_by_one(&lab, &[append("a.txt", "x\n"), append(".git/config", "x")]);
    assert!(told[0].contains("successfully") && told[1].contains("Protected file"), "{told:#?}");
}
