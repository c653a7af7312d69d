//! `guardrails.quality_gates`: commands that must pass before a run counts as done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A gate as configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QualityGate {
    /// What it is called; the command when empty.
    #[serde(default)]
    pub name: String,
    /// A shell command, run in the workspace; it passes when it exits with 0.
    #[schemars(extend("x-format" = "filled"))]
    pub command: String,
    /// Whether the run counts as done only when it passes; else it is only told.
    #[serde(default = "yes")]
    pub required: bool,
    /// Seconds, 1 to 600.
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
    /// The gate that the command line asks for: required, with the longest time.
    pub fn from_command_line(command: String) -> Self {
        Self { name: String::new(), command, required: true, timeout: 600 }
    }

    /// What it is called.
    pub fn label(&self) -> &str {
        if self.name.is_empty() { &self.command } else { &self.name }
    }
}
