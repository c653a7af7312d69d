//! The loop: finishing, limits, closing, interrupts.

use crate::support::run::Lab;
use crate::support::server::Server;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A script that reads `a.txt` `n` times and then says `text`.
fn reads(n: usize, text: &str) -> String {
    let read = "  - calls: [{name: read_file, arguments: {path: a.txt}}]\n".repeat(n);
    format!("turns:\n{read}  - text: {text}\n")
}

fn messages(body: &Value) -> &Vec<Value> {
    body["messages"].as_array().unwrap()
}

#[test]
fn l01_an_answer_without_tools_is_the_output_and_exits_0() {
    let server = Server::start("turns: [{text: hi}]");
    let done = Lab::with_a_txt().run(&server, &[]).exits(0);
    assert_eq!(done.stdout, "hi\n");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn l02_a_tool_call_and_its_result_go_back_with_one_id() {
    let server = Server::start(&reads(1, "done"));
    Lab::with_a_txt().run(&server, &[]).exits(0);
    let requests = server.requests();
    let sent = messages(&requests[1].body);
    let (call, result) = (&sent[sent.len() - 2], &sent[sent.len() - 1]);
    assert_eq!(call["role"], "assistant");
    assert_eq!(result["role"], "tool");
    assert_eq!(call["tool_calls"][0]["id"], result["tool_call_id"]);
    assert!(result["content"].as_str().unwrap().contains("alpha"));
}

#[test]
fn l03_results_stand_in_the_models_order_whatever_finishes_first() {
    let script = "turns:
  - calls:
      - {name: run_command, arguments: {command: 'read -r line <go; echo first'}}
      - {name: run_command, arguments: {command: 'echo >go'}}
  - text: done
";
    let lab = Lab::with_a_txt().config("tools: {parallel: all}\n");
    let _held_open = lab.pipe("go");
    let server = Server::start(script);
    lab.run_yolo(&server, &[]).exits(0);
    let requests = server.requests();
    let sent = messages(&requests[1].body);
    let calls = sent[sent.len() - 3]["tool_calls"].as_array().unwrap();
    assert_eq!(sent[sent.len() - 2]["tool_call_id"], calls[0]["id"]);
    assert_eq!(sent[sent.len() - 1]["tool_call_id"], calls[1]["id"]);
    assert!(sent[sent.len() - 2]["content"].as_str().unwrap().contains("first"));
}

#[test]
fn l04_text_beside_tool_calls_is_kept() {
    let script = "turns:
  - text: let me look
    calls: [{name: read_file, arguments: {path: a.txt}}]
  - text: done
";
    let server = Server::start(script);
    Lab::with_a_txt().run(&server, &[]).exits(0);
    let requests = server.requests();
    let assistant = messages(&requests[1].body).iter().find(|m| m["role"] == "assistant").unwrap();
    assert_eq!(assistant["content"], "let me look");
}

#[test]
fn l05_max_steps_asks_for_a_summary() {
    let server = Server::start(&reads(2, "half of it is done"));
    let done = Lab::with_a_txt().run(&server, &["--max-steps", "2", "--json"]).exits(2);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests[2].body.get("tools").is_none());
    let json = done.json();
    assert_eq!(json["stop_reason"], "max_steps");
    assert_eq!(json["status"], "partial");
    assert_eq!(json["limit"], "steps");
    assert_eq!(json["output"], "half of it is done");
    assert_eq!((&json["steps"], &json["requests"]), (&2.into(), &3.into()));
}

#[test]
fn l07_the_closing_message_begins_with_system_and_its_answer_is_the_output() {
    let server = Server::start(&reads(1, "summary"));
    let done = Lab::with_a_txt().run(&server, &["--max-steps", "1"]).exits(2);
    assert_eq!(done.stdout, "summary\n");
    let requests = server.requests();
    let last = messages(&requests[1].body).last().unwrap().clone();
    assert_eq!(last["role"], "user");
    assert!(last["content"].as_str().unwrap().starts_with("[SYSTEM] "));
}

#[test]
fn l08_a_closing_call_that_fails_gives_the_fixed_text() {
    let script = "turns:
  - calls: [{name: read_file, arguments: {path: a.txt}}]
  - error: {status: 400}
";
    let server = Server::start(script);
    let done = Lab::with_a_txt().run(&server, &["--max-steps", "1"]).exits(2);
    assert!(done.stdout.contains("max_steps"), "{}", done.stdout);
    assert!(done.stdout.contains("after 1 step"), "{}", done.stdout);
}

#[test]
fn l09_on_limit_stop_makes_no_extra_call() {
    let server = Server::start(&reads(3, "never said"));
    let lab = Lab::with_a_txt().config("loop: {on_limit: stop}\n");
    lab.run(&server, &["--max-steps", "2"]).exits(2);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn l10_the_total_timeout_ends_the_run_with_exit_5() {
    let script =
        format!("turns:\n{}", "  - calls: [{name: run_command, arguments: {command: sleep 30}}]\n".repeat(5));
    let server = Server::start(&script);
    let started = Instant::now();
    let done = Lab::with_a_txt().run_yolo(&server, &["--timeout", "1", "--json"]).exits(5);
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    let json = done.json();
    assert_eq!((&json["stop_reason"], &json["limit"]), (&"timeout".into(), &"time".into()));
}

#[test]
fn l11_a_model_call_over_the_step_timeout_is_abandoned() {
    let server = Server::start("turns: [{fault: hang}, {fault: hang}]");
    let started = Instant::now();
    Lab::with_a_txt().run(&server, &["--step-timeout", "1"]).exits(5);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn l17_an_answer_cut_by_its_length_is_continued_and_joined() {
    let script = "turns:
  - {text: a, finish: length}
  - {text: b}
";
    let server = Server::start(script);
    let done = Lab::with_a_txt().run(&server, &[]).exits(0);
    assert_eq!(done.stdout, "ab\n");
    assert_eq!(server.requests().len(), 2);
    let cut = format!("turns:\n{}", "  - {text: a, finish: length}\n".repeat(10));
    let server = Server::start(&cut);
    let done = Lab::with_a_txt().run(&server, &["--json"]).exits(2);
    assert_eq!(done.json()["stop_reason"], "truncated");
}

// Fault D8: `agent help exit-codes` describes both forms of a refusal.
#[test]
fn a_refused_request_is_a_failure_and_a_filtered_answer_is_partial_and_both_have_the_kind_refusal() {
    let in_answer = json!({"error": {"message": "Content Exists Risk", "code": 400}}).to_string();
    for (turn, code, status, reason) in [
        (json!({"error": {"status": 400, "message": "Content Exists Risk"}}), 1, "failed", "llm_error"),
        (json!({"fault": {"http": {"status": 200, "body": in_answer}}}), 1, "failed", "llm_error"),
        (json!({"text": "oh", "finish": "content_filter"}), 2, "partial", "content_filter"),
        (json!({"text": "oh", "finish": "refusal"}), 2, "partial", "content_filter"),
    ] {
        let server = Server::turns(json!([turn]));
        let json = Lab::with_a_txt().run(&server, &["--json"]).exits(code).json();
        assert_eq!((&json["status"], &json["stop_reason"]), (&json!(status), &json!(reason)));
        assert_eq!((&json["error"]["kind"], server.requests().len()), (&json!("refusal"), 1));
    }
}

#[test]
fn l18_a_filtered_answer_is_partial_with_its_reason() {
    let server = Server::start("turns: [{text: oh, finish: content_filter}]");
    let done = Lab::with_a_txt().run(&server, &["--json"]).exits(2);
    assert_eq!(done.json()["stop_reason"], "content_filter");
}

#[test]
fn l20_malformed_calls_in_a_row_end_the_run() {
    let script = format!("turns:\n{}", "  - calls: [{name: read_file, arguments: '{\"path\":'}]\n".repeat(5));
    let server = Server::start(&script);
    let done = Lab::with_a_txt().run(&server, &["--json"]).exits(2);
    assert_eq!(done.json()["stop_reason"], "consecutive_errors");
    assert!(server.requests().len() <= 4);
}

#[test]
fn l31_one_interrupt_ends_tools_and_exits_130() {
    let script = "turns:
  - calls: [{name: run_command, arguments: {command: 'echo $$ > pid; exec sleep 60'}}]
  - text: never
";
    let server = Server::start(script);
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &["--mode", "yolo"]);
    run.wait_for_stderr("run_command");
    let started = Instant::now();
    run.signal(Signal::INT);
    let done = run.finish().exits(130);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(done.stderr.to_lowercase().contains("interrupt"), "{}", done.stderr);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn l32_an_interrupt_aborts_the_request_in_flight() {
    let server = Server::start("turns: [{fault: hang}]");
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &[]);
    server.wait_for_request(1);
    let started = Instant::now();
    run.signal(Signal::INT);
    run.finish().exits(130);
    assert!(started.elapsed() < Duration::from_secs(3));
    server.wait_for_disconnect();
}

#[test]
fn l33_sigterm_is_like_an_interrupt_and_a_second_one_ends_at_once() {
    let server = Server::start("turns: [{fault: hang}]");
    let lab = Lab::with_a_txt();
    let run = lab.start_run(&server, &[]);
    server.wait_for_request(1);
    run.signal(Signal::TERM);
    run.finish().exits(130);

    let script =
        "turns: [{calls: [{name: run_command, arguments: {command: 'trap \"\" INT TERM; sleep 60'}}]}]";
    let server = Server::start(script);
    let run = lab.start_run(&server, &["--mode", "yolo"]);
    run.wait_for_stderr("run_command");
    run.signal(Signal::INT);
    run.signal(Signal::INT);
    run.finish().exits(130);
}

#[test]
fn l40_the_counters_agree_with_what_was_sent() {
    let script = "turns:
  - calls: [{name: read_file, arguments: {path: a.txt}}, {name: read_file, arguments: {path: a.txt}}]
    usage: {input: 100, output: 10}
  - text: done
    usage: {input: 200, output: 20}
";
    let server = Server::start(script);
    let json = Lab::with_a_txt().run(&server, &["--json"]).exits(0).json();
    assert_eq!(json["steps"], server.requests().len());
    assert_eq!(json["requests"], 2);
    assert_eq!(json["tool_calls"], 2);
    assert_eq!(json["tools_used"].as_array().unwrap().len(), 2);
    assert_eq!(json["usage"]["input"], 300);
    assert_eq!(json["usage"]["output"], 30);
}

#[test]
fn k12_the_prefix_of_every_request_is_the_same_bytes() {
    let server = Server::start(&reads(3, "done"));
    Lab::with_a_txt().file("AGENTS.md", "be kind\n").run(&server, &[]).exits(0);
    let requests = server.requests();
    let first = &requests[0].body;
    let names = requests[0].tools();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(names, sorted);
    for request in &requests {
        assert_eq!(request.body["tools"], first["tools"]);
        assert_eq!(messages(&request.body)[..2], messages(first)[..2]);
    }
    let again = Server::start("turns: [{text: hi}]");
    let other = Lab::with_a_txt().file("AGENTS.md", "be kind\n");
    other.run(&again, &[]).exits(0);
    assert_eq!(messages(&again.requests()[0].body)[0], messages(first)[0]);
}
