//! Tests of decoding unusual events and bodies.

use super::super::request::CODEC;
use super::*;
use crate::{Response, testing};
use agent_core::message::Part;
use proptest::prelude::*;
use serde_json::json;

fn decode(events: &[&str], body: bool) -> Result<Response, LlmError> {
    testing::decode(CODEC, &mut EventDecoder::default(), events, body).1
}

fn stream(events: &[Value]) -> Result<Response, LlmError> {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    decode(&events.iter().map(String::as_str).collect::<Vec<_>>(), false)
}

fn begin(index: u64, block: Value) -> Value {
    Value::from_iter([
        ("type", json!("content_block_start")),
        ("index", json!(index)),
        ("content_block", block),
    ])
}

fn piece(index: u64, delta: Value) -> Value {
    Value::from_iter([("type", json!("content_block_delta")), ("index", json!(index)), ("delta", delta)])
}

fn text(text: &str) -> Value {
    piece(0, json!({"type": "text_delta", "text": text}))
}

fn end(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}})
}

fn tool_use(index: u64, input: Value) -> Value {
    begin(
        index,
        Value::from_iter([
            ("type", json!("tool_use")),
            ("id", json!(format!("toolu_{index}"))),
            ("name", json!("read")),
            ("input", input),
        ]),
    )
}

fn arguments_of(response: &Response) -> Vec<&str> {
    response.message.tool_calls().map(|call| call.arguments.as_str()).collect()
}

#[test]
fn stop_reasons_are_brought_to_one_meaning() {
    for (sent, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("refusal", FinishReason::Refusal),
        ("pause_turn", FinishReason::Paused),
        ("model_context_window_exceeded", FinishReason::WindowFull),
        ("brand_new", FinishReason::Other("brand_new".into())),
    ] {
        assert_eq!(stream(&[text("a"), end(sent)]).unwrap().finish, expected);
    }
}

#[test]
fn an_end_is_a_stop_reason_message_stop_or_done_and_nothing_else() {
    assert_eq!(stream(&[text("a"), json!({"type": "message_stop"})]).unwrap().finish, FinishReason::Stop);
    assert_eq!(decode(&[&text("a").to_string(), "[DONE]"], false).unwrap().finish, FinishReason::Stop);
    let stopped = json!({"type": "content_block_stop", "index": 0});
    for events in [vec![], vec![text("a")], vec![text("a"), stopped, json!({"type": "ping"})]] {
        assert_eq!(stream(&events).unwrap_err().kind, FailureKind::CutStream);
    }
}

#[test]
fn l19_input_comes_in_pieces_whole_or_not_at_all() {
    let input = |index, part: &str| piece(index, json!({"type": "input_json_delta", "partial_json": part}));
    let response = stream(&[
        tool_use(0, json!({})),
        input(0, ""),
        input(0, "{\"p\":"),
        input(0, "1}"),
        tool_use(1, json!({"p": 2})),
        json!({"type": "content_block_stop", "index": 1}),
        tool_use(2, json!({})),
        input(2, ""),
        tool_use(3, json!({"p": 0})),
        input(3, "{\"p\":3}"),
        tool_use(4, json!({"p": 4})),
        end("tool_use"),
        json!({"type": "message_stop"}),
    ])
    .unwrap();
    assert_eq!(arguments_of(&response), ["{\"p\":1}", "{\"p\":2}", "{}", "{\"p\":3}", "{\"p\":4}"]);
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let cut = stream(&[tool_use(0, json!({})), input(0, "{\"p\":"), end("max_tokens")]).unwrap();
    assert_eq!((arguments_of(&cut), cut.finish.clone()), (vec!["{\"p\":"], FinishReason::Length));
}

#[test]
fn reasoning_keeps_its_place_its_signature_and_what_is_redacted() {
    let response = stream(&[
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(0, json!({"type": "thinking_delta", "thinking": "hm"})),
        piece(0, json!({"type": "signature_delta", "signature": "si"})),
        piece(0, json!({"type": "signature_delta", "signature": "g"})),
        begin(1, json!({"type": "redacted_thinking", "data": "enc"})),
        begin(2, json!({"type": "text", "text": "so"})),
        begin(3, json!({"type": "thinking", "thinking": "more", "signature": "s2"})),
        tool_use(4, json!({})),
        end("tool_use"),
    ])
    .unwrap();
    let parts = response.message.parts.iter().map(|part| match part {
        Part::Thinking { text, opaque } => format!("{text} {}", opaque.as_ref().unwrap().data),
        Part::Text { text } => text.clone(),
        Part::ToolCall(call) => call.id.clone(),
        Part::Image(_) | Part::ToolResult(_) => String::new(),
    });
    let expected =
        ["hm {\"signature\":\"sig\"}", " {\"data\":\"enc\"}", "so", "more {\"signature\":\"s2\"}", "toolu_4"];
    assert_eq!(parts.collect::<Vec<_>>(), expected);
}

#[test]
fn a_refusal_without_words_has_those_of_its_explanation() {
    let details = json!({"type": "refusal", "category": "cyber", "explanation": "Not that."});
    let refusal =
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}});
    let response = stream(std::slice::from_ref(&refusal)).unwrap();
    assert_eq!(
        (response.message.joined_text().as_str(), response.finish),
        ("Not that.", FinishReason::Refusal)
    );
    assert_eq!(stream(&[text("No."), refusal]).unwrap().message.joined_text(), "No.");
}

#[test]
fn reasoning_whose_text_is_not_shown_is_kept_for_its_signature() {
    let response = stream(&[
        begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        piece(0, json!({"type": "signature_delta", "signature": "s"})),
        text("a"),
        end("end_turn"),
    ]);
    let first = response.unwrap().message.parts.remove(0);
    assert!(
        matches!(&first, Part::Thinking { text, opaque: Some(opaque) }
        if text.is_empty() && opaque.data["signature"] == "s"),
        "{first:?}"
    );
}

#[test]
fn errors_in_a_stream_have_their_class() {
    for (kind, expected, retryable) in [
        ("overloaded_error", FailureKind::Overloaded, true),
        ("rate_limit_error", FailureKind::RateLimit, true),
        ("api_error", FailureKind::Server, true),
        ("timeout_error", FailureKind::Timeout, true),
        ("authentication_error", FailureKind::Auth, false),
        ("permission_error", FailureKind::Auth, false),
        ("billing_error", FailureKind::Quota, false),
        ("invalid_request_error", FailureKind::Request, false),
        ("not_found_error", FailureKind::Request, false),
        ("brand_new_error", FailureKind::Server, true),
    ] {
        let event = json!({"type": "error", "error": {"type": kind, "message": "no\u{1b}[2J"}});
        let error = stream(&[text("a"), event]).unwrap_err();
        assert_eq!((error.kind, error.retryable), (expected, retryable), "{kind}");
        assert!(error.message.contains("no[2J"), "{error}");
    }
}

#[test]
fn unknown_events_are_ignored_and_unknown_blocks_and_pieces_are_named() {
    assert!(stream(&[json!({"type": "brand_new"}), text("a"), end("end_turn")]).is_ok());
    for event in [begin(0, json!({"type": "hologram"})), piece(0, json!({"type": "hologram"}))] {
        let error = stream(&[event]).unwrap_err();
        assert!(error.kind == FailureKind::Malformed && error.message.contains("`hologram`"), "{error}");
    }
}

#[test]
fn a_body_is_read_like_a_stream() {
    let body = json!({"type": "message", "role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "so"},
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"b": 1, "a": 2}},
        {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
        {"type": "tool_use", "id": "toolu_3", "name": "read", "input": "{\"a\":"}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 9, "output_tokens": 2}});
    let response = decode(&[&body.to_string()], true).unwrap();
    assert_eq!(arguments_of(&response), ["{\"b\":1,\"a\":2}", "{}", "{\"a\":"]);
    assert_eq!(response.message.joined_text(), "so");
    let usage = response.usage.unwrap();
    assert_eq!((usage.input, usage.cached_read, usage.output), (3, 9, 2));
}

#[test]
fn a_body_that_is_not_an_answer_is_quoted_in_the_error() {
    for (body, word) in [
        ("<html><title>Sign in</title></html>", "web page (`Sign in`)"),
        ("", "empty"),
        ("{\"ok\":true}", "`content`"),
        ("[1]", "format"),
        ("{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"boom\"}}", "boom"),
        ("{\"error\":\"boom\"}", "boom"),
    ] {
        let error = decode(&[body], true).unwrap_err();
        assert!(error.message.contains(word), "{error}");
    }
    let error = decode(&["{\"choices\":[]}"], false).unwrap_err();
    assert!(error.kind == FailureKind::Malformed && error.message.contains("`type`"), "{error}");
}

#[test]
fn json_that_is_nested_without_end_is_refused_not_a_crash() {
    let deep = format!("{{\"type\":\"ping\",\"a\":{}", "[".repeat(200_000));
    assert_eq!(decode(&[&deep], false).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn an_endless_number_of_blocks_is_refused() {
    let events: Vec<_> = (0..5000).map(|index| begin(index, json!({"type": "text", "text": "a"}))).collect();
    assert_eq!(stream(&events).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn of_more_calls_than_may_run_one_is_kept_and_none_loses_its_input() {
    let mut events: Vec<_> = (0..5000).map(|index| tool_use(index, json!({"a": index}))).collect();
    events.push(json!({"type": "message_stop"}));
    let response = stream(&events).unwrap();
    let arguments = arguments_of(&response);
    let expected: Vec<String> = (0..CALLS_CAP).map(|index| format!("{{\"a\":{index}}}")).collect();
    assert_eq!(arguments.len(), CALLS_CAP + 1);
    assert!(arguments.iter().zip(&expected).all(|(sent, expected)| sent == expected));
}

proptest! {
    #[test]
    fn no_event_makes_it_panic(
        kind in "(message_start|content_block_start|content_block_delta|content_block_stop|message_delta|message_stop|error)",
        rest in r#"[{}\[\]":,a-z0-9 ]{0,40}"#,
        holder in "(content_block|delta|message|usage)",
        block in "(text|thinking|redacted_thinking|tool_use|text_delta|signature_delta|input_json_delta)",
    ) {
        let event = format!(r#"{{"type":"{kind}","index":1,"{holder}":{{"type":"{block}","x":[]}}}}"#);
        let _ = decode(&[&event, &rest, &event], false);
        let _ = decode(&[&rest], true);
    }
}
