//! Data that Gemini expects back with the parts of its answers: thought signatures and its own call ids.
//!
//! A signature belongs to the part on which it arrived; Gemini 3 refuses a history in which the signature of a call is
//! missing: <https://ai.google.dev/gemini-api/docs/thought-signatures>.

use agent_core::message::OpaqueData;
use serde::{Deserialize, Serialize};

/// Codec name of stored data that only this codec may replay.
pub const CODEC: &str = "gemini";

/// Data stored with a call besides its name and arguments. Every call of this codec has it, if only to mark its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallOpaque {
    /// Id as the server sent it; older models send none and match results by their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
}

/// The signature of a part that is not a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartSignature {
    /// The signature.
    pub thought_signature: String,
    /// Kind of the signed part.
    pub on: SignedContent,
}

/// Kind of part that a signature belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedContent {
    /// The thought whose text is in the same part.
    Thought,
    /// The preceding text.
    Text,
    /// An empty text, with which streams often end.
    Nothing,
}

/// Deserializes the data, if it is from this codec and valid.
pub fn read<T: for<'de> Deserialize<'de>>(opaque: Option<&OpaqueData>) -> Option<T> {
    let own = opaque.filter(|opaque| opaque.codec == CODEC)?;
    T::deserialize(&own.data).ok()
}
