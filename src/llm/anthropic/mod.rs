//! Anthropic's Messages wire format as a pure codec: a request to JSON, events or a body to an answer.
//!
//! Follows the type definitions of the official SDKs, November 2026, and tolerates the deviations of proxies.

pub mod decode;
pub mod request;
pub mod usage;

use crate::codec::{Codec, Decoder};
use crate::quirks::Quirks;
use decode::EventDecoder;
use request::{CODEC, DEFAULT_MAX_TOKENS};

/// The version of the API that this codec implements: <https://docs.claude.com/en/api/versioning>.
const VERSION: &str = "2023-06-01";

/// The Anthropic Messages codec, with the quirks of one server.
#[derive(Debug)]
pub struct AnthropicMessages {
    /// Deviations of the server from Anthropic's own.
    pub quirks: Quirks,
}

impl Codec for AnthropicMessages {
    fn name(&self) -> &'static str {
        CODEC
    }

    fn path(&self, _model: &str, _stream: bool) -> String {
        "/messages".into()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-api-key", key.to_owned()));
        [("anthropic-version", VERSION.to_owned())].into_iter().chain(key).collect()
    }

    fn output_limit(&self) -> Option<u32> {
        Some(DEFAULT_MAX_TOKENS)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(EventDecoder::default())
    }
}
