//! Hashes of the start of the requests of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hashes of the start of the requests of a session, in the order in which providers cache it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PrefixHashes {
    /// Server, model and parameters of the requests.
    pub parameters: String,
    /// The tool definitions.
    pub tools: String,
    /// The system message.
    pub system: String,
}
