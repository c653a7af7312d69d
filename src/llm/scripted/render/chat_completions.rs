//! Renders a scripted turn as a Chat Completions answer: events or a body.

use super::pieces::{arguments, id, pieces};
use crate::scripted::Turn;
use serde_json::{Value, json};

/// Returns a turn's answer as the data of server-sent events, `[DONE]` last.
pub fn events(turn: &Turn, number: usize) -> Vec<String> {
    let mut events = Vec::new();
    for piece in pieces(turn.thinking.as_deref(), turn.chunk) {
        events.push(chunk(&json!({ "reasoning_content": piece }), None));
    }
    for piece in pieces(turn.text.as_deref(), turn.chunk) {
        events.push(chunk(&json!({ "content": piece }), None));
    }
    for (index, call) in turn.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let begin =
            json!({"index": index, "id": id(call, number, index), "type": "function", "function": function});
        events.push(chunk(&json!({ "tool_calls": [begin] }), None));
        for piece in pieces(Some(&arguments(call)), turn.chunk) {
            let more = json!({"index": index, "function": {"arguments": piece}});
            events.push(chunk(&json!({ "tool_calls": [more] }), None));
        }
    }
    events.push(chunk(&json!({}), Some(finish(turn))));
    if let Some(usage) = usage(turn) {
        events.push(json!({"object": "chat.completion.chunk", "choices": [], "usage": usage}).to_string());
    }
    events.push("[DONE]".into());
    events
}

/// Returns a turn's answer as one document.
pub fn body(turn: &Turn, number: usize) -> String {
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            json!({"id": id(call, number, index), "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)}})
        })
        .collect();
    let mut message = json!({"role": "assistant", "content": turn.text});
    if let Some(thinking) = &turn.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let choice = json!({"index": 0, "message": message, "finish_reason": finish(turn)});
    json!({"object": "chat.completion", "choices": [choice], "usage": usage(turn)}).to_string()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"object": "chat.completion.chunk", "choices": [choice]}).to_string()
}

fn finish(turn: &Turn) -> &str {
    let fitting = if turn.calls.is_empty() { "stop" } else { "tool_calls" };
    turn.finish.as_deref().unwrap_or(fitting)
}

fn usage(turn: &Turn) -> Option<Value> {
    let tokens = turn.usage?;
    let prompt = tokens.input.saturating_add(tokens.cached_read);
    Some(json!({
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": prompt.saturating_add(tokens.output),
        "prompt_tokens_details": {"cached_tokens": tokens.cached_read},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }))
}
