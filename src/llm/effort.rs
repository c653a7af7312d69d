//! Reasoning effort: one set of levels for all providers, sent as a word, a token budget or a switch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a model reasons before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Effort {
    /// No reasoning.
    None,
    /// As little as possible.
    Minimal,
    /// A little reasoning.
    Low,
    /// Moderate reasoning.
    Medium,
    /// Much reasoning.
    High,
    /// Very much, for long tasks.
    Xhigh,
    /// Without a limit.
    Max,
}

agent_core::impl_name!(Effort);

impl Effort {
    /// Returns the token budget for models that take a number. It doubles from Anthropic's minimum (1024);
    /// the last one is the maximum that Anthropic recommends outside batches.
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

    /// Returns the closest of `levels` (weakest first): the level itself, else the next weaker one, else the weakest.
    pub fn closest(self, levels: &[Self]) -> Option<Self> {
        levels.iter().rev().find(|level| **level <= self).or_else(|| levels.first()).copied()
    }
}

/// Thinking setting of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// A level.
    Effort(Effort),
    /// A budget of at most this many tokens.
    Budget(u32),
    /// Whether to think at all.
    Switch(bool),
}

impl Thinking {
    /// Checks whether the setting enables thinking.
    pub fn is_enabled(self) -> bool {
        !matches!(self, Self::Effort(Effort::None) | Self::Budget(0) | Self::Switch(false))
    }
}
