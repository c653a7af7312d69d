//! The section `memory` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Facts and corrections that are kept for later sessions of the workspace (`agent help memory`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemorySettings {
    /// Whether corrections in your prompts are stored, and the model may store facts with your approval.
    #[schemars(extend("x-scope" = "never-from-project", "x-tightens" = [false]))]
    pub enabled: bool,
}
