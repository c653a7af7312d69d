//! Renders a scripted turn as a Responses answer: events or a body.

use super::pieces::{arguments, id, pieces};
use crate::scripted::Turn;
use serde_json::{Value, json};

/// Returns a turn's answer as the data of server-sent events; the last one contains the final status.
pub fn events(turn: &Turn, number: usize) -> Vec<String> {
    let mut events =
        vec![json!({"type": "response.created", "response": {"status": "in_progress", "output": []}})];
    for (index, item) in output(turn, number).into_iter().enumerate() {
        let (field, kind, whole) = content(&item);
        let mut added = item.clone();
        added[field] = if field == "arguments" { json!("") } else { json!([]) };
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": added}));
        for piece in pieces(Some(&whole), turn.chunk) {
            events.push(json!({"type": format!("response.{kind}.delta"), "item_id": item["id"],
                "output_index": index, "delta": piece}));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let response = response(turn, number);
    let status = response["status"].as_str().unwrap_or_default();
    events.push(json!({"type": format!("response.{status}"), "response": response}));
    events.iter().map(Value::to_string).collect()
}

/// Returns a turn's answer as one document.
pub fn body(turn: &Turn, number: usize) -> String {
    response(turn, number).to_string()
}

/// Returns the response object at the end of the turn.
fn response(turn: &Turn, number: usize) -> Value {
    let (status, details, error) = match turn.finish.as_deref() {
        None | Some("stop" | "tool_calls" | "refusal") => ("completed", Value::Null, Value::Null),
        Some("length") => ("incomplete", json!({"reason": "max_output_tokens"}), Value::Null),
        Some("error") => {
            ("failed", Value::Null, json!({"code": "server_error", "message": "scripted error"}))
        }
        Some(other) => ("incomplete", json!({ "reason": other }), Value::Null),
    };
    json!({"id": format!("resp_{}", number + 1), "object": "response", "status": status, "error": error,
        "incomplete_details": details, "output": output(turn, number), "usage": usage(turn)})
}

/// Returns the items of the turn: reasoning, a message, calls.
fn output(turn: &Turn, number: usize) -> Vec<Value> {
    let number_of = |kind: &str| format!("{kind}_{}", number + 1);
    let mut items = Vec::new();
    if let Some(thinking) = &turn.thinking {
        let summary = json!([{"type": "summary_text", "text": thinking}]);
        items.push(json!({"type": "reasoning", "id": number_of("rs"), "summary": summary,
            "encrypted_content": number_of("sealed")}));
    }
    if let Some(text) = &turn.text {
        let part = if turn.finish.as_deref() == Some("refusal") {
            json!({"type": "refusal", "refusal": text})
        } else {
            json!({"type": "output_text", "text": text, "annotations": []})
        };
        items.push(json!({"type": "message", "id": number_of("msg"), "role": "assistant",
            "status": "completed", "content": [part]}));
    }
    items.extend(turn.calls.iter().enumerate().map(|(index, call)| {
        json!({"type": "function_call", "id": format!("fc_{}_{index}", number + 1), "status": "completed",
            "call_id": id(call, number, index), "name": call.name, "arguments": arguments(call)})
    }));
    items
}

/// Returns the streamed part of an item: its field, the name of the events, the text.
fn content(item: &Value) -> (&'static str, &'static str, String) {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    if let Some(text) = text("/arguments") {
        ("arguments", "function_call_arguments", text)
    } else if let Some(text) = text("/summary/0/text") {
        ("summary", "reasoning_summary_text", text)
    } else if let Some(text) = text("/content/0/refusal") {
        ("content", "refusal", text)
    } else {
        ("content", "output_text", text("/content/0/text").unwrap_or_default())
    }
}

fn usage(turn: &Turn) -> Option<Value> {
    let tokens = turn.usage?;
    let input = tokens.input.saturating_add(tokens.cached_read);
    Some(json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": tokens.cached_read},
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": input.saturating_add(tokens.output),
    }))
}
