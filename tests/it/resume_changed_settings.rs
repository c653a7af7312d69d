//! A session that goes on otherwise than it was: with other tools, another model or agent, other limits.

use crate::support::kernel::{confines, without_warning};
use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::Server;
use serde_json::Value;

const READ: &str = "  - calls: [{name: read_file, arguments: {path: a.txt}}]\n";

/// A laboratory in which a session has had its first run, with these arguments and this end.
fn begun(args: &[&str], code: i32) -> Lab {
    let lab = Lab::with_a_txt();
    lab.run(&Server::start(&format!("turns:\n{READ}  - text: first\n")), args).exits(code);
    lab
}

/// What stands in the first request as messages of the user.
fn told(server: &Server) -> Vec<String> {
    server.requests()[0].texts("user")
}

fn offered(server: &Server) -> Vec<String> {
    let tools = server.requests()[0].body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

/// `agent resume --last` with another model.
fn with_model(lab: &Lab, model: &str, server: &Server, more: &[&str]) -> Finished {
    let url = server.url();
    let args = ["resume", "--last", "more", "--model", model, "--api-base", &url, "--api-key", KEY];
    lab.agent(&[&args[..], more].concat())
}

/// Whether the person and the model were told of other tools, each in these words.
#[track_caller]
fn tools_are_told(done: &Finished, server: &Server, change: &str) {
    let words = format!("the tools have changed since the previous run; the model is notified: {change}");
    assert!(done.stderr.contains(&words), "{change}:\n{}", done.stderr);
    let told = told(server);
    let note = format!("[SYSTEM] Your tools have changed since your last step ({change}). Call only");
    let at = told.iter().position(|text| text.starts_with(&note));
    assert_eq!(at, Some(told.len() - 2), "before the prompt: {told:?}");
}

#[test]
fn o15_tools_that_a_configuration_takes_away_are_told_once_to_person_and_model() {
    let lab = begun(&[], 0).config("commands: {enabled: false}\n");
    let server = Server::done();
    let done = lab.resume(&server, &["go on"]).exits(0);
    tools_are_told(&done, &server, "no longer offered: command_output, run_command, stop_command");
    assert!(!offered(&server).contains(&"run_command".to_owned()));

    let server = Server::done();
    let done = lab.resume(&server, &["and on"]).exits(0);
    assert!(!without_warning(&done.stderr).contains("warning"), "{}", done.stderr);
    let notes = told(&server).iter().filter(|text| text.starts_with("[SYSTEM] Your tools")).count();
    assert_eq!(notes, 1, "{:?}", told(&server));
}

#[test]
fn o15_tools_of_another_agent_go_and_come_back() {
    let lab = begun(&[], 0);
    let server = Server::done();
    let done = lab.resume(&server, &["plan it", "--agent", "plan"]).exits(0);
    tools_are_told(
        &done,
        &server,
        "no longer offered: apply_patch, command_output, delete_file, dispatch_subagent, edit_file, run_command, stop_command, todo, write_file",
    );
    let server = Server::done();
    let done = lab.resume(&server, &["do it", "--agent", "build", "--json"]).exits(0);
    tools_are_told(
        &done,
        &server,
        "new: apply_patch, command_output, delete_file, dispatch_subagent, edit_file, run_command, stop_command, todo, write_file",
    );
}

#[test]
fn o15_the_tools_for_edits_of_another_model_are_told() {
    let lab = begun(&[], 0);
    let server = Server::done();
    let done = with_model(&lab, "openai/gpt-5-mock", &server, &[]).exits(0);
    tools_are_told(&done, &server, "no longer offered: edit_file");
    let server = Server::done();
    let done = with_model(&lab, "openai/grok-mock", &server, &[]).exits(0);
    tools_are_told(&done, &server, "no longer offered: apply_patch; new: edit_file");
}

#[test]
fn o15_a_session_with_the_same_tools_goes_on_without_a_word() {
    let lab = begun(&[], 0);
    let server = Server::done();
    let done = lab.resume(&server, &["go on"]).exits(0);
    assert!(!without_warning(&done.stderr).contains("warning"), "{}", done.stderr);
    assert_eq!(told(&server), ["task", "go on"]);
}

#[test]
fn resume_reports_the_settings_that_differ_from_the_previous_run() {
    let lab = begun(&["--mode", "confirm-all", "--max-steps", "7", "--sandbox", "off"], 0);
    let server = Server::done();
    let more = ["--agent", "review", "--max-steps", "3", "--json"];
    let done = with_model(&lab, "openai/other", &server, &more).exits(0);
    let line =
        done.stderr.lines().find(|line| line.contains("settings differ from the previous run")).unwrap();
    for change in [
        "agent review (before: build)",
        "model openai/other (before: openai/mock)",
        "mode yolo (before: confirm-all)",
        "step limit 3 (before: 7)",
    ] {
        assert!(line.contains(change), "{change}: {line}");
    }
    assert_eq!(
        line.contains("(before: none)"),
        confines(),
        "where nothing confines it was none before too: {line}"
    );
    assert_eq!(server.requests()[0].body["model"], "other");
    assert_eq!(done.json()["model"], "openai/other");
}

#[test]
fn resume_without_an_id_or_last_is_refused() {
    let done = Lab::new().agent(&["resume", "--json"]).exits(3);
    let message = done.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`agent resume ID` or `agent resume --last`"), "{message}");
}

/// The document of a run that reached this limit.
#[track_caller]
fn stopped(done: &Finished, reason: &str, limit: &str) -> Value {
    let json = done.json();
    assert_eq!((json["stop_reason"].as_str(), json["limit"].as_str()), (Some(reason), Some(limit)));
    json
}

#[test]
fn l05_each_run_of_a_session_has_its_own_steps() {
    let lab = begun(&["--max-steps", "1"], 2);
    let reads = format!("turns:\n{}  - text: done\n", READ.repeat(3));
    let done = lab.resume(&Server::start(&reads), &["go on", "--max-steps", "2", "--json"]).exits(2);
    let json = stopped(&done, "max_steps", "steps");
    assert_eq!(json["steps"], 3, "one and two, over both runs");
    lab.resume(&Server::start(&reads), &["go on"]).exits(0);
}

#[test]
fn l10_each_run_of_a_session_has_its_own_time() {
    let lab = Lab::new();
    let hangs = Server::start("turns: [{fault: hang}]");
    lab.run(&hangs, &["--timeout", "1"]).exits(5);
    lab.resume(&Server::done(), &["go on", "--timeout", "60"]).exits(0);
    let hangs = Server::start("turns: [{fault: hang}]");
    let done = lab.resume(&hangs, &["go on", "--timeout", "1", "--json"]).exits(5);
    stopped(&done, "timeout", "time");
}

#[test]
fn l13_each_run_of_a_session_has_its_own_tokens_and_calls() {
    let spends = "turns: [{text: first, usage: {input: 40000, output: 100}}]";
    let lab = Lab::with_a_txt().config("costs: {max_tokens: 50000, max_tool_calls: 1}\n");
    lab.run(&Server::start(spends), &[]).exits(0);
    let reads = format!("turns:\n{READ}  - text: done\n");
    let json = lab.resume(&Server::start(&reads), &["go on", "--json"]).exits(0).json();
    assert_eq!(json["tool_calls"], 1);
    lab.resume(&Server::start(&reads), &["go on"]).exits(0);
    let lab = lab.config("costs: {max_tokens: 100}\n");
    let server = Server::done();
    stopped(&lab.resume(&server, &["go on", "--json"]).exits(2), "budget_exceeded", "tokens");
    assert_eq!(server.requests().len(), 0);
}

// Fault C1: a resumed session started its script again.
#[test]
fn a_scripted_model_goes_on_with_its_script_whatever_its_requests_were_for() {
    let look = "calls: [{name: list_files, arguments: {path: '.'}}]";
    let subagent = "calls: [{name: dispatch_subagent, arguments: {task: look}}]";
    let down = "error: {kind: overloaded, retry_after: 0.001}";
    let next = "{text: next}";
    let cases: &[(&str, &[&str])] = &[
        (&format!("{{text: one}}, {next}"), &[]),
        (&format!("{{{down}}}, {{text: one}}, {next}"), &[]),
        (&format!("{{{look}, repeat: 3}}, {{text: one}}, {next}"), &[]),
        (&format!("{{{subagent}}}, {{text: seen}}, {{text: one}}, {next}"), &[]),
        (&format!("{{{look}}}, {{text: closing}}, {next}"), &["--max-steps", "1"]),
        (
            &format!("{{text: one}}, {{text: '{{\"completed\": true, \"confidence\": 1}}'}}, {next}"),
            &["--self-eval", "basic"],
        ),
        // The other model has given the answer, and gives the next one.
        (&format!("{{{down}, repeat: 4}}"), &[]),
    ];
    for (turns, args) in cases {
        let lab = Lab::new()
            .file("script.yaml", format!("turns: [{turns}]"))
            .file("other.yaml", "turns: [{text: one}, {text: next}]")
            .config("llm: {retries: 1, fallback: ['scripted:other.yaml']}");
        let run = ["run", "task", "--model", "scripted:script.yaml", "--mode", "yolo"];
        let first = lab.agent(&[&run[..], args].concat());
        assert!([0, 2].contains(&first.code.unwrap()), "{turns}: {}", first.stderr);
        let resumed = lab.agent(&["resume", "--last", "more", "--model", "scripted:script.yaml"]);
        assert_eq!(resumed.stdout, "next\n", "{turns}: {}", resumed.stderr);
    }
}
