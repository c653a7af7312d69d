//! What the model reads, as configured: how long results may be, and what happens when its window fills.

use crate::core::compaction::{CompactionLimits, CompactionStrategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the model reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Longer tool results are cut to head and tail and kept; 0: never cut.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-unit" = "tokens"))]
    pub max_tool_result_tokens: u32,
    /// What prompt and answer may take together; absent: what the model holds; 0: no limit, and nothing is made shorter.
    #[schemars(range(min = 0, max = 100_000_000), extend("x-unit" = "tokens"))]
    pub max_context_tokens: Option<u32>,
    /// What is done when that is nearly full: `layered` shortens old outputs, has the model sum up old steps, and leaves the
    /// oldest out; `truncate` does so without the model; `off` ends the run.
    pub strategy: CompactionStrategy,
    /// The part of it, in percent, from which on that is done.
    #[schemars(range(min = 10, max = 95), extend("x-unit" = "percent"))]
    pub compact_at_percent: u32,
    /// How many of the last steps with calls stay whole.
    #[schemars(range(min = 1, max = 1_000), extend("x-unit" = "steps"))]
    pub keep_recent_steps: u32,
    /// Steps between two times that it is done, at least; when it is due earlier, the run goes on until the window is full.
    #[schemars(range(min = 1, max = 1_000), extend("x-unit" = "steps"))]
    pub compact_every_steps: u32,
}

impl Context {
    /// What is done when the conversation fills the window.
    pub fn compaction(&self) -> CompactionLimits {
        CompactionLimits {
            strategy: self.strategy,
            at_percent: self.compact_at_percent,
            keep_recent_steps: self.keep_recent_steps,
            every_steps: self.compact_every_steps,
        }
    }
}
