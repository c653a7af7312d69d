//! Estimates how much of the model's context window the next prompt takes, based on the provider's last token count.

use crate::compaction::summary;
use agent_core::limits::{Window, WindowSource};
use agent_core::message::{Message, Part, Role};
use agent_core::usage::Usage;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes per token: four to five for prose in current tokenizers, three to four for source code.
pub const BYTES_PER_TOKEN: u64 = 4;

/// Bytes that a wire format adds to a message or to one of its parts.
const FRAME_BYTES: u64 = 16;

/// Tokens of the shortest useful answer.
const USEFUL_ANSWER_TOKENS: u64 = 1024;

/// Largest share of a small window that the shortest useful answer may take (one eighth).
const USEFUL_ANSWER_SHARE: u64 = 8;

/// Share of the window that one tool result may take (one eighth).
const RESULT_SHARE: u64 = 8;

/// Lowest limit on a tool result, in tokens; below it, only head and tail would remain.
const MIN_RESULT_TOKENS: u64 = 256;

/// A prompt that does not fit into the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Estimated tokens of the prompt.
    pub prompt: u64,
    /// The window that is too small.
    pub window: Window,
}

/// Estimated length of the conversation: the fold of its messages and of the token counts of the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptEstimate {
    /// Tokens of the last prompt as counted by the provider; 0 when unknown.
    prompt: u64,
    /// Tokens of the answer to it, without the reasoning, which most providers do not take back.
    answer: u64,
    /// Bytes of messages that the provider has not counted yet.
    since: u64,
}

impl PromptEstimate {
    /// Adds a message.
    pub fn add_message(&mut self, message: &Message) {
        self.since = self.since.saturating_add(bytes(message));
    }

    /// Records the provider's token count, which includes its answer.
    pub fn record_usage(&mut self, usage: Usage) {
        if usage.covers_conversation(self.prompt) {
            let answer = usage.output.saturating_sub(usage.reasoning);
            *self = Self { prompt: usage.prompt_tokens(), answer, since: 0 };
        }
    }

    /// Replaces the conversation, or the model; all messages count as uncounted.
    pub fn recount<'a>(&mut self, messages: impl Iterator<Item = &'a Message>) {
        *self = Self::default();
        messages.for_each(|message| self.add_message(message));
    }

    /// Replaces the conversation with the shorter `messages`. The estimate assumes the same tokens per byte as before.
    pub fn scale_to<'a>(
        &mut self,
        messages: impl Iterator<Item = &'a Message>,
        bytes_before: u64,
        tools_bytes: u64,
    ) {
        let before = self.estimate(tools_bytes);
        self.recount(messages);
        let (bytes, was) = (self.since.saturating_add(tools_bytes), bytes_before.saturating_add(tools_bytes));
        let scaled =
            u128::from(before) * u128::from(BYTES_PER_TOKEN) * u128::from(bytes) / u128::from(was.max(1));
        self.since = u64::try_from(scaled).unwrap_or(u64::MAX).saturating_sub(tools_bytes);
    }

    /// Estimates the tokens of the next prompt with tool definitions of `tools_bytes`.
    pub fn estimate(&self, tools_bytes: u64) -> u64 {
        let tools = if self.prompt == 0 { tools_bytes } else { 0 };
        let uncounted = self.since.saturating_add(tools) / BYTES_PER_TOKEN;
        self.prompt.saturating_add(self.answer).saturating_add(uncounted)
    }

    /// Returns the overflow when a request would leave no room for a useful answer.
    pub fn overflow(&self, window: Option<Window>, tools_bytes: u64) -> Option<Overflow> {
        let window = self.effective_window(window)?;
        let prompt = self.estimate(tools_bytes);
        let answer = USEFUL_ANSWER_TOKENS.min(window.tokens / USEFUL_ANSWER_SHARE);
        (prompt.saturating_add(answer) > window.tokens).then_some(Overflow { prompt, window })
    }

    /// Returns the estimate for the same conversation without tool definitions of `tools_bytes`.
    #[must_use]
    pub fn without_tools(self, tools_bytes: u64) -> Self {
        Self { prompt: self.prompt.saturating_sub(tools_bytes / BYTES_PER_TOKEN), ..self }
    }

    /// Returns the tokens that the window leaves for an answer, at least a useful one.
    pub fn answer_room(&self, window: Window, tools_bytes: u64) -> u64 {
        let answer = USEFUL_ANSWER_TOKENS.min(window.tokens / USEFUL_ANSWER_SHARE);
        window.tokens.saturating_sub(self.estimate(tools_bytes)).max(answer)
    }

    /// Returns the window, or `None` when the provider has accepted a longer prompt.
    pub fn effective_window(&self, window: Option<Window>) -> Option<Window> {
        window.filter(|window| !self.disproves(*window))
    }

    /// Whether the provider has accepted a prompt longer than the table's window of the model.
    fn disproves(&self, window: Window) -> bool {
        window.source == WindowSource::Table && self.prompt > window.tokens
    }
}

/// Returns the limit on a tool result in tokens: `configured` (0 for no limit), but at most a share of `window`.
pub fn result_tokens(configured: u32, window: Option<u64>) -> u32 {
    let share = window.map(|window| (window / RESULT_SHARE).max(MIN_RESULT_TOKENS));
    match share.and_then(|share| u32::try_from(share).ok()) {
        Some(share) if configured > 0 => configured.min(share),
        _ => configured,
    }
}

/// Returns the total bytes of messages as a model reads them.
pub fn bytes_of<'a>(messages: impl Iterator<Item = &'a Message>) -> u64 {
    messages.map(bytes).fold(0, u64::saturating_add)
}

/// What a part of a prompt is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PromptPart {
    /// The system message.
    Instructions,
    /// The summary of earlier steps.
    Summary,
    /// Other messages to the model: of the user, and of the program.
    Messages,
    /// Texts, thoughts and calls of the model.
    Answers,
    /// Results of this tool.
    Results(String),
    /// Images, in messages and in results.
    Images,
}

/// Returns the estimated tokens of what `messages` consist of, the most first.
pub fn composition(messages: &[Arc<Message>]) -> Vec<(PromptPart, u64)> {
    let calls = messages.iter().flat_map(|message| message.tool_calls());
    let tools: BTreeMap<&str, &str> = calls.map(|call| (call.id.as_str(), call.name.as_str())).collect();
    let mut bytes: BTreeMap<PromptPart, u64> = BTreeMap::new();
    for message in messages {
        for part in &message.parts {
            let kind = match part {
                Part::ToolResult(result) => {
                    PromptPart::Results(tools.get(result.call_id.as_str()).unwrap_or(&"").to_string())
                }
                _ if message.role == Role::System => PromptPart::Instructions,
                _ if message.role == Role::Assistant => PromptPart::Answers,
                _ if summary::is_summary(message) => PromptPart::Summary,
                _ => PromptPart::Messages,
            };
            let sum = bytes.entry(kind).or_default();
            *sum = sum.saturating_add(bytes_of_part(part)).saturating_add(FRAME_BYTES);
        }
        let images = message.images().map(|image| image.max_tokens().saturating_mul(BYTES_PER_TOKEN));
        let images = images.fold(0, u64::saturating_add);
        if images > 0 {
            let sum = bytes.entry(PromptPart::Images).or_default();
            *sum = sum.saturating_add(images);
        }
    }
    let mut parts: Vec<(PromptPart, u64)> =
        bytes.into_iter().map(|(part, bytes)| (part, bytes / BYTES_PER_TOKEN)).collect();
    parts.sort_by_key(|(_, tokens)| Reverse(*tokens));
    parts
}

/// Returns the bytes of a message as a model reads it; an image counts as text of as many tokens.
fn bytes(message: &Message) -> u64 {
    let parts = message.parts.iter().map(bytes_of_part);
    let images = message.images().map(|image| image.max_tokens().saturating_mul(BYTES_PER_TOKEN));
    parts.chain(images).fold(FRAME_BYTES, |sum, bytes| sum.saturating_add(bytes).saturating_add(FRAME_BYTES))
}

fn bytes_of_part(part: &Part) -> u64 {
    let bytes = match part {
        Part::Text { text } | Part::Thinking { text, .. } => text.len(),
        Part::ToolCall(call) => call.name.len().saturating_add(call.arguments.len()),
        Part::ToolResult(result) => result.text.len(),
        Part::Image(_) => 0,
    };
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::message::{ToolCall, ToolResult};

    fn window(tokens: u64, source: WindowSource) -> Window {
        Window { tokens, source }
    }

    fn filled(bytes: usize) -> PromptEstimate {
        let mut filling = PromptEstimate::default();
        filling.add_message(&Message::text(Role::User, "x".repeat(bytes)));
        filling
    }

    #[test]
    fn token_counts_replace_estimates_of_the_counted_part() {
        let mut filling = filled(40_000);
        assert_eq!(filling.estimate(400), (40_000 + 32 + 400) / 4);
        filling.record_usage(Usage {
            input: 100,
            cached_read: 50,
            output: 30,
            reasoning: 20,
            ..Usage::default()
        });
        assert_eq!(filling.estimate(400), 160);
        filling.add_message(&Message::text(Role::User, "x".repeat(368)));
        assert_eq!(filling.estimate(400), 260);
        filling.record_usage(Usage::default());
        filling.record_usage(Usage { input: 20, output: 10, ..Usage::default() });
        assert_eq!(filling.estimate(400), 260);
    }

    #[test]
    fn u06_a_prompt_is_taken_apart_by_what_it_consists_of() {
        let text = |role, bytes: usize| Message::text(role, "x".repeat(bytes));
        let call = ToolCall::new("c", "read_file", "x".repeat(23));
        let result = ToolResult {
            call_id: "c".to_owned(),
            text: "x".repeat(3984),
            is_error: false,
            images: Vec::new(),
        };
        let messages = [
            text(Role::System, 784),
            text(Role::User, 384),
            Message::text(Role::User, format!("{}\n", agent_messages::SUMMARY_HEADING)),
            Message { role: Role::Assistant, parts: vec![Part::ToolCall(call)] },
            Message::tool_results(vec![result]),
        ];
        let parts = composition(&messages.map(Arc::new));
        let expected = [
            (PromptPart::Results("read_file".to_owned()), 1000),
            (PromptPart::Instructions, 200),
            (PromptPart::Messages, 100),
            (PromptPart::Answers, 12),
            (PromptPart::Summary, 11),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn l14_a_prompt_that_leaves_no_useful_answer_does_not_fit() {
        let user = WindowSource::User;
        assert_eq!(filled(4_000).overflow(None, 0), None);
        assert_eq!(filled(4_000).overflow(Some(window(3_000, user)), 0), None);
        let overflow = filled(12_000).overflow(Some(window(3_000, user)), 0).unwrap();
        assert_eq!((overflow.prompt, overflow.window.tokens), (3_008, 3_000));
        assert!(filled(11_000).overflow(Some(window(3_000, user)), 0).is_some());
        assert!(filled(4_000).overflow(Some(window(3_000, user)), 8_000).is_some());
    }

    #[test]
    fn an_accepted_prompt_overrides_the_table_but_not_the_configuration() {
        let mut filling = PromptEstimate::default();
        filling.record_usage(Usage { input: 5_000, ..Usage::default() });
        assert_eq!(filling.overflow(Some(window(4_000, WindowSource::Table)), 0), None);
        assert!(filling.overflow(Some(window(4_000, WindowSource::User)), 0).is_some());
    }

    #[test]
    fn a_result_fills_no_more_than_a_share_of_the_window() {
        assert_eq!(result_tokens(8_000, None), 8_000);
        assert_eq!(result_tokens(8_000, Some(128_000)), 8_000);
        assert_eq!(result_tokens(8_000, Some(16_000)), 2_000);
        assert_eq!(result_tokens(8_000, Some(1_000)), 256);
        assert_eq!(result_tokens(0, Some(16_000)), 0);
    }
}
