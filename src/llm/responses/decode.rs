//! Decodes Responses events, or a whole body, into an answer.

use super::usage;
use crate::call_assembler::CallDelta;
use crate::codec::Decoder;
use crate::provider_error::{ProviderError, one_line, unexpected_format};
use crate::request_parts::sanitized_id;
use crate::response_builder::ResponseBuilder;
use crate::{LlmError, finish_reason};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Limit on the items of one answer; real answers have up to a few dozen.
const ITEMS_CAP: usize = 1024;
/// Limit on an item's id that is compared, in characters; `OpenAI`'s have about fifty.
const ID_LENGTH: usize = 64;
/// Limit on an unknown word in an error message, in characters.
const WORD_CAP: usize = 40;
/// Separator between two parts of a summary.
const PARAGRAPH: &str = "\n\n";

/// Decodes events and tracks the items of the answer.
#[derive(Debug, Default)]
pub struct EventDecoder {
    items: Vec<Item>,
}

/// State of one item of the answer.
#[derive(Debug, Default)]
struct Item {
    /// Position in the answer.
    at: u64,
    index: Option<u64>,
    /// Id of the item, if it has no index.
    id: String,
    /// Whether the name of the called tool has arrived.
    has_tool_name: bool,
    /// Whether a piece of the content has arrived.
    has_content: bool,
    /// Whether the whole item has arrived.
    closed: bool,
    /// Type of the item, if it is unknown.
    unknown: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    r#type: Value,
    #[serde(default)]
    output_index: Value,
    #[serde(default)]
    item_id: Value,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    item: Value,
    #[serde(default)]
    response: Option<ResponseObject>,
    #[serde(default)]
    error: Value,
}

/// The response object: the whole answer, or its state at an event.
#[derive(Default, Deserialize)]
struct ResponseObject {
    #[serde(default)]
    status: Value,
    #[serde(default)]
    output: Value,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
    #[serde(default)]
    incomplete_details: Value,
}

impl Decoder for EventDecoder {
    fn decode_event(&mut self, data: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let data = data.trim();
        // The format ends with an event; some gateways add the end mark of Chat Completions.
        if matches!(data, "" | "[DONE]") {
            return Ok(());
        }
        let json = data.as_bytes();
        let event: Event = serde_json::from_slice(json).map_err(|error| wrong(json, &error.to_string()))?;
        let piece = event.delta.as_str().unwrap_or_default();
        match event.r#type.as_str().unwrap_or_default() {
            "response.output_item.added" => self.item(&event)?.begin(&event.item, answer),
            "response.output_text.delta" => self.item(&event)?.write(piece, answer),
            "response.refusal.delta" => {
                self.item(&event)?.refuse(piece, answer);
                Ok(())
            }
            "response.reasoning_summary_part.added" => self.item(&event)?.start_summary_part(answer),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.item(&event)?.think(piece, answer)
            }
            "response.function_call_arguments.delta" => self.item(&event)?.push_arguments(piece, answer),
            "response.function_call_arguments.done" => {
                self.item(&event)?.finish_arguments(&event.arguments, answer)
            }
            "response.output_item.done" => self.item(&event)?.take(&event.item, answer),
            terminal @ ("response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled") => {
                let status = terminal.trim_start_matches("response.");
                self.end(status, &event.response.unwrap_or_default(), json, answer)
            }
            "error" => Err(ProviderError::from_body(json).to_stream_error()),
            "" if event.error.is_null() => Err(wrong(json, "it has no `type`")),
            "" => Err(ProviderError::from_value(&event.error).to_stream_error()),
            // Progress, repeated content, tools that the server runs itself, and future events.
            _ => Ok(()),
        }
    }

    fn decode_body(&mut self, body: &[u8], answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        let reply: ResponseObject =
            serde_json::from_slice(body).map_err(|error| wrong(body, &error.to_string()))?;
        self.end(reply.status.as_str().unwrap_or_default(), &reply, body, answer)
    }
}

impl EventDecoder {
    /// Returns the item of an event: by its index; without one (llama.cpp), by its id; without either, the latest.
    /// An item that arrived whole is finished; a further event for its place starts a new item.
    fn item(&mut self, event: &Event) -> Result<&mut Item, LlmError> {
        let index = event.output_index.as_u64();
        let id = event.item_id.as_str().or_else(|| event.item.get("id")?.as_str()).unwrap_or_default();
        let id =
            if index.is_some() || id.is_empty() { Cow::Borrowed("") } else { sanitized_id(id, ID_LENGTH) };
        let known = self.items.iter().rposition(|item| match index {
            Some(_) => item.index == index,
            None => id.is_empty() || item.id == id,
        });
        let whole = !event.item.is_null();
        let known = known.filter(|at| self.items.get(*at).is_some_and(|item| !(whole && item.closed)));
        let at = known.unwrap_or(self.items.len());
        if at == self.items.len() {
            self.items.push(Item { index, id: id.into_owned(), ..Item::at(at)? });
        }
        self.items.get_mut(at).ok_or_else(too_many)
    }

    /// Reads the end of the answer, and the whole answer if no item arrived before.
    fn end(
        &mut self,
        status: &str,
        reply: &ResponseObject,
        json: &[u8],
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        if let Some(usage) = usage::read(&reply.usage) {
            answer.set_usage(usage);
        }
        if !reply.error.is_null() {
            return Err(ProviderError::from_value(&reply.error).to_stream_error());
        }
        let reason = match status.to_ascii_lowercase().as_str() {
            "completed" => FinishReason::Stop,
            "incomplete" => reason(&reply.incomplete_details)?,
            "failed" => return Err(ProviderError::default().to_stream_error()),
            "cancelled" => return Err(LlmError::new(FailureKind::Server, "the server cancelled the answer")),
            "" => return Err(wrong(json, "it has no `status`")),
            other => {
                return Err(wrong(json, &format!("its status is `{}`", one_line(other, WORD_CAP))));
            }
        };
        if self.items.is_empty() {
            for whole in list(&reply.output) {
                let mut item = Item::at(self.items.len())?;
                item.take(whole, answer)?;
                self.items.push(item);
            }
        }
        if let Some(unknown) = self.only_unknown() {
            return Err(wrong(json, &format!("it has no item but `{unknown}`")));
        }
        answer.set_finish_reason(reason);
        answer.mark_complete();
        Ok(())
    }

    /// Returns the type of the first item if no item of the answer has a known type.
    fn only_unknown(&self) -> Option<&str> {
        let all = self.items.iter().all(|item| item.unknown.is_some());
        self.items.first().filter(|_| all)?.unknown.as_deref()
    }
}

impl Item {
    /// Creates an empty item at this position.
    fn at(at: usize) -> Result<Self, LlmError> {
        if at >= ITEMS_CAP {
            return Err(too_many());
        }
        let at = u64::try_from(at).map_err(|_| too_many())?;
        Ok(Self { at, ..Self::default() })
    }

    /// Returns the slot of the content among the parts of the message; data stored with a text is in the slot before it.
    fn slot(&self) -> u64 {
        self.at * 2
    }

    /// Reads the properties that are known at the start: the called tool, or the phase of a text.
    fn begin(&mut self, item: &Value, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        match text(item, "type") {
            "message" => match item.get("phase").and_then(Value::as_str) {
                // Newer models expect the phase back, which marks texts that were only commentary.
                Some(phase) => {
                    answer.update_opaque(self.slot(), |opaque| *opaque = json!({ "phase": phase }))
                }
                None => Ok(()),
            },
            "function_call" | "custom_tool_call" if !self.has_tool_name => {
                let ids = [text(item, "call_id"), text(item, "id")];
                let delta = CallDelta {
                    index: Some(self.at),
                    id: ids.into_iter().find(|id| !id.is_empty()).unwrap_or_default(),
                    name: text(item, "name"),
                    ..CallDelta::default()
                };
                self.has_tool_name = !delta.name.is_empty();
                answer.push_call(self.slot(), delta)
            }
            _ => Ok(()),
        }
    }

    /// Reads the whole item; content that already arrived in pieces is skipped.
    fn take(&mut self, item: &Value, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.closed = true;
        self.begin(item, answer)?;
        match text(item, "type") {
            "message" if self.has_content => Ok(()),
            "message" => list(item.get("content").unwrap_or(&Value::Null)).try_for_each(|part| {
                self.refuse(text(part, "refusal"), answer);
                self.write(text(part, "text"), answer)
            }),
            "function_call" => self.finish_arguments(item.get("arguments").unwrap_or(&Value::Null), answer),
            "custom_tool_call" => self.finish_arguments(item.get("input").unwrap_or(&Value::Null), answer),
            "reasoning" => {
                if !self.has_content {
                    self.think(&reasoning(item), answer)?;
                }
                match replayable_reasoning(item) {
                    Some(data) => answer.update_opaque(self.slot(), |opaque| *opaque = data),
                    None => Ok(()),
                }
            }
            other => {
                self.unknown = Some(one_line(other, WORD_CAP));
                Ok(())
            }
        }
    }

    fn write(&mut self, piece: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.has_content |= !piece.is_empty();
        answer.push_text(self.slot() + 1, piece)
    }

    fn refuse(&mut self, piece: &str, answer: &mut ResponseBuilder<'_>) {
        self.has_content |= !piece.is_empty();
        answer.push_refusal(piece);
    }

    fn think(&mut self, piece: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.has_content |= !piece.is_empty();
        answer.push_thinking(self.slot(), piece)
    }

    /// Starts a further part of a summary.
    fn start_summary_part(&mut self, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        if self.has_content { self.think(PARAGRAPH, answer) } else { Ok(()) }
    }

    /// Adds a piece of a call's arguments.
    fn push_arguments(&mut self, piece: &str, answer: &mut ResponseBuilder<'_>) -> Result<(), LlmError> {
        self.has_content |= !piece.is_empty();
        let index = Some(self.at);
        answer.push_call(self.slot(), CallDelta { index, arguments: piece, ..CallDelta::default() })
    }

    /// Sets the whole arguments of a call.
    fn finish_arguments(
        &mut self,
        arguments: &Value,
        answer: &mut ResponseBuilder<'_>,
    ) -> Result<(), LlmError> {
        match arguments {
            _ if self.has_content => Ok(()),
            Value::Null => Ok(()),
            Value::String(text) => self.push_arguments(text, answer),
            object => self.push_arguments(&object.to_string(), answer),
        }
    }
}

/// Returns the visible reasoning of an item: its summary, or the text itself, which open models show.
fn reasoning(item: &Value) -> String {
    let texts = |field: &str| -> Vec<&str> {
        list(item.get(field).unwrap_or(&Value::Null)).map(|part| text(part, "text")).collect()
    };
    let summary = texts("summary").join(PARAGRAPH);
    if summary.is_empty() { texts("content").join(PARAGRAPH) } else { summary }
}

/// Returns a reasoning item in the form in which it is sent back: without its id if it is encrypted, because the server would
/// look for the following item by that item's id; always without its `status`, which is refused. `None` if it contains nothing
/// that a stateless server could use.
fn replayable_reasoning(item: &Value) -> Option<Value> {
    let summary = item.get("summary").filter(|summary| summary.is_array()).cloned().unwrap_or(json!([]));
    let encrypted = text(item, "encrypted_content");
    if !encrypted.is_empty() {
        return Some(json!({"type": "reasoning", "summary": summary, "encrypted_content": encrypted}));
    }
    let content = item.get("content")?;
    list(content).next()?;
    Some(json!({"type": "reasoning", "id": text(item, "id"), "summary": summary, "content": content}))
}

/// Returns the reason for an incomplete answer.
fn reason(details: &Value) -> Result<FinishReason, LlmError> {
    let reason = finish_reason::read(text(details, "reason"), "")?;
    Ok(reason.unwrap_or_else(|| FinishReason::Other("incomplete".into())))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

fn wrong(json: &[u8], why: &str) -> LlmError {
    unexpected_format("Responses", json, why)
}

fn too_many() -> LlmError {
    LlmError::too_large(format!("the answer has more than {ITEMS_CAP} items"))
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
