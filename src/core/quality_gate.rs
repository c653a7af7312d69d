//! Result of a quality gate: a check that must pass before a run counts as done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of a quality gate that ran when the model reported that it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// Name of the gate.
    pub name: String,
    /// Whether the gate must pass before the run counts as done.
    pub required: bool,
    /// Whether the gate's command exited with 0.
    pub passed: bool,
    /// Exit status of the command and the end of its output; empty if the gate passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}
