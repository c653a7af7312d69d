//! Why the model stopped an answer, from the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the model stopped an answer, from the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants tools.
    ToolCalls,
    /// The token limit cut it.
    Length,
    /// The provider filtered it.
    ContentFilter,
    /// The provider filtered it, and says why.
    Filtered(String),
    /// The model refused.
    Refusal,
    /// Its window is full.
    WindowFull,
    /// Its provider paused it, to be asked for the rest.
    Paused,
    /// Something this version does not know, as it was sent.
    Other(String),
}

impl FinishReason {
    /// Whether the answer counts as far as it came, its calls too, which are whole or told to be wrong.
    pub fn is_usable(&self) -> bool {
        match self {
            Self::Stop | Self::ToolCalls | Self::Length | Self::Paused => true,
            Self::ContentFilter | Self::Filtered(_) | Self::Refusal | Self::WindowFull | Self::Other(_) => {
                false
            }
        }
    }
}
