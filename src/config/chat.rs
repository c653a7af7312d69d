//! The section `chat` of the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `agent chat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChatSettings {
    /// Whether a line that you type while the agent works is sent with its next step; otherwise after the end of its work, as with Alt+Enter.
    pub queue: bool,
}
