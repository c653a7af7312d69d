//! `dispatch_subagent`: an agent that does a part of the work, in a session of its own, out of the same budget.

use crate::support::calls::{command, write};
use crate::support::run::Lab;
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};

/// A call that asks a subagent.
fn dispatch(arguments: &Value) -> Value {
    json!({"name": "dispatch_subagent", "arguments": arguments})
}

fn calls(calls: &[Value]) -> Value {
    json!({ "calls": calls })
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

// Fault E1: the long output of a subagent's call had the name of one of the run, and was read as that one.
#[test]
fn an_output_of_a_subagent_is_its_own_although_a_call_of_the_run_had_the_same_id() {
    let print = |first: u32| {
        let arguments = json!({"command": format!("seq {first} 90000")});
        json!({"id": "same", "name": "run_command", "arguments": arguments})
    };
    let server = Server::turns([
        calls(&[print(1)]),
        calls(&[dispatch(&json!({"agent_type": "test", "task": "look"}))]),
        calls(&[print(2)]),
        text("looked"),
        text("done"),
    ]);
    let lab = Lab::new();
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    let name = |request: &Recorded| {
        let result = request.texts("tool").pop().unwrap();
        let name = result.rsplit("output:").next().unwrap();
        name.split(|c: char| !c.is_ascii_alphanumeric() && !"_~-".contains(c)).next().unwrap().to_owned()
    };
    assert_ne!(name(&requests[1]), name(&requests[3]));
}

#[test]
fn l36_a_subagent_knows_only_its_task_and_its_long_answer_is_cut_and_kept() {
    let long = "x".repeat(2000);
    let server = Server::turns([
        calls(&[dispatch(&json!({"task": "where is main?", "relevant_files": ["src/a.rs"]}))]),
        text(&long),
        calls(&[json!({"name": "read_file", "arguments": {"path": "output:call_1_1"}})]),
        text("done"),
    ]);
    let lab = Lab::new();
    let done = lab.run(&server, &["--json"]).exits(0);
    let requests = server.requests();
    let [system, task] = requests[1].messages() else { panic!("{:?}", requests[1].body) };
    assert!(system["content"].as_str().unwrap().starts_with("You are `explore`."), "{system}");
    assert!(task["content"].as_str().unwrap().starts_with("where is main?\n"), "{task}");
    assert!(task["content"].as_str().unwrap().contains("src/a.rs"), "{task}");
    let [answer] = &requests[2].texts("tool")[..] else { panic!("{:?}", requests[2].body) };
    let (shown, marker) = answer.split_at(1000);
    assert_eq!(shown, &long[..1000]);
    assert!(marker.starts_with("... (summary truncated") && marker.contains("output:call_1_1"), "{marker}");
    assert!(requests[3].texts("tool")[1].contains(&long[..1500]), "{:?}", requests[3].body);
    let json = done.json();
    assert_eq!(json["subagents"][0]["agent"], "explore");
    assert_eq!(json["subagents"][0]["stop_reason"], "llm_done");
    assert_eq!((&json["steps"], &json["requests"]), (&json!(3), &json!(4)));
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn l37_types_decide_about_tools_and_another_type_is_an_error() {
    let asked = |kind: &str| dispatch(&json!({"task": "look", "agent_type": kind}));
    let server = Server::turns([
        calls(&[asked("explore"), asked("revue")]),
        text("found"),
        calls(&[asked("review")]),
        text("fine"),
        calls(&[asked("test")]),
        text("passed"),
        text("done"),
    ]);
    Lab::new().run(&server, &[]).exits(0);
    let requests = server.requests();
    let readers = ["find_files", "grep", "list_files", "read_file", "search_code"];
    assert_eq!(requests[1].tools(), readers);
    assert_eq!(requests[3].tools(), readers);
    let with_commands = ["find_files", "grep", "list_files", "read_file", "run_command", "search_code"];
    assert_eq!(requests[5].tools(), with_commands);
    let error = &requests[2].texts("tool")[1];
    assert!(error.contains("no agent_type 'revue'") && error.contains("Did you mean review?"), "{error}");
    assert!(error.contains("explore, review, test"), "{error}");
}

#[test]
fn l38_a_fork_begins_with_the_conversation_that_asks_it() {
    let server = Server::turns([
        calls(&[json!({"name": "read_file", "arguments": {"path": "a.txt"}})]),
        calls(&[dispatch(&json!({"task": "and now?", "context": "fork"}))]),
        text("forked"),
        text("done"),
    ]);
    Lab::new().file("a.txt", "secret of a\n").run(&server, &[]).exits(0);
    let requests = server.requests();
    let (before, fork) = (requests[1].messages(), requests[2].messages());
    assert_eq!(&fork[..before.len()], before);
    let [task] = &fork[before.len()..] else { panic!("{fork:?}") };
    assert!(task["content"].as_str().unwrap().ends_with("Your task:\nand now?"), "{task}");
    // What it said is not a part of the conversation that asked it.
    assert_eq!(requests[3].messages().len(), before.len() + 2);
}

#[test]
fn l36_a_subagent_has_steps_of_its_own_and_asks_no_further_ones() {
    let look = calls(&[json!({"name": "list_files", "arguments": {}}), dispatch(&json!({"task": "more"}))]);
    let mut turns = vec![calls(&[dispatch(&json!({"task": "look around"}))])];
    turns.extend([look.clone(), look, text("as far as I got"), text("done")]);
    let server = Server::turns(turns);
    let lab = Lab::new().config("agents: {explore: {max_steps: 2}}\n");
    let json = lab.run(&server, &["--json"]).exits(0).json();
    let requests = server.requests();
    assert!(
        requests[2].texts("tool")[1].contains("Unknown tool 'dispatch_subagent'"),
        "{:?}",
        requests[2].body
    );
    let told = &requests.last().unwrap().texts("tool")[0];
    assert!(
        told.starts_with("[The subagent did not finish: ") && told.ends_with("as far as I got"),
        "{told}"
    );
    assert_eq!(json["subagents"][0]["stop_reason"], "max_steps");
    assert_eq!((&json["steps"], &json["subagents"][0]["steps"]), (&json!(2), &json!(2)));
}

#[test]
fn l36_a_run_asks_no_more_subagents_than_it_may() {
    let one = || dispatch(&json!({"task": "look"}));
    let server = Server::turns([calls(&[one(), one()]), text("found"), text("done")]);
    let lab = Lab::new().config("subagents: {max_per_run: 1}\n");
    lab.run(&server, &[]).exits(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let told = requests[2].texts("tool");
    assert_eq!(told[0], "found");
    assert!(told[1].contains("limit on subagents (1)"), "{told:?}");
    let server = Server::turns([text("done")]);
    Lab::new().config("subagents: {max_per_run: 0}\n").run(&server, &[]).exits(0);
    assert!(!server.requests()[0].tools().contains(&"dispatch_subagent".into()));
}

#[test]
fn l36_several_are_asked_at_once_and_each_gets_its_own_answer() {
    let asked: Vec<Value> = (0..3).map(|n| dispatch(&json!({"task": format!("part {n}")}))).collect();
    let slow = |answer: &str| json!({"text": answer, "delay_ms": 400});
    let server = Server::turns([calls(&asked), slow("a"), slow("b"), slow("c"), text("done")]);
    let lab = Lab::new();
    let stream = lab.run(&server, &["--output-format", "stream-json"]).exits(0).stdout;
    let nested: Vec<String> = stream
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["type"] == "subagent")
        .map(|line| line["event"]["type"].as_str().unwrap().to_owned())
        .collect();
    let first_end = nested.iter().position(|what| what == "run_end").unwrap();
    let begun = nested[..first_end].iter().filter(|what| *what == "run_start").count();
    assert_eq!(begun, 3, "{nested:?}");
    let mut told =
        server.requests()[4].texts("tool").join(" ").split(' ').map(str::to_owned).collect::<Vec<_>>();
    told.sort();
    assert_eq!(told, ["a", "b", "c"]);
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn l36_what_subagents_use_is_paid_from_the_purse_of_the_run() {
    let usage = json!({"input": 3000, "output": 100});
    let spends = |mut turn: Value| {
        turn["usage"] = usage.clone();
        turn
    };
    let look = || spends(calls(&[json!({"name": "list_files", "arguments": {}})]));
    let mut turns = vec![spends(calls(&[dispatch(&json!({"task": "look"}))]))];
    turns.extend([look(), look(), look(), look(), look(), look(), spends(text("so far"))]);
    turns.extend([spends(text("end")), spends(text("end"))]);
    let server = Server::turns(turns);
    let lab = Lab::new().config("costs: {max_tokens: 20000}\nllm: {max_output_tokens: 2000}\n");
    let json = lab.run(&server, &["--json"]).exits(2).json();
    let used = json["usage"]["input"].as_u64().unwrap() + json["usage"]["output"].as_u64().unwrap();
    assert!(used <= 20_000, "{json}");
    assert_eq!(json["subagents"][0]["stop_reason"], "budget_exceeded", "{json}");
    assert_eq!((&json["stop_reason"], &json["limit"]), (&json!("budget_exceeded"), &json!("tokens")));
}

#[test]
fn l36_the_calls_of_subagents_count_towards_the_cap() {
    let look = || calls(&[json!({"name": "list_files", "arguments": {}})]);
    let mut turns = vec![calls(&[dispatch(&json!({"task": "look"}))]), look(), look(), look()];
    turns.extend([text("so far"), text("end"), text("end")]);
    let server = Server::turns(turns);
    let lab = Lab::new().config("costs: {max_tool_calls: 3}\n");
    let json = lab.run(&server, &["--json"]).exits(2).json();
    assert_eq!((&json["stop_reason"], &json["limit"]), (&json!("budget_exceeded"), &json!("tool_calls")));
    let ran = json["tools_used"].as_array().unwrap().iter().filter(|used| used["success"] == true).count();
    assert_eq!(ran, 3, "{json}");
}

#[test]
fn l36_gates_and_evaluation_are_for_the_run_and_not_for_its_subagents() {
    let verdict = r#"{"completed": true, "confidence": 1, "issues": [], "suggestion": ""}"#;
    let server = Server::turns([
        calls(&[dispatch(&json!({"task": "look"}))]),
        text("found"),
        text("done"),
        text(verdict),
    ]);
    let json = Lab::new().run(&server, &["--self-eval", "full", "--check", "true", "--json"]).exits(0).json();
    assert_eq!(server.requests().len(), 4);
    assert_eq!((&json["output"], &json["evaluation"]["rounds"]), (&json!("done"), &json!(1)));
    assert_eq!(json["subagents"][0]["status"], "success");
}

#[test]
fn l37_what_a_subagent_does_is_decided_as_if_the_run_did_it() {
    let turns = [
        calls(&[dispatch(&json!({"task": "try", "agent_type": "test"}))]),
        calls(&[command("touch made")]),
        text("tried"),
        text("done"),
    ];
    let server = Server::turns(turns.clone());
    let lab = Lab::new();
    let done = lab.run(&server, &["--json"]).exits(0);
    assert!(!lab.exists("made"));
    assert_eq!(done.json()["permission_denials"][0]["tool"], "run_command");
    assert!(done.stderr.contains("1 action was refused"), "{}", done.stderr);
    let server = Server::turns(turns);
    let json = lab.run_yolo(&server, &["--json"]).exits(0).json();
    assert!(lab.exists("made"));
    assert_eq!(json["files_modified"][0]["path"], "made");
    lab.agent(&["undo"]).exits(0);
    assert!(!lab.exists("made"));
}

#[test]
fn class_32_rules_about_who_asks_hold_for_a_subagent_and_rules_about_it_only_tighten() {
    let asked = |rules: Value, mode: &str| {
        let server = Server::turns([
            calls(&[dispatch(&json!({"task": "try", "agent_type": "test"}))]),
            calls(&[command("touch made")]),
            text("tried"),
            text("done"),
        ]);
        let lab = Lab::new().config(&json!({"policy": {"rules": rules}}).to_string());
        let json = lab.run(&server, &["--json", "--mode", mode]).exits(0).json();
        (lab.exists("made"), json["permission_denials"][0]["rule"].as_str().unwrap_or_default().to_owned())
    };
    let rule = |action: &str, agent: &str| json!([{"action": action, "agent": agent, "tool": "run_command"}]);
    let denied = (false, "policy.rules[0]".to_owned());
    assert_eq!(asked(rule("deny", "build"), "yolo"), denied);
    assert_eq!(asked(rule("deny", "test"), "yolo"), denied);
    assert_eq!(asked(rule("ask", "build"), "yolo"), denied);
    assert!(!asked(rule("allow", "test"), "confirm-sensitive").0);
    assert_eq!(asked(rule("allow", "build"), "confirm-sensitive"), (true, String::new()));
    assert_eq!(asked(json!([]), "yolo"), (true, String::new()));
}

#[test]
fn l38_a_fork_reads_the_long_outputs_that_its_conversation_names() {
    let server = Server::turns([
        calls(&[command("cat long.txt")]),
        calls(&[dispatch(&json!({"task": "what stands there?", "context": "fork"}))]),
        calls(&[json!({"name": "grep", "arguments": {"text": "the middle", "path": "output:call_1_1"}})]),
        text("found"),
        text("done"),
    ]);
    let long = format!("{}the middle of it\n{}", "a line\n".repeat(2_000), "a line\n".repeat(2_000));
    let lab = Lab::new().config("context: {max_tool_result_tokens: 500}\n").file("long.txt", long);
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    assert!(requests[3].texts("tool").last().unwrap().contains("the middle of it"), "{:?}", requests[3].body);
    let found = lab.agent(&["sessions", "search", "what stands there"]).exits(0).stdout;
    assert!(found.contains("what stands there?"), "{found}");
}

#[test]
fn l37_limits_and_hooks_of_the_run_hold_for_its_subagents() {
    let test = || dispatch(&json!({"task": "try", "agent_type": "test"}));
    let server = Server::turns([
        calls(&[test()]),
        calls(&[command("echo 1")]),
        text("tried"),
        calls(&[test()]),
        calls(&[command("touch more")]),
        text("not tried"),
        text("done"),
    ]);
    let lab = Lab::new().config("guardrails: {enabled: true, max_commands_executed: 1}\n");
    lab.run_yolo(&server, &[]).exits(0);
    assert!(!lab.exists("more"));
    let requests = server.requests();
    let refused = &requests[5].texts("tool")[0];
    assert!(refused.contains("1 of at most 1 commands"), "{refused}");
    let server =
        Server::turns([calls(&[test()]), calls(&[command("touch more")]), text("tried"), text("done")]);
    let lab = Lab::new().config("hooks: {pre_tool_use: [{matcher: run_command, command: 'exit 2'}]}\n");
    lab.run_yolo(&server, &[]).exits(0);
    assert!(!lab.exists("more") && server.requests()[2].texts("tool")[0].contains("Hook blocked"));
}

const WRITER: &str =
    "---\ndescription: writes\ntools: [write_file]\nmode: yolo\nsubagent: true\n---\nYou write.\n";

#[test]
fn class_32_a_subagent_never_gets_more_than_who_asks_it() {
    let ask = || dispatch(&json!({"task": "write it", "agent_type": "writer"}));
    let turns = [calls(&[ask()]), calls(&[write("a.txt", "new\n")]), text("written"), text("done")];
    let server = Server::turns(turns.clone());
    let lab = Lab::new().file("../home/agents/writer.md", WRITER);
    let done = lab.run(&server, &["--json"]).exits(0);
    assert!(!lab.exists("a.txt"), "{}", done.stderr);
    let server = Server::turns(turns);
    lab.run_yolo(&server, &[]).exits(0);
    assert_eq!(lab.read("a.txt"), "new\n");
    lab.agent(&["replay"]).exits(0);
    let server = Server::turns([calls(&[ask()]), text("then not")]);
    let reader = "agents: {narrow: {system_prompt: look, allowed_tools: [read_file, dispatch_subagent]}}\n";
    let lab = lab.config(reader);
    lab.run_yolo(&server, &["--agent", "narrow"]).exits(0);
    let requests = server.requests();
    let told = &requests[1].texts("tool")[0];
    assert!(told.contains("has no tool that you may use"), "{told}");
}

#[test]
fn l37_an_agent_of_a_project_is_not_asked_before_it_is_trusted() {
    let server = Server::turns([text("done")]);
    let lab = Lab::new().file(".agent/agents/writer.md", WRITER);
    lab.run(&server, &[]).exits(0);
    assert!(!server.requests()[0].body.to_string().contains("writer"));
    let server = Server::turns([text("done")]);
    lab.run(&server, &["--trust-workspace"]).exits(0);
    assert!(server.requests()[0].body.to_string().contains("- writer: writes"));
}

#[test]
fn l36_a_run_that_is_killed_over_a_subagent_goes_on_and_its_changes_can_be_undone() {
    let server = Server::turns([
        calls(&[dispatch(&json!({"task": "write it", "agent_type": "writer"}))]),
        calls(&[write("a.txt", "new\n")]),
        json!({"text": "too late", "delay_ms": 600_000}),
        text("done"),
    ]);
    let lab = Lab::new().file("../home/agents/writer.md", WRITER);
    let running = lab.start_run(&server, &["--mode", "yolo"]);
    server.wait_for_request(3);
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    assert_eq!(lab.read("a.txt"), "new\n");
    lab.resume(&server, &["--mode", "yolo"]).exits(0);
    let requests = server.requests();
    let told = &requests.last().unwrap().texts("tool")[0];
    assert!(told.contains("nobody knows") || told.contains("unknown"), "{told}");
    lab.agent(&["undo"]).exits(0);
    assert!(!lab.exists("a.txt"));
}

#[test]
fn l36_an_interrupt_ends_the_subagent_and_the_run() {
    let server = Server::turns([
        calls(&[dispatch(&json!({"task": "look"}))]),
        json!({"text": "too late", "delay_ms": 600_000}),
    ]);
    let lab = Lab::new();
    let running = lab.start_run(&server, &["--json"]);
    server.wait_for_request(2);
    running.signal(rustix::process::Signal::INT);
    let json = running.finish().exits(130).json();
    assert_eq!(json["stop_reason"], "user_interrupt");
    assert_eq!(json["subagents"][0]["stop_reason"], "user_interrupt");
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn l36_the_time_of_the_run_is_that_of_its_subagents() {
    let server = Server::turns([
        calls(&[dispatch(&json!({"task": "look"}))]),
        json!({"text": "too late", "delay_ms": 600_000}),
        text("so far"),
        text("in time"),
    ]);
    let json = Lab::new().run(&server, &["--timeout", "4", "--json"]).exits(0).json();
    assert_eq!(json["subagents"][0]["stop_reason"], "timeout", "{json}");
    let requests = server.requests();
    let told = &requests.last().unwrap().texts("tool")[0];
    assert!(told.starts_with("[The subagent did not finish: "), "{told}");
}

#[test]
fn l36_the_log_shows_what_a_subagent_does_below_the_call_that_asked_it() {
    let server = Server::turns([
        calls(&[dispatch(&json!({"task": "look"}))]),
        calls(&[json!({"name": "read_file", "arguments": {"path": "nothing"}})]),
        text("not there"),
        text("done"),
    ]);
    let lab = Lab::new();
    let log = lab.run(&server, &[]).exits(0).stderr;
    let lines =
        ["dispatch_subagent: explore: look", "[explore] read_file: nothing", "[explore] read_file failed: "];
    assert!(lines.iter().all(|line| log.contains(line)), "{log}");
    assert!(log.contains("[explore] success (llm_done), 2 steps, 1 tool call"), "{log}");
    let journal = lab.journal();
    let id = journal.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let shown = lab.agent(&["sessions", "show", id]).exits(0).stdout;
    let steps =
        ["    | run: agent explore", "    | step 1 (2 messages)", "    | step 2 (4 messages)", "\nstep 2 ("];
    assert!(steps.iter().all(|line| shown.contains(line)), "{shown}");
    let report = lab.agent(&["report", "--format", "markdown"]).exits(0).stdout;
    assert!(report.contains("subagent explore: success (llm_done)"), "{report}");
}
