//! Renders a scripted turn as an Ollama answer: lines or a body.

use super::pieces::{arguments, pieces};
use crate::scripted::{Call, Turn};
use serde_json::{Value, json};

/// Returns a turn's answer as lines; the last one is `done`.
pub fn events(turn: &Turn) -> Vec<String> {
    let mut lines = Vec::new();
    let mut push_line = |field: &str, value: Value| {
        let mut message = json!({"role": "assistant", "content": ""});
        message[field] = value;
        lines.push(json!({"model": "scripted", "message": message, "done": false}).to_string());
    };
    for piece in pieces(turn.thinking.as_deref(), turn.chunk) {
        push_line("thinking", json!(piece));
    }
    for piece in pieces(turn.text.as_deref(), turn.chunk) {
        push_line("content", json!(piece));
    }
    for call in &turn.calls {
        push_line("tool_calls", json!([whole(call)]));
    }
    lines.push(last(turn, &json!({"role": "assistant", "content": ""})));
    lines
}

/// Returns a turn's answer as one document.
pub fn body(turn: &Turn) -> String {
    let mut message = json!({"role": "assistant", "content": turn.text.as_deref().unwrap_or_default()});
    if let Some(thinking) = &turn.thinking {
        message["thinking"] = json!(thinking);
    }
    if !turn.calls.is_empty() {
        message["tool_calls"] = turn.calls.iter().map(whole).collect();
    }
    last(turn, &message)
}

/// Returns a call; it has no id, and arguments that are not JSON become a string.
fn whole(call: &Call) -> Value {
    let arguments = arguments(call);
    let arguments = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
    json!({"function": {"name": call.name, "arguments": arguments}})
}

/// Returns the line that ends the answer. Ollama counts the whole prompt, cached or not, and does not report
/// reasoning separately.
fn last(turn: &Turn, message: &Value) -> String {
    let reason = turn.finish.as_deref().filter(|reason| *reason != "tool_calls").unwrap_or("stop");
    let mut line = json!({"model": "scripted", "message": message, "done": true, "done_reason": reason});
    if let Some(tokens) = turn.usage {
        line["prompt_eval_count"] = json!(tokens.input.saturating_add(tokens.cached_read));
        line["eval_count"] = json!(tokens.output);
    }
    line.to_string()
}
