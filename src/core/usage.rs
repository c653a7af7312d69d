//! Token usage as the provider reports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens of one or more model calls. The five numbers do not overlap, except that `output` includes `reasoning`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Prompt tokens that were neither read from nor written to a cache.
    pub input: u64,
    /// Prompt tokens read from the provider's cache.
    pub cached_read: u64,
    /// Prompt tokens written to the provider's cache.
    pub cached_write: u64,
    /// Generated tokens, including reasoning.
    pub output: u64,
    /// Reasoning tokens; part of `output`.
    pub reasoning: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_read = self.cached_read.saturating_add(other.cached_read);
        self.cached_write = self.cached_write.saturating_add(other.cached_write);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}

impl Usage {
    /// Checks whether the reported usage covers the whole conversation, given the tokens of the last prompt. A prompt can
    /// shrink a little when a provider drops old reasoning; a number below half of the last one does not include the cached
    /// tokens.
    pub fn covers_conversation(&self, last_prompt: u64) -> bool {
        self.prompt_tokens() > 0 && self.prompt_tokens() >= last_prompt / 2
    }

    /// Returns all prompt tokens, cached or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cached_read).saturating_add(self.cached_write)
    }
}
