//! The Responses wire format as a pure codec: a conversation as items, events or a body to an answer.
//!
//! Follows `OpenAI`'s API reference. Nothing is stored on the server: the items of earlier turns are sent again,
//! including encrypted reasoning.

pub mod decode;
pub mod request;
pub mod usage;

use crate::core::message::Message;
use crate::llm::Request;
use crate::llm::codec::{Codec, Decoder, ModelParameters};
use decode::EventDecoder;
use request::CODEC;
use std::sync::Arc;

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

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }

    fn write_message(
        &self,
        message: &Message,
        _earlier: &[Arc<Message>],
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        request::write_message(message, json)
    }

    fn encode(
        &self,
        request: &Request<'_>,
        parameters: &ModelParameters,
        messages: &[u8],
    ) -> serde_json::Result<Vec<u8>> {
        request::encode(request, parameters, messages)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(EventDecoder::default())
    }
}
