//! Ollama's own wire format as a pure codec: lines of JSON, whole calls without ids, a context window in each request.
//!
//! Follows Ollama's API reference and the types of its Go client. Its Chat Completions mode is not used, because
//! its requests cannot set the window: a prompt above the server's default, often 4096 tokens, is silently truncated at the front.

pub mod decode;
pub mod request;
pub mod window;

use crate::LlmError;
use crate::codec::{Codec, Decoder};
use crate::framing::Framing;
use crate::quirks::TextCallFormat;
use decode::LineDecoder;
use request::CODEC;

/// The Ollama codec.
#[derive(Debug)]
pub struct Ollama {
    /// Formats in which tool calls are accepted in the text of an answer.
    pub text_calls: TextCallFormat,
}

impl Codec for Ollama {
    fn name(&self) -> &'static str {
        CODEC
    }

    fn path(&self, _model: &str, _stream: bool) -> String {
        "/api/chat".into()
    }

    fn models_path(&self) -> &'static str {
        "/v1/models"
    }

    /// Also accepts the base of the Chat Completions mode, and the base in Ollama's reference.
    fn api_base<'a>(&self, base: &'a str) -> &'a str {
        base.strip_suffix("/v1").or_else(|| base.strip_suffix("/api")).unwrap_or(base)
    }

    fn framing(&self) -> Framing {
        Framing::Ndjson
    }

    fn accepts_tagged_calls(&self) -> bool {
        self.text_calls == TextCallFormat::Tagged
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(LineDecoder::default())
    }

    fn status_error(&self, status: u16, body: &[u8]) -> LlmError {
        decode::status_error(status, body)
    }
}
