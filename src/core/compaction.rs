//! Compaction of a conversation that fills the model's context window: its settings and its events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a conversation that fills the context window is compacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionStrategy {
    /// Shortens old outputs, then replaces old exchanges by a summary from the model, then drops the oldest exchanges.
    Layered,
    /// Shortens old outputs, then drops the oldest exchanges; sends no requests.
    Truncate,
    /// Does nothing: the run ends when the window is full.
    #[default]
    Off,
}

/// Settings of compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionLimits {
    /// The strategy.
    pub strategy: CompactionStrategy,
    /// Used percentage of the context window at which compaction starts.
    pub at_percent: u32,
    /// Number of the last exchanges that stay unchanged.
    pub keep_recent_steps: u32,
    /// Minimum number of steps between two compactions; if one is due earlier, the run ends.
    pub every_steps: u32,
}

/// Events of a compaction, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum CompactionEvent {
    /// The conversation fills the context window.
    Start {
        /// Estimated tokens of the next prompt.
        tokens: u64,
        /// Tokens of the window; tokens of the prompt if the server refused it and the window is unknown.
        window: u64,
        /// Whether the user requested it (`/compact`). It then ends with the summary, and never ends the run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        requested: bool,
    },
    /// Tool outputs were shortened; each can be read completely as `output:CALL_ID`.
    OutputsShortened {
        /// Ids of the calls with these outputs.
        call_ids: Vec<String>,
    },
    /// Whole exchanges were replaced by a summary.
    Summary {
        /// Number of messages from the first that the summary covers; the instructions, the task and the last prompt stay.
        message_count: usize,
        /// The summary.
        text: String,
        /// Whether the model wrote the summary; otherwise it was generated from the calls.
        by_model: bool,
    },
    /// Whole exchanges were dropped.
    MessagesDropped {
        /// Number of messages from the first in the dropped range; the instructions, the task, the last prompt and an
        /// earlier summary stay.
        message_count: usize,
    },
    /// The compaction is complete.
    End {
        /// Estimated tokens of the next prompt.
        tokens: u64,
        /// Whether at least a third of the window became free; if not, the run ends.
        enough: bool,
    },
}
