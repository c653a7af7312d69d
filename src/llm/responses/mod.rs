//! The Responses wire format as a pure codec: a conversation as items, events or a body to an answer.
//!
//! Follows `OpenAI`'s API reference. Nothing is stored on the server: the items of earlier turns are sent again,
//! including encrypted reasoning.

pub mod decode;
pub mod request;
pub mod usage;

use crate::codec::{Codec, Decoder};
use decode::EventDecoder;
use request::CODEC;

/// The Responses codec.
#[derive(Debug)]
pub struct Responses;

impl Codec for Responses {
    fn name(&self) -> &'static str {
        CODEC
    }

    fn path(&self, _model: &str, _stream: bool) -> String {
        "/responses".into()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(EventDecoder::default())
    }
}
