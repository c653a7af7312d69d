//! What guardrails tell and count, as events, journals and result documents hold it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which side of the conversation a guardrail looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConversationSide {
    /// What the model is about to read: what it is told, and the results of its calls.
    Input,
    /// What the model has written: its answers and its calls.
    Output,
}

/// How grave it is, in the eyes of who configured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// Worth looking at.
    #[default]
    Medium,
    /// Somebody should look at it soon.
    High,
    /// Somebody should look at it at once.
    Critical,
}

impl Severity {
    /// Its name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// What a guardrail does about a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GuardrailAction {
    /// The text is withheld and the run goes on.
    Block,
    /// The run ends.
    Halt,
}

/// A guardrail that had something to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TriggeredGuardrail {
    /// Its name.
    pub name: String,
    /// Which side of the conversation the text stood on.
    pub on: ConversationSide,
    /// How grave it is.
    pub severity: Severity,
    /// What became of it: a text was withheld, or the run ended.
    pub action: GuardrailAction,
    /// Why, in the words of who configured it.
    pub message: String,
}

/// What a call that ran counts towards the limits of guardrails, besides the files that it changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallCounts {
    /// Lines that it added and removed; counted only while there is a limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lines: u64,
    /// Whether it started a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub command: bool,
    /// Whether the tests that it ran passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<bool>,
}

impl CallCounts {
    /// Whether there is nothing to count.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
