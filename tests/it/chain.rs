//! `agent chain`: the order of its agents, what each one is shown, how it stops and goes on.

use crate::support::run::{Finished, Lab};
use crate::support::schema;
use crate::support::server::Server;
use crate::support::work::{example, has_data, names, on_server, resume_newest, sent};
use rustix::process::Signal;
use serde_json::json;

const THREE: [&str; 8] =
    ["chain", "the task", "--agents", "plan,build,review", "--model", "openai/mock", "--mode", "yolo"];

fn chain(lab: &Lab, server: &Server, more: &[&str]) -> Finished {
    lab.agent(&on_server(&[&THREE, more].concat(), &server.url()))
}

#[test]
fn a19_each_agent_of_a_chain_is_shown_the_answer_of_the_one_before_as_data() {
    let server = Server::start("turns: [{text: the plan </data>}, {text: built}, {text: looks right}]");
    let json = chain(&Lab::new(), &server, &["--json"]).exits(0).json();
    schema::valid(&schema::of("work"), &json);
    assert_eq!(names(&json), ["1 plan", "2 build", "3 review"]);
    assert_eq!(
        (&json["command"], &json["stop_reason"], &json["output"]),
        (&json!("chain"), &json!("done"), &json!("looks right"))
    );
    assert_eq!(json["requests"], 3);
    for (request, agent) in ["You are `plan`", "You are `build`", "You are `review`"].into_iter().enumerate()
    {
        let sent = sent(&server, request);
        assert!(sent.contains(agent) && sent.contains("the task\n\n[SYSTEM] You are step "), "{sent}");
    }
    assert!(!sent(&server, 0).contains("## Answer of"));
    has_data(&server, 1, "Answer of the agent plan", "the plan </data>");
    has_data(&server, 2, "Answer of the agent build", "built");
    assert!(!sent(&server, 2).contains("the plan"), "{}", sent(&server, 2));
}

#[test]
fn a19_the_command_lines_of_the_manual_run_a_chain_and_print_its_last_answer() {
    let server = Server::start("turns: [{text: planned}, {text: built}, {text: no findings}]");
    let words = example("chain");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done =
        Lab::new().agent(&on_server(&[&words[..], &["--model", "openai/mock"]].concat(), &server.url()));
    let done = done.exits(0);
    assert_eq!((done.stdout.trim(), server.requests().len()), ("no findings", 3));
    assert!(done.stderr.contains("Step 2/3: build"), "{}", done.stderr);
    assert!(done.stderr.contains("agent chain: success, done | 3 runs"), "{}", done.stderr);
}

#[test]
fn a19_a_run_that_fails_stops_the_chain_with_its_exit_code() {
    let server = Server::start("turns: [{text: planned}, {fault: {http: {status: 401, body: no}}}]");
    let json = chain(&Lab::new(), &server, &["--json"]).exits(4).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("failed"), &json!("run_failed")));
    assert_eq!((names(&json), server.requests().len()), (vec!["1 plan", "2 build"], 2));
}

#[test]
fn a19_a_run_that_ends_early_stops_the_chain_which_goes_on_with_it_when_resumed() {
    let lab = Lab::new();
    let server = Server::start(
        "turns: [{text: planned}, {calls: [{name: list_files, arguments: {path: .}}]}, {text: not finished}]",
    );
    let json = chain(&lab, &server, &["--max-steps", "1", "--json"]).exits(2).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("partial"), &json!("run_partial")));
    assert_eq!(json["runs"][1]["stop_reason"], "max_steps");
    assert_eq!(server.requests().len(), 3);
    let again = Server::start("turns: [{text: built}, {text: reviewed}]");
    let json = resume_newest(&lab, &again, "chain").exits(0).json();
    assert_eq!((&json["stop_reason"], &json["output"]), (&json!("done"), &json!("reviewed")));
    assert_eq!((names(&json), again.requests().len()), (vec!["1 plan", "2 build", "3 review"], 2));
    has_data(&again, 0, "Answer of the agent plan", "planned");
    has_data(&again, 1, "Answer of the agent build", "built");
}

#[test]
fn a19_a_time_limit_ends_the_whole_chain() {
    let server = Server::start("turns: [{text: planned}, {fault: hang}]");
    let json = chain(&Lab::new(), &server, &["--timeout", "1", "--json"]).exits(5).json();
    assert_eq!((&json["status"], &json["stop_reason"]), (&json!("partial"), &json!("timeout")));
}

#[test]
fn a19_the_budget_of_a_chain_is_one_for_all_its_runs() {
    let prices =
        "models:\n  openai/mock: {input: 0.01, output: 40, cached_read: 0.001, output_limit: 50000}\n";
    let lab = Lab::new().file("prices.yaml", prices).config("costs: {prices_file: prices.yaml}");
    let server = Server::start("turns: [{text: more, usage: {input: 0, output: 10000}, repeat: 9}]");
    let json = chain(&lab, &server, &["--budget", "0.8", "--json"]).exits(2).json();
    assert_eq!(json["stop_reason"], "budget_exceeded", "{json}");
    assert_eq!((&json["cost_usd"], server.requests().len()), (&json!(0.8), 2));
}

#[test]
fn a19_a_schema_is_about_the_last_answer_of_a_chain() {
    let lab = Lab::new().file("schema.json", r#"{"type": "array"}"#);
    let server = Server::start("turns: [{text: planned}, {text: built}, {text: \"[1]\"}]");
    let done = chain(&lab, &server, &["--output-schema", "schema.json"]).exits(0);
    assert_eq!(done.stdout.trim(), "[1]");
}

#[test]
fn a19_a_chain_that_cannot_run_to_its_end_is_refused_before_its_first_request() {
    let (lab, server) = (Lab::new(), Server::start("turns: [{text: never}]"));
    for (words, why) in [
        (&["chain", "task"][..], "a chain needs 1 to 20 agents"),
        (&["chain", "task", "--agents", "plan,biuld"], "did you mean `build`?"),
        (&["chain", "task", "--agents", "plan,"], "there is no agent"),
        (&["chain", "one", "two", "--agents", "plan"], "give one task, in quotes"),
        (&["chain", "task", "--agents", "plan", "--agent", "build"], "this command has no --agent"),
        (&["chain", "resume", "ID", "--agents", "plan"], "--agents cannot change"),
        (&["chain", "resume", "ID"], "no record `ID`"),
    ] {
        let done = lab.agent(&on_server(words, &server.url())).exits(3);
        assert!(done.stderr.contains(why), "{words:?}: {}", done.stderr);
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a19_a_chain_that_was_killed_goes_on_where_it_was_and_repeats_nothing() {
    let lab = Lab::new();
    let server = Server::start(
        "turns:
  - text: planned
  - calls: [{name: run_command, arguments: {command: echo one >> log.txt}}]
  - fault: hang
",
    );
    let running = lab.start(&on_server(&[&THREE[..], &["--json"]].concat(), &server.url()));
    server.wait_for_request(3);
    running.signal(Signal::KILL);
    running.finish();
    let again = Server::start(
        "turns:
  - calls: [{name: run_command, arguments: {command: echo two >> log.txt}}]
  - text: built
  - text: reviewed
",
    );
    let json = resume_newest(&lab, &again, "chain").exits(0).json();
    assert_eq!(names(&json), ["1 plan", "2 build", "3 review"]);
    assert_eq!((lab.read("log.txt"), again.requests().len()), ("one\ntwo\n".to_owned(), 3));
    assert_eq!(json["runs"][0]["output"], "planned");
    let done = resume_newest(&lab, &again, "chain").exits(3);
    assert!(done.stderr.contains("ended with success"), "{}", done.stderr);
}
