//! What Gemini wants back with the parts of its answers: signatures of the thought behind them, and its own ids.
//!
//! A signature belongs to the part it came on; Gemini 3 refuses a history in which that of a call is missing:
//! <https://ai.google.dev/gemini-api/docs/thought-signatures>.

use crate::core::message::OpaqueData;
use serde::{Deserialize, Serialize};

/// The name under which this codec stores what only it may replay.
pub const CODEC: &str = "gemini";

/// What is kept of a call beside its name and arguments. Every call of this codec has it, if only to show whose it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallOpaque {
    /// The id as the server sent it; older models send none and match results by their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
}

/// The signature of a part that is no call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartSignature {
    /// The signature.
    pub thought_signature: String,
    /// What it came on.
    pub on: SignedContent,
}

/// What a signature came on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedContent {
    /// A thought, whose text stands beside it.
    Thought,
    /// The text before it.
    Text,
    /// A text without a character, as streams often end.
    Nothing,
}

/// The data, where it is this codec's and understood.
pub fn read<T: for<'de> Deserialize<'de>>(opaque: Option<&OpaqueData>) -> Option<T> {
    let own = opaque.filter(|opaque| opaque.codec == CODEC)?;
    T::deserialize(&own.data).ok()
}
