//! Renders a scripted turn in a wire format: events, a body, or an error.

mod anthropic;
mod chat_completions;
mod gemini;
mod ollama;
mod pieces;
mod responses;

use crate::scripted::{ScriptedError, Turn};
use crate::wire_format::WireFormat;
use agent_core::failure::FailureKind;
use serde_json::{Value, json};

/// Returns a turn's answer as the events of a stream: the data of server-sent events, or lines. `number` is the number of the
/// request, from 0.
pub fn events(format: WireFormat, turn: &Turn, number: usize) -> Vec<String> {
    match format {
        WireFormat::ChatCompletions => chat_completions::events(turn, number),
        WireFormat::Messages => anthropic::events(turn, number),
        WireFormat::Ollama => ollama::events(turn),
        WireFormat::Gemini => gemini::events(turn, number),
        WireFormat::Responses => responses::events(turn, number),
    }
}

/// Returns a turn's answer as one document.
pub fn body(format: WireFormat, turn: &Turn, number: usize) -> String {
    match format {
        WireFormat::ChatCompletions => chat_completions::body(turn, number),
        WireFormat::Messages => anthropic::body(turn, number),
        WireFormat::Ollama => ollama::body(turn),
        WireFormat::Gemini => gemini::body(turn, number),
        WireFormat::Responses => responses::body(turn, number),
    }
}

/// Returns the status of an error.
pub fn status(error: &ScriptedError) -> u16 {
    error.status.unwrap_or(match error.kind {
        Some(FailureKind::Auth) => 401,
        Some(FailureKind::Quota) => 402,
        Some(FailureKind::Timeout) => 408,
        Some(FailureKind::RateLimit) => 429,
        Some(FailureKind::Overloaded) => 503,
        Some(FailureKind::Request | FailureKind::ContextOverflow) => 400,
        _ => 500,
    })
}

/// Returns the body of an error.
pub fn error_body(error: &ScriptedError) -> Value {
    let overflow =
        (error.kind == Some(FailureKind::ContextOverflow)).then(|| "context_length_exceeded".to_owned());
    let message = error.message.as_deref().unwrap_or("scripted error");
    json!({"error": {"message": message, "code": error.code.clone().or(overflow)}})
}
