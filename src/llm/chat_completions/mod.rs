//! The Chat Completions wire format as a pure codec: a request to JSON, events or a body to an answer.
//!
//! Follows `OpenAI`'s API reference, and tolerates the deviations of the many compatible servers.

pub mod decode;
pub mod reasoning_details;
pub mod request;
pub mod usage;

use crate::codec::{Codec, Decoder};
use crate::quirks::{Quirks, TextCallFormat};
use decode::ChunkDecoder;
use request::CODEC;

/// The Chat Completions codec, with the quirks of one server.
#[derive(Debug)]
pub struct ChatCompletions {
    /// Deviations of the server from the common format.
    pub quirks: Quirks,
}

impl Codec for ChatCompletions {
    fn name(&self) -> &'static str {
        CODEC
    }

    fn path(&self, _model: &str, _stream: bool) -> String {
        "/chat/completions".into()
    }

    fn accepts_tagged_calls(&self) -> bool {
        self.quirks.text_calls == TextCallFormat::Tagged
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(ChunkDecoder::default())
    }
}
