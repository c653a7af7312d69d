//! Renders a scripted turn as an Anthropic Messages answer: events or a body.

use super::pieces::{arguments, id, pieces};
use crate::scripted::Turn;
use serde_json::{Value, json};

/// Signature of scripted reasoning, so that it is sent back.
const SIGNATURE: &str = "scripted";

/// Returns a turn's answer as the data of server-sent events.
pub fn events(turn: &Turn, number: usize) -> Vec<String> {
    let mut usage = usage(turn);
    if turn.usage.is_some() {
        usage["output_tokens"] = json!(1);
    }
    let message =
        json!({"type": "message", "role": "assistant", "content": [], "stop_reason": null, "usage": usage});
    let mut events = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let mut index = 0;
    let mut block = |begin: Value, deltas: Vec<Value>| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begin}));
        let deltas = deltas.into_iter();
        events.extend(
            deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    if let Some(thinking) = &turn.thinking {
        let mut deltas: Vec<_> = pieces(Some(thinking), turn.chunk)
            .into_iter()
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
            .collect();
        deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    let texts = pieces(turn.text.as_deref(), turn.chunk);
    if !texts.is_empty() {
        let deltas = texts.into_iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        block(json!({"type": "text", "text": ""}), deltas.collect());
    }
    for (at, call) in turn.calls.iter().enumerate() {
        let begin = json!({"type": "tool_use", "id": id(call, number, at), "name": call.name, "input": {}});
        let deltas = pieces(Some(&arguments(call)), turn.chunk).into_iter();
        block(
            begin,
            deltas.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect(),
        );
    }
    let mut end =
        json!({"type": "message_delta", "delta": {"stop_reason": finish(turn), "stop_sequence": null}});
    if turn.usage.is_some() {
        end["usage"] = self::usage(turn);
    }
    events.extend([end, json!({"type": "message_stop"})]);
    events.iter().map(Value::to_string).collect()
}

/// Returns a turn's answer as one document.
pub fn body(turn: &Turn, number: usize) -> String {
    let mut content = Vec::new();
    if let Some(thinking) = &turn.thinking {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    if let Some(text) = turn.text.as_deref().filter(|text| !text.is_empty()) {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(turn.calls.iter().enumerate().map(|(at, call)| {
        // Input is JSON in this format, so arguments that are not JSON become a string.
        let input = serde_json::from_str(&arguments(call)).unwrap_or_else(|_| json!(arguments(call)));
        json!({"type": "tool_use", "id": id(call, number, at), "name": call.name, "input": input})
    }));
    json!({"type": "message", "role": "assistant", "content": content, "stop_reason": finish(turn),
        "usage": usage(turn)})
    .to_string()
}

/// Returns the stop reason; the script uses the names of Chat Completions.
fn finish(turn: &Turn) -> &str {
    match turn.finish.as_deref() {
        None if turn.calls.is_empty() => "end_turn",
        None | Some("tool_calls") => "tool_use",
        Some("stop") => "end_turn",
        Some("length") => "max_tokens",
        Some(other) => other,
    }
}

fn usage(turn: &Turn) -> Value {
    turn.usage.map_or_else(
        || json!({}),
        |tokens| {
            json!({
                "input_tokens": tokens.input,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": tokens.cached_read,
                "output_tokens": tokens.output,
                "output_tokens_details": {"thinking_tokens": tokens.reasoning},
            })
        },
    )
}
