//! The Chat Completions wire format as a pure codec: a request to JSON, events or a body to an answer.
//!
//! Shapes from `OpenAI`'s API reference; the tolerance is for the many servers that speak it with an accent.

pub mod answer;
pub mod calls;
pub mod history;
pub mod request;
pub mod usage;

/// The name under which this codec stores what only it may replay.
pub const CODEC: &str = "chat_completions";
