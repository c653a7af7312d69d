//! Permission decisions about tool calls: allow, ask or deny, with the rule that decided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The decision whether a tool call may run, made before the call has any effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Run the call.
    Allow,
    /// Ask the user. Without a user to answer, the call is refused.
    Ask {
        /// Why approval is needed, as text for the user.
        reason: String,
        /// The rule that requires approval.
        rule: String,
    },
    /// Do not run the call; the reason is sent to the model.
    Deny {
        /// Why the call is refused, and what to do instead.
        reason: String,
        /// The rule that refuses the call.
        rule: String,
    },
}

impl Decision {
    /// Returns the stricter of two decisions; `self` if both are equally strict.
    #[must_use]
    pub fn or_stricter(self, other: Self) -> Self {
        match (&self, &other) {
            (Self::Deny { .. }, _) | (Self::Ask { .. }, Self::Allow | Self::Ask { .. }) => self,
            (Self::Allow, _) | (Self::Ask { .. }, Self::Deny { .. }) => other,
        }
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialReason {
    /// Why the call is refused, and what to do instead.
    pub reason: String,
    /// The rule that refuses the call.
    pub rule: String,
}

impl From<DenialReason> for Decision {
    fn from(DenialReason { reason, rule }: DenialReason) -> Self {
        Self::Deny { reason, rule }
    }
}

/// A call that was refused and did not run; listed in the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// Name of the tool.
    pub tool: String,
    /// One-line summary of the call.
    pub summary: String,
    /// Why the call was refused.
    pub reason: String,
    /// The rule that refused the call.
    pub rule: String,
}
