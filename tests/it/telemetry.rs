//! Telemetry: the spans of a run, where they are exported to, and what is lost where that fails.

use crate::support::calls::command;
use crate::support::collector::{Collector, Export, attribute};
use crate::support::run::{Finished, KEY, Lab, holding};
use crate::support::server::Server;
use crate::support::terminal::AtTerminal;
use crate::support::wire_server::{WireServer, hold};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// The run's model calls a tool that works, one that fails and a subagent, which calls a tool too.
const SUBAGENT: &str = r#"{"turns": [
  {"text": "I look.", "calls": [{"name": "read_file", "arguments": {"path": "a.txt"}},
    {"name": "read_file", "arguments": {"path": "missing"}}], "usage": {"input": 100, "cached_read": 900, "output": 10}},
  {"calls": [{"name": "dispatch_subagent", "arguments": {"task": "look"}}]},
  {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
  {"text": "found"},
  {"text": "the answer"}]}"#;
const ANSWER: &str = r#"{"turns": [{"text": "the answer"}]}"#;
/// Names and parents of the spans of [`SUBAGENT`], in the order of their start.
const TREE: [(&str, Option<usize>); 10] = [
    ("invoke_agent build", None),
    ("chat mock", Some(0)),
    ("execute_tool read_file", Some(0)),
    ("execute_tool read_file", Some(0)),
    ("chat mock", Some(0)),
    ("execute_tool dispatch_subagent", Some(0)),
    ("invoke_agent explore", Some(5)),
    ("chat mock", Some(6)),
    ("execute_tool read_file", Some(6)),
    ("chat mock", Some(6)),
];

/// A lab with telemetry.
fn with_telemetry(telemetry: &str) -> Lab {
    Lab::new().file("a.txt", "content of a\n").config(&format!("telemetry: {{enabled: true, {telemetry}}}\n"))
}

/// The lines of the file of spans.
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn spans_file(lab: &Lab) -> std::path::PathBuf {
    lab.home().join("state/telemetry.jsonl")
}

/// The only export of a run against `collector`.
#[track_caller]
fn exported(collector: &Collector) -> Export {
    let exports = collector.exports();
    let [export] = exports.as_slice() else { panic!("{} exports", exports.len()) };
    export.clone()
}

/// The lines on standard error about telemetry.
fn losses(done: &Finished) -> Vec<&str> {
    done.stderr.lines().filter(|line| line.starts_with("telemetry: ")).collect()
}

/// Checks the names and parents of spans.
#[track_caller]
fn check_tree<Id: PartialEq + Clone>(spans: &[(String, Id, Id)], root_parent: &Id) {
    assert_eq!(spans.len(), TREE.len() + 1);
    for ((name, _, parent), (expected, above)) in spans.iter().zip(TREE) {
        assert_eq!(name, expected);
        let expected_parent = above.map_or(root_parent, |above| &spans[above].1);
        assert!(parent == expected_parent, "parent of {name}");
    }
}

#[test]
fn o24_spans_of_agents_model_calls_and_tool_calls_are_nested_in_the_json_file() {
    let lab = with_telemetry("exporter: json-file").env("OTEL_SERVICE_NAME", "ci-agent");
    let done = lab.run_yolo(&Server::start(SUBAGENT), &[]).exits(0);
    assert_eq!((done.stdout.as_str(), losses(&done).len()), ("the answer\n", 0));
    let path = spans_file(&lab);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let spans = lines(&path);
    let ids = |span: &Value, key: &str| span[key].as_str().unwrap_or_default().to_owned();
    let tree: Vec<_> = spans
        .iter()
        .map(|span| (ids(span, "name"), ids(span, "span_id"), ids(span, "parent_span_id")))
        .collect();
    check_tree(&tree, &String::new());
    let session = spans[0]["attributes"]["gen_ai.conversation.id"].clone();
    assert!(lab.session_dir(session.as_str().unwrap()).is_dir());
    for span in &spans {
        assert_eq!(span["trace_id"], spans[0]["trace_id"]);
        assert_eq!(span["attributes"]["gen_ai.conversation.id"], session);
        assert_eq!(span["resource"]["service.name"], "ci-agent");
        assert!(span["end_time_unix_nano"].as_u64() >= span["start_time_unix_nano"].as_u64());
        assert!(span["start_time_unix_nano"].as_u64() >= spans[0]["start_time_unix_nano"].as_u64());
        assert!(span["end_time_unix_nano"].as_u64() <= spans[0]["end_time_unix_nano"].as_u64());
    }
    let root = &spans[0]["attributes"];
    assert_eq!((&root["agent.status"], &root["agent.stop_reason"]), (&json!("success"), &json!("llm_done")));
    assert_eq!((&root["gen_ai.agent.name"], &root["agent.tool_calls"]), (&json!("build"), &json!(4)));
    let chat = &spans[1]["attributes"];
    assert_eq!((&spans[1]["kind"], &spans[0]["kind"]), (&json!("client"), &json!("internal")));
    for (name, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("openai")),
        ("gen_ai.request.model", json!("mock")),
        ("gen_ai.usage.input_tokens", json!(1000)),
        ("gen_ai.usage.cache_read.input_tokens", json!(900)),
        ("gen_ai.usage.output_tokens", json!(10)),
        ("gen_ai.response.finish_reasons", json!(["tool_calls"])),
        ("agent.step", json!(1)),
        ("agent.requests", json!(1)),
    ] {
        assert_eq!(chat[name], value, "{name}");
    }
    let (ok, failed) = (&spans[2], &spans[3]);
    assert_eq!((&ok["status"]["code"], &failed["status"]["code"]), (&json!("unset"), &json!("error")));
    assert_eq!(failed["attributes"]["error.type"], "tool_error");
    assert_eq!(ok["attributes"]["gen_ai.tool.name"], "read_file");
    let content = holding(&lab.home().join("state"), "content of a");
    assert!(!content.iter().any(|path| path.contains("telemetry")), "{content:?}");
    // A second run is appended and has a trace of its own.
    lab.run_yolo(&Server::start(ANSWER), &[]).exits(0);
    let more = lines(&path);
    assert_eq!(more.len(), spans.len() + 2);
    assert_ne!(more[spans.len()]["trace_id"], more[0]["trace_id"]);
}

#[test]
fn o24_a_collector_gets_the_spans_in_otlp_with_the_headers_of_the_environment() {
    let collector = Collector::start();
    let lab = with_telemetry("exporter: otlp")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())
        .env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector-key-1,x-tenant=blue")
        .env("TRACEPARENT", TRACEPARENT);
    let done = lab.run_yolo(&Server::start(SUBAGENT), &[]).exits(0);
    assert!(losses(&done).is_empty(), "{}", done.stderr);
    let export = exported(&collector);
    assert!(export.head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{}", export.head);
    for line in ["content-type: application/json", "authorization: Bearer collector-key-1", "x-tenant: blue"]
    {
        assert!(export.head.lines().any(|sent| sent == line), "{line}: {}", export.head);
    }
    let spans = export.spans();
    let tree: Vec<_> = spans
        .iter()
        .map(|span| (span["name"].as_str().unwrap().to_owned(), &span["spanId"], &span["parentSpanId"]))
        .collect();
    check_tree(&tree, &&json!("00f067aa0ba902b7"));
    for span in &spans {
        assert_eq!(span["traceId"], TRACE);
    }
    // Numbers of the kinds `INTERNAL` and `CLIENT`, and of the status `ERROR`.
    assert_eq!((&spans[0]["kind"], &spans[1]["kind"]), (&json!(1), &json!(3)));
    assert_eq!(attribute(&spans[1], "gen_ai.usage.input_tokens"), json!({"intValue": "1000"}));
    assert_eq!(attribute(&spans[1], "gen_ai.request.model"), json!({"stringValue": "mock"}));
    assert_eq!(spans[3]["status"], json!({"code": 2, "message": "tool_error"}));
    assert_eq!(spans[1].get("status"), None);
    let request = export.request();
    let resource = &request["resourceSpans"][0];
    assert_eq!(attribute(&resource["resource"], "service.name"), json!({"stringValue": "agent"}));
    let schema = resource["schemaUrl"].as_str().unwrap();
    assert!(schema.starts_with("https://opentelemetry.io/schemas/"), "{schema}");
    // The key is nowhere on the disk, and no command gets it.
    assert_eq!(holding(&lab.outside(), "collector-key-1"), [""; 0]);
    let printed = json!({"turns": [{"calls": [command("env; echo end")]}, {"text": "done"}]}).to_string();
    let server = Server::start(&printed);
    lab.run_yolo(&server, &[]).exits(0);
    let result = server.requests()[1].body.to_string();
    assert!(result.contains("HOME=") && !result.contains("OTLP_HEADERS"), "{result}");
}

#[test]
fn o24_an_invalid_traceparent_is_ignored_with_one_line() {
    let lab = with_telemetry("exporter: json-file").env("TRACEPARENT", "00-4BF92F-1-01");
    let done = lab.run_yolo(&Server::start(ANSWER), &[]).exits(0);
    let warnings = done.stderr.lines().filter(|line| line.contains("TRACEPARENT")).count();
    assert_eq!(warnings, 1, "{}", done.stderr);
    let spans = lines(&spans_file(&lab));
    assert_eq!(spans[0]["parent_span_id"], Value::Null);
    assert_eq!(spans[0]["trace_id"].as_str().unwrap().len(), 32);
}

#[test]
fn o24_nothing_is_exported_unless_the_user_enables_it() {
    let collector = Collector::start();
    let lab = Lab::new()
        .file(
            ".agent/config.yaml",
            format!("telemetry: {{enabled: true, endpoint: '{}'}}\n", collector.url()),
        )
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())
        .env("TRACEPARENT", "invalid");
    let done = lab.run_yolo(&Server::start(ANSWER), &[]).exits(0);
    assert!(collector.exports().is_empty());
    assert!(!spans_file(&lab).exists());
    assert!(losses(&done).is_empty() && !done.stderr.contains("TRACEPARENT"), "{}", done.stderr);
    let ignored: Vec<&str> = done.stderr.lines().filter(|line| line.contains("telemetry.enabled")).collect();
    assert!(matches!(ignored[..], [line] if line.contains("ignored")), "{}", done.stderr);
}

#[test]
fn o24_contents_are_exported_only_on_request_and_without_secrets() {
    let script = json!({"turns": [
        {"text": "I look.", "calls": [command("echo the result $((40 + 2)) sk-other-0123456789abcdef0123")]},
        {"text": "the answer"}]})
    .to_string();
    let texts = ["I look.", "the result 42", "the answer", "\"task\""];
    for (content, expected) in [("false", false), ("true", true)] {
        let collector = Collector::start();
        let lab = with_telemetry(&format!("content: {content}, endpoint: '{}'", collector.url()))
            .env("SOME_TOKEN", "sk-other-0123456789abcdef0123");
        lab.run_yolo(&Server::start(&script), &[]).exits(0);
        // JSON in a text of JSON.
        let body = String::from_utf8_lossy(&exported(&collector).body).replace("\\\"", "\"");
        for text in texts {
            assert_eq!(body.contains(text), expected, "{text} with content {content}: {body}");
        }
        assert!(!body.contains("sk-other-") && !body.contains(KEY), "{body}");
        assert_eq!(body.contains("[redacted: "), expected, "{body}");
    }
    let collector = Collector::start();
    with_telemetry(&format!("content: true, endpoint: '{}'", collector.url()))
        .run_yolo(&Server::start(&script), &[])
        .exits(0);
    let spans = exported(&collector).spans();
    let text = |span: &Value, name: &str| attribute(span, name)["stringValue"].as_str().unwrap().to_owned();
    let messages: Value = serde_json::from_str(&text(&spans[1], "gen_ai.output.messages")).unwrap();
    assert_eq!(messages[0]["parts"][0], json!({"type": "text", "content": "I look."}));
    assert_eq!(messages[0]["parts"][1]["name"], "run_command");
    assert!(text(&spans[2], "gen_ai.tool.call.arguments").contains("echo the result"));
    let input: Value = serde_json::from_str(&text(&spans[0], "gen_ai.input.messages")).unwrap();
    assert_eq!(input[0], json!({"role": "user", "parts": [{"type": "text", "content": "task"}]}));
}

/// Checks that a run whose spans are lost ends like any other, with one line that contains `reason`.
#[track_caller]
fn check_loss(lab: &Lab, reason: &str) {
    let done = lab.run_yolo(&Server::start(ANSWER), &[]).exits(0);
    assert_eq!(done.stdout, "the answer\n");
    let lost = losses(&done);
    assert!(matches!(lost[..], [line] if line.contains(reason)), "{reason}:\n{}", done.stderr);
    assert!(done.stderr.ends_with(&format!("{}\n", lost[0])), "{}", done.stderr);
    assert!(!done.stderr.contains("collector-key-1"), "{}", done.stderr);
}

#[test]
fn o24_a_collector_that_refuses_or_is_not_there_costs_one_line() {
    let at = |url: &str| {
        with_telemetry(&format!("endpoint: '{url}'"))
            .env("OTEL_EXPORTER_OTLP_HEADERS", "api-key=collector-key-1")
    };
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reason =
        format!("2 of 2 spans lost: not exported to http://{closed}: cannot connect: Connection refused");
    check_loss(&at(&format!("http://{closed}")), &reason);
    for (status, requests) in [("401 Unauthorized", 1), ("503 Service Unavailable", 2), ("302 Found", 1)] {
        let collector = Collector::answering(status, b"collector-key-1");
        check_loss(&at(&collector.url()), &format!("the response is {status}"));
        assert_eq!(collector.exports().len(), requests, "{status}");
    }
    // The encoding has 64-bit numbers as texts; some collectors send numbers.
    for rejected in [json!("1"), json!(1)] {
        let message = "too\nold\u{1b}[31m collector-key-1";
        let body = json!({"partialSuccess": {"rejectedSpans": rejected, "errorMessage": message}});
        let collector = Collector::answering("200 OK", body.to_string().as_bytes());
        check_loss(&at(&collector.url()), "1 of 2 spans lost");
    }
    check_loss(&at(&WireServer::bytes("not HTTP").url()), "the connection broke");
    for address in ["localhost:4318", "collector", "ftp://h"] {
        let lab = with_telemetry("exporter: otlp").env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
        check_loss(&lab, "it must begin with http:// or https:// and name a host");
    }
    let lab =
        with_telemetry("exporter: otlp").env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:collector-key-1@h");
    check_loss(&lab, "a user name or password");
    let lab = at("http://127.0.0.1:1").env("OTEL_EXPORTER_OTLP_HEADERS", "a=collector-key-1%0A");
    check_loss(&lab, "a header has an invalid name or value");
}

#[test]
fn o24_a_collector_that_does_not_answer_costs_two_seconds_after_the_answer() {
    let server = WireServer::start(|stream, _| hold(stream));
    let lab = with_telemetry(&format!("endpoint: 'http://{}'", server.authority()));
    let began = Instant::now();
    check_loss(&lab, "no response within 2s");
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
    let model = Server::start(ANSWER);
    let running = lab.start_run(&model, &["--json"]);
    running.wait_for_stdout(1);
    let answered = Instant::now();
    running.finish().exits(0);
    let waited = answered.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&waited), "{waited:?}");
}

#[test]
fn o24_a_file_that_cannot_be_written_costs_one_line() {
    check_loss(&with_telemetry("exporter: json-file, file: /dev/full"), "/dev/full: No space left on device");
    check_loss(
        &with_telemetry("exporter: json-file, file: missing/spans"),
        "missing/spans: No such file or directory",
    );
    let lab = with_telemetry("exporter: json-file, file: pipe");
    let _reader = lab.pipe("pipe");
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut pipe = fs::File::options().write(true).custom_flags(flags).open(lab.ws().join("pipe")).unwrap();
    while pipe.write(&[0; 4096]).is_ok() {}
    while pipe.write(&[0]).is_ok() {}
    // A write would wait for the reader.
    check_loss(&lab, "pipe: Resource temporarily unavailable");
}

#[test]
fn o24_the_console_shows_one_line_for_each_span() {
    let done = with_telemetry("exporter: console").run_yolo(&Server::start(SUBAGENT), &[]).exits(0);
    assert_eq!(done.stdout, "the answer\n");
    let shown: Vec<&str> = done.stderr.lines().rev().take(11).collect();
    for (line, (name, _)) in shown.iter().rev().zip(TREE) {
        assert!(line.trim_start().starts_with(name), "{name}: {line}");
    }
    assert!(shown[10].contains("success  llm_done") && shown[10].contains("trace "), "{}", shown[10]);
    assert!(shown[4].starts_with("    invoke_agent explore"), "{}", shown[4]);
}

#[test]
fn o24_failures_refusals_and_interrupts_have_a_type() {
    let server = Server::start(r#"{"turns": [{"error": {"status": 401, "message": "bad key"}}]}"#);
    let failed = with_telemetry("exporter: json-file");
    failed.run(&server, &[]).exits(4);
    let spans = lines(&spans_file(&failed));
    for span in &spans {
        assert_eq!(
            (&span["status"]["code"], &span["attributes"]["error.type"]),
            (&json!("error"), &json!("auth"))
        );
    }
    assert_eq!(spans[0]["attributes"]["agent.status"], "failed");
    let refused = with_telemetry("exporter: json-file");
    let script = json!({"turns": [{"calls": [command("rm -rf /")]}, {"text": "done"}]}).to_string();
    refused.run_yolo(&Server::start(&script), &[]).exits(0);
    let spans = lines(&spans_file(&refused));
    assert_eq!(spans[2]["attributes"]["agent.tool.outcome"], "denied");
    assert_eq!(spans[2]["attributes"]["error.type"], "denied");
    assert_eq!((&spans[0]["status"]["code"], spans.len()), (&json!("unset"), 4));
}

#[test]
fn o24_each_message_of_a_conversation_is_a_trace() {
    let chat = |lab: &Lab| {
        let server = Server::start(r#"{"turns": [{"text": "first"}, {"text": "second"}]}"#);
        let mut chat = AtTerminal::chat(lab, &server, &[]);
        chat.prompt(1);
        chat.types("one\r");
        chat.prompt(2);
        chat.types("two\r");
        chat.prompt(3);
        chat.types("\u{4}");
        assert_eq!(chat.finish().code, Some(0));
        lines(&spans_file(lab))
    };
    let spans = chat(&with_telemetry("exporter: json-file"));
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["invoke_agent build", "chat mock", "invoke_agent build", "chat mock"]);
    assert_ne!(spans[0]["trace_id"], spans[2]["trace_id"]);
    let id = "gen_ai.conversation.id";
    assert!(spans[0]["attributes"][id].is_string());
    assert_eq!(spans[0]["attributes"][id], spans[2]["attributes"][id]);
    let joined = chat(&with_telemetry("exporter: json-file").env("TRACEPARENT", TRACEPARENT));
    assert!(joined.iter().all(|span| span["trace_id"] == TRACE), "{joined:?}");
}
