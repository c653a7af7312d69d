//! Decodes Anthropic Messages events, or a whole body, into an answer.

use super::request::{REDACTED, SIGNATURE};
use super::usage::UsageTotals;
use crate::call_assembler::{CALLS_CAP, CallDelta};
use crate::codec::Decoder;
use crate::provider_error::{ProviderError, one_line, unexpected_format};
use crate::response_builder::{CONTENT_CAP, ResponseBuilder, too_long};
use crate::{LlmError, finish_reason};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_core::usage::Usage;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Limit on an unknown type in an error message, in characters.
const TYPE_CAP: usize = 40;

/// Decodes the events of one answer.
#[derive(Debug, Default)]
pub struct EventDecoder {
    usage_totals: UsageTotals,
    /// Id of the message that has started.
    message_id: Option<String>,
    /// Initial input of calls of which no piece has arrived: proxies send the input whole.
    inputs: BTreeMap<u64, String>,
    /// Number of blocks that have started and not ended.
    open_blocks: u64,
}

impl Decoder for EventDecoder {
    fn decode_event(&mut self, data: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        match data.trim() {
            "" => Ok(()),
            // Not part of this format, but proxies end with it.
            "[DONE]" => self.complete(answer),
            data => self.apply_event(&parsed(data.as_bytes())?, data, answer),
        }
    }

    fn is_complete_at_finish_reason(&self) -> bool {
        self.open_blocks == 0
    }

    fn decode_body(&mut self, body: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let message = parsed(body)?;
        if let Some(error) = error(&message) {
            return Err(error);
        }
        if let Some(usage) = self.count(&message) {
            answer.set_usage(usage);
        }
        let Some(blocks) = message.get("content").and_then(Value::as_array) else {
            return Err(unexpected_format("Messages", body, "it has no `content`"));
        };
        for (slot, block) in (0..).zip(blocks) {
            self.start_block(slot, block, answer)?;
        }
        record_stop_reason(&message, answer)?;
        self.complete(answer)
    }
}

impl EventDecoder {
    fn apply_event(
        &mut self,
        event: &Value,
        data: &str,
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        if let Some(error) = error(event) {
            return Err(error);
        }
        let slot = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str) {
            Some("message_start") => self.start_message(event.get("message").unwrap_or(&Value::Null), answer),
            Some("content_block_start") => {
                self.open_blocks = self.open_blocks.saturating_add(1);
                self.start_block(slot, event.get("content_block").unwrap_or(&Value::Null), answer)
            }
            Some("content_block_delta") => {
                self.apply_delta(slot, event.get("delta").unwrap_or(&Value::Null), answer)
            }
            Some("content_block_stop") => self.end_block(slot, answer),
            Some("message_delta") => {
                if let Some(usage) = self.count(event) {
                    answer.set_usage(usage);
                }
                record_stop_reason(event.get("delta").unwrap_or(&Value::Null), answer)
            }
            Some("message_stop") => self.complete(answer),
            // `ping`, and events of later versions, which the format requires clients to ignore.
            Some(_) => Ok(()),
            None => Err(unexpected_format("Messages", data.as_bytes(), "an event has no `type`")),
        }
    }

    /// Reads the start of the message. Gateways that fail over to another server start another message, which does not continue
    /// the content of the first.
    fn start_message(&mut self, message: &Value, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let id = message.get("id").and_then(Value::as_str);
        if self.message_id.as_deref().is_some_and(|known| Some(known) != id) {
            if !answer.is_empty() {
                let what = "the server began another answer in the middle of this one";
                return Err(LlmError::new(FailureKind::CutStream, what));
            }
            *self = Self::default();
        }
        self.message_id = id.map(str::to_owned);
        if let Some(usage) = self.count(message) {
            answer.set_prompt_usage(usage);
        }
        Ok(())
    }

    /// Reads a whole block, or the start of one.
    fn start_block(
        &mut self,
        slot: u64,
        block: &Value,
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => answer.push_text(slot, text("text")),
            "thinking" => {
                answer.push_thinking(slot, text("thinking"))?;
                sign(slot, SIGNATURE, text("signature"), answer)
            }
            "redacted_thinking" => sign(slot, REDACTED, text("data"), answer),
            "tool_use" => {
                // Nothing is stored of calls beyond the limit.
                if let Some(input) =
                    block.get("input").and_then(input).filter(|_| self.inputs.len() <= CALLS_CAP)
                {
                    self.inputs.insert(slot, input);
                    if self.inputs.values().map(String::len).sum::<usize>() > CONTENT_CAP {
                        return Err(too_long());
                    }
                }
                let (id, name) = (text("id"), text("name"));
                answer.push_call(slot, CallDelta { index: Some(slot), id, name, ..CallDelta::default() })
            }
            other => Err(unknown("block", other)),
        }
    }

    /// Reads a piece of a block.
    fn apply_delta(
        &mut self,
        slot: u64,
        delta: &Value,
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        let text = |key: &str| delta.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text_delta" => answer.push_text(slot, text("text")),
            "thinking_delta" => answer.push_thinking(slot, text("thinking")),
            "signature_delta" => sign(slot, SIGNATURE, text("signature"), answer),
            "input_json_delta" => {
                let piece = text("partial_json");
                if !piece.is_empty() {
                    self.inputs.remove(&slot);
                }
                arguments(slot, piece, answer)
            }
            // Positions of quoted sources; the quoted text itself arrives separately.
            "citations_delta" => Ok(()),
            other => Err(unknown("piece", other)),
        }
    }

    /// Reads the end of a block; a call whose input arrived whole gets it now.
    fn end_block(&mut self, slot: u64, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.open_blocks = self.open_blocks.saturating_sub(1);
        match self.inputs.remove(&slot) {
            Some(input) => arguments(slot, &input, answer),
            None => Ok(()),
        }
    }

    fn complete(&mut self, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        while let Some((slot, input)) = self.inputs.pop_first() {
            arguments(slot, &input, answer)?;
        }
        answer.mark_complete();
        Ok(())
    }

    /// Returns the token counts so far, with those that `holder` reports.
    fn count(&mut self, holder: &Value) -> Option<Usage> {
        self.usage_totals.read(holder.get("usage").unwrap_or(&Value::Null))
    }
}

fn parsed(json: &[u8]) -> Result<Value, LlmError> {
    let parsed: Value = serde_json::from_slice(json)
        .map_err(|error| unexpected_format("Messages", json, &error.to_string()))?;
    if parsed.is_object() { Ok(parsed) } else { Err(unexpected_format("Messages", json, "it is no object")) }
}

/// Returns the error that an event or a body represents.
fn error(value: &Value) -> Option<LlmError> {
    let is_error = value.get("type").is_some_and(|kind| kind == "error");
    let has_error = value.get("error").is_some_and(|error| !error.is_null());
    (is_error || has_error).then(|| ProviderError::from_value(value).to_stream_error())
}

fn arguments(slot: u64, piece: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
    answer.push_call(slot, CallDelta { index: Some(slot), arguments: piece, ..CallDelta::default() })
}

/// Appends to the data that is sent back with the reasoning.
fn sign(slot: u64, key: &str, piece: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
    if piece.is_empty() {
        return Ok(());
    }
    answer.update_opaque(slot, |opaque| {
        if let Some(Value::String(signed)) = opaque.get_mut(key) {
            signed.push_str(piece);
        } else {
            *opaque = Value::Object(Map::from_iter([(key.to_owned(), Value::String(piece.to_owned()))]));
        }
    })
}

/// Stores the finish reason if `holder` contains `stop_reason`.
fn record_stop_reason(holder: &Value, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
    let name = holder.get("stop_reason").and_then(Value::as_str).unwrap_or_default();
    let Some(reason) = finish_reason::read(name, "")? else { return Ok(()) };
    if reason == FinishReason::Refusal {
        let explanation = holder.pointer("/stop_details/explanation").and_then(Value::as_str);
        answer.push_refusal(explanation.unwrap_or_default());
    }
    answer.set_finish_reason(reason);
    Ok(())
}

/// Returns the input of a call that arrived whole; an empty one only announces possible pieces. Input that is not an object
/// stays as it is, so that the call is reported as invalid.
fn input(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Object(input) if input.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        input => Some(input.to_string()),
    }
}

/// Returns the error for content that this version does not know; a repeated answer would contain it too.
fn unknown(what: &str, kind: &str) -> LlmError {
    let message = format!("the answer holds a {what} of the unknown type `{}`", one_line(kind, TYPE_CAP));
    LlmError { retryable: false, ..LlmError::new(FailureKind::Malformed, message) }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
