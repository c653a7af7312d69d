//! Builds the answer from decoded pieces, in terms that all wire formats share.

use crate::call_assembler::{AssembledCall, CALLS_CAP, CallAssembler, CallDelta};
use crate::embedded_call::{self, EmbeddedCall, offered_name};
use crate::provider_error::one_line;
use crate::tagged_call::{self, TaggedCallParser};
use crate::think_tags::{Piece, ThinkTagSplitter};
use crate::{LlmError, Progress, Response};
use agent_core::event::FinishReason;
use agent_core::failure::FailureKind;
use agent_core::message::{Message, OpaqueData, Part, Role, ToolCall};
use agent_core::usage::Usage;
use serde_json::Value;
use std::collections::HashSet;

/// Limit on text held back while it could still be an embedded call, in bytes; longer text is shown at once.
const HELD_CAP: usize = 16 * 1024;
/// Limit on one piece of shown text, in bytes: a listener makes several copies of it.
const SLICE_BYTES: usize = 64 * 1024;
/// Limit on a provider's own finish reason that is stored, in characters.
const FINISH_CAP: usize = 300;
/// Limit on the content of one answer, in bytes: text, thinking, opaque data and calls. The longest
/// answers of any model have 128,000 tokens, thinking included: about 600 KiB, encrypted about 1 MiB.
pub const CONTENT_CAP: usize = 4 * 1024 * 1024;
/// Limit on the blocks of text and thinking in one answer; real models write a few.
const BLOCKS_CAP: usize = 1024;

/// Context from the conversation that is needed to finish an answer.
pub struct FinishContext<'a> {
    /// Checks whether a tool of this name was offered.
    pub is_offered: &'a dyn Fn(&str) -> bool,
    /// Checks whether one of these calls written as text repeats the model's input.
    pub is_echo: &'a dyn Fn(&[EmbeddedCall]) -> bool,
    /// Checks whether a text is a valid structured answer, even if it looks like a call.
    pub is_structured_answer: &'a dyn Fn(&str) -> bool,
    /// Generates a call id.
    pub new_id: &'a dyn Fn() -> String,
}

/// Collects an answer. Its text, thinking and calls are in slots: pieces for the same slot are joined, and the
/// parts of the message are in the order of their slots.
pub struct ResponseBuilder<'a> {
    codec: &'static str,
    /// Receives the progress.
    show: &'a mut dyn FnMut(Progress<'_>),
    /// Text of earlier answers that this one continues.
    partial: String,
    blocks: Vec<Block>,
    /// Text that has not been shown yet.
    held: String,
    /// Whether text that looks like a call is held back, because tools were offered.
    is_holding: bool,
    /// Parser of tagged calls, if they are accepted.
    tagged: Option<TaggedCallParser>,
    /// Splitter of reasoning in tags at the start of the text, and the slot of the text.
    tags: Option<(ThinkTagSplitter, u64)>,
    refusal: String,
    calls: CallAssembler,
    /// Bytes stored so far, without calls.
    content_bytes: usize,
    finish: Option<FinishReason>,
    /// Whether content arrived after a finish reason, which then does not mark the end.
    has_content_after_finish: bool,
    usage: Option<Usage>,
    /// Token counts that were reported before the answer, so that they are those of the prompt.
    prompt_usage: Option<Usage>,
    done: bool,
}

#[derive(Debug)]
struct Block {
    slot: u64,
    kind: Kind,
    text: String,
    /// Opaque data that the provider expects back with the block.
    opaque: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    /// The call at this index.
    Call(usize),
}

impl<'a> ResponseBuilder<'a> {
    /// Creates an empty answer for the codec named `codec`; `tools` is true if any were offered. The answer is shown with
    /// `show` as it arrives.
    pub fn new(codec: &'static str, tools: bool, show: &'a mut dyn FnMut(Progress<'_>)) -> Self {
        Self {
            codec,
            show,
            partial: String::new(),
            blocks: Vec::new(),
            held: String::new(),
            is_holding: tools,
            tagged: None,
            tags: None,
            refusal: String::new(),
            calls: CallAssembler::default(),
            content_bytes: 0,
            finish: None,
            has_content_after_finish: false,
            usage: None,
            prompt_usage: None,
            done: false,
        }
    }

    /// Also recognises tagged calls, and reasoning in tags before the text.
    #[must_use]
    pub fn with_tagged_calls(self, tagged: TaggedCallParser) -> Self {
        Self { tagged: Some(tagged), tags: Some(<(ThinkTagSplitter, u64)>::default()), ..self }
    }

    /// Continues an answer that was cut after `partial`.
    #[must_use]
    pub fn with_partial(self, partial: &str) -> Self {
        Self { partial: partial.to_owned(), ..self }
    }

    /// Adds a piece of text and shows it, unless it could still be a call written as text.
    ///
    /// # Errors
    /// When there are too many blocks, or the answer is too long.
    pub fn push_text(&mut self, slot: u64, piece: &str) -> Result<(), LlmError> {
        let Some((mut tags, _)) = self.tags.take() else { return self.write_text(slot, piece) };
        for piece in tags.push(piece) {
            self.write_piece(slot, &piece)?;
        }
        self.tags = (!tags.is_over()).then_some((tags, slot));
        Ok(())
    }

    fn write_piece(&mut self, slot: u64, piece: &Piece) -> Result<(), LlmError> {
        match piece {
            Piece::Thinking(piece) => self.push_thinking(slot, piece),
            Piece::Text(piece) => self.write_text(slot, piece),
        }
    }

    fn write_text(&mut self, slot: u64, piece: &str) -> Result<(), LlmError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.count_content(piece.len())?;
        self.update_block(slot, Kind::Text, |block| block.text.push_str(piece))?;
        if self.is_holding && self.held.len() + piece.len() <= HELD_CAP {
            self.held.push_str(piece);
            self.is_holding = self.may_be_calls();
            if !self.is_holding {
                self.flush_held();
            }
            return Ok(());
        }
        self.is_holding = false;
        self.flush_held();
        slices(piece).for_each(|slice| (self.show)(Progress::Text(slice)));
        Ok(())
    }

    /// Adds a piece of visible reasoning and shows it.
    ///
    /// # Errors
    /// When there are too many blocks, or the answer is too long.
    pub fn push_thinking(&mut self, slot: u64, piece: &str) -> Result<(), LlmError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.count_content(piece.len())?;
        slices(piece).for_each(|slice| (self.show)(Progress::Thinking(slice)));
        self.update_block(slot, Kind::Thinking, |block| block.text.push_str(piece))
    }

    /// Updates the opaque data that the provider expects back with the reasoning in this slot (initially null).
    /// Visible reasoning is not required.
    ///
    /// # Errors
    /// When there are too many blocks, or the answer is too long.
    pub fn update_opaque(&mut self, slot: u64, seal: impl FnOnce(&mut Value)) -> Result<(), LlmError> {
        let mut grown = 0;
        self.update_block(slot, Kind::Thinking, |block| {
            let before = byte_size(&block.opaque);
            seal(&mut block.opaque);
            grown = byte_size(&block.opaque).saturating_sub(before);
        })?;
        self.count_content(grown)
    }

    /// Adds a call or a piece of one.
    ///
    /// # Errors
    /// When a limit on calls is exceeded, or the answer is too long.
    pub fn push_call(&mut self, slot: u64, delta: CallDelta<'_>) -> Result<(), LlmError> {
        self.has_content_after_finish |= self.finish.is_some();
        let extra = if delta.extra.is_null() { 0 } else { byte_size(&delta.extra) };
        let Some(at) = self.calls.add(delta)? else { return Ok(()) };
        self.count_content(extra)?;
        let known = self.blocks.iter().rev().any(|block| block.kind == Kind::Call(at));
        if known { Ok(()) } else { self.update_block(slot, Kind::Call(at), |_| {}) }
    }

    /// Adds a piece of a refusal that the model sends apart from its text; it is truncated if the answer is
    /// too long.
    pub fn push_refusal(&mut self, piece: &str) {
        if !piece.is_empty() && self.count_content(piece.len()).is_ok() {
            self.refusal.push_str(piece);
        }
    }

    /// Stores the finish reason; [`finish`](Self::finish) resolves whether it means calls.
    pub fn set_finish_reason(&mut self, reason: FinishReason) {
        self.has_content_after_finish = false;
        self.finish = Some(reason);
    }

    /// Stores the latest token counts.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    /// Stores the token counts that a server reports before its answer.
    pub fn set_prompt_usage(&mut self, usage: Usage) {
        self.prompt_usage = Some(usage);
    }

    /// Adds the reported token counts to the `error` for which the answer is refused. Counts of the prompt alone are added only if the
    /// request is not repeated: each repetition could cost as much as its longest answer, which is counted without a report.
    pub fn refuse(&self, error: LlmError) -> LlmError {
        if error.kind == FailureKind::CutStream {
            return error;
        }
        let prompt_usage = self.prompt_usage.filter(|_| !error.retryable);
        LlmError { usage: error.usage.or(self.usage).or(prompt_usage), ..error }
    }

    /// Checks whether no content has arrived.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.refusal.is_empty()
    }

    /// Marks the answer as complete.
    pub fn mark_complete(&mut self) {
        self.done = true;
    }

    /// Checks whether a finish reason arrived, and no content after it.
    pub fn has_finish_reason(&self) -> bool {
        self.finish.is_some() && !self.has_content_after_finish
    }

    /// Checks whether the answer is marked as complete.
    pub fn is_complete(&self) -> bool {
        self.done
    }

    /// Returns the whole answer after the end of its stream.
    ///
    /// # Errors
    /// When the answer was not marked as complete and does not end with a finish reason.
    pub fn finish(mut self, context: &FinishContext<'_>) -> Result<Response, LlmError> {
        if !self.has_finish_reason() && !self.done {
            return Err(LlmError::new(FailureKind::CutStream, "the answer ended before it was complete"));
        }
        if let Some((tags, slot)) = self.tags.take()
            && let Some(piece) = tags.finish()
        {
            self.write_piece(slot, &piece)?;
        }
        let mut joined = std::mem::take(&mut self.calls).into_calls();
        let has_content = |call: &AssembledCall| !call.name.is_empty() || !call.arguments.is_empty();
        if !joined.iter().any(has_content) {
            joined = self.take_text_calls(context);
        }
        self.flush_held();
        let finish = self.resolve_finish_reason(joined.iter().any(has_content));
        if self.blocks.iter().all(|block| block.kind == Kind::Thinking) {
            let text = std::mem::take(&mut self.refusal);
            self.blocks.push(Block { slot: u64::MAX, kind: Kind::Text, text, opaque: Value::Null });
        }
        let calls = tool_calls(joined, self.codec, finish == FinishReason::Length, context);
        let usage = self.usage.or(self.prompt_usage);
        Ok(Response { message: self.into_message(calls), finish, usage, is_cached: false })
    }

    /// Counts `more` bytes of content.
    fn count_content(&mut self, more: usize) -> Result<(), LlmError> {
        self.has_content_after_finish |= self.finish.is_some();
        self.content_bytes = self.content_bytes.saturating_add(more);
        if self.content_bytes.saturating_add(self.calls.bytes()) > CONTENT_CAP {
            return Err(too_long());
        }
        Ok(())
    }

    fn update_block(
        &mut self,
        slot: u64,
        kind: Kind,
        change: impl FnOnce(&mut Block),
    ) -> Result<(), LlmError> {
        let known = self.blocks.iter_mut().rev().find(|block| block.slot == slot && block.kind == kind);
        if let Some(block) = known {
            change(block);
            return Ok(());
        }
        if self.blocks.len() >= BLOCKS_CAP {
            let message = format!("the answer has more than {BLOCKS_CAP} blocks");
            return Err(LlmError::too_large(message));
        }
        let mut block = Block { slot, kind, text: String::new(), opaque: Value::Null };
        change(&mut block);
        self.blocks.push(block);
        Ok(())
    }

    /// Checks whether the text so far could still become calls.
    fn may_be_calls(&self) -> bool {
        let text = if self.partial.trim().is_empty() { &self.held } else { &self.partial };
        embedded_call::is_possible_prefix(text)
            || (self.tagged.is_some() && tagged_call::is_possible_prefix(text))
    }

    fn flush_held(&mut self) {
        if !self.held.is_empty() {
            (self.show)(Progress::Text(&self.held));
            self.held.clear();
        }
    }

    /// Converts the text to calls if it consists of calls only; returns none if one of them repeats the model's input.
    fn take_text_calls(&mut self, context: &FinishContext<'_>) -> Vec<AssembledCall> {
        let texts = self.blocks.iter().filter(|block| block.kind == Kind::Text);
        let texts = texts.map(|block| block.text.as_str());
        let text: String = std::iter::once(self.partial.as_str()).chain(texts).collect();
        let mut found = embedded_call::find(&text, context.is_offered);
        if let Some(tagged) = self.tagged.as_ref().filter(|_| found.is_empty()) {
            found = tagged.find(&text);
        }
        if found.is_empty() || (context.is_echo)(&found) || (context.is_structured_answer)(&text) {
            return Vec::new();
        }
        found.truncate(CALLS_CAP + 1);
        self.held.clear();
        self.blocks.retain(|block| block.kind == Kind::Thinking);
        let block =
            |at| Block { slot: u64::MAX, kind: Kind::Call(at), text: String::new(), opaque: Value::Null };
        self.blocks.extend((0..found.len()).map(block));
        found.into_iter().map(|call| AssembledCall::whole(call.name, call.arguments)).collect()
    }

    fn resolve_finish_reason(&mut self, has_calls: bool) -> FinishReason {
        match self.finish.take() {
            None | Some(FinishReason::Stop | FinishReason::ToolCalls) => {
                if has_calls {
                    FinishReason::ToolCalls
                } else if self.refusal.is_empty() {
                    FinishReason::Stop
                } else {
                    FinishReason::Refusal
                }
            }
            Some(FinishReason::Other(other)) => FinishReason::Other(one_line(&other, FINISH_CAP)),
            Some(FinishReason::Filtered(why)) => FinishReason::Filtered(one_line(&why, FINISH_CAP)),
            Some(reason) => reason,
        }
    }

    fn into_message(mut self, mut calls: Vec<Option<ToolCall>>) -> Message {
        self.blocks.sort_by_key(|block| block.slot);
        let codec = self.codec;
        let part = |block: Block| match block.kind {
            Kind::Text => (!block.text.is_empty()).then_some(Part::Text { text: block.text }),
            Kind::Thinking => {
                let opaque = Some(OpaqueData { codec: codec.into(), data: block.opaque });
                Some(Part::Thinking { text: block.text, opaque })
            }
            Kind::Call(at) => calls.get_mut(at)?.take().map(Part::ToolCall),
        };
        Message { role: Role::Assistant, parts: self.blocks.into_iter().filter_map(part).collect() }
    }
}

/// Decodes arguments that some models and gateways encode twice, as JSON in a JSON string.
fn unquoted(arguments: String) -> String {
    if !arguments.trim_start().starts_with('"') {
        return arguments;
    }
    match serde_json::from_str::<String>(&arguments) {
        Ok(inner) if inner.trim_start().starts_with('{') => inner,
        _ => arguments,
    }
}

/// Returns the error of an answer above [`CONTENT_CAP`].
pub fn too_long() -> LlmError {
    let message = format!("the answer is longer than {} MiB", CONTENT_CAP / 1024 / 1024);
    LlmError::too_large(message)
}

/// Splits `text` into slices of at most [`SLICE_BYTES`].
fn slices(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (slice, rest) = text.split_at(text.floor_char_boundary(SLICE_BYTES));
        text = rest;
        (!slice.is_empty()).then_some(slice)
    })
}

/// Returns the approximate memory size of a value, in bytes.
fn byte_size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(byte_size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + byte_size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
    }
}

/// Converts calls and makes their ids unique. Returns `None` for an empty call, and for a repetition of a call with
/// the same id. Empty or `null` arguments become `{}`, unless the answer was cut, when they may just not have started.
fn tool_calls(
    joined: Vec<AssembledCall>,
    codec: &str,
    cut: bool,
    context: &FinishContext<'_>,
) -> Vec<Option<ToolCall>> {
    let mut ids = HashSet::new();
    let mut sent = HashSet::new();
    let mut call = |call: AssembledCall| {
        if call.name.is_empty() && call.arguments.is_empty() {
            return None;
        }
        let known = (call.id.clone(), call.name.clone(), call.arguments.clone());
        if !call.id.is_empty() && !sent.insert(known) {
            return None;
        }
        let mut id = call.id;
        while id.is_empty() || ids.contains(&id) {
            id = (context.new_id)();
        }
        ids.insert(id.clone());
        let none = matches!(call.arguments.trim(), "" | "null") && !cut;
        let arguments = if none { "{}".into() } else { unquoted(call.arguments) };
        let opaque = (!call.extra.is_null()).then(|| OpaqueData { codec: codec.into(), data: call.extra });
        let name = offered_name(&call.name, context.is_offered).map_or(call.name.clone(), str::to_owned);
        Some(ToolCall::new(id, name, arguments).with_opaque(opaque))
    };
    joined.into_iter().map(&mut call).collect()
}
