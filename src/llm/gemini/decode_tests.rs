//! Tests of decoding unusual events and bodies.

use super::super::Gemini;
use super::super::opaque::CODEC;
use super::*;
use crate::codec::Encoder;
use crate::{Response, testing};
use agent_core::event::FinishReason;
use agent_core::message::Message;
use proptest::prelude::*;
use serde_json::json;

/// Returns the shown text and the outcome.
fn decode(events: &[&str], body: bool) -> (String, Result<Response, LlmError>) {
    testing::decode(CODEC, &mut PartDecoder::default(), events, body)
}

fn stream(events: &[&str]) -> Response {
    decode(events, false).1.unwrap()
}

fn error_of(events: &[&str]) -> LlmError {
    decode(events, false).1.unwrap_err()
}

#[expect(clippy::needless_pass_by_value, reason = "values are written where they are passed")]
fn event(parts: Value, finish: Value) -> String {
    json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": finish}]})
        .to_string()
}

fn text(piece: &str) -> String {
    event(json!([{ "text": piece }]), Value::Null)
}

fn end(reason: &str) -> String {
    event(json!([{"text": ""}]), json!(reason))
}

fn ids_and_arguments(response: &Response) -> Vec<(String, String)> {
    response.message.tool_calls().map(|call| (call.id.clone(), call.arguments.clone())).collect()
}

/// Returns the parts as they would be sent back.
fn replayed(message: &Message) -> Value {
    let mut json = Vec::new();
    Gemini.write_message(message, &[], None, &mut json).unwrap();
    serde_json::from_slice::<Value>(&json).unwrap()["parts"].clone()
}

#[test]
fn every_signature_goes_back_on_its_own_part_in_the_same_order() {
    let first = json!([{"text": "h", "thought": true}, {"text": "m", "thought": true}, {"text": "a"}]);
    let second = json!([{"text": "b"}, {"text": "c", "thoughtSignature": "1"}, {"text": "d"},
        {"text": "t", "thought": true, "thoughtSignature": "2"},
        {"functionCall": {"id": "x", "name": "read", "args": {"p": 1}}, "thoughtSignature": "3"},
        {"functionCall": {"name": "read", "args": {"p": 2}}}]);
    let last = json!([{"text": "", "thoughtSignature": "4"}]);
    let (shown, outcome) = decode(
        &[&event(first, Value::Null), &event(second, Value::Null), &event(last, json!("STOP"))],
        false,
    );
    let response = outcome.unwrap();
    assert_eq!((shown.as_str(), &response.finish), ("<h><m>abcd<t>", &FinishReason::ToolCalls));
    assert_eq!(
        replayed(&response.message),
        json!([{"text": "ab"}, {"text": "c", "thoughtSignature": "1"}, {"text": "d"},
            {"text": "t", "thought": true, "thoughtSignature": "2"},
            {"functionCall": {"id": "x", "name": "read", "args": {"p": 1}}, "thoughtSignature": "3"},
            {"functionCall": {"name": "read", "args": {"p": 2}}},
            {"text": "", "thoughtSignature": "4"}])
    );
}

#[test]
fn ids_that_are_missing_or_doubled_are_made_up_but_those_sent_go_back() {
    let call = |id: &str| json!({"functionCall": {"id": id, "name": "read", "args": {}}});
    let other = json!({"functionCall": {"id": "a", "name": "read", "args": {"p": 1}}});
    let none = json!({"functionCall": {"name": "read", "args": {}}});
    let response = stream(&[&event(json!([none, call(""), call("a"), other]), json!("STOP"))]);
    let ids: Vec<_> = response.message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids, ["new1", "new2", "a", "new3"]);
    let parts = replayed(&response.message);
    let sent: Vec<_> = (0..4).map(|at| parts[at]["functionCall"].get("id").cloned()).collect();
    assert_eq!(sent, [None, None, Some(json!("a")), Some(json!("a"))]);
}

#[test]
fn l19_arguments_that_are_missing_or_null_mean_none_and_a_string_holds_them() {
    for (function, expected) in [
        (json!({"name": "read"}), "{}"),
        (json!({"name": "read", "args": null}), "{}"),
        (json!({"name": "read", "args": {"b": 1.0, "a": [2]}}), "{\"b\":1.0,\"a\":[2]}"),
        (json!({"name": "read", "args": "{\"path\":"}), "{\"path\":"),
    ] {
        let response = stream(&[&event(json!([{ "functionCall": function }]), json!("STOP"))]);
        assert_eq!(ids_and_arguments(&response), [("new1".to_owned(), expected.to_owned())]);
    }
}

#[test]
fn arguments_in_pieces_are_an_error_not_a_call_without_them() {
    for function in [
        json!({"name": "read", "willContinue": true}),
        json!({"partialArgs": [{"jsonPath": "$.path", "stringValue": "a"}]}),
    ] {
        let error = error_of(&[&event(json!([{ "functionCall": function }]), json!("STOP"))]);
        assert_eq!(error.kind, FailureKind::Malformed);
        assert!(error.message.contains("in pieces"), "{error}");
    }
}

#[test]
fn finish_reasons_are_brought_to_one_meaning() {
    for (sent, expected) in [
        ("MAX_TOKENS", FinishReason::Length),
        ("SAFETY", FinishReason::Filtered("SAFETY".into())),
        ("RECITATION", FinishReason::Filtered("RECITATION".into())),
        ("LANGUAGE", FinishReason::Filtered("LANGUAGE".into())),
        ("MODEL_ARMOR", FinishReason::Filtered("MODEL_ARMOR".into())),
        ("OTHER", FinishReason::Other("OTHER".into())),
        ("CONTINUATION", FinishReason::Paused),
        ("BRAND_NEW", FinishReason::Other("BRAND_NEW".into())),
    ] {
        assert_eq!(stream(&[&text("a"), &end(sent)]).finish, expected);
    }
    assert_eq!(error_of(&[&text("a"), &end("FINISH_REASON_UNSPECIFIED")]).kind, FailureKind::CutStream);
    assert_eq!(error_of(&[&end("MISSING_THOUGHT_SIGNATURE")]).kind, FailureKind::Request);
}

#[test]
fn what_gemini_says_about_the_end_of_an_answer_is_kept() {
    let end = |reason: &str| {
        json!({"candidates": [{"finishReason": reason, "finishMessage": "so \u{1b}it is"}]}).to_string()
    };
    let response = stream(&[&text("a"), &end("OTHER")]);
    assert_eq!(response.finish, FinishReason::Other("OTHER (so it is)".into()));
    assert_eq!(stream(&[&end("LANGUAGE")]).finish, FinishReason::Filtered("LANGUAGE (so it is)".into()));
}

#[test]
fn a_call_that_did_not_parse_is_an_error_with_its_text_and_may_be_asked_again() {
    let event = json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": "Malformed function call: print(read(\u{1b}path='a'))"}]});
    let error = error_of(&[&event.to_string()]);
    assert_eq!((error.kind, error.retryable), (FailureKind::ToolUseFailed, true));
    assert!(
        error.message.contains("`MALFORMED_FUNCTION_CALL` (Malformed function call: print(read(path='a')))")
    );
    for reason in ["UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"] {
        assert_eq!(error_of(&[&end(reason)]).kind, FailureKind::ToolUseFailed, "{reason}");
    }
}

#[test]
fn a_blocked_prompt_is_a_refusal_that_says_why() {
    let block = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."},
        "usageMetadata": {"promptTokenCount": 7}});
    for body in [false, true] {
        let error = decode(&[&block.to_string()], body).1.unwrap_err();
        assert_eq!((error.kind, error.retryable), (FailureKind::Refusal, false));
        assert!(error.message.ends_with("`PROHIBITED_CONTENT` (No.)"), "{error}");
    }
    let rated = json!({"promptFeedback": {"safetyRatings": []}}).to_string();
    assert_eq!(stream(&[&rated, &text("a"), &end("STOP")]).message.joined_text(), "a");
}

#[test]
fn a_stream_ends_with_a_reason_and_may_say_one_in_every_event() {
    assert_eq!(error_of(&[&text("a")]).kind, FailureKind::CutStream);
    assert_eq!(error_of(&[]).kind, FailureKind::CutStream);
    let stop = |piece: &str| event(json!([{ "text": piece }]), json!("STOP"));
    assert_eq!(stream(&[&stop("a"), &stop("b")]).message.joined_text(), "ab");
    assert_eq!(stream(&[&text("a"), "[DONE]"]).message.joined_text(), "a");
}

#[test]
fn the_last_usage_counts() {
    let usage = |tokens: u64| json!({"usageMetadata": {"promptTokenCount": tokens}}).to_string();
    assert_eq!(stream(&[&usage(1), &end("STOP"), &usage(2)]).usage.unwrap().input, 2);
}

#[test]
fn an_empty_stop_is_an_empty_answer_which_the_client_asks_for_again() {
    for candidate in
        [json!({"finishReason": "STOP"}), json!({"content": {"parts": [{}]}, "finishReason": "STOP"})]
    {
        let response = stream(&[&json!({ "candidates": [candidate] }).to_string()]);
        assert!(response.message.parts.is_empty() && response.finish == FinishReason::Stop, "{response:?}");
    }
}

#[test]
fn other_candidates_are_not_part_of_the_answer() {
    let two = json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}},
        {"index": 0, "content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}]});
    assert_eq!(stream(&[&two.to_string()]).message.joined_text(), "a");
}

#[test]
fn a_part_that_is_not_understood_is_an_error_that_shows_it() {
    for part in [
        json!({"executableCode": {"code": "rm"}}),
        json!({"inlineData": {"data": "AAAA"}, "thoughtSignature": "s"}),
    ] {
        let error = error_of(&[&event(json!([part]), json!("STOP"))]);
        let name = part.as_object().unwrap().keys().next().unwrap();
        assert!(error.kind == FailureKind::Malformed && error.message.contains(name), "{error}");
    }
    let signature = json!({"thoughtSignature": "s"});
    let response = stream(&[&text("a"), &event(json!([signature]), json!("STOP"))]);
    assert_eq!(replayed(&response.message)[1], json!({"text": "", "thoughtSignature": "s"}));
}

#[test]
fn an_error_inside_the_stream_is_an_error() {
    let error = json!({"error": {"code": 503, "message": "The model is\u{1b}[2J overloaded.", "status": "UNAVAILABLE"}});
    let (shown, outcome) = decode(&[&text("a"), &error.to_string()], false);
    let error = outcome.unwrap_err();
    assert_eq!((shown.as_str(), error.kind, error.retryable), ("a", FailureKind::Overloaded, true));
    assert!(error.message.contains("The model is[2J overloaded."), "{error}");
}

#[test]
fn a_body_is_read_like_a_stream_and_so_is_a_list() {
    let parts = json!([{"text": "hm", "thought": true}, {"text": "a", "thoughtSignature": "s"}]);
    let one = event(parts.clone(), json!("STOP"));
    let list = format!("[{},\r\n{}]", event(parts, Value::Null), end("STOP"));
    let listed = decode(&[&list], true).1.unwrap();
    for body in [one.clone(), format!("\u{FEFF} {one}\n")] {
        let response = decode(&[&body], true).1.unwrap();
        assert_eq!(response.message.joined_text(), "a");
        assert_eq!((&response.message, response.finish), (&listed.message, FinishReason::Stop));
    }
    let cut = decode(&[&format!("[{}]", text("a"))], true).1.unwrap_err();
    assert_eq!(cut.kind, FailureKind::CutStream);
}

#[test]
fn a_body_that_is_not_an_answer_is_quoted_in_the_error() {
    for (body, word) in [
        ("<html><title>Sign in</title></html>", "web page (`Sign in`)"),
        ("", "empty"),
        ("{\"ok\":true}", "candidates"),
        ("{\"candidates\":", "EOF"),
        ("[1]", "format"),
    ] {
        let error = decode(&[body], true).1.unwrap_err();
        assert_eq!(error.kind, FailureKind::Malformed);
        assert!(error.message.contains(word), "{error}");
    }
}

#[test]
fn json_that_is_nested_without_end_is_refused_not_a_crash() {
    for inner in ["{\"promptFeedback\":", "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":"] {
        let deep = format!("{inner}{}", "[".repeat(200_000));
        assert_eq!(error_of(&[&deep]).kind, FailureKind::Malformed);
    }
    let depth = 100_000;
    let args = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let call = format!(
        "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"name\":\"read\",\"args\":{args}}}}}]}},\
         \"finishReason\":\"STOP\"}}]}}"
    );
    let response = stream(&[&call]);
    assert_eq!(ids_and_arguments(&response), [("new1".to_owned(), args)]);
    assert!(replayed(&response.message)[0]["functionCall"]["args"]["invalid_json"].is_string());
}

proptest! {
    #[test]
    fn no_event_makes_it_panic(events in prop::collection::vec(r#"[{}\[\]":,a-z0-9 ]{0,40}"#, 0..6)) {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let _ = decode(&events, false);
        let _ = decode(&events, true);
    }

    #[test]
    fn text_is_complete_however_it_is_cut(pieces in prop::collection::vec("[a-z{}`\\[\"\n é]{0,6}", 0..8)) {
        let events: Vec<String> = pieces.iter().map(|piece| text(piece)).chain([end("STOP")]).collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let (shown, outcome) = decode(&events, false);
        let whole = pieces.concat();
        prop_assert_eq!(outcome.unwrap().message.joined_text(), whole.clone());
        prop_assert_eq!(shown, whole);
    }
}
