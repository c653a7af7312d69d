//! Hooks in a whole run.

use crate::support::calls::{call, command, edit, results};
use crate::support::kernel::without_warning;
use crate::support::run::{KEY, Lab};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

/// A workspace with the user's own hooks.
fn with_hooks(hooks: &Value) -> Lab {
    Lab::with_a_txt().config(&json!({"hooks": hooks}).to_string())
}

fn write(path: &str) -> Value {
    call("write_file", &json!({"path": path, "content": "x\n"}))
}

/// The messages of the last request.
fn messages(server: &Server) -> Vec<Value> {
    server.requests().last().unwrap().messages().to_vec()
}

fn lines(lab: &Lab, path: &str) -> Vec<String> {
    if lab.exists(path) { lab.read(path).lines().map(str::to_owned).collect() } else { Vec::new() }
}

const EVENTS: [&str; 9] = [
    "session_start",
    "pre_llm_call",
    "post_llm_call",
    "pre_tool_use",
    "post_tool_use",
    "post_edit",
    "on_error",
    "agent_complete",
    "session_end",
];

/// The same hook at every event.
fn everywhere(command: &str) -> Value {
    EVENTS.iter().map(|event| ((*event).to_owned(), json!([{"command": command}]))).collect()
}

/// A call of every kind: a read, an edit, a command that fails after 5000 characters, a refusal of the file system.
fn one_of_each() -> Server {
    Server::calls([
        call("read_file", &json!({"path": "./a.txt"})),
        write("b.txt"),
        command("printf %05000d 0; exit 3"),
        call("read_file", &json!({"path": "../secret"})),
    ])
}

#[test]
fn h01_every_event_fires_in_its_place_with_its_variables() {
    let variables =
        "EVENT TOOL_NAME FILE_PATH EDITED_FILE COMMAND TOOL_RESULT_SUCCESS STEP HAS_TOOL_CALLS STATUS STEPS";
    let shown: Vec<String> = variables.split(' ').map(|name| format!("${{AGENT_{name}-}}")).collect();
    let lab = with_hooks(&everywhere(&format!("echo \"{}\" >> events", shown.join("|")))).unprivileged();
    lab.run_yolo(&one_of_each(), &[]).exits(0);
    let expected = [
        "session_start||||||0",
        "pre_llm_call||||||1",
        "post_llm_call||||||1|true",
        "pre_tool_use|read_file|a.txt",
        "post_tool_use|read_file|a.txt|||true",
        "pre_llm_call||||||2",
        "post_llm_call||||||2|true",
        "pre_tool_use|write_file|b.txt",
        "post_tool_use|write_file|b.txt|||true",
        "post_edit|write_file|b.txt|b.txt||true",
        "pre_llm_call||||||3",
        "post_llm_call||||||3|true",
        "pre_tool_use|run_command|||printf %05000d 0; exit 3",
        "on_error|run_command|||printf %05000d 0; exit 3|false",
        "post_tool_use|run_command|||printf %05000d 0; exit 3|false",
        "pre_llm_call||||||4",
        "post_llm_call||||||4|true",
        "pre_tool_use|read_file|../secret",
        "on_error|read_file|../secret|||false",
        "post_tool_use|read_file|../secret|||false",
        "pre_llm_call||||||5",
        "post_llm_call||||||5|false",
        "agent_complete||||||5||success|5",
        "session_end||||||5||success|5",
    ];
    let seen = lines(&lab, "events");
    let seen: Vec<&str> = seen.iter().map(|line| line.trim_end_matches('|')).collect();
    assert_eq!(seen, expected);
}

#[test]
fn h01_every_hook_reads_a_document_and_an_environment_without_keys() {
    let lab = with_hooks(&everywhere("{ cat; echo; } >> docs; env >> variables"));
    lab.run_yolo(&one_of_each(), &[]).exits(0);
    let docs: Vec<Value> =
        lines(&lab, "docs").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(docs.len(), 24);
    for event in EVENTS {
        assert!(docs.iter().any(|doc| doc["event"] == event), "{event}");
    }
    let doc = |event: &str, tool: &str| {
        docs.iter().find(|doc| doc["event"] == event && doc["tool_name"] == tool).unwrap().clone()
    };
    let before = doc("pre_tool_use", "write_file");
    assert_eq!(before["tool_input"], json!({"path": "b.txt", "content": "x\n"}));
    assert!(before.get("tool_output").is_none());
    assert!(doc("post_tool_use", "read_file")["tool_output"].as_str().unwrap().contains("alpha"));
    let failed = doc("post_tool_use", "run_command");
    assert_eq!(failed["tool_output"].as_str().unwrap().chars().count(), 2000);
    assert_eq!(
        (&failed["tool_success"], &failed["command"]),
        (&json!(false), &failed["tool_input"]["command"])
    );
    let told = ["event", "task", "agent", "model"].map(|key| docs[0][key].as_str().unwrap());
    assert_eq!(told, ["session_start", "task", "build", "openai/mock"]);
    assert_eq!(docs.last().unwrap()["status"], "success");

    let environment = lab.read("variables");
    assert!(!environment.contains(KEY), "a hook saw the key");
    let workspace = format!("AGENT_WORKSPACE={}", lab.ws().canonicalize().unwrap().display());
    let known = ["AGENT_TASK=task", "AGENT_AGENT=build", "AGENT_MODEL=openai/mock", &workspace];
    for variable in known.into_iter().chain(["ARCHITECT_EDITED_FILE=b.txt"]) {
        assert!(environment.contains(variable), "{variable}");
    }
}

#[test]
fn h01_the_end_is_told_however_the_run_ended_and_completion_only_when_it_was() {
    let hook = "echo \"$AGENT_EVENT ${AGENT_STATUS-} ${AGENT_TASK-}\" >> events";
    let hooks = json!({"agent_complete": [{"command": hook}], "session_end": [{"command": hook}]});
    let ended = |lab: &Lab| lines(lab, "events");

    let limited = with_hooks(&hooks);
    limited.run_yolo(&Server::calls([write("b"), write("c")]), &["--max-steps", "1"]).exits(2);
    assert_eq!(ended(&limited), ["session_end partial task"]);

    let failed = with_hooks(&hooks);
    failed.run(&Server::start("turns: [{error: {status: 400}}]"), &[]).exits(1);
    assert_eq!(ended(&failed), ["session_end failed task"]);

    let interrupted = with_hooks(&hooks);
    let server = Server::start("turns: [{fault: hang}]");
    let run = interrupted.start_run(&server, &[]);
    server.wait_for_request(1);
    run.signal(Signal::INT);
    run.finish().exits(130);
    assert_eq!(ended(&interrupted), ["session_end partial task"]);
}

#[test]
fn h01_a_call_that_did_not_run_has_no_hooks_after_it() {
    let lab = with_hooks(&everywhere("echo \"$AGENT_EVENT ${AGENT_TOOL_NAME-}\" >> events"));
    let server = Server::calls([write(".git/config"), call("no_such_tool", &json!({})), write("b.txt")]);
    lab.run(&server, &["--mode", "confirm-sensitive"]).exits(0);
    // The third is asked, and nobody is there: what a hook says comes before the question.
    let tools: Vec<String> = lines(&lab, "events").into_iter().filter(|line| line.contains("tool")).collect();
    assert_eq!(tools, ["pre_tool_use write_file"]);
    assert!(!lab.exists("b.txt"));
}

#[test]
fn h01_a_task_is_told_up_to_200_characters() {
    let hooks = json!({"session_start": [{"command": "printf %s \"$AGENT_TASK\" > told; cat > doc"}]});
    let (lab, server) = (with_hooks(&hooks), Server::calls([]));
    let task = "ä".repeat(500);
    lab.agent_on(&server, &["run", &task]).exits(0);
    assert_eq!(lab.read("told"), "ä".repeat(200));
    let doc: Value = serde_json::from_str(&lab.read("doc")).unwrap();
    assert_eq!(doc["task"], "ä".repeat(200));
}

#[test]
fn h02_before_a_call_0_allows_2_blocks_and_other_codes_warn() {
    let hooks = json!({"pre_tool_use": [
        {"command": "exit 0", "matcher": "write_file", "file_patterns": ["zero"]},
        {"command": "echo not this >&2; echo nor this; exit 2", "file_patterns": ["two"]},
        {"name": "odd", "command": "echo strange; exit 7", "file_patterns": ["seven"]},
        {"command": "exit 2", "file_patterns": ["mute"]},
    ]});
    let lab = with_hooks(&hooks);
    let server = Server::calls([write("zero"), write("two"), write("seven"), write("mute")]);
    let done = lab.run_yolo(&server, &[]).exits(0);
    assert_eq!(["zero", "two", "seven", "mute"].map(|path| lab.exists(path)), [true, false, true, false]);
    let all = results(&server);
    assert_eq!(all[1], "Error: Hook blocked the action: not this");
    assert!(all[3].starts_with("Error: Hook blocked the action: the hook gave no reason"), "{}", all[3]);
    assert!(!all[2].contains("strange"), "a guard's warning is for people: {}", all[2]);
    assert!(done.stderr.contains("Hook odd: warning"), "{}", done.stderr);
    assert!(done.stderr.contains("strange"), "{}", done.stderr);
    assert!(done.stderr.contains("REFUSED: Hook blocked the action: not this"), "{}", done.stderr);

    let server = Server::calls([write("two")]);
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let denial = &json["permission_denials"][0];
    assert_eq!((&denial["rule"], &denial["tool"]), (&json!("hooks.pre_tool_use"), &json!("write_file")));
}

#[test]
fn h02_a_guard_that_gives_no_answer_blocks_unless_told_otherwise() {
    let failing = ["sleep 60", "/no/such/program", "./not-executable", "kill -KILL $$"];
    let tried = |on_error: Option<&str>| {
        let hook = |(index, command): (usize, &&str)| {
            let mut hook = json!({"command": command, "timeout": 1, "file_patterns": [format!("f{index}")]});
            hook.as_object_mut().unwrap().extend(on_error.map(|value| ("on_error".to_owned(), json!(value))));
            hook
        };
        let hooks: Vec<Value> = failing.iter().enumerate().map(hook).collect();
        let lab = with_hooks(&json!({ "pre_tool_use": hooks })).file("not-executable", "#!/bin/sh\n");
        let server = Server::calls([write("f0"), write("f1"), write("f2"), write("f3")]);
        let done = lab.run_yolo(&server, &[]).exits(0);
        let log = without_warning(&done.stderr);
        (["f0", "f1", "f2", "f3"].map(|path| lab.exists(path)), results(&server), log)
    };
    std::thread::scope(|scope| {
        let blocked = scope.spawn(|| tried(None));
        let (written, all, log) = tried(Some("allow"));
        assert_eq!(written, [true; 4]);
        assert!(all.iter().all(|text| !text.contains("Hook")), "{all:?}");
        assert_eq!(log.matches("warning").count(), 4, "{log}");

        let (written, all, _) = blocked.join().unwrap();
        assert_eq!(written, [false; 4]);
        assert!(all[0].contains("Hook blocked the action") && all[0].contains("within 1 s"), "{}", all[0]);
        assert!(all[1].contains("/no/such/program"), "{}", all[1]);
        assert!(all[3].contains("signal 9"), "{}", all[3]);
    });
}

// Fault A11: a refusal in the forms of Claude Code and Codex, with exit 0, was ignored.
#[test]
fn a_call_does_not_run_when_a_hook_refuses_it_as_those_of_other_agents_do() {
    let specific = |decision: &str| {
        json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
            "permissionDecisionReason": "not here"}})
    };
    let refusals = [
        format!("echo '{}'", json!({"decision": "block", "reason": "not here"})),
        format!("echo '{}'", specific("deny")),
        format!("echo Checking; echo '{}'", specific("deny")),
        format!(
            "echo '{}'; echo '{}'",
            json!({"continue": true}),
            json!({"decision": "deny", "reason": "not here"})
        ),
        format!("echo '{}'", specific("ask")),
        "echo '{\"decision\": \"blo'".to_owned(),
    ];
    for command in refusals {
        let lab = with_hooks(&json!({"pre_tool_use": [{"command": command}]}));
        let server = Server::calls([write("b.txt")]);
        lab.run_yolo(&server, &[]).exits(0);
        assert!(!lab.exists("b.txt"), "{command}");
        let text = results(&server).remove(0);
        assert!(text.contains("not here") || text.contains("not understood"), "{command}: {text}");
    }
    let lab = with_hooks(&json!({"pre_tool_use": [{"command": "echo 'Write {} for an empty object.'"}]}));
    let server = Server::calls([write("b.txt")]);
    lab.run_yolo(&server, &[]).exits(0);
    assert!(lab.exists("b.txt") && results(&server)[0].contains("Write {} for"), "{:?}", results(&server));
}

// Fault A11: `ask` of a hook was ignored. It is a question to the user, also in a mode without questions, and stays pending without one.
#[test]
fn a_call_that_a_hook_asks_about_waits_for_the_approval_of_the_user() {
    let ask =
        json!({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}});
    let lab = with_hooks(&json!({"pre_tool_use": [{"command": format!("echo '{ask}'")}]}));
    let server = Server::calls([write("b.txt")]);
    let paused = lab.run_yolo(&server, &["--approvals", "pause", "--json"]).exits(2).json();
    let pending = &paused["awaiting_approval"][0];
    let listed = lab.agent(&["approvals", "list"]).exits(0).stdout;
    assert!(listed.contains("a hook asks for approval: sure?"), "{listed}");
    assert!(!lab.exists("b.txt"));
    lab.agent(&["approve", pending["id"].as_str().unwrap()]).exits(0);
    lab.resume(&server, &["--mode", "yolo"]).exits(0);
    assert!(lab.exists("b.txt"), "{:?}", results(&server));
}

#[test]
fn h02_after_a_call_a_block_is_told_and_a_hook_that_fails_only_warns() {
    let tried = |hook: Value| {
        let lab = with_hooks(&json!({"post_tool_use": [hook]}));
        let server = Server::calls([write("b.txt")]);
        let done = lab.run_yolo(&server, &[]).exits(0);
        assert_eq!(lab.read("b.txt"), "x\n");
        (results(&server).remove(0), done.stderr)
    };
    let (text, _) = tried(json!({"command": "echo undo it >&2; exit 2"}));
    assert!(!text.starts_with("Error") && text.ends_with("\n\nundo it"), "{text}");
    let (text, log) = tried(json!({"command": "echo a finding; exit 1", "name": "lint"}));
    assert!(text.ends_with("\n\nHook 'lint' exited with 1:\na finding"), "{text}");
    assert!(log.contains("Hook lint: warning"), "{log}");
    let (text, _) = tried(json!({"command": "exit 1", "name": "mute"}));
    assert!(text.ends_with("\n\nHook 'mute' exited with 1"), "{text}");
    let (text, log) = tried(json!({"command": "sleep 60", "timeout": 1, "name": "slow"}));
    assert!(
        !text.contains("Hook") && log.contains("Hook slow: warning") && log.contains("within 1 s"),
        "{log}"
    );
    let (text, log) = tried(json!({"command": "/no/such/program", "name": "gone"}));
    assert!(!text.contains("Hook") && log.contains("Hook gone: warning"), "{log}");
}

#[test]
fn h02_where_nothing_can_be_blocked_the_reason_is_read_or_it_is_a_warning() {
    let block =
        |event: &str| json!([{"name": event, "command": format!("echo {event} says no >&2; exit 2")}]);
    let events = ["session_start", "pre_llm_call", "post_llm_call", "agent_complete", "session_end"];
    let hooks: Value = events.iter().map(|event| ((*event).to_owned(), block(event))).collect();
    let (lab, server) = (with_hooks(&hooks), Server::calls([]));
    let done = lab.run(&server, &[]).exits(0);
    let said = messages(&server).iter().map(|m| m["content"].to_string()).collect::<String>();
    assert!(said.contains("session_start says no") && said.contains("pre_llm_call says no"), "{said}");
    for event in &events[2..] {
        assert!(done.stderr.contains(&format!("Hook {event}: warning")), "{}", done.stderr);
    }
}

#[test]
fn h03_a_block_stops_the_later_hooks_of_its_event() {
    let list = json!([{"command": "exit 0"}, {"command": "exit 2"}, {"command": "touch second"}]);
    for event in ["pre_tool_use", "post_tool_use", "post_edit"] {
        let lab = with_hooks(&json!({ event: list }));
        lab.run_yolo(&Server::calls([write("b.txt")]), &[]).exits(0);
        assert!(!lab.exists("second"), "{event}");
        assert_eq!(lab.exists("b.txt"), event != "pre_tool_use");
    }
    let lab = with_hooks(
        &json!({"pre_tool_use": [{"command": "exit 2"}], "session_end": [{"command": "touch other"}]}),
    );
    lab.run_yolo(&Server::calls([write("b.txt")]), &[]).exits(0);
    assert!(lab.exists("other"));
}

#[test]
fn h04_new_arguments_are_decided_on_again_and_told() {
    let rewrite = |path: &str| {
        let answer = json!({"updatedInput": {"path": path, "content": "y\n"}});
        json!({"pre_tool_use": [{"command": format!("echo '{answer}'")}]})
    };
    let moved = with_hooks(&rewrite("moved.txt"));
    let server = Server::calls([write("b.txt")]);
    let json = moved.run_yolo(&server, &["--json"]).exits(0).json();
    assert_eq!((moved.exists("b.txt"), moved.read("moved.txt").as_str()), (false, "y\n"));
    let text = results(&server).remove(0);
    assert!(text.contains("The arguments of this call were changed") && text.contains("moved.txt"), "{text}");
    assert_eq!(json["files_modified"][0]["path"], "moved.txt");

    let config = json!({"hooks": rewrite(".env"), "guardrails": {"sensitive_files": [".env"]}});
    for path in [".git/config", "../out.txt"] {
        let lab = with_hooks(&rewrite(path));
        let server = Server::calls([write("b.txt")]);
        lab.run_yolo(&server, &[]).exits(0);
        assert!(results(&server)[0].starts_with("Error: "), "{:?}", results(&server));
        assert!(!lab.exists(path) && !lab.exists("b.txt"), "{path}");
    }
    let lab = Lab::new().config(&config.to_string());
    let server = Server::calls([write("b.txt")]);
    lab.run_yolo(&server, &[]).exits(0);
    assert!(results(&server)[0].contains("Sensitive file blocked"), "{:?}", results(&server));
    assert!(!lab.exists(".env") && !lab.exists("b.txt"));

    let lab = Lab::new().config(
        &json!({"hooks": {"pre_tool_use": [{"command": "echo '{\"updatedInput\": {\"pth\": 1}}'"}]}})
            .to_string(),
    );
    let server = Server::calls([write("b.txt")]);
    lab.run_yolo(&server, &[]).exits(0);
    assert!(results(&server)[0].contains("A hook's updatedInput"), "{:?}", results(&server));
}

#[test]
fn s23_a_hook_skips_a_call_or_gives_its_result() {
    let answers = [
        (json!({"overrideResult": "the given text"}), "the given text"),
        (json!({"skip": true}), "Tool call skipped by hook"),
        (json!({"skip": true, "overrideResult": "given", "additionalContext": "why"}), "given\n\nwhy"),
    ];
    for (answer, expected) in answers {
        let hooks = json!({"pre_tool_use": [
            {"command": format!("echo '{answer}'")},
            {"command": "touch later-hook"},
        ]});
        let lab = with_hooks(&hooks);
        let server = Server::calls([write("b.txt")]);
        // Nobody is asked either: what a hook gives needs no permission.
        lab.run(&server, &[]).exits(0);
        assert!(results(&server)[0].contains(expected), "{:?}", results(&server));
        assert!(!results(&server)[0].contains("Error"), "{:?}", results(&server));
        assert_eq!((lab.exists("b.txt"), lab.exists("later-hook")), (false, false));
    }
    let lab = with_hooks(&json!({"pre_tool_use": [{"command": "echo '{\"overrideResult\": \"x\"}'"}]}));
    let server = Server::calls([write(".git/config")]);
    lab.run_yolo(&server, &[]).exits(0);
    assert!(results(&server)[0].contains("Protected file"), "{:?}", results(&server));
}

#[test]
fn h09_a_fallback_stands_in_place_of_an_error() {
    let hooks = json!({
        "on_error": [{"command": "echo '{\"fallbackResult\": \"nothing there yet\"}'"}],
        "post_tool_use": [{"command": "printf %s \"$AGENT_TOOL_RESULT_SUCCESS\" > success"}],
    });
    let lab = with_hooks(&hooks);
    let server = Server::calls([call("read_file", &json!({"path": "missing.txt"}))]);
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    assert!(results(&server)[0].contains("nothing there yet"), "{:?}", results(&server));
    assert!(!results(&server)[0].contains("Error"), "{:?}", results(&server));
    assert_eq!(lab.read("success"), "true");
    assert_eq!(json["tools_used"][0]["success"], true);
}

#[test]
fn h09_a_hook_ends_the_run_and_its_reason_is_the_output() {
    let stop = |event: &str| json!({event: [{"command": "echo '{\"continue\": false, \"stopReason\": \"enough\"}'"}]});
    for (event, requests, ran) in [
        ("session_start", 0, false),
        ("pre_llm_call", 0, false),
        ("pre_tool_use", 1, false),
        ("post_tool_use", 1, true),
    ] {
        let lab = with_hooks(&stop(event));
        let both = json!({"turns": [{"calls": [
            {"name": "write_file", "arguments": {"path": "b.txt", "content": "x"}},
            {"name": "write_file", "arguments": {"path": "c.txt", "content": "x"}},
        ]}]});
        let server = Server::start(&both.to_string());
        let json = lab.run_yolo(&server, &["--json"]).exits(2).json();
        assert_eq!(
            (&json["stop_reason"], &json["output"]),
            (&json!("guardrail"), &json!("enough")),
            "{event}"
        );
        assert_eq!(server.requests().len(), requests, "{event}");
        assert_eq!((lab.exists("b.txt"), lab.exists("c.txt")), (ran, false), "{event}");
    }
    let lab = with_hooks(&stop("on_error"));
    let server = Server::calls([call("read_file", &json!({"path": "missing.txt"}))]);
    let json = lab.run(&server, &["--json"]).exits(2).json();
    assert_eq!(json["stop_reason"], "guardrail");
}

#[test]
fn h05_what_hooks_add_before_and_after_a_call_reaches_the_model() {
    let say = |text: &str| json!([{ "command": format!("echo '{text}'") }]);
    let context = |text: &str| say(&json!({ "additionalContext": text }).to_string());
    let hooks = json!({
        "pre_tool_use": context("said before"),
        "post_tool_use": context("said after"),
        "post_edit": say("plain words"),
        "session_start": context("said at the start"),
    });
    let (lab, server) = (with_hooks(&hooks), Server::calls([write("b.txt")]));
    lab.run_yolo(&server, &[]).exits(0);
    let text = results(&server).remove(0);
    assert!(text.ends_with("\n\nsaid before\n\nsaid after\n\nplain words"), "{text}");
    assert!(!text.contains("additionalContext"));
    let start = messages(&server).into_iter().find(|m| m["content"] == "[Hook context]: said at the start");
    assert_eq!(start.unwrap()["role"], "user");
}

#[test]
fn h06_matcher_patterns_and_enabled_filter() {
    let mark = |name: &str, rule: Value| {
        let mut rule = rule;
        rule["command"] = json!(format!("echo \"$AGENT_TOOL_NAME $AGENT_FILE_PATH\" >> {name}"));
        rule
    };
    let hooks = json!({"pre_tool_use": [
        mark("all.log", json!({})),
        mark("star.log", json!({"matcher": "*"})),
        mark("edit.log", json!({"matcher": "write_file|edit_file"})),
        mark("half.log", json!({"matcher": "write"})),
        mark("tail.log", json!({"matcher": "file"})),
        mark("off.log", json!({"enabled": false})),
        mark("py.log", json!({"file_patterns": ["*.py"]})),
        mark("src.log", json!({"file_patterns": ["src/**"]})),
        mark("both.log", json!({"matcher": "read_file", "file_patterns": ["*.py"]})),
    ]});
    let lab = with_hooks(&hooks).file("src/deep/m.py", "m\n");
    symlink("src/deep", lab.ws().join("link")).unwrap();
    let absolute = lab.ws().join("src/deep/n.py").to_string_lossy().into_owned();
    let server = Server::calls([
        call("read_file", &json!({"path": "a.txt"})),
        call("read_file", &json!({"path": "./src/../src/deep/m.py"})),
        write(&absolute),
        write("link/o.py"),
        command("true"),
    ]);
    lab.run_yolo(&server, &[]).exits(0);
    let [m, n, o] = ["read_file src/deep/m.py", "write_file src/deep/n.py", "write_file src/deep/o.py"];
    let all = ["read_file a.txt", m, n, o, "run_command "];
    assert_eq!(lines(&lab, "all.log"), all);
    assert_eq!(lines(&lab, "star.log"), all);
    assert_eq!(lines(&lab, "edit.log"), [n, o]);
    assert_eq!(lines(&lab, "py.log"), [m, n, o]);
    assert_eq!(lines(&lab, "src.log"), [m, n, o]);
    assert_eq!(lines(&lab, "both.log"), [m]);
    for name in ["half.log", "tail.log", "off.log"] {
        assert!(!lab.exists(name), "{name}");
    }
}

// Fault B23: a guard whose matcher is the beginning of a name matched nothing, silently.
#[test]
fn a_matcher_that_matches_no_tool_is_reported_at_the_start() {
    let lab = with_hooks(&json!({"pre_tool_use": [{"command": "exit 2", "matcher": "write|edit_file"}]}));
    let log = lab.run_yolo(&Server::calls([]), &[]).exits(0).stderr;
    assert!(
        log.contains("hooks.pre_tool_use[0]: `write` in `matcher`") && !log.contains("`edit_file`"),
        "{log}"
    );
}

#[test]
fn h06_a_background_hook_is_not_waited_for_and_ends_with_the_run() {
    let hooks = json!({"post_edit": [
        {"command": "read -r line <go; echo >met", "async": true},
        {"command": "echo $PPID > held; echo ignored; echo >begun; sleep 299.17; touch never", "async": true},
    ]});
    let lab = with_hooks(&hooks);
    let _held_open = ["begun", "go", "met"].map(|name| lab.pipe(name));
    let meet = "read -r line <begun; echo >go; read -r line <met; echo we met";
    let server = Server::calls([write("b.txt"), command(meet)]);
    lab.run_yolo(&server, &[]).exits(0);
    let ended = Instant::now();
    let all = results(&server);
    assert!(!all[0].contains("ignored") && all[1].contains("we met"), "{all:?}");
    let here = lab.ws().canonicalize().unwrap();
    let works_here = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|directory| directory == here)
    };
    while fs::read_dir("/proc").unwrap().flatten().any(|entry| works_here(&entry)) {
        assert!(ended.elapsed() < Duration::from_secs(1), "a hook outlives the run");
        std::thread::yield_now();
    }
    assert!(!lab.exists("never"));
}

#[test]
fn h06_background_hooks_at_the_end_are_waited_for_because_nothing_else_is() {
    let slow = |name: &str| json!([{"command": format!("sleep 0.2; touch {name}"), "async": true}]);
    let lab = with_hooks(&json!({"agent_complete": slow("complete"), "session_end": slow("ended")}));
    lab.run(&Server::calls([]), &[]).exits(0);
    assert!(lab.exists("complete") && lab.exists("ended"));
}

#[test]
fn h06_a_hook_runs_for_each_file_of_a_patch_and_can_block_it_for_any() {
    let hooks = json!({
        "pre_tool_use": [
            {"command": "echo \"$AGENT_FILE_PATH\" >> all.log"},
            {"command": "case {file} in *secret.py) echo 'not this one' >&2; exit 2;; esac", "file_patterns": ["*.py"]},
        ],
        "post_edit": [{"command": "echo \"$AGENT_FILE_PATH\" >> edited.log"}],
    });
    let lab = with_hooks(&hooks).file("secret.py", "one\n");
    let patch = |sections: &str| {
        call("apply_patch", &json!({"patch": format!("*** Begin Patch\n{sections}*** End Patch\n")}))
    };
    let good = "*** Add File: new.txt\n+x\n*** Add File: new.py\n+x\n";
    let server = Server::calls([
        patch(&format!("{good}*** Update File: secret.py\n@@\n-one\n+two\n")),
        patch(&format!("{good}*** Update File: a.txt\n*** Move to: secret.py\n")),
        patch(good),
    ]);
    lab.run_yolo(&server, &[]).exits(0);
    let all = results(&server);
    for refused in &all[..2] {
        assert!(refused.contains("Hook blocked the action: not this one"), "{refused}");
    }
    assert_eq!(lab.read("secret.py"), "one\n");
    assert_eq!(lines(&lab, "all.log")[..3], ["new.txt", "new.py", "secret.py"]);
    assert_eq!(lines(&lab, "edited.log"), ["new.txt", "new.py"]);
}

#[test]
fn h07_post_edit_runs_for_each_edit_with_its_file_and_its_findings_are_read() {
    let lint = "grep -n bad {file} && exit 1; echo \"fine $AGENT_EDITED_FILE $ARCHITECT_EDITED_FILE\"";
    let hooks = json!({"post_edit": [{"name": "lint", "command": lint}]});
    let lab = with_hooks(&hooks).file("it's b.py", "good\n").file("c.py", "one\n").file("gone.py", "x\n");
    fs::write(lab.home().join("config.yaml"), {
        json!({"hooks": hooks, "workspace": {"allow_delete": true}}).to_string()
    })
    .unwrap();
    let patch = "@@ -1 +1 @@\n-one\n+two\n";
    let server = Server::calls([
        edit("it's b.py", "good", "bad"),
        call("apply_patch", &json!({"path": "c.py", "patch": patch})),
        write("new.py"),
        call("read_file", &json!({"path": "c.py"})),
        call("delete_file", &json!({"path": "gone.py"})),
        command("echo bad > by-command.py"),
        edit("c.py", "missing", "bad"),
    ]);
    lab.run_yolo(&server, &[]).exits(0);
    let all = results(&server);
    assert!(all[0].ends_with("\n\nHook 'lint' exited with 1:\n1:bad"), "{}", all[0]);
    assert!(all[1].ends_with("\n\nfine c.py c.py"), "{}", all[1]);
    assert!(all[2].ends_with("\n\nfine new.py new.py"), "{}", all[2]);
    assert!(!lab.exists("gone.py") && lab.exists("by-command.py"));
    for text in &all[3..] {
        assert!(!text.contains("lint") && !text.contains("fine"), "{text}");
    }
}

#[test]
fn h08_after_a_failed_tool_its_error_and_what_hooks_say_are_kept() {
    let hooks = json!({
        "on_error": [{"command": "echo \"$AGENT_TOOL_NAME went wrong\""}],
        "post_tool_use": [{"command": "echo seen: $AGENT_TOOL_RESULT_SUCCESS"}],
    });
    let (lab, server) = (
        with_hooks(&hooks),
        Server::calls([command("echo out; exit 3"), call("read_file", &json!({"path": "missing"}))]),
    );
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let all = results(&server);
    assert_eq!(
        all[0],
        "Error: Command failed with exit_code: 3\nstdout:\nout\n\nrun_command went wrong\n\nseen: false"
    );
    assert!(all[1].starts_with("Error: ") && all[1].ends_with("\n\nread_file went wrong\n\nseen: false"));
    assert_eq!(json["tools_used"][0]["success"], false);
}

#[test]
fn k18_what_a_hook_says_before_a_model_call_is_a_user_message() {
    let hooks = json!({"pre_llm_call": [{"command": "echo \"note $AGENT_STEP\""}]});
    let (lab, server) = (with_hooks(&hooks), Server::calls([write("b.txt")]));
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    for (index, request) in requests.iter().enumerate() {
        let last = request.messages().last().unwrap();
        let said = format!("[Hook context]: note {}", index + 1);
        assert_eq!((&last["role"], &last["content"]), (&json!("user"), &json!(said)));
    }
    assert_eq!(requests.len(), 2);

    // The closing summary is not a step: its instruction stays the last word.
    let server = Server::calls([write("b.txt")]);
    lab.run_yolo(&server, &["--max-steps", "1"]).exits(2);
    let last = messages(&server).last().unwrap().clone();
    assert!(last["content"].as_str().unwrap().starts_with("[SYSTEM] "), "{last}");
}

#[test]
fn a_formatter_is_shown_and_the_next_edit_fits() {
    let format = "sed 's/  */ /g' {file} > tidy && cat tidy > {file}; rm tidy";
    for event in ["post_edit", "post_tool_use"] {
        let file = if event == "post_edit" { "{file}" } else { "\"$AGENT_FILE_PATH\"" };
        let rule = json!([{"command": format.replace("{file}", file), "matcher": "write_file|edit_file"}]);
        let lab = with_hooks(&json!({ event: rule }));
        let server = Server::calls([
            call("write_file", &json!({"path": "b.txt", "content": "one   two\nthree\n"})),
            edit("b.txt", "one two\n", "one  three\n"),
            call("write_file", &json!({"path": "b.txt", "content": "the   end\n"})),
        ]);
        let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
        let all = results(&server);
        assert!(
            all[0].contains("A hook changed b.txt") && all[0].contains("\n-one   two\n+one two\n"),
            "{}",
            all[0]
        );
        assert!(!all[1].starts_with("Error") && all[1].contains("\n+one three"), "{}", all[1]);
        assert!(!all[2].starts_with("Error"), "{}", all[2]);
        assert_eq!(lab.read("b.txt"), "the end\n");
        let lines = json!({"added": 1, "removed": 0});
        let created = json!([{"path": "b.txt", "action": "created", "by": "tool", "lines": lines}]);
        assert_eq!(json["files_modified"], created);
        let journal = fs::read_to_string(lab.journal()).unwrap();
        assert!(journal.contains(r#""path":"b.txt","action":"modified","by":"command""#), "{journal}");
    }
}

#[test]
fn a_hook_makes_no_file_known_that_the_model_never_saw_and_says_when_one_is_gone() {
    let hooks = json!({"post_edit": [
        {"command": "echo tail >> {file}", "file_patterns": ["unseen.txt"]},
        {"command": "rm {file}", "file_patterns": ["doomed.txt"]},
        {"command": "printf '\\377' > {file}", "file_patterns": ["binary.txt"]},
    ]});
    let lab = with_hooks(&hooks).file("unseen.txt", "secret plan\n");
    let server = Server::calls([
        call("write_file", &json!({"path": "unseen.txt", "content": "more\n", "mode": "append"})),
        write("unseen.txt"),
        write("doomed.txt"),
        write("binary.txt"),
    ]);
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    let all = results(&server);
    assert!(all[0].contains("A hook changed unseen.txt") && all[1].starts_with("Error: "), "{all:?}");
    assert_eq!(lab.read("unseen.txt"), "secret plan\nmore\ntail\n");
    assert!(all[2].contains("A hook removed doomed.txt"), "{}", all[2]);
    assert!(all[3].contains("A hook changed binary.txt, which is not text"), "{}", all[3]);
    let paths: Vec<&Value> =
        json["files_modified"].as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["unseen.txt", "binary.txt"]);
}

#[test]
fn hooks_of_an_untrusted_project_never_run_and_one_line_says_so() {
    let project = json!({"hooks": everywhere("touch owned")}).to_string();
    let own = json!({"session_end": [{"command": "touch mine"}]});
    let (lab, server) =
        (with_hooks(&own).file(".agent/config.yaml", project), Server::calls([write("b.txt")]));
    let done = lab.run_yolo(&server, &[]).exits(0);
    assert!(!lab.exists("owned") && lab.exists("mine"));
    let told: Vec<&str> = done.stderr.lines().filter(|line| line.contains("trusted")).collect();
    assert_eq!(told.len(), 1, "{}", done.stderr);
    assert!(told[0].contains(".agent/config.yaml") && told[0].contains("hooks"), "{}", told[0]);
    let done = lab.run(&Server::calls([]), &["--json"]).exits(0);
    assert_eq!(done.stderr.lines().filter(|line| line.contains("trusted")).count(), 1, "{}", done.stderr);
    done.json();
}

#[test]
fn hooks_are_off_in_a_dry_run() {
    let lab = with_hooks(&everywhere("touch hooked"));
    let server =
        Server::calls([call("read_file", &json!({"path": "a.txt"})), write("b.txt"), command("exit 1")]);
    lab.run_yolo(&server, &["--dry-run"]).exits(0);
    assert!(!lab.exists("hooked") && !lab.exists("b.txt"));
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn hooks_do_not_outlast_the_time_of_the_run() {
    // It lasts longer than a test waits for a run.
    let slow = json!([{"command": "touch begun; sleep 299.19", "timeout": 300}]);
    std::thread::scope(|scope| {
        for event in ["session_start", "pre_llm_call", "post_llm_call", "pre_tool_use", "post_edit"] {
            let slow = &slow;
            scope.spawn(move || {
                // A busy machine takes its time until the hook begins, which is where the run is to be out of time.
                let out_of_time = ["1", "4", "16"].into_iter().find_map(|seconds| {
                    let (lab, server) =
                        (with_hooks(&json!({ event: slow })), Server::calls([write("b.txt")]));
                    let done = lab.run_yolo(&server, &["--json", "--timeout", seconds]).exits(5);
                    lab.exists("begun").then_some((lab, done.json()))
                });
                let (lab, json) = out_of_time.unwrap_or_else(|| panic!("{event}: the hook never began"));
                assert_eq!(lab.exists("b.txt"), event == "post_edit", "{event}");
                assert_eq!(json["permission_denials"], json!([]), "{event}: nobody refused anything");
                assert_eq!(json["stop_reason"], "timeout");
            });
        }
    });
}

#[test]
fn an_interrupt_ends_a_hook_and_what_it_guards_does_not_happen() {
    let hooks = json!({
        "pre_tool_use": [{"command": "touch begun; exec sleep 299.18", "timeout": 300, "on_error": "allow"}],
        "post_edit": [{"command": "touch edited"}],
    });
    let (lab, server) = (with_hooks(&hooks), Server::calls([write("b.txt")]));
    let run = lab.start_run(&server, &["--mode", "yolo", "--json"]);
    while !lab.exists("begun") {
        std::thread::yield_now();
    }
    run.signal(Signal::INT);
    let json = run.finish().exits(130).json();
    assert!(!lab.exists("b.txt") && !lab.exists("edited"));
    assert_eq!(json["permission_denials"], json!([]));
}
