//! Decodes Gemini events, or a whole body, into an answer.

use super::opaque::{CallOpaque, PartSignature, SignedContent};
use super::{error, usage};
use crate::call_assembler::CallDelta;
use crate::codec::Decoder;
use crate::provider_error::{one_line, unexpected_format};
use crate::response_builder::ResponseBuilder;
use crate::{LlmError, finish_reason};
use agent_core::failure::FailureKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Limit on the provider's explanation of a finish reason or a block, in characters.
const DETAIL_CAP: usize = 300;
/// Fields of a part that are ignored when checking whether it is blank.
const BLANK_FIELDS: [&str; 3] = ["text", "thought", "thoughtSignature"];

/// Assigns parts to slots: adjacent texts share a slot, and so do adjacent thoughts, but a part with a
/// signature has its own slot.
#[derive(Debug, Default)]
pub struct PartDecoder {
    slot: u64,
    /// Kind of the last part, if a further part without signature would continue it.
    open: Option<OpenPart>,
    calls: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenPart {
    Text,
    Thought,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(default)]
    prompt_feedback: Value,
    #[serde(default)]
    usage_metadata: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Value,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: Value,
    #[serde(default)]
    finish_message: Value,
}

#[derive(Deserialize)]
struct Content<'a> {
    /// Raw parts, so that an unknown one can be quoted in an error.
    #[serde(borrow, default)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(default)]
    thought_signature: Option<String>,
    #[serde(borrow, default)]
    function_call: Option<WireCall<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCall<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    /// Arguments in pieces, which a server sends only on request.
    #[serde(default)]
    partial_args: Value,
    #[serde(default)]
    will_continue: Option<bool>,
}

impl Decoder for PartDecoder {
    fn decode_event(&mut self, data: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        match data.trim() {
            "" => Ok(()),
            // Gemini's streams have no end marker; some gateways add this one to all of theirs.
            "[DONE]" => {
                answer.mark_complete();
                Ok(())
            }
            data => self.chunk(data, false, answer),
        }
    }

    /// Reads one document, or the list of documents that a stream becomes if a gateway drops `alt=sse`.
    fn decode_body(&mut self, body: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let wrong = |why: &str| unexpected_format("Gemini", body, why);
        let text = str::from_utf8(body).map_err(|error| wrong(&error.to_string()))?;
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if !text.starts_with('[') {
            self.chunk(text, true, answer)?;
            answer.mark_complete();
            return Ok(());
        }
        let events: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| wrong(&error.to_string()))?;
        events.into_iter().try_for_each(|event| self.chunk(event.get(), false, answer))
    }
}

impl PartDecoder {
    /// Reads one document, which is the `whole` answer or one event of it.
    fn chunk(&mut self, json: &str, whole: bool, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let wrong = |why: &str| unexpected_format("Gemini", json.as_bytes(), why);
        let chunk: Chunk<'_> = serde_json::from_str(json).map_err(|error| wrong(&error.to_string()))?;
        if let Some(usage) = usage::read(&chunk.usage_metadata) {
            answer.set_usage(usage);
        }
        if !chunk.error.is_null() {
            return Err(error::stream_error(&chunk.error));
        }
        if let Some(reason) = chunk.prompt_feedback.get("blockReason").and_then(Value::as_str) {
            let detail = detail_suffix(chunk.prompt_feedback.get("blockReasonMessage"));
            let message = format!("Gemini blocked the prompt: `{}`{detail}", one_line(reason, DETAIL_CAP));
            return Err(LlmError::new(FailureKind::Refusal, message));
        }
        if whole && chunk.candidates.is_none() {
            return Err(wrong("it has no `candidates`"));
        }
        let candidates = chunk.candidates.into_iter().flatten();
        for candidate in candidates.filter(|candidate| candidate.index.as_u64().unwrap_or(0) == 0) {
            for part in candidate.content.and_then(|content| content.parts).into_iter().flatten() {
                self.part(part.get(), answer)?;
            }
            let reason = candidate.finish_reason.as_str().unwrap_or_default();
            let detail = detail_suffix(Some(&candidate.finish_message));
            if let Some(reason) = finish_reason::read(reason, &detail)? {
                answer.set_finish_reason(reason);
            }
        }
        Ok(())
    }

    fn part(&mut self, json: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let wrong = |why: &str| unexpected_format("Gemini", json.as_bytes(), why);
        let part: WirePart<'_> = serde_json::from_str(json).map_err(|error| wrong(&error.to_string()))?;
        let signature = part.thought_signature.filter(|signature| !signature.is_empty());
        if let Some(call) = part.function_call {
            return self.call(call, signature, json, answer);
        }
        if part.text.is_none() && !is_blank(json) {
            return Err(wrong("a part is neither text nor a function call"));
        }
        let text = part.text.unwrap_or_default();
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        let thought = part.thought.unwrap_or(false);
        let kind = if thought { OpenPart::Thought } else { OpenPart::Text };
        let slot = self.slot_for(kind, signature.is_some());
        match kind {
            OpenPart::Thought => answer.push_thinking(slot, &text)?,
            OpenPart::Text => answer.push_text(slot, &text)?,
        }
        let Some(thought_signature) = signature else { return Ok(()) };
        let on = match kind {
            OpenPart::Thought => SignedContent::Thought,
            OpenPart::Text if text.is_empty() => SignedContent::Nothing,
            OpenPart::Text => SignedContent::Text,
        };
        let data = to_opaque(&PartSignature { thought_signature, on })?;
        answer.update_opaque(slot, |opaque| *opaque = data)
    }

    /// Returns the slot of a text or thought.
    fn slot_for(&mut self, kind: OpenPart, signed: bool) -> u64 {
        if signed || self.open != Some(kind) {
            self.slot += 1;
        }
        self.open = (!signed).then_some(kind);
        self.slot
    }

    fn call(
        &mut self,
        call: WireCall<'_>,
        thought_signature: Option<String>,
        json: &str,
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        if !call.partial_args.is_null() || call.will_continue == Some(true) {
            let why = "the arguments of a function call come in pieces, which were not requested";
            return Err(unexpected_format("Gemini", json.as_bytes(), why));
        }
        self.slot += 1;
        self.open = None;
        self.calls += 1;
        let id = call.id.filter(|id| !id.is_empty());
        let arguments = call.args.map_or(Cow::Borrowed(""), |args| arguments(args.get()));
        let delta = CallDelta {
            index: Some(self.calls),
            id: id.as_deref().unwrap_or_default(),
            name: call.name.as_deref().unwrap_or_default(),
            arguments: &arguments,
            extra: to_opaque(&CallOpaque { id: id.clone(), thought_signature })?,
        };
        answer.push_call(self.slot, delta)
    }
}

/// Checks whether a part without text contains nothing else either.
fn is_blank(json: &str) -> bool {
    let fields: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_str(json);
    fields.is_ok_and(|fields| fields.keys().all(|name| BLANK_FIELDS.contains(&name.as_str())))
}

/// Returns the arguments; they are a string if a gateway passes on the output of another format.
fn arguments(json: &str) -> Cow<'_, str> {
    match serde_json::from_str::<String>(json) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(json),
    }
}

fn to_opaque(data: &impl Serialize) -> Result<Value, LlmError> {
    serde_json::to_value(data).map_err(|error| LlmError::new(FailureKind::Internal, error.to_string()))
}

/// Returns the provider's explanation as a suffix of a message.
fn detail_suffix(message: Option<&Value>) -> String {
    let text = message.and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    text.map(|text| format!(" ({})", one_line(text, DETAIL_CAP))).unwrap_or_default()
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
