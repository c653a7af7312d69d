//! An answer out of Chat Completions events or a whole body.

use super::CODEC;
use super::calls::{CallDelta, Calls, FunctionDelta, JoinedCall};
use super::usage;
use crate::event::FinishReason;
use crate::failure::ErrorKind;
use crate::llm::embedded_call;
use crate::llm::error_body::{ProviderError, excerpt, one_line};
use crate::llm::{LlmError, Progress, Response};
use crate::message::{Message, Opaque, Part, Role, ToolCall};
use crate::usage::Usage;
use serde::Deserialize;
use serde_json::Value;

/// The most text held back while it could still be an embedded call, in bytes; longer text is shown as it comes.
const HELD_CAP: usize = 16 * 1024;
/// The longest unknown finish reason that is kept, in characters.
const FINISH_CAP: usize = 40;

/// What the codec must know of the conversation to finish an answer.
pub struct Surroundings<'a> {
    /// Whether a tool of this name was offered.
    pub offered: &'a dyn Fn(&str) -> bool,
    /// Whether an earlier call has this id.
    pub taken: &'a dyn Fn(&str) -> bool,
    /// Makes up an id.
    pub new_id: &'a dyn Fn() -> String,
}

/// Collects an answer, event by event.
#[derive(Debug, Default)]
pub struct Answer {
    text: String,
    /// How much of `text` was shown.
    shown: usize,
    /// Whether text that looks like a call is held back, because tools were offered.
    hold: bool,
    thinking: String,
    refusal: String,
    calls: Calls,
    finish: Option<String>,
    usage: Option<Usage>,
    done: bool,
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
    refusal: Value,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
    #[serde(default)]
    function_call: Option<FunctionDelta>,
}

impl Answer {
    /// An empty answer; `tools` says whether any were offered.
    pub fn new(tools: bool) -> Self {
        Self { hold: tools, ..Self::default() }
    }

    /// Whether the stream said that it is complete.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Takes in the data of one event, telling `show` what can be shown.
    ///
    /// # Errors
    /// When it is not a chunk, holds an error, or exceeds a limit.
    pub fn event(&mut self, data: &str, show: &mut dyn FnMut(Progress<'_>)) -> Result<(), LlmError> {
        match data.trim() {
            "[DONE]" => self.done = true,
            "" => {}
            data => self.chunk(data.as_bytes(), false, show)?,
        }
        Ok(())
    }

    /// Takes in the body of an answer that is not streamed.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn body(&mut self, body: &[u8], show: &mut dyn FnMut(Progress<'_>)) -> Result<(), LlmError> {
        self.chunk(body, true, show)?;
        self.done = true;
        Ok(())
    }

    /// Takes in one document, which is the `whole` answer or one event of it.
    fn chunk(
        &mut self,
        json: &[u8],
        whole: bool,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), LlmError> {
        let chunk: Chunk =
            serde_json::from_slice(json).map_err(|error| not_understood(json, &error.to_string()))?;
        if !chunk.error.is_null() {
            return Err(ProviderError::from_value(&chunk.error).in_stream());
        }
        if chunk.object == "error" {
            return Err(ProviderError::from_body(json).in_stream());
        }
        let usage = usage::read(&chunk.usage).or_else(|| usage::read(chunk.x_groq.get("usage")?));
        self.usage = usage.or(self.usage);
        // Events without choices carry usage, or things that servers add; a body without them is no answer.
        if whole && chunk.choices.is_none() {
            return Err(not_understood(json, "it has no `choices`"));
        }
        let choices = chunk.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index.as_u64().unwrap_or(0) == 0) {
            if let Some(reason) = choice.finish_reason.as_str().filter(|reason| !reason.is_empty()) {
                self.finish = Some(reason.to_owned());
            }
            if let Some(delta) = choice.delta.or(choice.message) {
                self.delta(delta, show)?;
            }
        }
        if self.finish.as_deref() == Some("error") {
            return Err(LlmError::new(ErrorKind::Server, "the server broke the answer off with an error"));
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, show: &mut dyn FnMut(Progress<'_>)) -> Result<(), LlmError> {
        // Some servers fill both, some leave one empty.
        let mut reasoning =
            [&delta.reasoning_content, &delta.reasoning].into_iter().filter_map(Value::as_str);
        self.think(reasoning.find(|text| !text.is_empty()).unwrap_or_default(), show);
        match &delta.content {
            Value::String(text) => self.write(text, show),
            Value::Array(pieces) => self.content_list(pieces, show),
            _ => {}
        }
        self.refusal.push_str(delta.refusal.as_str().unwrap_or_default());
        for call in delta.tool_calls.into_iter().flatten() {
            self.calls.add(call)?;
        }
        if let Some(function) = delta.function_call {
            self.calls.add(CallDelta { function: Some(function), ..CallDelta::default() })?;
        }
        Ok(())
    }

    /// Content as Mistral sends it: a list of text and thinking chunks.
    fn content_list(&mut self, pieces: &[Value], show: &mut dyn FnMut(Progress<'_>)) {
        for piece in pieces {
            if let Some(text) = piece.get("text").and_then(Value::as_str) {
                self.write(text, show);
            }
            match piece.get("thinking") {
                Some(Value::String(text)) => self.think(text, show),
                Some(Value::Array(inner)) => {
                    for text in inner.iter().filter_map(|item| item.get("text")?.as_str()) {
                        self.think(text, show);
                    }
                }
                _ => {}
            }
        }
    }

    fn think(&mut self, piece: &str, show: &mut dyn FnMut(Progress<'_>)) {
        if !piece.is_empty() {
            self.thinking.push_str(piece);
            show(Progress::Thinking(piece));
        }
    }

    fn write(&mut self, piece: &str, show: &mut dyn FnMut(Progress<'_>)) {
        self.text.push_str(piece);
        if self.hold && self.text.len() <= HELD_CAP && embedded_call::may_begin(&self.text) {
            return;
        }
        self.hold = false;
        self.show_rest(show);
    }

    fn show_rest(&mut self, show: &mut dyn FnMut(Progress<'_>)) {
        if let Some(rest) = self.text.get(self.shown..).filter(|rest| !rest.is_empty()) {
            show(Progress::Text(rest));
            self.shown = self.text.len();
        }
    }

    /// The answer as a whole, when nothing more comes.
    ///
    /// # Errors
    /// When the stream ended without a finish reason and without `[DONE]`.
    pub fn finish(
        mut self,
        surroundings: &Surroundings<'_>,
        show: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Response, LlmError> {
        if self.finish.is_none() && !self.done {
            return Err(LlmError::new(ErrorKind::CutStream, "the answer ended before it was complete"));
        }
        let mut joined = std::mem::take(&mut self.calls).into_joined();
        joined.retain(|call| !call.name.is_empty() || !call.arguments.is_empty());
        if joined.is_empty() {
            let found = embedded_call::find(&self.text, surroundings.offered);
            if !found.is_empty() {
                self.text.clear();
            }
            joined = found.into_iter().map(|call| JoinedCall::whole(call.name, call.arguments)).collect();
        }
        self.show_rest(show);
        let finish = self.reason(!joined.is_empty());
        if self.text.is_empty() && joined.is_empty() {
            self.text = std::mem::take(&mut self.refusal);
        }
        let calls = tool_calls(joined, finish == FinishReason::Length, surroundings);
        let usage = self.usage;
        Ok(Response { message: self.into_message(calls), finish, usage })
    }

    fn reason(&self, has_calls: bool) -> FinishReason {
        match self.finish.as_deref() {
            None | Some("stop" | "tool_calls" | "function_call" | "end_turn" | "eos" | "stop_sequence") => {
                if has_calls {
                    FinishReason::ToolCalls
                } else if !self.refusal.is_empty() {
                    FinishReason::Refusal
                } else {
                    FinishReason::Stop
                }
            }
            Some("length" | "max_tokens" | "model_length") => FinishReason::Length,
            Some("content_filter") => FinishReason::ContentFilter,
            Some("refusal") => FinishReason::Refusal,
            Some(other) => FinishReason::Other(one_line(other, FINISH_CAP)),
        }
    }

    fn into_message(self, calls: Vec<ToolCall>) -> Message {
        let mut parts = Vec::with_capacity(calls.len() + 2);
        if !self.thinking.is_empty() {
            let opaque = Some(Opaque { codec: CODEC.into(), data: Value::Null });
            parts.push(Part::Thinking { text: self.thinking, opaque });
        }
        if !self.text.is_empty() {
            parts.push(Part::Text { text: self.text });
        }
        parts.extend(calls.into_iter().map(Part::ToolCall));
        Message { role: Role::Assistant, parts }
    }
}

/// Calls with ids that no other call of the conversation has. Arguments that are empty or `null` mean none, unless
/// the answer was cut, when they had not begun.
fn tool_calls(joined: Vec<JoinedCall>, cut: bool, surroundings: &Surroundings<'_>) -> Vec<ToolCall> {
    let mut calls: Vec<ToolCall> = Vec::with_capacity(joined.len());
    for call in joined {
        let mut id = call.id;
        while id.is_empty() || (surroundings.taken)(&id) || calls.iter().any(|earlier| earlier.id == id) {
            id = (surroundings.new_id)();
        }
        let none = matches!(call.arguments.trim(), "" | "null") && !cut;
        let arguments = if none { "{}".into() } else { call.arguments };
        let opaque = (!call.extra.is_null()).then(|| Opaque { codec: CODEC.into(), data: call.extra });
        calls.push(ToolCall { id, name: call.name, arguments, opaque });
    }
    calls
}

fn not_understood(body: &[u8], why: &str) -> LlmError {
    let shown = excerpt(body);
    let start = body.trim_ascii_start();
    let message = if start.starts_with(b"<") {
        format!(
            "the server answered with a web page (`{shown}`); check the API base, which usually ends in /v1"
        )
    } else if start.is_empty() {
        "the server's answer is empty; check the API base, which usually ends in /v1".into()
    } else {
        format!("the server's answer is not what the Chat Completions format promises ({why}): `{shown}`")
    };
    LlmError::new(ErrorKind::Malformed, message)
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
