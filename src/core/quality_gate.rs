//! Quality gates: checks that must pass before a run counts as done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What became of a gate when the model said that it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateResult {
    /// What it is called.
    pub name: String,
    /// Whether the run counts as done only when it passes.
    pub required: bool,
    /// Whether its command exited with 0.
    pub passed: bool,
    /// How the command ended and the end of what it wrote; empty when it passed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// How long it took.
    pub duration_ms: u64,
}
