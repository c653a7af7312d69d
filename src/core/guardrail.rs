//! Results and counts of guardrails, as events, journals and result documents contain them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Side of the conversation that a guardrail checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConversationSide {
    /// Text for the model: user messages and results of calls.
    Input,
    /// Text from the model: responses and calls.
    Output,
}

/// Severity of a guardrail, as configured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// For information.
    Low,
    /// Needs attention.
    #[default]
    Medium,
    /// Needs attention soon.
    High,
    /// Needs attention at once.
    Critical,
}

crate::impl_name!(Severity);

/// Action of a guardrail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GuardrailAction {
    /// The text is withheld and the run continues.
    Block,
    /// The run ends.
    Halt,
}

/// A guardrail that was triggered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriggeredGuardrail {
    /// Name of the guardrail.
    pub name: String,
    /// Side of the conversation with the text.
    pub on: ConversationSide,
    /// Severity, as configured.
    pub severity: Severity,
    /// The action that was taken.
    pub action: GuardrailAction,
    /// The configured message.
    pub message: String,
}

/// What a call adds to the limits of guardrails, in addition to the files that it changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    /// Lines added and removed; counted only if a limit is set.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub lines: u64,
    /// Whether the call started a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub command: bool,
    /// Whether the tests that the call ran passed; absent if it ran none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
}
