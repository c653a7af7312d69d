//! Quality gates: a run counts as done when its checks have passed, and the model is told when they have not.

use crate::support::run::Lab;
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::json;

const GATE: &str = "guardrails: {quality_gates: [{name: is done, command: 'test -f done || (echo not there >&2; exit 3)'}]}\n";

const WRITE: &str = "{calls: [{name: write_file, arguments: {path: done, content: 'yes'}}]}";

#[test]
fn s18_the_model_is_told_what_does_not_pass_and_the_run_is_done_when_it_does() {
    let server = Server::start(&format!("turns: [{{text: all done}}, {WRITE}, {{text: now it is}}]"));
    let lab = Lab::new().config(GATE);
    let done = lab.run_yolo(&server, &["--json"]).exits(0);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let messages = requests[1].messages();
    assert_eq!(messages[2]["content"], "all done");
    let told = messages[3]["content"].as_str().unwrap();
    assert!(told.contains("## is done") && told.contains("not there") && told.contains('3'), "{told}");
    let json = done.json();
    assert_eq!((&json["status"], &json["output"]), (&json!("success"), &json!("now it is")));
    assert_eq!(json["quality_gates"][0]["passed"], true);
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn s18_a_run_whose_required_gate_never_passes_ends_as_partial_after_so_many_rounds() {
    let turns = ["{text: done}"; 10].join(", ");
    let rounds = |more: &str, args: &[&str]| {
        let server = Server::start(&format!("turns: [{turns}]"));
        let lab = Lab::new()
            .config(&format!("{}, max_gate_rounds: {more}}}\n", GATE.trim_end().trim_end_matches('}')));
        let done = lab.run(&server, args);
        (server.requests().len(), done)
    };
    let (requests, done) = rounds("3", &["--json"]);
    let done = done.exits(2);
    let json = done.json();
    assert_eq!(requests, 4);
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("partial"), &json!("llm_done")));
    assert_eq!(json["quality_gates"][0]["passed"], false);
    assert!(json["quality_gates"][0]["output"].as_str().unwrap().contains("not there"), "{json}");
    let (requests, done) = rounds("0", &[]);
    assert_eq!((requests, done.exits(2).stderr.contains("Gate is done: did not pass")), (1, true));
}

#[test]
fn s18_an_optional_gate_is_told_and_keeps_nobody() {
    let server = Server::done();
    let config = "guardrails: {quality_gates: [{name: style, command: 'exit 1', required: false}]}\n";
    let done = Lab::new().config(config).run(&server, &[]).exits(0);
    assert!(done.stderr.contains("Gate style: did not pass (optional)"), "{}", done.stderr);
    assert!(done.stderr.contains("Agent completed (1 step)"), "{}", done.stderr);
}

#[test]
fn s18_a_check_of_the_command_line_is_a_required_gate_and_a_dry_run_has_none() {
    let server = Server::start(&format!("turns: [{{text: done}}, {WRITE}, {{text: done}}]"));
    let lab = Lab::new().config("guardrails: {enabled: false, quality_gates: [{command: 'exit 1'}]}\n");
    let done = lab.run_yolo(&server, &["--check", "test -f done", "--json"]).exits(0);
    assert_eq!(server.requests().len(), 3);
    assert_eq!(done.json()["quality_gates"].as_array().unwrap().len(), 1);
    let server = Server::done();
    let done = Lab::new().run(&server, &["--check", "touch made", "--dry-run", "--json"]).exits(0);
    assert_eq!(done.json()["quality_gates"], json!(null));
    let partial = Server::start(&format!("turns: [{}]", ["{text: done}"; 4].join(", ")));
    Lab::new().run(&partial, &["--check", "false", "--exit-code-on-partial", "7"]).exits(7);
}

#[test]
fn s18_a_gate_that_hangs_is_ended_and_does_not_outlast_the_run() {
    let config = "guardrails: {quality_gates: [{command: 'sleep 1000', timeout: 1}], max_gate_rounds: 0}\n";
    let server = Server::done();
    let json = Lab::new().config(config).run(&server, &["--json"]).exits(2).json();
    assert!(json["quality_gates"][0]["output"].as_str().unwrap().contains("longer than its 1 s"), "{json}");
    let server = Server::start("turns: [{text: done}, {text: so far}]");
    let late = Lab::new().run(&server, &["--check", "sleep 1000", "--timeout", "3", "--json"]).exits(5);
    assert_eq!(late.json()["stop_reason"], "timeout");
}

#[test]
fn s18_a_run_that_was_killed_in_a_gate_can_be_replayed() {
    let server = Server::done();
    let lab = Lab::new();
    let running = lab.start_run(&server, &["--check", "touch began; sleep 1000"]);
    lab.wait_for_file("began");
    running.signal(Signal::KILL);
    running.finish();
    let replayed = lab.agent(&["replay"]).exits(0);
    assert!(replayed.stdout.contains("killed"), "{}", replayed.stdout);
}

#[test]
fn s18_the_gates_of_a_project_do_not_run_before_it_is_trusted() {
    let server = Server::done();
    let lab = Lab::new()
        .file(".agent/config.yaml", "guardrails: {quality_gates: [{command: 'touch ran; false'}]}\n");
    lab.run(&server, &[]).exits(0);
    assert!(!lab.exists("ran"));
    let server = Server::start(&format!("turns: [{}]", ["{text: done}"; 4].join(", ")));
    lab.run(&server, &["--trust-workspace"]).exits(2);
    assert!(lab.exists("ran"));
}

#[test]
fn s18_a_structured_answer_waits_for_the_gates_too() {
    let server = Server::start(&format!("turns: [{{text: '{{}}'}}, {WRITE}, {{text: '{{\"a\": 1}}'}}]"));
    let lab = Lab::new().config(GATE).file("schema.json", r#"{"type": "object"}"#);
    let done = lab.run_yolo(&server, &["--output-schema", "schema.json", "--json"]).exits(0);
    assert_eq!(done.json()["output"], json!({"a": 1}));
}
