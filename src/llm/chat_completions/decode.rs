//! Decodes Chat Completions events, or a whole body, into an answer.

use super::{reasoning_details, usage};
use crate::LlmError;
use crate::call_assembler::CallDelta;
use crate::codec::Decoder;
use crate::finish_reason;
use crate::provider_error::{ProviderError, unexpected_format};
use crate::response_builder::ResponseBuilder;
use serde::Deserialize;
use serde_json::Value;
use std::borrow::Cow;

/// Slots of the message parts; they give the order reasoning, text, calls, in whatever order the server sends them.
const THINKING: u64 = 0;
const TEXT: u64 = 1;
const CALLS: u64 = 2;

/// Decodes the chunks of one answer.
#[derive(Debug, Default)]
pub struct ChunkDecoder {
    /// Whether deltas with content arrived: some gateways then send the whole message once more.
    deltas: bool,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    x_groq: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    object: Value,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Value,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    message: Option<Delta>,
    #[serde(default)]
    finish_reason: Value,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
    #[serde(default)]
    reasoning_details: Value,
    #[serde(default)]
    refusal: Value,
    #[serde(default)]
    tool_calls: Option<Vec<WireCall>>,
    #[serde(default)]
    function_call: Option<WireFunction>,
}

impl Delta {
    /// Checks whether it has no content.
    fn is_empty(&self) -> bool {
        let is_blank =
            |value: &&Value| value.is_null() || **value == "" || value.as_array().is_some_and(Vec::is_empty);
        [&self.content, &self.reasoning_content, &self.reasoning, &self.reasoning_details, &self.refusal]
            .iter()
            .all(is_blank)
            && self.tool_calls.as_ref().is_none_or(Vec::is_empty)
            && self.function_call.is_none()
    }
}

/// A piece of a call in a stream, or a whole call in a body.
#[derive(Default, Deserialize)]
struct WireCall {
    #[serde(default)]
    index: Value,
    #[serde(default)]
    id: Value,
    #[serde(default)]
    function: Option<WireFunction>,
    /// Gemini's thought signature of the call.
    #[serde(default)]
    extra_content: Value,
}

#[derive(Default, Deserialize)]
struct WireFunction {
    #[serde(default)]
    name: Value,
    /// Some servers send an object instead of a string.
    #[serde(default)]
    arguments: Value,
}

impl Decoder for ChunkDecoder {
    fn decode_event(&mut self, data: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        match data.trim() {
            "[DONE]" => answer.mark_complete(),
            "" => {}
            data => self.chunk(data.as_bytes(), false, answer)?,
        }
        Ok(())
    }

    fn is_complete_at_finish_reason(&self) -> bool {
        true
    }

    fn decode_body(&mut self, body: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.chunk(body, true, answer)?;
        answer.mark_complete();
        Ok(())
    }
}

impl ChunkDecoder {
    /// Reads one document, which is the `whole` answer or one event of it.
    fn chunk(&mut self, json: &[u8], whole: bool, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let wrong = |why: &str| unexpected_format("Chat Completions", json, why);
        let chunk: Chunk = serde_json::from_slice(json).map_err(|error| wrong(&error.to_string()))?;
        if let Some(usage) = usage::read(&chunk.usage).or_else(|| usage::read(chunk.x_groq.get("usage")?)) {
            answer.set_usage(usage);
        }
        if !chunk.error.is_null() {
            return Err(ProviderError::from_value(&chunk.error).to_stream_error());
        }
        if chunk.object == "error" {
            return Err(ProviderError::from_body(json).to_stream_error());
        }
        // Events without choices contain usage or extensions of the server; a body without choices is not an answer.
        if whole && chunk.choices.is_none() {
            return Err(wrong("it has no `choices`"));
        }
        let choices = chunk.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index.as_u64().unwrap_or(0) == 0) {
            let delta = choice.delta.filter(|delta| !delta.is_empty());
            let message = choice.message.filter(|message| !self.deltas && !message.is_empty());
            self.deltas |= delta.is_some();
            // Some servers send both: the message is the content of a document, the delta that of an event.
            let content = if whole { message.or(delta) } else { delta.or(message) };
            content.map_or(Ok(()), |content| apply_delta(content, answer))?;
            let reason = choice.finish_reason.as_str().unwrap_or_default();
            if let Some(reason) = finish_reason::read(reason, "")? {
                answer.set_finish_reason(reason);
            }
        }
        Ok(())
    }
}

fn apply_delta(delta: Delta, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
    // Some servers fill both, some leave one empty.
    let mut reasoning = [&delta.reasoning_content, &delta.reasoning].into_iter().filter_map(Value::as_str);
    answer.push_thinking(THINKING, reasoning.find(|text| !text.is_empty()).unwrap_or_default())?;
    if let Value::Array(pieces) = &delta.reasoning_details {
        answer.update_opaque(THINKING, |opaque| reasoning_details::merge(pieces, opaque))?;
    }
    match &delta.content {
        Value::String(text) => answer.push_text(TEXT, text)?,
        Value::Array(pieces) => content_list(pieces, answer)?,
        _ => {}
    }
    answer.push_refusal(delta.refusal.as_str().unwrap_or_default());
    let calls = delta.tool_calls.unwrap_or_default();
    // Some gateways send each call in the older form as well.
    let legacy = delta.function_call.filter(|_| calls.is_empty());
    let legacy = legacy.map(|function| WireCall { function: Some(function), ..WireCall::default() });
    for call in calls.into_iter().chain(legacy) {
        let function = call.function.unwrap_or_default();
        let arguments = match &function.arguments {
            Value::String(piece) => Cow::Borrowed(piece.as_str()),
            Value::Null => Cow::Borrowed(""),
            whole => Cow::Owned(whole.to_string()),
        };
        let delta = CallDelta {
            index: call.index.as_u64(),
            id: call.id.as_str().unwrap_or_default(),
            name: function.name.as_str().unwrap_or_default(),
            arguments: &arguments,
            extra: call.extra_content,
        };
        answer.push_call(CALLS, delta)?;
    }
    Ok(())
}

/// Reads a content list as Mistral sends it: text and thinking chunks.
fn content_list(pieces: &[Value], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
    for piece in pieces {
        if let Some(text) = piece.get("text").and_then(Value::as_str) {
            answer.push_text(TEXT, text)?;
        }
        match piece.get("thinking") {
            Some(Value::String(text)) => answer.push_thinking(THINKING, text)?,
            Some(Value::Array(inner)) => {
                for text in inner.iter().filter_map(|item| item.get("text")?.as_str()) {
                    answer.push_thinking(THINKING, text)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
