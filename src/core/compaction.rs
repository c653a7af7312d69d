//! How a conversation that fills the model's window is made shorter: what is configured, and what was done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done about a conversation that fills the model's window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionStrategy {
    /// Old outputs are shortened, then the model sums up old exchanges, then the oldest are left out.
    Layered,
    /// Old outputs are shortened, then the oldest exchanges are left out: no request is made for it.
    Truncate,
    /// Nothing: the run ends when the window is full.
    #[default]
    Off,
}

/// When a conversation is made shorter, and what of it stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionLimits {
    /// What is done.
    pub strategy: CompactionStrategy,
    /// The part of the window, in percent, from which on it is done.
    pub at_percent: u32,
    /// How many of the last exchanges stay whole.
    pub keep_recent_steps: u32,
    /// Steps between two compactions, at least: one that is due earlier ends the run.
    pub every_steps: u32,
}

/// What happens when a conversation is made shorter, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "way")]
pub enum CompactionEvent {
    /// The conversation fills the window.
    Start {
        /// Tokens of the next prompt, about.
        tokens: u64,
        /// Tokens of the window, or of the prompt where the server refused it and nobody knows the window.
        window: u64,
    },
    /// Outputs of tools were shortened; each can be read whole as `output:CALL_ID`.
    Outputs {
        /// The calls whose outputs they are.
        call_ids: Vec<String>,
    },
    /// Whole exchanges were replaced by a summary.
    Summary {
        /// How many messages it reaches over, from the first; the instructions, the task and the last prompt stay.
        upto: usize,
        /// The summary.
        text: String,
        /// Whether the model wrote it; else it was put together from the calls.
        by_model: bool,
    },
    /// Whole exchanges were left out.
    LeftOut {
        /// How many messages that reaches over, from the first; the instructions, the task, the last prompt and an earlier
        /// summary stay.
        upto: usize,
    },
    /// Nothing more is done.
    End {
        /// Tokens of the next prompt, about.
        tokens: u64,
        /// Whether at least a third of the window is free that was not; the run ends where it is not.
        enough: bool,
    },
}
