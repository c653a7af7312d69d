//! Who puts user messages into a conversation: the person, the loop, or a hook.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who put a user message into the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageOrigin {
    /// The person.
    Prompt,
    /// The loop itself, asking for a closing summary.
    System,
    /// The loop itself, telling of what happened meanwhile: a background command that ended, files that were put back.
    Background,
    /// The loop itself, asking to go on with an answer that was cut.
    Continuation,
    /// The loop itself, asking for a structured answer that fits its schema.
    Repair,
    /// The loop itself, asking for another answer in place of one that a guardrail withheld.
    Guardrail,
    /// The loop itself, telling that the run goes nowhere.
    Breaker,
    /// A hook's additional context.
    Hook,
    /// The loop itself, telling of quality gates that did not pass.
    Gate,
    /// The loop itself, telling that little time or money is left.
    Remaining,
    /// The loop itself, telling what another agent has planned (`--mixed`).
    Plan,
    /// The loop itself, showing what has changed in the repository (`--context-git-diff`).
    GitDiff,
    /// The loop itself, telling what an evaluation found wanting.
    Evaluation,
}

/// Who speaks in a user message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAuthor {
    /// The person.
    Person,
    /// The loop.
    Loop,
    /// A hook.
    Hook,
}

impl MessageOrigin {
    /// Who speaks.
    pub fn author(self) -> MessageAuthor {
        match self {
            Self::Prompt => MessageAuthor::Person,
            Self::Hook => MessageAuthor::Hook,
            Self::System
            | Self::Background
            | Self::Continuation
            | Self::Repair
            | Self::Guardrail
            | Self::Breaker
            | Self::Gate
            | Self::Evaluation
            | Self::Remaining
            | Self::Plan
            | Self::GitDiff => MessageAuthor::Loop,
        }
    }
}
