//! Why the model stopped generating a response, as the provider reports it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the model stopped generating a response, as the provider reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The response is complete.
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The token limit cut the response off.
    Length,
    /// The provider filtered the response.
    ContentFilter,
    /// The provider filtered the response; the string is its explanation.
    Filtered(String),
    /// The model refused to answer.
    Refusal,
    /// The context window is full.
    WindowFull,
    /// The provider paused the response; another request continues it.
    Paused,
    /// A reason unknown to this version, as the provider sent it.
    Other(String),
}

impl FinishReason {
    /// Checks whether the response can be used, including a cut one: its tool calls are complete or marked as malformed.
    pub fn is_usable(&self) -> bool {
        match self {
            Self::Stop | Self::ToolCalls | Self::Length | Self::Paused => true,
            Self::ContentFilter | Self::Filtered(_) | Self::Refusal | Self::WindowFull | Self::Other(_) => {
                false
            }
        }
    }
}
