//! One task over every wire format, through the binary: read, edit, run, answer, streamed and not.

use crate::support::run::{Finished, KEY, Lab};
use crate::support::server::{Recorded, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How the server of a format is named, the headers that hold the key and what comes before it, and whether it tells
/// apart what it read from its cache and what was reasoning.
struct Row {
    model: &'static str,
    key: (&'static str, &'static str),
    divides: bool,
}

const ROWS: [Row; 5] = [
    Row { model: "openai/m", key: ("authorization", "Bearer "), divides: true },
    Row { model: "anthropic/claude-m", key: ("x-api-key", ""), divides: true },
    Row { model: "ollama/m", key: ("authorization", "Bearer "), divides: false },
    Row { model: "gemini/m", key: ("x-goog-api-key", ""), divides: true },
    Row { model: "openai-responses/m", key: ("authorization", "Bearer "), divides: true },
];

const TASK: &str = "turns:
- thinking: I read it first.
  text: I look.
  chunk: 3
  calls: [{name: read_file, arguments: {path: greet.sh}}, {name: list_files, arguments: {}}]
  expect: {stream: STREAM, last_role: user}
  usage: {input: 100, cached_read: 40, output: 20, reasoning: 5}
- calls: [{name: edit_file, arguments: {path: greet.sh, old_str: hullo, new_str: 'hello, wörld'}}]
  chunk: 1
  expect: {last_role: tool, last_contains: [hullo, greet.sh]}
  usage: {input: 30, cached_read: 150, output: 10}
- calls: [{name: run_command, arguments: {command: sh greet.sh}}]
  usage: {input: 20, cached_read: 180, output: 8}
- text: It says hello now.
  chunk: 2
  expect: {last_role: tool, last_contains: ['hello, wörld'], tools: true}
  usage: {input: 10, cached_read: 200, output: 6}
";

/// Runs the task of a script with `model`; gives back what came of it and what was asked.
pub fn play(model: &str, lab: &Lab, script: &str, more: &[&str]) -> (Finished, Vec<Recorded>) {
    let server = Server::start(script);
    let done = lab.run_model(model, &server.url(), &[&["--mode", "yolo"], more].concat());
    (done, server.requests())
}

/// A workspace, and one price for every format, the same for what comes from a cache: not all of them tell it apart.
fn with_prices() -> Lab {
    let lab = Lab::new().file("greet.sh", "echo hullo\n");
    let priced = ROWS.iter().map(|row| (row.model, json!({"input": 3, "output": 15})));
    let prices = json!({ "models": priced.collect::<BTreeMap<_, _>>() });
    std::fs::write(lab.outside().join("prices.json"), prices.to_string()).unwrap();
    let file = lab.outside().join("prices.json");
    lab.config(&json!({"costs": {"prices_file": file}}).to_string())
}

/// The events of the newest session, without what differs from run to run.
fn events(lab: &Lab) -> Vec<Value> {
    let journal = std::fs::read_to_string(lab.journal()).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records
        .map(|line| {
            let event = &line["record"]["event"];
            let kept = ["type", "usage", "cost_usd", "finish", "name", "arguments", "is_error"];
            Value::Object(kept.iter().map(|key| ((*key).to_owned(), event[*key].clone())).collect())
        })
        .collect()
}

/// The events as they are where a server counts the whole prompt and the whole answer, each in one.
fn undivided(events: &[Value]) -> Vec<Value> {
    let mut events = events.to_vec();
    for usage in events.iter_mut().filter_map(|event| event["usage"].as_object_mut()) {
        let prompt = usage["input"].as_u64().unwrap() + usage["cached_read"].as_u64().unwrap();
        usage.extend([("input".into(), json!(prompt)), ("cached_read".into(), json!(0))]);
        usage.insert("reasoning".into(), json!(0));
    }
    events
}

#[test]
fn o07_the_same_task_passes_over_every_format_with_equal_usage_cost_and_events() {
    for (stream, more) in [("true", [].as_slice()), ("false", &["--no-stream"]), ("false", &["--json"])] {
        let mut first = None;
        for Row { model, key: (name, prefix), divides } in &ROWS {
            let lab = with_prices();
            let (done, requests) = play(model, &lab, &TASK.replace("STREAM", stream), more);
            let done = done.exits(0);
            assert!(done.stdout.contains("It says hello now."), "{model}: {}", done.stdout);
            assert_eq!(lab.read("greet.sh"), "echo hello, wörld\n", "{model}");
            assert_eq!(requests.len(), 4, "{model}");
            for request in &requests {
                assert_eq!(request.headers[*name], format!("{prefix}{KEY}"), "{model}");
            }
            let events = events(&lab);
            let usage: Vec<_> = events.iter().filter(|event| event["usage"].is_object()).collect();
            let cached = if *divides { 40 } else { 0 };
            assert!(usage.len() >= 4 && usage[0]["usage"]["cached_read"] == cached, "{usage:?}");
            assert!(
                usage.iter().all(|event| event["cost_usd"].is_number() || event["type"] == "run_end"),
                "{model}"
            );
            let first = first.get_or_insert_with(|| events.clone());
            let expected = if *divides { first.clone() } else { undivided(first) };
            assert_eq!(events, expected, "{model} {more:?}");
        }
    }
}

#[test]
fn lr1_overload_is_retried_and_spent_credit_is_not_over_every_format() {
    for row in &ROWS {
        let script = "turns:\n- error: {status: 529, retry_after: 0.01}\n- text: done";
        let (done, requests) = play(row.model, &with_prices(), script, &[]);
        assert_eq!((done.exits(0).stdout.trim(), requests.len()), ("done", 2), "{}", row.model);
        let script = "turns:\n- error: {status: 402, message: no credit}\n- text: done";
        let (done, requests) = play(row.model, &with_prices(), script, &[]);
        assert!(done.code != Some(0) && done.stderr.contains("no credit"), "{}: {}", row.model, done.stderr);
        assert_eq!(requests.len(), 1, "{}", row.model);
    }
}

#[test]
fn lr5_a_cut_stream_is_retried_before_its_first_text_over_every_format() {
    for row in &ROWS {
        let (done, requests) =
            play(row.model, &with_prices(), "turns:\n- {text: x, fault: {cut: 0}}\n- text: done", &[]);
        assert_eq!((done.exits(0).stdout.trim(), requests.len()), ("done", 2), "{}", row.model);
    }
}

#[test]
fn l05_the_closing_call_of_every_format_offers_no_tools() {
    let script = "turns:
- calls: [{name: read_file, arguments: {path: greet.sh}}]
- {text: half done, expect: {tools: false, last_role: user, contains: [hullo]}}";
    for row in &ROWS {
        let (done, _) = play(row.model, &with_prices(), script, &["--max-steps", "1"]);
        assert_eq!(done.exits(2).stdout.trim(), "half done", "{}", row.model);
    }
}

#[test]
fn l17_a_cut_answer_is_continued_in_every_format() {
    for row in &ROWS {
        let script = "turns:\n- {text: 'one ', finish: length}\n- text: two";
        let (done, _) = play(row.model, &with_prices(), script, &[]);
        assert_eq!(done.exits(0).stdout.trim(), "one two", "{}", row.model);
    }
}

#[test]
fn signed_reasoning_goes_back_with_its_call_to_anthropic() {
    for more in [[].as_slice(), &["--no-stream"]] {
        let (done, requests) =
            play("anthropic/m", &with_prices(), &TASK.replace("stream: STREAM, ", ""), more);
        done.exits(0);
        let last = &requests[3].body;
        let blocks = last["messages"][1]["content"].as_array().unwrap();
        assert_eq!(
            blocks[0],
            json!({"type": "thinking", "thinking": "I read it first.", "signature": "scripted"})
        );
        let kinds: Vec<_> = blocks.iter().map(|block| block["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["thinking", "text", "tool_use", "tool_use"]);
        let results = last["messages"][2]["content"].as_array().unwrap();
        assert!(results.len() == 2 && results.iter().all(|block| block["type"] == "tool_result"));
        assert_eq!(requests[3].headers["anthropic-version"], "2023-06-01");
        assert!(!requests[3].headers.contains_key("authorization"));
    }
}

#[test]
fn signatures_go_back_with_their_calls_to_gemini() {
    for (more, method) in
        [([].as_slice(), "streamGenerateContent?alt=sse"), (&["--no-stream"], "generateContent")]
    {
        let (done, requests) = play("gemini/m", &with_prices(), &TASK.replace("stream: STREAM, ", ""), more);
        done.exits(0);
        let last = &requests[3];
        assert_eq!(last.target, format!("POST /v1/models/m:{method}"));
        assert!(!last.headers.contains_key("authorization"));
        let contents = last.body["contents"].as_array().unwrap();
        assert_eq!(
            contents[1]["parts"],
            json!([
                {"text": "I look."},
                {"functionCall": {"id": "call_1_1", "name": "read_file", "args": {"path": "greet.sh"}},
                    "thoughtSignature": "c2lnbmVk"},
                {"functionCall": {"id": "call_1_2", "name": "list_files", "args": {}}},
            ])
        );
        let results = contents[2]["parts"].as_array().unwrap();
        let names: Vec<_> = results.iter().map(|part| &part["functionResponse"]["name"]).collect();
        assert_eq!(
            (names.as_slice(), &contents[2]["role"]),
            ([&json!("read_file"), &json!("list_files")].as_slice(), &json!("user"))
        );
        assert!(requests[3].bytes.starts_with(requests[2].bytes.strip_suffix(b"]}").unwrap()));
    }
}

#[test]
fn what_gemini_answers_instead_of_an_answer_is_told() {
    let http =
        |status: u16, body: &Value| format!("- fault: {{http: {{status: {status}, body: '{body}'}}}}\n");
    let details = |detail: Value| json!({"error": {"code": 0, "message": "no way", "details": [detail]}});
    let wait = http(429, &details(json!({"retryDelay": "0.01s"})));
    let waiting = with_prices();
    let (done, requests) = play("gemini/m", &waiting, &format!("turns:\n{wait}{wait}- text: done"), &[]);
    assert_eq!((done.exits(0).stdout.trim(), requests.len()), ("done", 3));
    let journal = std::fs::read_to_string(waiting.journal()).unwrap();
    assert_eq!(journal.matches("\"delay_ms\":10,").count(), 2, "{journal}");
    for (turn, word) in [
        (http(400, &details(json!({"reason": "API_KEY_INVALID"}))), "--api-key"),
        (
            http(429, &details(json!({"violations": [{"quotaId": "RequestsPerDay"}]}))),
            "waiting does not help",
        ),
        (http(200, &json!({"promptFeedback": {"blockReason": "SAFETY"}})), "blocked the prompt: `SAFETY`"),
        ("- {text: '', finish: BRAND_NEW, repeat: 2}\n".into(), "BRAND_NEW"),
        ("- {text: some, finish: BRAND_NEW}\n".into(), "BRAND_NEW"),
    ] {
        let (done, requests) = play("gemini/m", &with_prices(), &format!("turns:\n{turn}- text: done"), &[]);
        assert!(done.code != Some(0) && done.stderr.contains(word), "{word}: {}", done.stderr);
        assert!(requests.len() <= 2, "{word}");
    }
    for turn in ["- {text: '', finish: MALFORMED_FUNCTION_CALL}", "- text: ''"] {
        let (done, requests) =
            play("gemini/m", &with_prices(), &format!("turns:\n{turn}\n- text: done"), &[]);
        assert_eq!((done.exits(0).stdout.trim(), requests.len()), ("done", 2), "{turn}");
    }
}

#[test]
fn l19_broken_arguments_are_told_and_do_not_spoil_the_conversation_in_any_format() {
    let script = "turns:
- calls: [{name: 'read file', arguments: '{\"path\":'}, {name: read_file, arguments: '{\"path\":'}]
- {text: done, expect: {last_role: tool, last_contains: [JSON]}}";
    for (row, more) in ROWS.iter().flat_map(|row| [(row, [].as_slice()), (row, &["--no-stream"])]) {
        let (done, _) = play(row.model, &with_prices(), script, more);
        assert_eq!(done.exits(0).stdout.trim(), "done", "{}", row.model);
    }
}

#[test]
fn a_session_goes_on_with_another_format() {
    for (row, next) in ROWS.iter().zip(ROWS.iter().skip(1).chain(&ROWS)) {
        let lab = with_prices();
        let script = "turns:\n- {thinking: hm, calls: [{name: read_file, arguments: {path: greet.sh}, id: 'functions.read_file:0'}]}\n- {thinking: hm, text: It greets.}";
        play(row.model, &lab, script, &[]).0.exits(0);
        let server = Server::start(
            "turns:\n- {text: done, expect: {contains: [hullo, It greets.], not_contains: [hm]}}",
        );
        let url = server.url();
        let args = ["resume", "--last", "go on", "--model", next.model, "--api-base", &url, "--api-key", KEY];
        assert_eq!(lab.agent(&args).exits(0).stdout.trim(), "done", "{} to {}", row.model, next.model);
        let sent = String::from_utf8(server.requests()[0].bytes.clone()).unwrap();
        assert!(!sent.contains("\"hm\""), "{sent}");
        assert!(next.model != "anthropic/claude-m" || !sent.contains("functions.read_file:0"), "{sent}");
    }
}

#[test]
fn encrypted_reasoning_goes_back_before_its_call_to_openai() {
    for more in [[].as_slice(), &["--no-stream"]] {
        let script = TASK.replace("stream: STREAM, ", "");
        let (done, requests) = play("openai-responses/m", &with_prices(), &script, more);
        done.exits(0);
        let last = &requests[3].body;
        assert_eq!(
            (&last["store"], &last["include"]),
            (&json!(false), &json!(["reasoning.encrypted_content"]))
        );
        let items = &last["input"].as_array().unwrap()[2..];
        assert_eq!(
            items[0],
            json!({"type": "reasoning", "encrypted_content": "sealed_1",
                "summary": [{"type": "summary_text", "text": "I read it first."}]})
        );
        let kinds: Vec<_> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
        let results = ["function_call_output", "function_call_output"];
        assert_eq!(
            kinds[..6],
            [["reasoning", "message"], ["function_call", "function_call"], results].concat()
        );
        for pair in [&requests[0], &requests[1], &requests[2], &requests[3]].windows(2) {
            let before = pair[0].bytes.strip_suffix(b"]}").unwrap();
            assert!(pair[1].bytes.starts_with(before), "a step changes what stands before it");
        }
    }
}

#[test]
fn a_model_that_speaks_only_the_newer_format_is_shown_the_way() {
    let script = "turns:
- error: {status: 404, message: This model is only supported in v1/responses and not in v1/chat/completions.}";
    let (done, _) = play("openai/m-pro", &with_prices(), script, &[]);
    assert!(
        done.code != Some(0) && done.stderr.contains("--model openai-responses/m-pro"),
        "{}",
        done.stderr
    );
}
