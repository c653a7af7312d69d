//! What may run: modes compiled to rules, protected and sensitive files.

use serde::{Deserialize, Serialize};

/// How much the agent may do without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call is asked.
    ConfirmAll,
    /// Calls that change something are asked.
    ConfirmSensitive,
    /// Nothing is asked; refusals stand.
    Yolo,
}
