//! Origins of the user messages in a conversation: the user, the agent loop, or a hook.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Origin of a user message in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageOrigin {
    /// The user.
    Prompt,
    /// The loop requests a closing summary.
    System,
    /// The loop reports an event from outside the conversation: a background command that ended, files that were restored.
    Background,
    /// The loop requests the rest of a response that was cut off.
    Continuation,
    /// The loop requests a structured answer that fits its schema.
    Repair,
    /// The loop requests another answer in place of one that a guardrail withheld.
    Guardrail,
    /// The loop reports that the run makes no progress.
    Breaker,
    /// Additional context from a hook.
    Hook,
    /// The loop reports quality gates that did not pass.
    Gate,
    /// The loop reports that little time or money is left.
    Remaining,
    /// The loop passes on the plan of another agent (`--mixed`).
    Plan,
    /// The loop shows the changes in the repository (`--context-git-diff`).
    GitDiff,
    /// The loop passes on the output of a command that the user ran in `agent chat`.
    UserCommand,
    /// The user, while the run worked.
    Queued,
    /// The loop adds the text of a skill that fits the prompt or a file.
    Skill,
    /// The loop adds the instructions of a directory of which a file was touched.
    Instructions,
    /// The loop reports the shortcomings that an evaluation found.
    Evaluation,
    /// The loop reports the problems that a review of the changes found.
    Review,
}

/// Author of a user message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAuthor {
    /// The user.
    Person,
    /// The agent loop.
    Loop,
    /// A hook.
    Hook,
}

impl MessageOrigin {
    /// Returns the author of messages with this origin.
    pub fn author(self) -> MessageAuthor {
        match self {
            Self::Prompt | Self::Queued => MessageAuthor::Person,
            Self::Hook => MessageAuthor::Hook,
            Self::System
            | Self::Background
            | Self::Continuation
            | Self::Repair
            | Self::Guardrail
            | Self::Breaker
            | Self::Gate
            | Self::Evaluation
            | Self::Review
            | Self::Remaining
            | Self::Plan
            | Self::UserCommand
            | Self::Skill
            | Self::Instructions
            | Self::GitDiff => MessageAuthor::Loop,
        }
    }
}
