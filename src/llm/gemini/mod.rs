//! The Gemini wire format as a pure codec: `generateContent` and `streamGenerateContent`.
//!
//! Follows Google's API reference and the type definitions of `@google/genai`, November 2026.

pub mod decode;
pub mod error;
pub mod opaque;
pub mod request;
pub mod usage;

use crate::LlmError;
use crate::codec::{Codec, Decoder};
use decode::PartDecoder;

/// The Gemini codec; all servers use the format alike.
#[derive(Debug)]
pub struct Gemini;

impl Codec for Gemini {
    fn name(&self) -> &'static str {
        opaque::CODEC
    }

    fn path(&self, model: &str, stream: bool) -> String {
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        format!("/{}:{method}", request::resource(model))
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(PartDecoder::default())
    }

    fn status_error(&self, status: u16, body: &[u8]) -> LlmError {
        error::status_error(status, body)
    }
}
