//! A scripted turn as a server would send it: events, a body, or an error.

mod chat_completions;
mod gemini;
mod messages;
mod ollama;
mod pieces;
mod responses;

use crate::failure::ErrorKind;
use crate::llm::format::Format;
use crate::llm::scripted::{PlannedError, Turn};
use serde_json::{Value, json};

/// A turn's answer as the events of a stream: the data of server-sent events, or lines. `number` is the request's,
/// from 0.
pub fn events(format: Format, turn: &Turn, number: usize) -> Vec<String> {
    match format {
        Format::ChatCompletions => chat_completions::events(turn, number),
        Format::Messages => messages::events(turn, number),
        Format::Ollama => ollama::events(turn),
        Format::Gemini => gemini::events(turn, number),
        Format::Responses => responses::events(turn, number),
    }
}

/// A turn's answer as one document.
pub fn body(format: Format, turn: &Turn, number: usize) -> String {
    match format {
        Format::ChatCompletions => chat_completions::body(turn, number),
        Format::Messages => messages::body(turn, number),
        Format::Ollama => ollama::body(turn),
        Format::Gemini => gemini::body(turn, number),
        Format::Responses => responses::body(turn, number),
    }
}

/// The status of an error.
pub fn status(error: &PlannedError) -> u16 {
    error.status.unwrap_or(match error.kind {
        Some(ErrorKind::Auth) => 401,
        Some(ErrorKind::Quota) => 402,
        Some(ErrorKind::Timeout) => 408,
        Some(ErrorKind::RateLimit) => 429,
        Some(ErrorKind::Overloaded) => 503,
        Some(ErrorKind::Request | ErrorKind::ContextOverflow) => 400,
        _ => 500,
    })
}

/// The body of an error.
pub fn error_body(error: &PlannedError) -> Value {
    let overflow =
        (error.kind == Some(ErrorKind::ContextOverflow)).then(|| "context_length_exceeded".to_owned());
    let message = error.message.as_deref().unwrap_or("the script says so");
    json!({"error": {"message": message, "code": error.code.clone().or(overflow)}})
}
