//! Renders a scripted turn as a Gemini answer: events or a body.

use super::pieces::{arguments, id, pieces};
use crate::scripted::Turn;
use serde_json::{Value, json};

/// Returns a turn's answer as the data of server-sent events; the last one contains the finish reason.
pub fn events(turn: &Turn, number: usize) -> Vec<String> {
    let mut parts: Vec<Value> = pieces(turn.thinking.as_deref(), turn.chunk).iter().map(thought).collect();
    parts.extend(pieces(turn.text.as_deref(), turn.chunk).iter().map(|piece| json!({ "text": piece })));
    parts.extend(calls(turn, number));
    let event = |part| json!({"candidates": [{"index": 0, "content": content(&[part])}]}).to_string();
    let mut events: Vec<String> = parts.into_iter().map(event).collect();
    events.push(document(turn, &[json!({ "text": "" })]));
    events
}

/// Returns a turn's answer as one document.
pub fn body(turn: &Turn, number: usize) -> String {
    let mut parts: Vec<Value> = turn.thinking.iter().map(thought).collect();
    parts.extend(turn.text.iter().map(|text| json!({ "text": text })));
    parts.extend(calls(turn, number));
    document(turn, &parts)
}

/// Returns a document with parts, finish reason and token counts.
fn document(turn: &Turn, parts: &[Value]) -> String {
    let candidate = json!({"index": 0, "content": content(parts), "finishReason": finish(turn)});
    let mut document = json!({ "candidates": [candidate] });
    if let Some(usage) = usage(turn) {
        document["usageMetadata"] = usage;
    }
    document.to_string()
}

fn content(parts: &[Value]) -> Value {
    json!({"role": "model", "parts": parts})
}

fn thought(text: &String) -> Value {
    json!({"text": text, "thought": true})
}

/// Returns the calls, which are whole; the first of parallel calls has a signature. Arguments that are not JSON become
/// a string.
fn calls(turn: &Turn, number: usize) -> Vec<Value> {
    let part = |(index, call)| {
        let written = arguments(call);
        let args = serde_json::from_str::<Value>(&written).unwrap_or(Value::String(written));
        let mut part =
            json!({"functionCall": {"id": id(call, number, index), "name": call.name, "args": args}});
        if index == 0 {
            part["thoughtSignature"] = json!("c2lnbmVk");
        }
        part
    };
    turn.calls.iter().enumerate().map(part).collect()
}

fn finish(turn: &Turn) -> &str {
    match turn.finish.as_deref() {
        None | Some("stop" | "tool_calls") => "STOP",
        Some("length") => "MAX_TOKENS",
        Some("content_filter") => "SAFETY",
        Some(other) => other,
    }
}

fn usage(turn: &Turn) -> Option<Value> {
    let tokens = turn.usage?;
    let prompt = tokens.input.saturating_add(tokens.cached_read);
    Some(json!({
        "promptTokenCount": prompt,
        "cachedContentTokenCount": tokens.cached_read,
        "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning),
        "thoughtsTokenCount": tokens.reasoning,
        "totalTokenCount": prompt.saturating_add(tokens.output),
    }))
}
