//! How hard a model is to think: one vocabulary for all providers, in words, tokens or a switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How hard a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as it can.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// Very much: for long work.
    Xhigh,
    /// Without a limit of its own.
    Max,
}

impl Effort {
    /// All of them, weakest first.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// Tokens of thought for models that are told a number. A doubling from the least that Anthropic takes (1024) on;
    /// the last is what Anthropic advises not to exceed without batches.
    pub fn tokens(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Minimal => 1_024,
            Self::Low => 2_048,
            Self::Medium => 8_192,
            Self::High => 16_384,
            Self::Xhigh => 24_576,
            Self::Max => 32_000,
        }
    }

    /// The closest of `levels` (weakest first): itself, else the next weaker, else the weakest.
    pub fn closest(self, levels: &[Self]) -> Option<Self> {
        levels.iter().rev().find(|level| **level <= self).or_else(|| levels.first()).copied()
    }
}

/// What a request says about thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// A word.
    Effort(Effort),
    /// So many tokens at most.
    Budget(u32),
    /// Whether to think at all.
    Switch(bool),
}

impl Thinking {
    /// Whether the model is told to think.
    pub fn is_enabled(self) -> bool {
        !matches!(self, Self::Effort(Effort::None) | Self::Budget(0) | Self::Switch(false))
    }
}
