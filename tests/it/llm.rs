//! The model layer against a real server: retries, deadlines, faults, and what people are told.

use crate::support::extent::some_of;
use crate::support::server::Server;
use crate::support::wire_server::{WireServer, events, head};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_core::message::{Message, Role, ToolResult};
use agent_core::secret::Secret;
use agent_http::Deadlines;
use agent_llm::connect::connect;
use agent_llm::discovery::probe;
use agent_llm::model_options::ModelOptions;
use agent_llm::provider_table::Provider;
use agent_llm::{LlmClient, LlmError, Progress, Request, Response, ToolDefinition};
use agent_runtime::clock::Clock;
use agent_text::delimiter::Delimiter;
use rustix::net::{AddressFamily, SocketType};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What one call did.
struct Outcome {
    response: Result<Response, LlmError>,
    shown: String,
    retries: Vec<Duration>,
}

impl Outcome {
    fn text(&self) -> String {
        self.response.as_ref().unwrap().message.joined_text()
    }

    fn error(&self) -> &LlmError {
        self.response.as_ref().unwrap_err()
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn options(server: &Server) -> ModelOptions {
    ModelOptions { model: Some("m".into()), api_base: Some(server.url()), ..ModelOptions::default() }
}

async fn client(options: &ModelOptions) -> Box<dyn LlmClient> {
    connect(options, &|_| None, Rc::new(Clock::new())).await.unwrap()
}

fn tools() -> Vec<ToolDefinition> {
    let parameters = serde_json::json!({"type": "object"});
    vec![ToolDefinition {
        name: "read_file".into(),
        description: "Reads.".into(),
        parameters: parameters.into(),
    }]
}

async fn ask(client: &dyn LlmClient, messages: &[Arc<Message>], stream: bool) -> Outcome {
    let tools = tools();
    let request = Request {
        messages,
        tools: &tools,
        stream,
        deadline: Some(Duration::from_secs(25)),
        ..Request::default()
    };
    let (mut shown, mut retries) = (String::new(), Vec::new());
    let mut progress = |progress: Progress<'_>| match progress {
        Progress::Text(text) => shown.push_str(text),
        Progress::Retry { delay, .. } => retries.push(delay),
        Progress::Sent { .. } | Progress::Thinking(_) => {}
    };
    let response = client.complete(&request, &mut progress).await;
    Outcome { response, shown, retries }
}

fn hello() -> Vec<Arc<Message>> {
    vec![Arc::new(Message::text(Role::User, "hello"))]
}

fn once_with(options: &ModelOptions, stream: bool) -> Outcome {
    runtime().block_on(async { ask(client(options).await.as_ref(), &hello(), stream).await })
}

/// Asks once; returns what came of it and how many requests it took.
fn once(script: &str, stream: bool) -> (Outcome, usize) {
    let server = Server::start(script);
    let outcome = once_with(&options(&server), stream);
    (outcome, server.requests().len())
}

/// An error after which waiting costs a test no time.
fn error(status: u16) -> String {
    format!("- error: {{status: {status}, retry_after: 0.01}}\n")
}

#[test]
fn lr1_rate_limits_and_overload_are_retried_other_errors_are_not() {
    let script = format!("turns:\n{}{}- text: done\n", error(429), error(503));
    let (outcome, requests) = once(&script, true);
    assert_eq!((outcome.text().as_str(), requests, outcome.retries.len()), ("done", 3, 2));
    for status in [400, 404, 422] {
        let (outcome, requests) = once(&format!("turns:\n{}", error(status)), true);
        assert_eq!((outcome.error().kind, requests), (FailureKind::Request, 1), "{status}");
    }
}

#[test]
fn lr1_a_reset_connection_and_a_server_that_never_answers_are_retried() {
    let (outcome, requests) = once("turns:\n- fault: reset\n- text: done", true);
    assert_eq!((outcome.text().as_str(), requests), ("done", 2));

    let server = Server::start("turns:\n- fault: hang\n- text: done");
    let deadlines = Deadlines { first_byte: Duration::from_millis(500), ..Deadlines::default() };
    let outcome = once_with(&ModelOptions { deadlines, ..options(&server) }, true);
    assert_eq!((outcome.text().as_str(), server.requests().len()), ("done", 2));
}

#[test]
fn lr1_an_exhausted_quota_is_not_retried() {
    let (outcome, requests) = once("turns:\n- error: {status: 429, code: insufficient_quota}", true);
    assert_eq!((outcome.error().kind, requests), (FailureKind::Quota, 1));
}

#[test]
fn lr2_the_server_decides_how_long_to_wait() {
    let server = Server::start("turns:\n- error: {status: 429, retry_after: 2}\n- text: done");
    let outcome = once_with(&options(&server), true);
    let requests = server.requests();
    assert_eq!(outcome.retries, [Duration::from_secs(2)]);
    assert!(requests[1].arrived.duration_since(requests[0].arrived) >= Duration::from_secs(2));
    assert_eq!(requests[0].bytes, requests[1].bytes);
}

#[test]
fn lr2_each_form_of_retry_after_is_obeyed_and_nonsense_is_not() {
    let now = jiff::Timestamp::now();
    let date = |seconds: i64| {
        let then = now + jiff::SignedDuration::from_secs(seconds);
        jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&then).unwrap()
    };
    let milliseconds = |from: u64, to: u64| Some(Duration::from_millis(from)..=Duration::from_millis(to));
    let back_off = milliseconds(375, 500);
    std::thread::scope(|scope| {
        for (header, expected) in [
            ("retry-after: 1".to_owned(), milliseconds(1000, 1000)),
            ("retry-after: 0.04".into(), milliseconds(40, 40)),
            ("retry-after-ms: 30".into(), milliseconds(30, 30)),
            (format!("retry-after: {}", date(3)), milliseconds(1, 3000)),
            (format!("retry-after: {}", date(-3)), back_off.clone()),
            ("retry-after: soon".into(), back_off.clone()),
            ("retry-after: -1".into(), back_off.clone()),
            ("retry-after: NaN".into(), back_off.clone()),
            ("retry-after: \u{e9}".into(), back_off.clone()),
            ("retry-after: 1e300".into(), back_off),
            ("retry-after: 99999".into(), None),
        ] {
            scope.spawn(move || {
                let refusal = head("429 Slow Down", &format!("{header}\r\ncontent-length: 0\r\n"));
                let done =
                    events("data: {\"choices\":[{\"delta\":{\"content\":\"done\"}}]}\n\ndata: [DONE]\n\n");
                let server = WireServer::answers(vec![refusal.into(), done.into()]);
                let api_base = Some(server.url());
                let options = ModelOptions { model: Some("m".into()), api_base, ..ModelOptions::default() };
                let outcome = once_with(&options, true);
                match expected {
                    Some(wait) => {
                        assert!(wait.contains(&outcome.retries[0]), "{header}: {:?}", outcome.retries);
                        assert_eq!(outcome.text(), "done", "{header}");
                    }
                    None => assert_eq!(
                        (outcome.error().kind, server.requests().len()),
                        (FailureKind::RateLimit, 1),
                        "{header}"
                    ),
                }
            });
        }
    });
}

#[test]
fn lr3_back_off_grows_and_jitters() {
    let (outcome, requests) =
        once("turns:\n- error: {status: 500}\n- error: {status: 502}\n- text: done", false);
    assert_eq!(requests, 3);
    for (delay, full) in outcome.retries.iter().zip([500, 1000]) {
        assert!((full * 3 / 4..=full).contains(&delay.as_millis()), "{delay:?}");
    }
}

#[test]
fn lr4_after_the_retries_the_call_fails() {
    let (outcome, requests) = once(&format!("turns:\n{}", error(503).repeat(9)), true);
    assert_eq!((outcome.error().kind, requests), (FailureKind::Overloaded, 6));
    assert!(outcome.error().message.contains("after 6 attempts"), "{}", outcome.error());
}

#[test]
fn lr5_a_stream_that_is_cut_is_retried_before_and_after_its_first_text() {
    for fault in ["cut", "close"] {
        let (outcome, requests) =
            once(&format!("turns:\n- {{text: x, fault: {{{fault}: 0}}}}\n- text: done"), true);
        assert_eq!((outcome.text().as_str(), requests), ("done", 2), "{fault}");
        let script = format!("turns:\n- {{text: abc, chunk: 1, fault: {{{fault}: 2}}}}\n- text: done");
        let (outcome, requests) = once(&script, true);
        assert_eq!(
            (outcome.text().as_str(), requests, outcome.shown.as_str()),
            ("done", 2, "abdone"),
            "{fault}"
        );
    }
}

/// A stream of `tests/wire` without its comments.
fn stream(file: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(file);
    let text = std::fs::read_to_string(path).unwrap();
    text.split_inclusive('\n').filter(|line| !line.starts_with(": ")).collect()
}

/// How a stream of `tests/wire` that is broken off after `cut` bytes ends, where its length was told and where not.
fn broken_off(model: &str, stream: &[u8], cut: usize, told: bool) -> Outcome {
    let length = if told { format!("content-length: {}\r\n", stream.len()) } else { String::new() };
    let answer = [head("200 OK", &length).as_bytes(), &stream[..cut]].concat();
    // Ollama is asked for its window before.
    let window = head("404 Not Found", "content-length: 0\r\n").into_bytes();
    let server =
        WireServer::answers(if model.starts_with("ollama") { vec![window, answer] } else { vec![answer] });
    let (model, api_base) = (Some(model.to_owned()), Some(server.url()));
    let api_key = Some(Secret::new("sk-secret"));
    once_with(&ModelOptions { model, api_base, api_key, retries: 0, ..ModelOptions::default() }, true)
}

#[test]
fn a_stream_cut_after_any_event_is_an_error_in_every_format() {
    for (model, file) in [
        ("openai/m", "openai_tools.sse"),
        ("anthropic/m", "messages_tools.sse"),
        ("ollama/m", "ollama_tools.ndjson"),
        ("gemini/m", "gemini_thought_calls.sse"),
        ("openai-responses/m", "responses_tools.sse"),
    ] {
        let stream = stream(file);
        let whole = broken_off(model, stream.as_bytes(), stream.len(), true).response.unwrap();
        for (end, _) in some_of(stream.match_indices('\n'), 5) {
            for (cut, told) in [(end, false), (end + 1, false), (end, true), (end + 1, true)] {
                let kind = match broken_off(model, stream.as_bytes(), cut, told).response {
                    Ok(response) => {
                        assert_eq!(response.message.tool_calls().count(), whole.message.tool_calls().count());
                        continue;
                    }
                    Err(error) => error.kind,
                };
                let expected =
                    if told && cut < stream.len() { FailureKind::Network } else { FailureKind::CutStream };
                assert_eq!(kind, expected, "{file} cut at {cut}");
            }
        }
    }
}

#[test]
fn a_connection_that_breaks_after_the_reason_for_the_end_breaks_nothing() {
    for (model, file, reason, mark) in [
        ("openai/m", "openai_text.sse", "\"finish_reason\": \"stop\"", "data: [DONE]"),
        ("openai/m", "openai_tools.sse", "\"finish_reason\": \"tool_calls\"", "data: [DONE]"),
        ("anthropic/m", "messages_text.sse", "message_delta", "message_stop"),
        ("anthropic/m", "messages_tools.sse", "message_delta", "message_stop"),
    ] {
        let stream = stream(file);
        let whole = broken_off(model, stream.as_bytes(), stream.len(), true).response.unwrap().message;
        let broken =
            |mark: &str| broken_off(model, stream.as_bytes(), stream.find(mark).unwrap(), true).response;
        let calls =
            |message: &Message| message.tool_calls().map(|call| call.arguments.clone()).collect::<Vec<_>>();
        let answer = broken(mark).unwrap().message;
        assert_eq!((answer.joined_text(), calls(&answer)), (whole.joined_text(), calls(&whole)), "{file}");
        assert_eq!(broken(reason).unwrap_err().kind, FailureKind::Network, "{file}");
    }
    // Here a reason in an event does not say that it is the last.
    let stream = stream("gemini_stop_in_every_event.sse");
    let (second, _) = stream.match_indices("data: ").nth(1).unwrap();
    let cut = broken_off("gemini/m", stream.as_bytes(), second, true).response;
    assert_eq!(cut.unwrap_err().kind, FailureKind::Network);
}

#[test]
fn lr5_a_stream_cut_within_a_tool_call_is_retried_because_nothing_was_shown() {
    let call = "calls: [{name: read_file, arguments: {path: a}}]";
    let (outcome, requests) = once(&format!("turns:\n- {{{call}, fault: {{cut: 1}}}}\n- {{{call}}}"), true);
    assert_eq!((outcome.response.unwrap().message.tool_calls().count(), requests), (1, 2));
}

#[test]
fn a_stream_without_further_events_is_abandoned() {
    let server = Server::start("turns:\n- {text: abc, chunk: 1, fault: {stall: 1}}");
    let deadlines = Deadlines { silence: Duration::from_millis(200), ..Deadlines::default() };
    let outcome = once_with(&ModelOptions { deadlines, retries: 0, ..options(&server) }, true);
    assert_eq!(outcome.error().kind, FailureKind::Timeout);
    assert!(outcome.error().message.contains("stopped arriving"), "{}", outcome.error());
    server.wait_for_disconnect();
}

#[test]
fn an_unstreamed_answer_may_begin_later_than_the_first_byte_deadline() {
    let server = Server::start("turns:\n- {text: done, delay_ms: 400}");
    let deadlines = Deadlines { first_byte: Duration::from_millis(100), ..Deadlines::default() };
    let options = ModelOptions { deadlines, retries: 0, ..options(&server) };
    assert_eq!(once_with(&options, false).text(), "done");
}

#[test]
fn the_deadline_of_a_call_includes_its_retries() {
    let server = Server::start("turns:\n- fault: hang\n");
    let outcome = runtime().block_on(async {
        let client = client(&options(&server)).await;
        let messages = hello();
        let deadline = Some(Duration::from_millis(300));
        let request =
            Request { messages: &messages, tools: &[], stream: true, deadline, ..Request::default() };
        client.complete(&request, &mut |_| {}).await
    });
    assert_eq!(outcome.unwrap_err().kind, FailureKind::Timeout);
    server.wait_for_disconnect();
}

#[test]
fn an_abandoned_call_closes_its_connection() {
    let server = Arc::new(Server::start("turns:\n- fault: hang\n"));
    let watched = Arc::clone(&server);
    runtime().block_on(async {
        let client = client(&options(&server)).await;
        let messages = hello();
        tokio::select! {
            _ = ask(client.as_ref(), &messages, true) => panic!("answered"),
            arrived = tokio::task::spawn_blocking(move || watched.wait_for_request(1)) => arrived.unwrap(),
        }
    });
    server.wait_for_disconnect();
}

#[test]
fn l15_an_error_shows_its_cause() {
    let (outcome, _) = once("turns:\n- error: {status: 400, message: \"no such\\e[31m thing\"}", true);
    let message = &outcome.error().message;
    assert!(
        message.contains("127.0.0.1") && message.contains("400") && message.contains("no such[31m thing"),
        "{message}"
    );
}

#[test]
fn l16_a_refused_key_is_not_retried_and_never_shown() {
    for status in [401, 403] {
        let server =
            Server::start(&format!("turns:\n- error: {{status: {status}, message: bad key sk-secret}}"));
        let options = ModelOptions { api_key: Some(Secret::new("sk-secret")), ..options(&server) };
        let outcome = once_with(&options, true);
        let requests = server.requests();
        assert_eq!((outcome.error().kind, requests.len()), (FailureKind::Auth, 1));
        assert_eq!(requests[0].headers["authorization"], "Bearer sk-secret");
        assert!(!outcome.error().message.contains("sk-secret"), "{}", outcome.error());
        assert!(outcome.error().message.contains("--api-key"), "{}", outcome.error());
    }
}

#[test]
fn l19_broken_arguments_arrive_as_they_were_written() {
    let (outcome, _) = once("turns:\n- calls: [{name: read_file, arguments: '{\"path\":'}]", true);
    let response = outcome.response.unwrap();
    assert_eq!(response.message.tool_calls().next().unwrap().arguments, "{\"path\":");
}

#[test]
fn l21_a_call_written_as_text_becomes_a_call_streamed_or_not() {
    for stream in [true, false] {
        let script = "turns:\n- {text: '{\"name\":\"read_file\",\"arguments\":{\"path\":\"a\"}}', chunk: 3}";
        let response = once(script, stream).0.response.unwrap();
        assert_eq!(response.finish, FinishReason::ToolCalls);
        assert_eq!(response.message.tool_calls().next().unwrap().arguments, "{\"path\":\"a\"}");
    }
}

#[test]
fn l22_ordinary_json_stays_an_answer() {
    for stream in [true, false] {
        assert_eq!(once("turns:\n- text: '{\"name\":\"x\"}'", stream).0.text(), "{\"name\":\"x\"}");
    }
}

#[test]
fn o06_an_unstreamed_request_says_so_and_shows_nothing_early() {
    let server = Server::start("turns:\n- {text: done, usage: {input: 3, output: 2}}");
    let outcome = once_with(&options(&server), false);
    assert_eq!((outcome.text().as_str(), outcome.shown.as_str()), ("done", ""));
    let body = &server.requests()[0].body;
    assert_eq!((&body["stream"], body.get("stream_options")), (&serde_json::json!(false), None));
    assert_eq!(outcome.response.unwrap().usage.unwrap().input, 3);
}

#[test]
fn o07_tool_calls_cut_into_single_characters_are_joined() {
    let script = "turns:\n- {text: t, chunk: 1, calls: [{name: read_file, arguments: {path: é}}, {name: list, arguments: {}}]}";
    let response = once(script, true).0.response.unwrap();
    let calls: Vec<_> = response.message.tool_calls().map(|call| call.arguments.as_str()).collect();
    assert_eq!(calls, ["{\"path\":\"é\"}", "{}"]);
}

#[test]
fn o08_usage_in_the_last_chunk_without_choices_is_counted() {
    let (outcome, _) =
        once("turns:\n- {text: a, usage: {input: 10, cached_read: 7, output: 5, reasoning: 2}}", true);
    let usage = outcome.response.unwrap().usage.unwrap();
    assert_eq!((usage.input, usage.cached_read, usage.output, usage.reasoning), (10, 7, 5, 2));
}

#[test]
fn an_empty_answer_is_asked_for_once_more_and_then_an_error() {
    let (outcome, requests) = once("turns:\n- text: ''\n- text: done", true);
    assert_eq!((outcome.text().as_str(), requests), ("done", 2));
    let (outcome, requests) = once("turns:\n- {text: '', repeat: 5}", false);
    assert_eq!((outcome.error().kind, requests), (FailureKind::EmptyAnswer, 2));
}

#[test]
fn steps_share_one_connection_and_the_prefix_stays_the_same() {
    let call = "calls: [{name: read_file, arguments: {path: a}}]";
    let server = Server::start(&format!(
        "turns:\n- {{{call}}}\n- {{text: done, expect: {{last_contains: [content]}}}}"
    ));
    runtime().block_on(async {
        let client = client(&options(&server)).await;
        let mut messages = hello();
        let first = ask(client.as_ref(), &messages, true).await.response.unwrap();
        let call_id = first.message.tool_calls().next().unwrap().id.clone();
        messages.push(Arc::new(first.message));
        let result = ToolResult {
            call_id,
            text: Delimiter::for_session("").wrap("content"),
            is_error: false,
            images: Vec::new(),
        };
        messages.push(Arc::new(Message::tool_results(vec![result])));
        assert_eq!(ask(client.as_ref(), &messages, true).await.text(), "done");
    });
    let requests = server.requests();
    assert_eq!((server.connections(), requests.len()), (1, 2));
    assert!(requests[1].bytes.starts_with(requests[0].bytes.strip_suffix(b"]}").unwrap()));
}

#[test]
fn a_server_that_is_not_a_model_server_is_named_as_such() {
    for (turn, word) in [
        (
            "fault: {http: {headers: {content-type: text/html}, body: '<html><title>Login</title></html>'}}",
            "web page",
        ),
        ("fault: {http: {body: 'upstream is asleep'}}", "upstream is asleep"),
        ("fault: {http: {body: '{\"ok\": true}'}}", "choices"),
    ] {
        let (outcome, requests) = once(&format!("turns:\n- {turn}"), true);
        assert_eq!((outcome.error().kind, requests), (FailureKind::Malformed, 1), "{turn}");
        assert!(outcome.error().message.contains(word), "{}", outcome.error());
    }
    let server = Server::start("turns:\n- fault: {raw: \"SSH-2.0-OpenSSH\\r\\n\"}");
    let outcome = once_with(&ModelOptions { retries: 0, ..options(&server) }, true);
    assert_eq!(outcome.error().kind, FailureKind::Network);
}

#[test]
fn an_error_inside_a_stream_is_retried_only_before_text() {
    let body = "'data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n\n\n'";
    let fault = format!("fault: {{http: {{headers: {{content-type: text/event-stream}}, body: {body}}}}}");
    let (outcome, requests) = once(&format!("turns:\n- {fault}\n- text: done"), true);
    assert_eq!((outcome.text().as_str(), requests), ("done", 2));
}

#[test]
fn a_redirect_is_not_followed_and_the_key_stays_home() {
    let elsewhere = Server::start("turns:\n- text: stolen");
    let location = format!("{}/chat/completions", elsewhere.url());
    let server = Server::start(&format!(
        "turns:\n- fault: {{http: {{status: 307, headers: {{location: '{location}'}}}}}}"
    ));
    let options = ModelOptions { api_key: Some(Secret::new("sk-secret")), ..options(&server) };
    let outcome = once_with(&options, true);
    let host = elsewhere.url();
    assert!(outcome.error().message.contains(host.trim_end_matches("/v1")), "{}", outcome.error());
    assert_eq!((server.requests().len(), elsewhere.requests().len()), (1, 0));
}

#[test]
fn a_server_that_is_absent_is_said_to_be() {
    // A port that is taken, so that no other test gets it, and at which nobody listens.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = SocketAddrV4::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    let options = ModelOptions {
        model: Some("m".into()),
        api_base: Some(format!("http://{address}/v1")),
        retries: 0,
        ..ModelOptions::default()
    };
    let outcome = once_with(&options, true);
    assert_eq!(outcome.error().kind, FailureKind::Network);
    assert!(outcome.error().message.contains("is the server running?"), "{}", outcome.error());
}

#[test]
fn an_endless_error_body_and_an_endless_answer_are_cut() {
    let (outcome, _) =
        once(&format!("turns:\n- fault: {{http: {{status: 400, body: {}}}}}", "x".repeat(2_000_000)), true);
    assert!(outcome.error().message.len() < 600);
    let (outcome, _) =
        once(&format!("turns:\n- fault: {{http: {{body: 'data: {}'}}}}", "x".repeat(9_000_000)), true);
    assert_eq!(outcome.error().kind, FailureKind::Malformed);
}

#[test]
fn the_only_model_of_a_server_needs_no_name() {
    let server = Server::start("turns:\n- text: done");
    let outcome = once_with(&ModelOptions { model: None, ..options(&server) }, true);
    assert_eq!(outcome.text(), "done");
    assert_eq!(server.requests()[0].body["model"], "scripted-model");
}

#[test]
fn a_script_is_a_model_and_a_missing_one_is_a_configuration_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file.as_file(), b"turns:\n- text: played\n").unwrap();
    let model = Some(format!("scripted:{}", file.path().display()));
    let scripted = ModelOptions { model, ..ModelOptions::default() };
    assert_eq!(once_with(&scripted, true).shown, "played");
    let missing = ModelOptions { model: Some("scripted:/nowhere.yaml".into()), ..ModelOptions::default() };
    let error = runtime().block_on(connect(&missing, &|_| None, Rc::new(Clock::new()))).err().unwrap();
    assert!(error.kind == FailureKind::Config && error.message.contains("/nowhere.yaml"), "{error}");
}

#[test]
fn a_document_is_an_answer_even_where_a_stream_was_asked_for() {
    let body = r#"{"choices":[{"message":{"content":"done"},"finish_reason":"stop"}]}"#;
    let (outcome, _) = once(&format!("turns:\n- fault: {{http: {{body: '{body}'}}}}"), true);
    assert_eq!((outcome.text().as_str(), outcome.shown.as_str()), ("done", "done"));
}

#[test]
fn an_answer_that_never_ends_meets_the_deadline_of_the_whole() {
    // The first byte arrives in time on a busy machine too.
    let server = Server::start("turns:\n- {text: abcdefghijkl, chunk: 1, chunk_delay_ms: 500}");
    let deadlines = Deadlines { whole: Duration::from_secs(2), ..Deadlines::default() };
    let outcome = once_with(&ModelOptions { deadlines, ..options(&server) }, true);
    assert_eq!(outcome.error().kind, FailureKind::Timeout);
    assert!(outcome.error().message.contains("not complete within"), "{}", outcome.error());
}

#[test]
fn a_server_on_this_machine_is_found_with_its_models() {
    let server = Server::start("turns:\n- text: x");
    let absent = Server::start("turns:\n- text: x");
    let row = |name: &str, base: String| Provider {
        name: name.into(),
        base: Some(base),
        local: true,
        ..Provider::default()
    };
    let table = [row("absent", absent.url()), row("present", server.url())];
    drop(absent);
    let found = runtime().block_on(probe(&table, Duration::from_secs(20)));
    let names: Vec<_> =
        found.iter().map(|found| (found.provider.name.as_str(), found.models.as_slice())).collect();
    assert_eq!(names, [("present", ["scripted-model".to_owned()].as_slice())]);
}

#[test]
fn a_server_without_tls_is_told_apart_from_one_that_is_absent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("https://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        std::io::Read::read_to_end(&mut stream, &mut Vec::new())
    });
    let options = ModelOptions { model: Some("m".into()), api_base: Some(base), ..ModelOptions::default() };
    let outcome = once_with(&options, true);
    assert_eq!(outcome.error().kind, FailureKind::Network);
    assert!(
        outcome.error().message.contains("TLS failed") && outcome.retries.is_empty(),
        "{}",
        outcome.error()
    );
    drop(server.join());
}

/// `{"choices":[{"message":{"content":"done"},"finish_reason":"stop"}]}`, compressed.
const GZIPPED: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x0d\xc8\xb1\x0d\x80\x40\x08\x05\xd0\x5d\x7e\xed\x04\xac\
    \x62\x8c\xb9\x20\x7a\x14\x82\x11\x3a\xc2\xee\xfa\xca\x57\xe0\xe9\xca\x12\xa0\xb5\x70\x4b\xc4\xb8\
    \x04\x54\x60\xb7\x14\x4b\x10\x0e\x37\x41\x2f\x38\xd5\x34\xe6\xfe\xca\x08\xb7\xff\x23\xfd\x41\x6f\
    \xfd\x01\xd7\x77\x4f\x63\x43\x00\x00\x00";

#[test]
fn a_compressed_answer_is_read_and_one_that_is_cut_is_an_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for kept in [GZIPPED.len(), GZIPPED.len() / 2] {
            let (mut stream, _) = listener.accept().unwrap();
            drop(std::io::Read::read(&mut stream, &mut [0; 16384]));
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\ncontent-length: {kept}\r\n\r\n"
            );
            std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
            std::io::Write::write_all(&mut stream, &GZIPPED[..kept]).unwrap();
        }
    });
    let options =
        ModelOptions { model: Some("m".into()), api_base: Some(base), retries: 0, ..ModelOptions::default() };
    assert_eq!(once_with(&options, false).text(), "done");
    let cut = once_with(&options, false);
    assert_eq!(cut.error().kind, FailureKind::Network, "{}", cut.error());
    server.join().unwrap();
}
