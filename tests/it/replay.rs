//! `agent replay`: every run goes the same way again, and what does not is found where it begins.

use crate::support::run::{Finished, Lab};
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;

/// Runs of each kind: with 0 to 3 steps before what is special about them, and without and with hooks.
const VARIATIONS: usize = 8;

/// Hooks that speak to the model, and around the run.
const HOOKS: &str = "hooks:
  session_start: [{command: 'echo it begins'}]
  pre_llm_call: [{command: 'echo noted'}]
  post_tool_use: [{command: 'echo seen'}]
  session_end: [{command: 'true'}]
";

const READ: &str =
    "{calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input: 100, output: 10}}, ";

/// A kind of run.
#[derive(Clone, Copy, Default)]
struct Kind {
    /// How it ends.
    reason: &'static str,
    code: i32,
    /// The turns after those that only read.
    turns: &'static str,
    /// The configuration.
    config: &'static str,
    args: &'static [&'static str],
}

impl Kind {
    /// A lab and a server for the variation with this number.
    fn prepare(self, number: usize) -> (Lab, Server) {
        let hooks = if number < VARIATIONS / 2 { "" } else { HOOKS };
        let lab = Lab::with_a_txt().config(&format!("{}{hooks}", self.config));
        let turns = READ.repeat(number % 4) + self.turns;
        (lab, Server::start(&format!("turns: [{turns}]")))
    }

    /// Runs each variation and replays it.
    fn goes_the_same_way_again(self) {
        for number in 0..VARIATIONS {
            let (lab, server) = self.prepare(number);
            let steps = (number % 4 + 1).to_string();
            let args: Vec<&str> =
                self.args.iter().map(|arg| if *arg == "STEPS" { &steps } else { *arg }).collect();
            lab.run(&server, &args).exits(self.code);
            same(&lab, self.reason);
        }
    }
}

/// Replays the newest session, which ended for `reason`.
#[track_caller]
fn same(lab: &Lab, reason: &str) -> Finished {
    let done = lab.agent(&["replay"]).exits(0);
    assert!(done.stdout.contains(&format!("identical to its end ({reason})")), "{}", done.stdout);
    done
}

/// Replays the newest session, which goes another way; what is said.
#[track_caller]
fn differs(lab: &Lab) -> String {
    lab.agent(&["replay"]).exits(1).stdout
}

/// The records of the newest session.
fn records(lab: &Lab) -> Vec<Value> {
    let text = fs::read_to_string(lab.journal()).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].clone()).collect()
}

/// Writes `records` in place of those of the newest session, each with its checksum.
fn rewrite(lab: &Lab, records: &[Value]) {
    let mut text = String::new();
    for record in records {
        let crc = crc32fast::hash(record.to_string().as_bytes());
        writeln!(text, "{{\"crc\":\"{crc:08x}\",\"record\":{record}}}").unwrap();
    }
    fs::write(lab.journal(), text).unwrap();
    lab.forges();
}

/// Changes the first event of a type in the newest session.
#[track_caller]
fn plant(lab: &Lab, kind: &str, change: impl FnOnce(&mut Value)) {
    let mut all = records(lab);
    let record = all.iter_mut().find(|record| record["event"]["type"] == kind).unwrap();
    change(&mut record["event"]);
    rewrite(lab, &all);
}

/// The number of the `nth` event of a type.
fn seq_of(lab: &Lab, kind: &str, nth: usize) -> Value {
    let all = records(lab);
    all.iter().filter(|record| record["event"]["type"] == kind).nth(nth).unwrap()["seq"].clone()
}

/// A lab with a session of a reading step, a writing step and an answer.
fn worked() -> Lab {
    let lab = Lab::with_a_txt();
    let server = Server::start(&format!(
        "turns: [{READ}{{calls: [{{name: write_file, arguments: {{path: b.txt, content: new}}}}]}}, {{text: done}}]"
    ));
    lab.run_yolo(&server, &[]).exits(0);
    lab
}

#[test]
fn runs_that_the_model_ended_go_the_same_way_again() {
    Kind { reason: "llm_done", turns: "{text: done}", ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn runs_over_the_step_limit_go_the_same_way_again() {
    let turns = "{calls: [{name: read_file, arguments: {path: a.txt}}]}, {text: half}";
    let kind = Kind { reason: "max_steps", code: 2, turns, ..Kind::default() };
    Kind { args: &["--max-steps", "STEPS"], ..kind }.goes_the_same_way_again();
}

#[test]
fn runs_over_their_budget_go_the_same_way_again() {
    let turns = "{calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input: 100, output: 90000}}, {text: half}";
    let kind = Kind { reason: "budget_exceeded", code: 2, turns, ..Kind::default() };
    Kind { config: "costs: {max_tokens: 100000}\n", ..kind }.goes_the_same_way_again();
}

#[test]
fn runs_with_a_full_window_go_the_same_way_again() {
    let turns = "{calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input: 59900, output: 50}}, {text: never}";
    let kind = Kind { reason: "context_full", code: 2, turns, ..Kind::default() };
    Kind { config: "llm: {context_window: 60000}\n", ..kind }.goes_the_same_way_again();
}

#[test]
fn runs_out_of_time_go_the_same_way_again() {
    let turns = "{fault: hang}, {fault: hang}";
    let kind = Kind { reason: "timeout", code: 5, turns, ..Kind::default() };
    std::thread::scope(|scope| {
        for (number, limit) in (0..VARIATIONS).zip(["--timeout", "--step-timeout"].into_iter().cycle()) {
            scope.spawn(move || {
                let (lab, server) = kind.prepare(number);
                lab.run(&server, &[limit, "1"]).exits(5);
                same(&lab, "timeout");
            });
        }
    });
}

#[test]
fn runs_that_repeat_a_call_go_the_same_way_again() {
    let turns = "{calls: [{name: list_files, arguments: {}}], repeat: 5}, {text: half}";
    Kind { reason: "repeated_call", code: 2, turns, ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn runs_that_make_no_progress_go_the_same_way_again() {
    let turns = "{text: 'Now let me fix it:'}, {text: 'I will now fix it.'}";
    Kind { reason: "no_progress", code: 2, turns, ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn runs_with_calls_that_nobody_could_read_go_the_same_way_again() {
    let turns = "{calls: [{name: read_file, arguments: '{\"path\":'}], repeat: 3}, {text: half}";
    Kind { reason: "consecutive_errors", code: 2, turns, ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn runs_that_guardrails_and_hooks_ended_go_the_same_way_again() {
    let rule = "guardrails:
  text_rules:
    - {name: word, on: output, pattern: CODEWORD, message: no, action: block}
    - {name: halt, on: input, pattern: HALTWORD, message: stop, action: halt}
";
    let kind = Kind { reason: "guardrail", code: 2, config: rule, ..Kind::default() };
    Kind { turns: "{text: CODEWORD, repeat: 3}", ..kind }.goes_the_same_way_again();
    let halts = "{calls: [{name: run_command, arguments: {command: 'echo HALTWORD'}}]}, {text: never}";
    Kind { turns: halts, args: &["--mode", "yolo"], ..kind }.goes_the_same_way_again();
    for event in ["session_start", "pre_llm_call", "pre_tool_use", "post_tool_use"] {
        let hook = format!("hooks: {{{event}: [{{command: 'echo ''{{\"continue\": false}}'''}}]}}\n");
        let lab = Lab::with_a_txt().config(&hook);
        lab.run(&Server::start(&format!("turns: [{READ}{{text: never}}]")), &[]).exits(2);
        same(&lab, "guardrail");
    }
}

#[test]
fn runs_whose_answer_was_filtered_go_the_same_way_again() {
    let turns = "{text: oh, finish: content_filter}";
    Kind { reason: "content_filter", code: 2, turns, ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn runs_whose_answer_stayed_cut_go_the_same_way_again() {
    let turns = "{text: and on, finish: length, repeat: 9}";
    Kind { reason: "truncated", code: 2, turns, ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn runs_that_wait_for_an_answer_go_the_same_way_again() {
    let turns = "{calls: [{name: write_file, arguments: {path: b.txt, content: new}}, {name: read_file, arguments: {path: a.txt}}]}";
    let kind = Kind { reason: "awaiting_approval", code: 2, turns, ..Kind::default() };
    Kind { args: &["--approvals", "pause"], ..kind }.goes_the_same_way_again();
}

#[test]
fn a_run_that_goes_on_after_an_answer_goes_the_same_way_again() {
    let lab = Lab::with_a_txt();
    let turns = "turns: [{calls: [{name: write_file, arguments: {path: b.txt, content: new}}, {name: read_file, arguments: {path: a.txt}}]}]";
    let paused = lab.run(&Server::start(turns), &["--approvals", "pause", "--json"]).exits(2).json();
    lab.agent(&["approve", paused["awaiting_approval"][0]["id"].as_str().unwrap()]).exits(0);
    lab.resume(&Server::done(), &[]).exits(0);
    let told = same(&lab, "llm_done").stdout;
    assert!(told.contains("(awaiting_approval)") && told.contains("2 runs"), "{told}");
}

#[test]
fn runs_that_a_person_interrupted_go_the_same_way_again() {
    let kind = Kind { turns: "{fault: hang}", ..Kind::default() };
    for number in 0..VARIATIONS {
        let (lab, server) = kind.prepare(number);
        let run = lab.start_run(&server, &[]);
        server.wait_for_request(number % 4 + 1);
        run.signal(Signal::INT);
        run.finish().exits(130);
        same(&lab, "user_interrupt");
    }
    let lab = Lab::new();
    let command = "touch begun; sleep 600";
    let server = Server::start(&format!(
        "turns: [{{calls: [{{name: run_command, arguments: {{command: '{command}'}}}}]}}]"
    ));
    let run = lab.start_run(&server, &["--mode", "yolo"]);
    lab.wait_for_file("begun");
    run.signal(Signal::INT);
    run.finish().exits(130);
    same(&lab, "user_interrupt");
}

#[test]
fn runs_that_their_provider_failed_go_the_same_way_again() {
    let kind = Kind { reason: "llm_error", code: 1, config: "llm: {retries: 1}\n", ..Kind::default() };
    Kind { turns: "{error: {status: 503, retry_after: 0.01}, repeat: 2}", ..kind }.goes_the_same_way_again();
    Kind { turns: "{error: {status: 400}}", ..kind }.goes_the_same_way_again();
}

#[test]
fn runs_whose_key_was_refused_go_the_same_way_again() {
    let turns = "{error: {status: 401}}";
    Kind { reason: "auth_error", code: 4, turns, ..Kind::default() }.goes_the_same_way_again();
}

#[test]
fn a_retry_another_model_and_calls_beyond_the_cap_go_the_same_way_again() {
    let lab = Lab::with_a_txt()
        .config("llm: {retries: 1, fallback: [openai/second]}\ncosts: {max_tool_calls: 2}\n");
    let calls = "{name: read_file, arguments: {path: a.txt}}, ".repeat(4);
    let server = Server::start(&format!(
        "turns: [{{error: {{status: 503, retry_after: 0.01}}, repeat: 2}}, {{error: {{status: 429, retry_after: 0.01}}}}, {{calls: [{calls}]}}, {{text: half}}]"
    ));
    lab.run(&server, &[]).exits(2);
    same(&lab, "budget_exceeded");
}

#[test]
fn background_commands_and_structured_answers_go_the_same_way_again() {
    let lab = Lab::new().file("schema.json", r#"{"type": "object", "required": ["n"]}"#);
    let start = "{calls: [{name: run_command, arguments: {command: 'exit 3', background: true}}, {name: run_command, arguments: {command: 'sleep 600', background: true}}]}";
    let server = Server::start(&format!("turns: [{start}, {{text: none}}, {{text: '{{\"n\": 1}}'}}]"));
    lab.run_yolo(&server, &["--output-schema", "schema.json"]).exits(0);
    same(&lab, "llm_done");
}

#[test]
fn several_runs_with_an_undo_between_them_and_one_that_was_killed_go_the_same_way_again() {
    let lab = worked();
    lab.agent(&["undo"]).exits(0);
    let server = Server::start("turns: [{fault: hang}]");
    let run = lab.start_on(&server, &["resume", "--last", "more"]);
    server.wait_for_request(1);
    run.signal(Signal::KILL);
    run.finish();
    lab.resume(&Server::start(&format!("turns: [{READ}{{text: done}}]")), &[]).exits(0);
    let told = same(&lab, "llm_done").stdout;
    assert!(told.contains("up to where its process was killed") && told.contains("3 runs"), "{told}");
}

#[test]
fn nothing_happens_again_but_the_loop() {
    let lab = Lab::new();
    let server = Server::start(
        "turns: [{calls: [{name: run_command, arguments: {command: 'touch marker'}}]}, {text: done}]",
    );
    lab.run_yolo(&server, &[]).exits(0);
    fs::remove_file(lab.ws().join("marker")).unwrap();
    let (before, requests) = (fs::read(lab.journal()).unwrap(), server.requests().len());
    same(&lab, "llm_done");
    assert!(!lab.exists("marker"));
    assert_eq!((fs::read(lab.journal()).unwrap(), server.requests().len()), (before, requests));
}

#[test]
fn another_result_is_found_at_the_request_that_would_tell_it() {
    let lab = worked();
    plant(&lab, "tool_call_end", |event| event["result"]["text"] = json!("another file"));
    let told = differs(&lab);
    let at = format!("differs at event {}, step 2", seq_of(&lab, "step_start", 1));
    assert!(told.contains(&at) && told.contains("step_start, digest"), "{told}");
    assert!(told.contains("The request to the model differs"), "{told}");
}

#[test]
fn another_call_other_costs_and_another_end_are_found_where_they_stand() {
    let lab = worked();
    let before = records(&lab);
    plant(&lab, "model_response", |event| {
        event["message"]["parts"][0]["arguments"] = json!("{\"path\": \"c.txt\"}");
    });
    let at = format!("differs at event {}, step 1", seq_of(&lab, "tool_call_start", 0));
    let told = differs(&lab);
    assert!(told.contains(&at) && told.contains("tool_call_start, call.arguments"), "{told}");
    assert!(told.contains("a.txt") && told.contains("c.txt"), "{told}");

    rewrite(&lab, &before);
    plant(&lab, "run_end", |event| event["result"]["steps"] = json!(7));
    let told = differs(&lab);
    assert!(told.contains("run_end, result.steps\n  recorded: 7\n  now:      3\n"), "{told}");

    rewrite(&lab, &before);
    plant(&lab, "run_start", |event| event["bounds"]["limits"]["max_steps"] = json!(1));
    let told = differs(&lab);
    let at = format!("differs at event {}, step 2", seq_of(&lab, "step_start", 1));
    assert!(told.contains(&at) && told.contains("\"type\":\"closing\""), "{told}");
}

#[test]
fn what_a_hostile_journal_says_reaches_the_terminal_as_text() {
    let lab = worked();
    plant(&lab, "run_end", |event| event["result"]["output"] = json!("\u{1b}]0;title\u{7}\u{202e}"));
    let told = differs(&lab);
    assert!(
        told.contains("run_end, result.output") && !told.contains(['\u{1b}', '\u{7}', '\u{202e}']),
        "{told}"
    );
}

#[test]
fn a_journal_that_lacks_something_is_replayed_as_far_as_it_goes() {
    let lab = worked();
    let before = records(&lab);
    let lacking = before.iter().filter(|record| record["event"]["type"] != "step_end").cloned();
    rewrite(&lab, &lacking.collect::<Vec<_>>());
    let told = lab.agent(&["replay"]).exits(3).stdout;
    assert!(told.contains("identical up to event") && told.contains("which is missing"), "{told}");

    rewrite(&lab, &before);
    plant(&lab, "run_start", |event| drop(event.as_object_mut().unwrap().remove("bounds")));
    let told = lab.agent(&["replay"]).exits(3).stdout;
    assert!(told.contains("cannot be replayed exactly: its limits are not in the journal"), "{told}");
}

#[test]
fn a_session_that_was_handed_on_goes_the_same_way_elsewhere() {
    let lab = worked();
    let told = same(&lab, "llm_done").stdout;
    assert!(told.contains("the content of 3 of 3 requests"), "{told}");
    lab.agent(&["sessions", "export", &id(&lab), "-o", "whole"]).exits(0);
    lab.agent(&["sessions", "export", &id(&lab), "-o", "redacted", "--redact"]).exits(0);
    let elsewhere = Lab::new();
    for (file, compared) in [("whole", "3 of 3"), ("redacted", "3 of 3")] {
        let from = lab.ws().join(file);
        elsewhere.agent(&["sessions", "import", from.to_str().unwrap()]).exits(0);
        let told = same(&elsewhere, "llm_done").stdout;
        assert!(told.contains(&format!("the content of {compared} requests")), "{told}");
    }
    assert_eq!(elsewhere.journals().len(), 2, "the second has an id of its own");
}

#[test]
fn what_was_left_out_of_a_redacted_session_is_not_compared() {
    let lab = Lab::new();
    let said = json!({"turns": [{"text": format!("it is in {}", lab.ws().canonicalize().unwrap().display()), "finish": "length"}, {"text": "done"}]});
    lab.run(&Server::start(&said.to_string()), &[]).exits(0);
    lab.agent(&["sessions", "export", &id(&lab), "-o", "redacted", "--redact"]).exits(0);
    let (elsewhere, from) = (Lab::new(), lab.ws().join("redacted"));
    elsewhere.agent(&["sessions", "import", from.to_str().unwrap()]).exits(0);
    let told = same(&elsewhere, "llm_done").stdout;
    assert!(told.contains("the content of 1 of 2 requests"), "{told}");
}

#[test]
fn a_session_without_a_run_and_one_that_is_not_there_exit_3() {
    let done = Lab::new().agent(&["replay", "20200101-000000-abcdef"]).exits(3);
    assert!(done.stderr.contains("20200101-000000-abcdef"), "{}", done.stderr);
    let lab = worked();
    let start: Vec<Value> = records(&lab).into_iter().take(1).collect();
    rewrite(&lab, &start);
    let done = lab.agent(&["replay"]).exits(3);
    assert!(done.stderr.contains("this session has no run to replay"), "{}", done.stderr);
}

/// The id of the newest session.
fn id(lab: &Lab) -> String {
    lab.journal().parent().unwrap().file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn a_session_without_a_text_that_was_kept_beside_it_cannot_be_replayed() {
    let lab = Lab::new();
    let long = "x".repeat(100_000);
    let server = Server::start(&format!("turns: [{{text: {long}, finish: length}}, {{text: done}}]"));
    lab.run(&server, &[]).exits(0);
    same(&lab, "llm_done");
    fs::remove_dir_all(lab.journal().with_file_name("texts")).unwrap();
    let told = lab.agent(&["replay"]).exits(3).stderr;
    assert!(
        told.contains("cannot be replayed exactly") && told.contains("without its stored text"),
        "{told}"
    );
}

#[test]
fn an_earlier_conversation_and_other_tools_go_the_same_way_again() {
    let history = json!([{"role": "user", "content": "first"}, {"role": "assistant", "content": "second"}]);
    let lab = Lab::with_a_txt().file("history.json", history.to_string());
    let server = Server::start(&format!("turns: [{READ}{{text: done}}]"));
    lab.run(&server, &["--history", "history.json"]).exits(0);
    lab.resume(&Server::done(), &["--no-commands"]).exits(0);
    let told = same(&lab, "llm_done").stdout;
    assert!(told.contains("the content of 3 of 3 requests"), "{told}");
}
