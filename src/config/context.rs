//! The section `context` of the configuration: maximum length of tool results, and compaction of the conversation.

use agent_core::compaction::{CompactionLimits, CompactionStrategy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Size of the model's input and its compaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// Maximum length of a tool result; longer ones are cut to head and tail, and stored in full. 0: never cut.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "tokens"))]
    pub max_tool_result_tokens: u32,
    /// Limit for prompt and answer together; absent: the model's context window; 0: no limit and no compaction.
    #[schemars(range(min = 0, max = 100_000_000), extend("x-scope" = "needs-trust", "x-stricter" = "lower-not-zero", "x-unit" = "tokens"))]
    pub max_context_tokens: Option<u32>,
    /// At a nearly full context: `layered` shortens, summarises and drops old steps; `truncate` works without a summary; `off` ends the run.
    #[schemars(extend("x-scope" = "needs-trust", "x-stricter" = "higher"))]
    pub strategy: CompactionStrategy,
    /// The fill level of the context, in percent, at which compaction starts.
    #[schemars(range(min = 10, max = 95), extend("x-scope" = "needs-trust", "x-unit" = "percent"))]
    pub compact_at_percent: u32,
    /// Number of recent steps that compaction leaves unchanged.
    #[schemars(range(min = 1, max = 1_000), extend("x-scope" = "needs-trust", "x-unit" = "steps"))]
    pub keep_recent_steps: u32,
    /// Minimum number of steps between two compactions; if it is due earlier, the run continues until the window is full.
    #[schemars(range(min = 1, max = 1_000), extend("x-scope" = "needs-trust", "x-unit" = "steps"))]
    pub compact_every_steps: u32,
}

impl Context {
    /// Returns the limits of the compaction.
    pub fn compaction(&self) -> CompactionLimits {
        CompactionLimits {
            strategy: self.strategy,
            at_percent: self.compact_at_percent,
            keep_recent_steps: self.keep_recent_steps,
            every_steps: self.compact_every_steps,
        }
    }
}
