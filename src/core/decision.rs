//! What may happen to a tool call, and who said so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer to "may this call run?", given before anything happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Run it.
    Allow,
    /// Ask the person; without one it becomes a refusal.
    Ask {
        /// Why it is asked, in words.
        reason: String,
        /// The rule that asks.
        rule: String,
    },
    /// Do not run it; the model reads the reason.
    Deny {
        /// Why, and what to do instead.
        reason: String,
        /// The rule that denies.
        rule: String,
    },
}

impl Decision {
    /// The stricter of the two; this one where they are as strict.
    #[must_use]
    pub fn or_stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Deny { .. }, _) | (Self::Ask { .. }, Self::Allow | Self::Ask { .. }) => self,
            (Self::Allow, _) | (Self::Ask { .. }, Self::Deny { .. }) => other,
        }
    }
}

/// Why a call may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialReason {
    /// Why, and what to do instead.
    pub reason: String,
    /// The rule that refuses.
    pub rule: String,
}

impl From<DenialReason> for Decision {
    fn from(DenialReason { reason, rule }: DenialReason) -> Self {
        Self::Deny { reason, rule }
    }
}

/// A call that did not run because it was not permitted; listed in the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// What it was to do, one line.
    pub summary: String,
    /// Why it was refused.
    pub reason: String,
    /// The rule that refused it.
    pub rule: String,
}
