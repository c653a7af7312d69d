//! Modes, questions at a terminal, refusals, dry run.

use crate::support::calls::{call, command};
use crate::support::run::{Finished, Lab, NO_BREAKERS};
use crate::support::server::{Recorded, Server};
use crate::support::terminal::{AtTerminal, QUESTION, questions, shown};
use serde_json::{Value, json};

/// What the model read as the result of the last call before this request.
fn result(request: &Recorded) -> &str {
    let last = request.messages().last().unwrap();
    assert_eq!(last["role"], "tool", "{last}");
    last["content"].as_str().unwrap()
}

/// The names of the tools a request offers.
fn tools(request: &Recorded) -> Vec<&str> {
    let tools = request.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

fn write(path: &str) -> Value {
    call("write_file", &json!({"path": path, "content": "new\n"}))
}

/// Calls of every kind; the number is the least strict mode that runs them unasked: 0 all, 1 sensitive, 2 yolo.
fn table() -> Vec<(&'static str, Value, usize)> {
    vec![
        ("read_file", json!({"path": "a.txt"}), 1),
        ("list_files", json!({}), 1),
        ("find_files", json!({"pattern": "*.txt"}), 1),
        ("search_code", json!({"pattern": "alp.a"}), 1),
        ("grep", json!({"text": "alpha"}), 1),
        ("run_command", json!({"command": "ls"}), 1),
        ("run_command", json!({"command": "make"}), 2),
        ("run_command", json!({"command": "touch made"}), 2),
        ("run_command", json!({"command": "ls; touch made"}), 2),
        ("write_file", json!({"path": "new.txt", "content": "new"}), 2),
        ("edit_file", json!({"path": "a.txt", "old_str": "alpha", "new_str": "beta"}), 2),
        ("apply_patch", json!({"path": "b.txt", "patch": "@@ -1 +1 @@\n-one\n+two\n"}), 2),
        ("delete_file", json!({"path": "c.txt"}), 2),
    ]
}

/// Runs the whole table in `mode`, answering every question that is due with `keys`.
fn run_table(mode: &str, strictness: usize, keys: &str) -> (Lab, Finished) {
    let lab = Lab::with_a_txt()
        .file("b.txt", "one\n")
        .file("c.txt", "c")
        .config("workspace: {allow_delete: true}\ncommands: {trust_sandbox: false}\n");
    let lab = lab.unprivileged();
    let calls = table().into_iter().map(|(name, arguments, _)| call(name, &arguments));
    let server = Server::calls(calls);
    let mut run = AtTerminal::start(&lab, &server, &["--mode", mode]);
    for (name, _, least) in table().into_iter().filter(|(_, _, least)| *least > strictness) {
        let shown = run.answer(keys);
        let question =
            shown.rsplit("May I ").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        let verb = name.split('_').next().unwrap();
        let verb = match verb {
            "apply" => "patch",
            "grep" => "search for",
            verb => verb,
        };
        assert!(question.starts_with(verb), "{mode}, {least}: {question}");
        assert!(question.contains(&format!("(mode {mode})")), "{question}");
    }
    let done = run.finish().exits(0);
    let due = table().iter().filter(|(_, _, least)| *least > strictness).count();
    assert_eq!(questions(&shown(&done.stderr)), due, "{}", done.stderr);
    assert_eq!(server.requests().len(), table().len() + 1);
    (lab, done)
}

#[track_caller]
fn all_happened(lab: &Lab) {
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("beta\n".into(), "two\n".into()));
    assert_eq!((lab.exists("new.txt"), lab.exists("made"), lab.exists("c.txt")), (true, true, false));
}

#[track_caller]
fn nothing_happened(lab: &Lab) {
    assert_eq!((lab.read("a.txt"), lab.read("b.txt")), ("alpha\n".into(), "one\n".into()));
    assert_eq!((lab.exists("new.txt"), lab.exists("made"), lab.exists("c.txt")), (false, false, true));
}

#[test]
fn s02_yolo_asks_nothing() {
    let (lab, _) = run_table("yolo", 2, "");
    all_happened(&lab);
}

#[test]
fn s02_confirm_sensitive_asks_before_changes_and_unknown_commands() {
    let (lab, done) = run_table("confirm-sensitive", 1, "n\r");
    nothing_happened(&lab);
    assert!(done.stderr.contains("7 actions were refused"), "{}", done.stderr);
    let (lab, done) = run_table("confirm-sensitive", 1, "y\r");
    all_happened(&lab);
    assert!(!done.stderr.contains("refused"), "{}", done.stderr);
}

#[test]
fn s02_confirm_all_asks_before_every_call() {
    let (lab, _) = run_table("confirm-all", 0, "No\r");
    nothing_happened(&lab);
}

#[test]
fn s02_a_no_is_told_to_the_model_and_the_run_goes_on() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([write("no.txt"), write("yes.txt")]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    run.answer("n\r");
    run.answer("yes\r");
    let done = run.finish().exits(0);
    let requests = server.requests();
    assert!(result(&requests[1]).contains("declined"), "{}", result(&requests[1]));
    assert!(!result(&requests[2]).contains("Error"), "{}", result(&requests[2]));
    assert_eq!((lab.exists("no.txt"), lab.read("yes.txt").as_str()), (false, "new\n"));
    assert!(done.stderr.contains("1 action was refused"), "{}", done.stderr);
    assert!(!done.stderr.contains("--mode yolo"), "who said no needs no remedy:\n{}", done.stderr);
}

#[test]
fn s02_what_is_typed_ahead_or_means_nothing_is_no_answer() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([write("new.txt")]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    run.types("y\r");
    run.answer("maybe\r");
    run.answer("n\r");
    run.finish().exits(0);
    assert!(!lab.exists("new.txt"));
}

#[test]
fn s02_questions_about_one_answers_calls_stand_alone() {
    let server = Server::batch([write("one.txt"), write("two.txt")]);
    let lab = Lab::with_a_txt().config("tools: {parallel: all}\n").unprivileged();
    let mut run = AtTerminal::start(&lab, &server, &[]);
    run.answer("y\r");
    run.answer("n\r");
    let done = run.finish().exits(0);
    let (_, after) = done.stderr.split_once(QUESTION).unwrap();
    let (answered, _) = after.split_once("OK").unwrap();
    assert!(!answered.contains("two.txt"), "the second call is told beside the question:\n{answered}");
    assert_eq!((lab.exists("one.txt"), lab.exists("two.txt")), (true, false));
}

#[test]
fn s02_the_question_shows_the_change_with_control_characters_visible() {
    let lab = Lab::with_a_txt().unprivileged();
    let edit =
        json!({"path": "a.txt", "old_str": "alpha", "new_str": "beta\u{1b}[2J\u{202e}gamma\u{7}\u{200b}"});
    let hidden = "echo hi\u{1b}[1A\u{1b}[2K; touch made\nrm -r x\u{202e}";
    let server = Server::calls([call("edit_file", &edit), command(hidden)]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    let diff = run.answer("n\r");
    for line in ["alpha", "beta\\u{1b}[2J\\u{202e}gamma\\u{7}\\u{200b}"] {
        assert!(diff.contains(line), "{line}:\n{diff}");
    }
    let asked = run.answer("n\r");
    let asked = asked.rsplit("May I run ").next().unwrap();
    for line in ["echo hi\\u{1b}[1A\\u{1b}[2K; touch made", "rm -r x\\u{202e}"] {
        assert!(asked.contains(line), "{line}:\n{asked}");
    }
    let done = run.finish().exits(0);
    for raw in ["\u{1b}[2J", "\u{1b}[1A", "\u{202e}", "\u{200b}"] {
        assert!(!done.stderr.contains(raw), "{raw:?} reached the terminal");
    }
}

#[test]
fn s02_the_question_shows_the_whole_command_its_variables_and_where_it_would_run() {
    let lab = Lab::with_a_txt().file("sub/x", "").unprivileged();
    let long = format!("echo {}\ntouch made", "x".repeat(150));
    let arguments = json!({"command": long, "cwd": "sub", "env": {"PATH": "."}});
    let server = Server::calls([call("run_command", &arguments)]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    let shown = run.answer("n\r");
    for part in [&"x".repeat(150), "touch made", "PATH='.'", "(in \"sub\")"] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    run.finish().exits(0);
    assert!(!lab.exists("sub/made"));
}

#[test]
fn s03_without_a_terminal_a_question_is_a_refusal_with_three_remedies() {
    let lab = Lab::with_a_txt().unprivileged();
    let calls = [write("new.txt"), command("touch made"), call("read_file", &json!({"path": "a.txt"}))];
    let server = Server::calls(calls);
    let done = lab.run(&server, &[]).exits(0);
    let requests = server.requests();
    for refused in [result(&requests[1]), result(&requests[2])] {
        assert!(refused.starts_with("Error: "), "{refused}");
        for remedy in ["--mode yolo", "--dry-run", "mode: yolo"] {
            assert!(refused.contains(remedy), "{remedy}: {refused}");
        }
    }
    assert!(result(&requests[3]).contains("alpha"));
    assert_eq!((lab.exists("new.txt"), lab.exists("made")), (false, false));
    assert_eq!(done.stdout, "done\n");
    let (_, end) = done.stderr.rsplit_once("2 actions were refused").unwrap();
    let lines: Vec<&str> = end.lines().collect();
    assert_eq!(lines.len(), 4, "it is the end of standard error:\n{}", done.stderr);
    assert!(lines[1].contains("write_file") && lines[1].contains("new.txt"), "{end}");
    assert!(lines[2].contains("run_command") && lines[2].contains("touch made"), "{end}");
    assert!(lines[3].contains("--mode yolo") && lines[3].contains("--dry-run"), "{end}");
}

#[test]
fn s03_the_json_document_lists_what_was_refused_and_the_exit_code_is_the_models() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([write("new.txt")]);
    let done = lab.run(&server, &["--json"]).exits(0);
    let json = done.json();
    let denials = json["permission_denials"].as_array().unwrap();
    assert_eq!(denials.len(), 1);
    assert_eq!(
        (&denials[0]["tool"], &denials[0]["summary"]),
        (&json!("write_file"), &json!("new.txt (1 line)"))
    );
    assert_eq!(denials[0]["rule"], "mode.confirm-sensitive");
    assert!(denials[0]["reason"].as_str().unwrap().contains("--mode yolo"));
    assert_eq!(json["tools_used"][0]["success"], false);
    assert!(done.stderr.contains("1 action was refused"), "{}", done.stderr);
    let read =
        "turns: [{calls: [{name: write_file, arguments: {path: n, content: x}}]}, {error: {status: 400}}]";
    lab.run(&Server::start(read), &[]).exits(1);
}

#[test]
fn s03_a_quiet_run_says_it_too_and_with_json_nobody_is_asked() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([write("new.txt")]);
    let done = lab.run(&server, &["--quiet"]).exits(0);
    assert!(done.stderr.contains("1 action was refused"), "{}", done.stderr);
    let server = Server::calls([write("new.txt")]);
    let done = AtTerminal::start(&lab, &server, &["--json"]).finish().exits(0);
    assert!(!done.stderr.contains(QUESTION), "{}", done.stderr);
    assert_eq!(done.json()["permission_denials"].as_array().unwrap().len(), 1);
    assert!(!lab.exists("new.txt"));
}

#[test]
fn s04_abort_ends_the_run_with_130_before_anything_happens() {
    for keys in ["s\r", "stop\r", "\u{4}"] {
        let lab = Lab::with_a_txt().unprivileged();
        let server = Server::calls([write("new.txt"), write("never.txt")]);
        let mut run = AtTerminal::start(&lab, &server, &[]);
        run.answer(keys);
        let done = run.finish().exits(130);
        assert_eq!(server.requests().len(), 1, "{keys:?}");
        assert!(!lab.exists("new.txt"));
        assert!(done.stderr.contains("agent resume"), "{}", done.stderr);
        let again = Server::start("turns: [{expect: {last_contains: [go on]}, text: resumed}]");
        assert_eq!(lab.agent_on(&again, &["resume", "--last", "go on"]).exits(0).stdout, "resumed\n");
    }
}

#[test]
fn s04_a_signal_while_a_question_waits_ends_the_run_with_130() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([write("new.txt")]);
    let run = AtTerminal::start(&lab, &server, &[]);
    run.wait("question", |text| text.contains(QUESTION));
    run.signal(rustix::process::Signal::INT);
    run.finish().exits(130);
    assert!(!lab.exists("new.txt"));
}

#[test]
fn s05_questions_stand_on_standard_error_and_standard_output_is_the_answer() {
    for quiet in [&[][..], &["--quiet"]] {
        let lab = Lab::with_a_txt().unprivileged();
        let server = Server::calls([write("new.txt")]);
        let mut run = AtTerminal::start(&lab, &server, quiet);
        let shown = run.answer("y\r");
        assert!(shown.contains("May I write new.txt (1 line)?") && shown.contains("1 + "), "{shown}");
        let done = run.finish().exits(0);
        assert_eq!(done.stdout, "done\n");
        assert_eq!(lab.read("new.txt"), "new\n");
    }
}

#[test]
fn s10_no_commands_wins_over_allow_commands_and_the_configuration() {
    let offered = |config: &str, flags: &[&str]| {
        let server = Server::done();
        Lab::with_a_txt().config(config).run(&server, flags).exits(0);
        tools(&server.requests()[0]).contains(&"run_command")
    };
    assert!(offered("", &[]));
    assert!(!offered("", &["--no-commands"]));
    assert!(!offered("", &["--allow-commands", "--no-commands"]));
    assert!(!offered("commands: {enabled: true}\n", &["--no-commands"]));
    assert!(!offered("commands: {enabled: false}\n", &[]));
    assert!(offered("commands: {enabled: false}\n", &["--allow-commands"]));
}

#[test]
fn s10_a_command_that_is_named_all_the_same_does_not_run() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([command("touch made")]);
    lab.run_yolo(&server, &["--no-commands"]).exits(0);
    assert!(result(&server.requests()[1]).contains("Unknown tool 'run_command'"));
    assert!(!lab.exists("made"));
}

#[test]
fn s11_protected_files_are_read_but_neither_written_patched_deleted_nor_redirected_to() {
    let lab = Lab::with_a_txt().file(".env", "TOKEN=1\n").file("sub/x", "");
    std::os::unix::fs::symlink(".env", lab.ws().join("alias")).unwrap();
    let config = "guardrails: {protected_files: [.env]}\nworkspace: {allow_delete: true}\n";
    let lab = lab.config(&format!("{config}{NO_BREAKERS}")).unprivileged();
    let absolute = lab.ws().canonicalize().unwrap().join(".env");
    let calls = [
        call("write_file", &json!({"path": ".env", "content": "x", "mode": "append"})),
        call("write_file", &json!({"path": absolute, "content": "x", "mode": "append"})),
        call("write_file", &json!({"path": "sub/../.ENV", "content": "x", "mode": "append"})),
        call("write_file", &json!({"path": "alias", "content": "x", "mode": "append"})),
        call("edit_file", &json!({"path": ".env", "old_str": "1", "new_str": "2"})),
        call("apply_patch", &json!({"path": ".env", "patch": "@@ -1 +1 @@\n-TOKEN=1\n+TOKEN=2\n"})),
        call("delete_file", &json!({"path": ".env"})),
        command("echo x > .env"),
        command("true && echo x >>'./.env'"),
        command("echo x | tee -a sub/../.env"),
        command("echo $(echo x > .env)"),
        command("echo x > alias"),
    ];
    let read = call("read_file", &json!({"path": ".env"}));
    let all: Vec<_> = calls.iter().cloned().chain([read, command("cat .env")]).collect();
    let server = Server::calls(all);
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let requests = server.requests();
    for (at, call) in calls.iter().enumerate() {
        let refused = result(&requests[at + 1]);
        assert!(refused.contains("Protected file blocked by guardrail"), "{call:?}: {refused}");
        assert!(refused.contains("(pattern: .env)"), "{call:?}: {refused}");
        assert_eq!(json["permission_denials"][at]["rule"], "guardrails.protected_files");
    }
    assert_eq!(json["permission_denials"].as_array().unwrap().len(), calls.len());
    for request in &requests[calls.len() + 1..] {
        assert!(result(request).contains("TOKEN=1"), "{}", result(request));
    }
    assert_eq!(lab.read(".env"), "TOKEN=1\n");
}

#[test]
fn s11_a_sensitive_file_is_not_shown_by_commands_that_name_it() {
    let lab = Lab::with_a_txt().file("secret.pem", "the secret\n");
    let config = "guardrails: {sensitive_files: ['*.pem']}\n";
    let lab = lab.config(&format!("{config}{NO_BREAKERS}")).unprivileged();
    let commands = [
        "cat secret.pem",
        "head -n 1 < a.txt secret.pem",
        "tar -cf - secret.pem",
        "git diff --no-index a.txt secret.pem",
        "git show HEAD:secret.pem",
    ];
    let server = Server::calls(commands.map(command));
    lab.run_yolo(&server, &[]).exits(0);
    for request in &server.requests()[1..] {
        assert!(
            result(request).contains("Sensitive file blocked by guardrail: secret.pem"),
            "{}",
            result(request)
        );
        assert!(!request.body.to_string().contains("the secret"));
    }
}

#[test]
fn s11_gits_and_our_own_configuration_are_protected_without_being_asked_for() {
    let lab = Lab::with_a_txt().file(".git/config", "[core]\n").unprivileged();
    let hook = call("write_file", &json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"}));
    let own = call("write_file", &json!({"path": ".agent/config.yaml", "content": "mode: yolo\n"}));
    let server = Server::calls([hook, own, command("echo x > .git/config")]);
    lab.run_yolo(&server, &[]).exits(0);
    for request in &server.requests()[1..] {
        assert!(result(request).contains("Protected file blocked by guardrail"), "{}", result(request));
    }
    assert_eq!(lab.read(".git/config"), "[core]\n");
    assert_eq!((lab.exists(".git/hooks/pre-commit"), lab.exists(".agent")), (false, false));
}

#[test]
fn t23_a_tool_outside_the_agents_list_is_neither_offered_nor_run() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::calls([write("new.txt"), command("touch made")]);
    let json = lab.run_yolo(&server, &["--agent", "plan", "--json"]).exits(0).json();
    let requests = server.requests();
    assert_eq!(tools(&requests[0]), ["find_files", "grep", "list_files", "read_file", "search_code"]);
    for (request, tool) in requests[1..].iter().zip(["write_file", "run_command"]) {
        let refused = result(request);
        assert!(refused.contains(&format!("The agent `plan` may not use `{tool}`")), "{refused}");
        assert!(refused.contains("read_file, list_files"), "{refused}");
    }
    assert_eq!((lab.exists("new.txt"), lab.exists("made")), (false, false));
    assert_eq!(json["permission_denials"][0]["rule"], "agent.allowed_tools");
}

#[test]
fn o28_a_dry_run_reads_and_only_describes_what_it_would_change() {
    let hooks =
        "hooks: {pre_tool_use: [{command: touch hooked}], session_start: [{command: touch hooked}]}\n";
    let lab = Lab::with_a_txt().config(hooks).unprivileged();
    let calls = [
        call("read_file", &json!({"path": "a.txt"})),
        call("edit_file", &json!({"path": "a.txt", "old_str": "alpha", "new_str": "beta"})),
        write("new.txt"),
        command("touch made"),
    ];
    for mode in ["confirm-all", "confirm-sensitive", "yolo"] {
        let server = Server::calls(calls.clone());
        let done = AtTerminal::start(&lab, &server, &["--dry-run", "--mode", mode]).finish().exits(0);
        assert!(!done.stderr.contains(QUESTION), "{mode}:\n{}", done.stderr);
        let requests = server.requests();
        assert!(result(&requests[1]).contains("alpha"), "{}", result(&requests[1]));
        for (request, preview) in requests[2..].iter().zip(["-alpha\n+beta", "+new", "touch made"]) {
            let text = result(request);
            assert!(text.starts_with("[DRY-RUN] Would execute "), "{text}");
            assert!(text.contains(preview), "{preview}: {text}");
        }
        assert_eq!(done.stdout, "done\n");
    }
    assert_eq!(lab.read("a.txt"), "alpha\n");
    assert_eq!((lab.exists("new.txt"), lab.exists("made"), lab.exists("hooked")), (false, false, false));
}

#[test]
fn o28_standard_error_ends_with_the_plan_whatever_the_level() {
    let lab = Lab::with_a_txt().unprivileged();
    for flags in [&["--dry-run"][..], &["--dry-run", "--quiet"], &["--dry-run", "--json"]] {
        let server = Server::calls([write("new.txt"), command("touch made")]);
        let done = lab.run(&server, flags).exits(0);
        let (_, plan) = done.stderr.split_once("## Dry Run Plan\n").unwrap();
        let lines: Vec<&str> = plan.lines().collect();
        assert_eq!(lines.first(), Some(&"1. write_file new.txt (1 line)"), "{plan}");
        assert!(lines.contains(&"  1 + new"), "{plan}");
        assert_eq!(lines.last(), Some(&"2. run_command touch made"), "{plan}");
    }
    let server = Server::calls([call("read_file", &json!({"path": "a.txt"}))]);
    let done = lab.run(&server, &["--dry-run"]).exits(0);
    assert!(done.stderr.ends_with("## Dry Run Plan\nNo write actions were planned.\n"), "{}", done.stderr);
    let server = Server::calls([]);
    assert!(!lab.run(&server, &[]).exits(0).stderr.contains("Dry Run"));
}

#[test]
fn o28_what_is_forbidden_stays_forbidden_in_a_dry_run() {
    let lab =
        Lab::with_a_txt().file(".env", "x").config("guardrails: {protected_files: [.env]}\n").unprivileged();
    let server =
        Server::calls([call("write_file", &json!({"path": ".env", "content": "y", "mode": "append"}))]);
    let done = lab.run(&server, &["--dry-run"]).exits(0);
    assert!(result(&server.requests()[1]).contains("Protected file"));
    assert!(done.stderr.contains("1 action was refused") && done.stderr.contains("agent help permissions"));
    assert!(done.stderr.ends_with("No write actions were planned.\n"), "{}", done.stderr);
}

// The answer that is edited marked pasted text from then on, also in the shell.
#[test]
fn u09_a_question_leaves_the_terminal_as_it_was() {
    let lab = Lab::with_a_txt().unprivileged();
    let server = Server::batch([write("one.txt")]);
    let mut run = AtTerminal::start(&lab, &server, &[]);
    run.answer("w");
    run.see("the question why", |text| text.contains("Why not?"));
    run.signal(rustix::process::Signal::INT);
    run.wait("the modes of the start", |_| run.modes() == run.modes_before);
    let done = run.finish();
    assert_eq!(done.code, Some(130));
    assert!(!done.stderr.contains("2004h"), "{:?}", done.stderr);
}
