//! Purposes of model calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Purpose of a model call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the work.
    #[default]
    Step,
    /// The closing summary, without tools.
    Closing,
    /// A summary of old exchanges, without tools, to compact the conversation.
    Summary,
    /// An evaluation of an answer, without tools (`evaluation.mode`).
    Evaluation,
}

impl Purpose {
    /// Checks whether the response is only for the loop: it is neither added to the conversation nor shown.
    pub fn is_internal(self) -> bool {
        matches!(self, Self::Summary | Self::Evaluation)
    }
}
