//! Tests of decoding unusual events and bodies.

use super::super::request::CODEC;
use super::*;
use crate::{Response, testing};
use agent_core::message::{Message, Part};
use proptest::prelude::*;
use std::borrow::Borrow;

/// Returns the shown text and the outcome.
fn decode(events: &[Value], body: bool) -> (String, Result<Response, LlmError>) {
    let events: Vec<String> = events.iter().map(Value::to_string).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    testing::decode(CODEC, &mut EventDecoder::default(), &events, body)
}

fn stream(events: &[Value]) -> Response {
    decode(events, false).1.unwrap()
}

fn event(kind: &str, index: u64, more: impl Borrow<Value>) -> Value {
    let mut event = json!({"type": format!("response.{kind}"), "output_index": index});
    event.as_object_mut().unwrap().extend(more.borrow().as_object().unwrap().clone());
    event
}

fn added(index: u64, item: impl Borrow<Value>) -> Value {
    event("output_item.added", index, json!({ "item": item.borrow() }))
}

fn done(index: u64, item: impl Borrow<Value>) -> Value {
    event("output_item.done", index, json!({ "item": item.borrow() }))
}

fn delta(kind: &str, index: u64, piece: &str) -> Value {
    event(&format!("{kind}.delta"), index, json!({ "delta": piece }))
}

fn end(status: &str, more: impl Borrow<Value>) -> Value {
    let mut response = json!({"status": status, "output": []});
    response.as_object_mut().unwrap().extend(more.borrow().as_object().unwrap().clone());
    json!({"type": format!("response.{status}"), "response": response})
}

fn completed() -> Value {
    end("completed", json!({}))
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": text}]})
}

fn call(call_id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "read", "arguments": arguments})
}

fn calls(message: &Message) -> Vec<(&str, &str)> {
    message.tool_calls().map(|call| (call.id.as_str(), call.arguments.as_str())).collect()
}

/// Returns the data that is sent back to the server, in order.
fn replayed(message: &Message) -> Vec<Value> {
    let data = |part: &Part| match part {
        Part::Thinking { opaque, .. } => opaque.as_ref().map(|opaque| opaque.data.clone()),
        Part::Image(_) | Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    };
    message.parts.iter().filter_map(data).collect()
}

#[test]
fn the_whole_answer_is_taken_from_where_it_is_first_whole() {
    let reasoning = json!({"type": "reasoning", "id": "rs", "status": null, "encrypted_content": "x",
        "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]});
    let items = [reasoning, message("Hello"), call("c1", "{\"p\":1}")];
    let pieces: Vec<_> = items.iter().zip(0..).map(|(item, at)| done(at, item.clone())).collect();
    let at_end = end("completed", json!({ "output": items }));
    let whole = decode(&[at_end["response"].clone()], true);
    for events in [[pieces.as_slice(), &[completed()]].concat(), vec![at_end]] {
        assert_eq!(decode(&events, false), whole);
    }
    let (shown, response) = whole;
    let response = response.unwrap();
    assert_eq!(shown, "<a\n\nb>Hello");
    assert_eq!(calls(&response.message), [("c1", "{\"p\":1}")]);
    assert_eq!(response.finish, FinishReason::ToolCalls);
    let summary = json!([{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]);
    let back = json!({"type": "reasoning", "summary": summary, "encrypted_content": "x"});
    assert_eq!(replayed(&response.message), [back]);
}

#[test]
fn content_that_arrived_in_pieces_is_not_read_twice() {
    let events = [
        added(0, message("")),
        delta("output_text", 0, "Hel"),
        delta("output_text", 0, "lo"),
        event("output_text.done", 0, json!({"text": "Hello"})),
        done(0, message("Hello")),
        added(1, call("c1", "")),
        delta("function_call_arguments", 1, "{\"p\":"),
        delta("function_call_arguments", 1, "1}"),
        event("function_call_arguments.done", 1, json!({"arguments": "{\"p\":1}"})),
        done(1, call("c1", "{\"p\":1}")),
        end("completed", json!({"output": [message("Hello"), call("c1", "{\"p\":1}")]})),
    ];
    let (shown, response) = decode(&events, false);
    let message = response.unwrap().message;
    assert_eq!((shown.as_str(), message.joined_text().as_str()), ("Hello", "Hello"));
    assert_eq!(calls(&message), [("c1", "{\"p\":1}")]);
}

#[test]
fn pieces_without_an_index_follow_their_items_id() {
    let without = |mut event: Value, id: &str| {
        event.as_object_mut().unwrap().remove("output_index");
        event["item_id"] = json!(id);
        event
    };
    let begin = |id: &str| without(added(0, call(id, "")), id);
    let piece = |id: &str, piece: &str| without(delta("function_call_arguments", 0, piece), id);
    let events = [
        begin("a"),
        begin("b"),
        piece("a", "{\"p\":"),
        piece("b", "{}"),
        piece("a", "1}"),
        without(done(0, call("a", "{\"p\":1}")), "a"),
        without(done(0, call("b", "{}")), "b"),
        completed(),
    ];
    assert_eq!(calls(&stream(&events).message), [("a", "{\"p\":1}"), ("b", "{}")]);
}

#[test]
fn whole_items_that_all_have_index_0_stay_apart() {
    let events = [done(0, call("a", "{}")), done(0, call("b", "{}")), completed()];
    assert_eq!(calls(&stream(&events).message), [("a", "{}"), ("b", "{}")]);
}

#[test]
fn arguments_may_be_an_object_and_a_call_may_be_of_a_custom_tool() {
    let object = json!({"type": "function_call", "call_id": "a", "name": "read", "arguments": {"p": 1}});
    let custom = json!({"type": "custom_tool_call", "call_id": "b", "name": "read", "input": "*** Begin"});
    let events = [done(0, object), done(1, custom), completed()];
    assert_eq!(calls(&stream(&events).message), [("a", "{\"p\":1}"), ("b", "*** Begin")]);
}

#[test]
fn items_keep_their_order_and_texts_their_phase() {
    let said = |text: &str, phase: &str| {
        let mut item = message(text);
        item["phase"] = json!(phase);
        item
    };
    let sealed = json!({"type": "reasoning", "encrypted_content": "x"});
    let events = [
        done(0, said("First.", "commentary")),
        done(1, sealed.clone()),
        done(2, call("c", "{}")),
        done(3, sealed),
        done(4, said("Second.", "final_answer")),
        completed(),
    ];
    let message = stream(&events).message;
    let kinds: Vec<_> = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => text.as_str(),
            Part::Thinking { .. } => "thinking",
            Part::ToolCall(_) => "call",
            Part::Image(_) | Part::ToolResult(_) => "result",
        })
        .collect();
    assert_eq!(kinds, ["thinking", "First.", "thinking", "call", "thinking", "thinking", "Second."]);
    let back = json!({"type": "reasoning", "summary": [], "encrypted_content": "x"});
    assert_eq!(
        replayed(&message),
        [json!({"phase": "commentary"}), back.clone(), back, json!({"phase": "final_answer"})]
    );
}

#[test]
fn open_reasoning_goes_back_as_text_and_reasoning_that_is_not_whole_does_not_go_back() {
    let open = json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "",
        "content": [{"type": "reasoning_text", "text": "hm"}]});
    let (shown, response) = decode(&[done(0, open.clone()), done(1, message("a")), completed()], false);
    let expected = json!({"type": "reasoning", "id": "rs", "summary": [], "content": open["content"]});
    assert_eq!((shown.as_str(), replayed(&response.unwrap().message)), ("<hm>a", vec![expected]));
    let cut = end("incomplete", json!({"incomplete_details": {"reason": "max_output_tokens"}}));
    let response = stream(&[delta("reasoning_text", 0, "hm"), cut]);
    assert_eq!((response.finish, replayed(&response.message)), (FinishReason::Length, vec![Value::Null]));
}

#[test]
fn each_end_has_its_reason() {
    let incomplete = |reason: Value| {
        let last = end("incomplete", json!({"incomplete_details": {"reason": reason}}));
        stream(&[delta("output_text", 0, "a"), last]).finish
    };
    assert_eq!(incomplete(json!("max_output_tokens")), FinishReason::Length);
    assert_eq!(incomplete(json!("content_filter")), FinishReason::ContentFilter);
    assert_eq!(incomplete(json!("new")), FinishReason::Other("new".into()));
    assert_eq!(incomplete(Value::Null), FinishReason::Other("incomplete".into()));
    let refusal = stream(&[delta("refusal", 0, "I will "), delta("refusal", 0, "not."), completed()]);
    assert_eq!(
        (refusal.finish, refusal.message.joined_text()),
        (FinishReason::Refusal, "I will not.".into())
    );
    let item = json!({"type": "message", "content": [{"type": "refusal", "refusal": "No."}]});
    assert_eq!(stream(&[done(0, item), completed()]).message.joined_text(), "No.");
}

#[test]
fn errors_are_classified_wherever_they_stand() {
    let failed = |code: &str| end("failed", json!({"error": {"code": code, "message": "m"}}));
    for (event, kind) in [
        (failed("server_error"), FailureKind::Server),
        (failed("rate_limit_exceeded"), FailureKind::RateLimit),
        (failed("insufficient_quota"), FailureKind::Quota),
        (failed("server_is_overloaded"), FailureKind::Overloaded),
        (failed("invalid_prompt"), FailureKind::Request),
        (failed("context_length_exceeded"), FailureKind::ContextOverflow),
        (end("failed", json!({})), FailureKind::Server),
        (end("cancelled", json!({})), FailureKind::Server),
        (json!({"type": "error", "code": "rate_limit_exceeded", "message": "m"}), FailureKind::RateLimit),
        (json!({"type": "error", "error": {"type": "server_error", "message": "m"}}), FailureKind::Server),
        (json!({"error": {"code": 429, "message": "m"}}), FailureKind::RateLimit),
        (json!({"choices": []}), FailureKind::Malformed),
        (json!([]), FailureKind::Malformed),
        (json!("x"), FailureKind::Malformed),
    ] {
        let error = decode(&[delta("output_text", 0, "a"), event.clone()], false).1.unwrap_err();
        assert_eq!(error.kind, kind, "{event}: {error}");
    }
    for (body, kind) in [
        (json!({"error": {"code": 429, "message": "m"}}), FailureKind::RateLimit),
        (json!({"status": "failed", "error": {"code": "server_error", "message": "m"}}), FailureKind::Server),
        (json!({"status": "queued", "output": []}), FailureKind::Malformed),
        (json!({"output": []}), FailureKind::Malformed),
    ] {
        assert_eq!(decode(std::slice::from_ref(&body), true).1.unwrap_err().kind, kind, "{body}");
    }
}

#[test]
fn an_answer_of_nothing_but_unknown_items_is_named_and_unknown_events_are_passed_over() {
    let unknown = done(0, json!({"type": "hologram_call", "id": "h"}));
    let error = decode(&[unknown.clone(), completed()], false).1.unwrap_err();
    assert!(error.kind == FailureKind::Malformed && error.message.contains("`hologram_call`"), "{error}");
    let events =
        [event("hologram.delta", 0, json!({"delta": {}})), unknown, done(1, message("a")), completed()];
    assert_eq!(stream(&events).message.joined_text(), "a");
}

#[test]
fn a_stream_that_ends_before_its_last_event_is_cut() {
    let error = decode(&[delta("output_text", 0, "a"), done(0, message("a"))], false).1.unwrap_err();
    assert_eq!(error.kind, FailureKind::CutStream);
}

#[test]
fn items_are_bounded() {
    let events: Vec<_> = (0..=1024).map(|index| added(index, json!({"type": "hologram_call"}))).collect();
    assert_eq!(decode(&events, false).1.unwrap_err().kind, FailureKind::Malformed);
}

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0u64..3).prop_map(Value::from),
        "[a-z{\"]{0,4}".prop_map(Value::from),
        prop::sample::select(vec!["message", "reasoning", "function_call", "completed"])
            .prop_map(Value::from),
    ];
    let field = prop::sample::select(vec![
        "type",
        "output_index",
        "item_id",
        "delta",
        "arguments",
        "item",
        "response",
        "error",
        "status",
        "output",
        "usage",
        "content",
        "text",
        "call_id",
        "name",
        "summary",
        "encrypted_content",
    ]);
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((field.clone(), inner), 0..5).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #[test]
    fn nothing_that_a_server_sends_panics(
        events in prop::collection::vec((prop::sample::select(vec![
            "output_item.added", "output_item.done", "output_text.delta", "refusal.delta",
            "reasoning_summary_part.added", "reasoning_text.delta", "function_call_arguments.delta",
            "function_call_arguments.done", "completed", "incomplete", "failed",
        ]), anything()), 0..8),
        whole in any::<bool>(),
    ) {
        let typed = |(kind, mut event): (&str, Value)| {
            if let Some(event) = event.as_object_mut() {
                event.insert("type".into(), json!(format!("response.{kind}")));
            }
            event
        };
        let events: Vec<_> = events.into_iter().map(typed).collect();
        let _ = decode(&events, whole);
    }
}
