//! Tests of decoding unusual events and bodies.

use super::super::request::CODEC;
use super::*;
use crate::{Progress, Response, testing};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use proptest::prelude::*;
use serde_json::json;

/// Returns the shown text and the outcome.
fn decode(events: &[&str], body: bool) -> (String, Result<Response, LlmError>) {
    testing::decode(CODEC, &mut ChunkDecoder::default(), events, body)
}

fn stream(events: &[&str]) -> Response {
    decode(events, false).1.unwrap()
}

fn delta(delta: Value, finish: Value) -> String {
    let choice = Value::from_iter([("index", json!(0)), ("delta", delta), ("finish_reason", finish)]);
    json!({"choices": [choice]}).to_string()
}

fn text(piece: &str) -> String {
    delta(json!({"content": piece}), Value::Null)
}

fn end(reason: &str) -> String {
    delta(json!({}), json!(reason))
}

fn ids_and_arguments(response: &Response) -> Vec<(String, String)> {
    response.message.tool_calls().map(|call| (call.id.clone(), call.arguments.clone())).collect()
}

#[test]
fn o08_usage_after_the_finish_chunk_counts_and_the_last_one_wins() {
    let usage = |prompt: u64| {
        json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": 1}}).to_string()
    };
    let response = stream(&[&text("a"), &end("stop"), &usage(7), &usage(9), "[DONE]"]);
    assert_eq!(response.usage.unwrap().input, 9);
    let groq = json!({"x_groq": {"usage": {"prompt_tokens": 4, "completion_tokens": 1}}}).to_string();
    assert_eq!(stream(&[&text("a"), &end("stop"), &groq]).usage.unwrap().input, 4);
}

#[test]
fn done_is_optional_after_a_finish_reason_and_suffices_without_one() {
    assert_eq!(stream(&[&text("a"), &end("stop")]).finish, FinishReason::Stop);
    assert_eq!(stream(&[&text("a"), "[DONE]"]).finish, FinishReason::Stop);
    assert_eq!(stream(&[&end("stop"), &text("a"), &end("stop")]).finish, FinishReason::Stop);
    let unended = decode(&[&text("a"), &end("stop"), &text("b")], false).1.unwrap_err();
    assert_eq!(unended.kind, FailureKind::CutStream, "the reason was not the end, and no other came");
    assert_eq!(decode(&[&text("a")], false).1.unwrap_err().kind, FailureKind::CutStream);
    assert_eq!(decode(&[], false).1.unwrap_err().kind, FailureKind::CutStream);
}

#[test]
fn finish_reasons_are_brought_to_one_meaning() {
    for (sent, expected) in [
        ("length", FinishReason::Length),
        ("model_length", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("sensitive", FinishReason::ContentFilter),
        ("model_context_window_exceeded", FinishReason::WindowFull),
        ("brand_new", FinishReason::Other("brand_new".into())),
    ] {
        assert_eq!(stream(&[&text("a"), &end(sent)]).finish, expected);
    }
    let counted = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "insufficient_system_resource"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
    let error = decode(&[&counted.to_string()], false).1.unwrap_err();
    assert_eq!(error.usage.map(|usage| usage.output), Some(1), "what was counted is paid for and no more");
    for sent in ["error", "network_error", "insufficient_system_resource", "abort"] {
        let error = decode(&[&end(sent)], false).1.unwrap_err();
        assert!(error.kind == FailureKind::Server && error.message.contains(sent), "{error}");
    }
}

#[test]
fn calls_with_finish_stop_are_calls() {
    let call =
        json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}]});
    for sent in ["stop", "tool_use"] {
        let response = stream(&[&delta(call.clone(), Value::Null), &end(sent)]);
        assert_eq!(response.finish, FinishReason::ToolCalls, "{sent}");
    }
}

#[test]
fn ids_that_are_missing_or_doubled_are_made_up() {
    let call = |index: u64, id: &str, arguments: &str| json!({"index": index, "id": id, "function": {"name": "read", "arguments": arguments}});
    let calls = [call(0, "", "{}"), call(1, "a", "{}"), call(2, "a", "{\"p\":1}")];
    let calls = json!({"tool_calls": calls});
    let response = stream(&[&delta(calls, json!("tool_calls"))]);
    let ids: Vec<_> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["new1", "a", "new2"]);
}

#[test]
fn l19_arguments_that_are_empty_or_null_mean_none_and_broken_ones_stay_broken() {
    let call = |arguments: Value| {
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": arguments}}]}),
            Value::Null,
        )
    };
    for (arguments, expected) in [
        (json!(""), "{}"),
        (json!("null"), "{}"),
        (Value::Null, "{}"),
        (json!({"a": 1}), "{\"a\":1}"),
        (json!("{\"path\":"), "{\"path\":"),
    ] {
        let response = stream(&[&call(arguments), &end("tool_calls")]);
        assert_eq!(ids_and_arguments(&response), [("a".to_owned(), expected.to_owned())]);
    }
    let cut = stream(&[&call(json!("")), &end("length")]);
    assert_eq!(ids_and_arguments(&cut), [("a".to_owned(), String::new())]);
}

#[test]
fn what_a_server_adds_to_a_stream_is_ignored_but_vllms_error_object_is_an_error() {
    let response = stream(&["{\"type\":\"ping\"}", &text("a"), "{\"choices\":null}", &end("stop")]);
    assert_eq!(response.message.joined_text(), "a");
    let error = "{\"object\":\"error\",\"message\":\"too big\",\"code\":400}";
    let error = decode(&[error], false).1.unwrap_err();
    assert!(error.kind == FailureKind::Request && error.message.contains("too big"), "{error}");
}

#[test]
fn a_signature_of_a_call_is_kept_for_its_replay() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "extra_content": {"google": {"thought_signature": "s"}},
        "function": {"name": "read", "arguments": "{}"}}]});
    let response = stream(&[&delta(call, json!("tool_calls"))]);
    let opaque = response.message.tool_calls().next().unwrap().opaque.as_ref().unwrap();
    assert_eq!((opaque.codec.as_str(), &opaque.data["google"]["thought_signature"]), (CODEC, &json!("s")));
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    let error = json!({"error": {"message": "upstream\u{1b}[2J broke", "code": 502}}).to_string();
    let (shown, outcome) = decode(&[&text("a"), &error], false);
    let error = outcome.unwrap_err();
    assert_eq!((shown.as_str(), error.kind, error.retryable), ("a", FailureKind::Server, true));
    assert!(error.message.contains("upstream[2J broke"), "{error}");
}

#[test]
fn reasoning_is_thinking_under_either_name_and_in_lists() {
    let list = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "c"}]}, {"type": "text", "text": "d"}]});
    let both = json!({"reasoning": "b", "reasoning_content": "b"});
    let (shown, outcome) = decode(
        &[
            &delta(json!({"reasoning": "a", "reasoning_content": ""}), Value::Null),
            &delta(both, Value::Null),
            &delta(list, json!("stop")),
        ],
        false,
    );
    assert_eq!(shown, "<a><b><c>d");
    assert_eq!(outcome.unwrap().message.joined_text(), "d");
}

#[test]
fn a_refusal_is_text_with_its_own_finish() {
    let response = stream(&[&delta(json!({"refusal": "No."}), Value::Null), &end("stop")]);
    assert_eq!((response.message.joined_text().as_str(), response.finish), ("No.", FinishReason::Refusal));
}

#[test]
fn l21_a_call_written_as_text_is_a_call_and_is_not_shown() {
    let (shown, outcome) =
        decode(&[&text("{\"name\":\"read\","), &text("\"arguments\":{\"p\":1}}"), &end("stop")], false);
    let response = outcome.unwrap();
    assert_eq!((shown.as_str(), response.message.joined_text().as_str()), ("", ""));
    assert_eq!(ids_and_arguments(&response), [("new1".to_owned(), "{\"p\":1}".to_owned())]);
    assert_eq!(response.finish, FinishReason::ToolCalls);
}

#[test]
fn l22_json_that_is_no_call_is_shown_and_kept() {
    let (shown, outcome) = decode(&[&text("{\"name\":"), &text("\"x\"}"), &end("stop")], false);
    assert_eq!(shown, "{\"name\":\"x\"}");
    assert_eq!(outcome.unwrap().message.joined_text(), shown);
}

#[test]
fn text_is_shown_as_it_comes() {
    let mut pieces = Vec::new();
    let mut show = |progress: Progress<'_>| pieces.push(format!("{progress:?}"));
    let mut answer = ResponseBuilder::new(CODEC, true, &mut show);
    for event in [text("a"), text("b"), text(" {")] {
        ChunkDecoder::default().decode_event(&event, &mut answer).unwrap();
    }
    assert_eq!(pieces.len(), 3);
}

#[test]
fn a_body_is_read_like_a_stream() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls":
        [{"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"p\":1}"}}]},
        "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}});
    let response = decode(&[&body.to_string()], true).1.unwrap();
    assert_eq!(ids_and_arguments(&response), [("a".to_owned(), "{\"p\":1}".to_owned())]);
    assert_eq!(response.usage.unwrap().output, 2);
}

#[test]
fn a_body_that_is_not_an_answer_is_quoted_in_the_error() {
    for (body, word) in [
        ("<html><title>Sign in</title></html>", "web page (`Sign in`)"),
        ("", "empty"),
        ("{\"ok\":true}", "choices"),
        ("{\"choices\":", "EOF"),
        ("[1]", "format"),
    ] {
        let error = decode(&[body], true).1.unwrap_err();
        assert_eq!(error.kind, FailureKind::Malformed);
        assert!(error.message.contains(word), "{error}");
    }
}

#[test]
fn json_that_is_nested_without_end_is_refused_not_a_crash() {
    let deep = format!("{{\"choices\":[{{\"delta\":{{\"content\":{}", "[".repeat(200_000));
    assert_eq!(decode(&[&deep], false).1.unwrap_err().kind, FailureKind::Malformed);
}

proptest! {
    #[test]
    fn no_event_makes_it_panic(events in prop::collection::vec(r#"[{}\[\]":,a-z0-9 ]{0,40}"#, 0..6)) {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let _ = decode(&events, false);
    }

    #[test]
    fn text_is_complete_however_it_is_cut(pieces in prop::collection::vec("[a-z{}`\\[\"\n é]{0,6}", 0..8)) {
        let events: Vec<String> = pieces.iter().map(|piece| text(piece)).chain([end("stop")]).collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (shown, outcome) = decode(&events, false);
        let whole = pieces.concat();
        prop_assert_eq!(outcome.unwrap().message.joined_text(), whole.clone());
        prop_assert_eq!(shown, whole);
    }
}
