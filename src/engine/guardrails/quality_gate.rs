//! Configuration of `guardrails.quality_gates`: commands that must pass before a run counts as done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A configured gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QualityGate {
    /// Name in the log and the result; the command when empty.
    #[serde(default)]
    pub name: String,
    /// Shell command, run in the workspace; it passes when it exits with 0.
    #[schemars(extend("x-format" = "filled"))]
    pub command: String,
    /// Whether the run counts as done only if it passes; otherwise a failure is only reported.
    #[serde(default = "yes")]
    pub required: bool,
    /// Time limit in seconds, 1 to 600.
    #[serde(default = "one_minute")]
    #[schemars(range(min = 1, max = 600), extend("x-unit" = "seconds"))]
    pub timeout: u64,
}

fn yes() -> bool {
    true
}

fn one_minute() -> u64 {
    60
}

impl QualityGate {
    /// Creates a gate from the command line: required, with the maximum time limit.
    pub fn from_command_line(command: String) -> Self {
        Self { name: String::new(), command, required: true, timeout: 600 }
    }

    /// Returns the name, or the command if it has none.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.command } else { &self.name }
    }
}
