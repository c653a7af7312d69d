//! Encodes a request as Anthropic Messages JSON: alternating roles, results first, signed reasoning of earlier turns.

use super::AnthropicMessages;
use crate::cache_control::{self, CacheControl};
use crate::codec::{Encoder, ModelParameters};
use crate::effort::{Effort, Thinking};
use crate::preserialized::Preserialized;
use crate::quirks::Quirks;
use crate::request_body;
use crate::request_images::Piece;
use crate::request_parts::{arguments_object, placeholder_tool, sanitized_id, tool_name};
use crate::response_schema::{ResponseSchema, StrictSchemaSupport};
use crate::{Images, Request, ToolDefinition};
use agent_core::image::Image;
use agent_core::message::{Message, Part, Role, ToolCall, ToolResult};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// Codec name of stored data that only this codec may replay.
pub const CODEC: &str = "messages";
/// Key of a thinking block's signature in stored data.
pub const SIGNATURE: &str = "signature";
/// Key of a redacted thinking block's content in stored data.
pub const REDACTED: &str = "data";
/// Default limit of an answer, in tokens; the format requires a limit. It is the smallest output limit of the
/// Claude 4 models (Opus 4), so a whole file fits into one call.
pub const DEFAULT_MAX_TOKENS: u32 = 32_000;
/// Longest call id of another provider that is sent unchanged, in characters; Anthropic's own ids have 30.
const ID_LENGTH: usize = 64;

/// Smallest thinking budget that the API accepts, in tokens.
const LEAST_BUDGET: u32 = 1_024;
/// Display mode of thoughts.
const SUMMARIZED: &str = "summarized";

impl Encoder for AnthropicMessages {
    /// Appends `message` to the `json` of the messages before it. Adjacent messages with the same role become one message,
    /// which is closed only when the role changes; the results of a turn precede the text after them.
    fn write_message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        images: Images<'_>,
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let Some(role) = role(message) else { return Ok(()) };
        let before = earlier.iter().rev().find_map(|message| self::role(message));
        if before.is_some() && before != Some(role) {
            json.extend_from_slice(b"]},");
        }
        if before != Some(role) {
            json.extend_from_slice(format!("{{\"role\":\"{role}\",\"content\":[").as_bytes());
        }
        let mut first = before != Some(role);
        for part in sendable_parts(message) {
            let mut block = Vec::new();
            match part {
                Part::Text { .. } => write(text(part), &mut block)?,
                Part::Thinking { .. } => write(thinking(part, self.quirks), &mut block)?,
                Part::ToolCall(call) => write_call(call, &mut block)?,
                Part::ToolResult(result) => write(Some(WireResult::new(result, images)), &mut block)?,
                Part::Image(image) => write(Some(Block::of_image(image, images)), &mut block)?,
            }
            if !block.is_empty() {
                if !std::mem::take(&mut first) {
                    json.push(b',');
                }
                json.extend_from_slice(&block);
            }
        }
        Ok(())
    }

    fn encode(
        &self,
        request: &Request<'_>,
        parameters: &ModelParameters,
        messages: &[u8],
    ) -> serde_json::Result<Vec<u8>> {
        let has_calls = || request.messages.iter().any(|message| message.tool_calls().next().is_some());
        let closing = request.tools.is_empty() && has_calls();
        let placeholder = closing.then(placeholder_tool);
        let tools = if closing { placeholder.as_slice() } else { request.tools };
        let system = request.messages.iter().filter(|message| message.role == Role::System);
        let max_tokens = request.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
        let requested = parameters.thinking.filter(|thinking| {
            !matches!(thinking, Thinking::Budget(_)) || turn_began_with_thought(request.messages, self.quirks)
        });
        let (thinking, effort) = thinking_config(requested, max_tokens);
        let closed = |schema: &&ResponseSchema| schema.is_closed();
        let schema = request.strict_schema(StrictSchemaSupport::BesideTools).filter(closed);
        let marked = parameters.caching.use_breakpoints && !closing;
        let mut system: Vec<_> = system.flat_map(|message| &message.parts).filter_map(text).collect();
        let mut tools: Vec<_> = tools.iter().map(WireTool::new).collect();
        if marked {
            match system.last_mut() {
                Some(last) => last.cache_control = Some(CacheControl::default()),
                None => tools
                    .iter_mut()
                    .rev()
                    .take(1)
                    .for_each(|tool| tool.cache_control = Some(CacheControl::default())),
            }
        }
        let head = Head {
            model: &parameters.model,
            max_tokens,
            thinking,
            output_config: OutputConfig::of(effort, schema),
            temperature: parameters.temperature,
            stream: request.stream,
            tools,
            tool_choice: closing.then_some(Choice { r#type: "none" }),
            system,
        };
        let mut json = request_body::start_body(&head, "messages", messages.len())?;
        let breakpoints = if marked { breakpoints(request, self, messages)? } else { Vec::new() };
        cache_control::write_with_breakpoints(messages, &breakpoints, &mut json);
        if !messages.is_empty() {
            json.extend_from_slice(b"]}");
        }
        json.extend_from_slice(request_body::BODY_END);
        Ok(json)
    }
}

/// Returns the cache breakpoints of the conversation: one at its end, for the next request, and one where the previous
/// request ended, because the cache is searched at most 20 blocks before a breakpoint and a step may add more.
fn breakpoints(
    request: &Request<'_>,
    codec: &AnthropicMessages,
    json: &[u8],
) -> serde_json::Result<Vec<usize>> {
    let (messages, images) = (request.messages, request.images);
    let answered = messages.iter().rposition(|message| message.role == Role::Assistant);
    let mut added = Vec::new();
    for (at, message) in messages.iter().enumerate().skip(answered.unwrap_or(messages.len())) {
        codec.write_message(message, messages.get(..at).unwrap_or_default(), images, &mut added)?;
    }
    let before = json.len().saturating_sub(added.len());
    Ok(if before < json.len() { vec![before, json.len()] } else { vec![json.len()] })
}

/// Checks whether the current turn started with reasoning, or there is no current turn. The API refuses a thinking budget
/// in the middle of a turn that started without reasoning: "Expected `thinking` … but found `tool_use`".
fn turn_began_with_thought(messages: &[Arc<Message>], quirks: Quirks) -> bool {
    let mut first = None;
    for (at, message) in messages.iter().enumerate().rev() {
        let follows_results = || {
            let before = at.checked_sub(1).and_then(|before| messages.get(before));
            before.is_some_and(|before| before.role == Role::Tool)
        };
        match message.role {
            Role::Assistant => first = Some(message),
            Role::Tool => {}
            Role::User if follows_results() => {}
            Role::User | Role::System => break,
        }
    }
    first.is_none_or(|message| message.parts.iter().any(|part| thinking(part, quirks).is_some()))
}

/// Returns the thinking and effort settings. A thinking budget must leave room for the answer and be at least 1024
/// tokens: <https://platform.claude.com/docs/en/build-with-claude/extended-thinking>.
fn thinking_config(thinking: Option<Thinking>, max_tokens: u32) -> (Option<ThinkingConfig>, Option<Effort>) {
    let config = |r#type, budget_tokens, display| Some(ThinkingConfig { r#type, budget_tokens, display });
    match thinking {
        Some(Thinking::Effort(effort)) if effort != Effort::None => {
            (config("adaptive", None, Some(SUMMARIZED)), Some(effort))
        }
        Some(Thinking::Budget(tokens @ 1..)) => {
            let tokens = tokens.min(max_tokens / 2);
            (if tokens < LEAST_BUDGET { None } else { config("enabled", Some(tokens), None) }, None)
        }
        Some(_) => (config("disabled", None, None), None),
        None => (None, None),
    }
}

fn write(block: Option<impl Serialize>, json: &mut Vec<u8>) -> serde_json::Result<()> {
    block.map_or(Ok(()), |block| serde_json::to_writer(json, &block))
}

/// Returns the role on the wire; `None` for a message that belongs to another field or has no content that may be sent.
fn role(message: &Message) -> Option<&'static str> {
    match message.role {
        _ if sendable_parts(message).is_empty() => None,
        Role::System => None,
        Role::User | Role::Tool => Some("user"),
        Role::Assistant => Some("assistant"),
    }
}

/// Returns the parts up to the last that is not reasoning: a message may neither end with reasoning nor consist of it.
fn sendable_parts(message: &Message) -> &[Part] {
    let matters = |part: &Part| match part {
        Part::Text { .. } => text(part).is_some(),
        Part::Thinking { .. } => false,
        Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) => true,
    };
    let end = message.parts.iter().rposition(matters).map_or(0, |last| last + 1);
    message.parts.get(..end).unwrap_or_default()
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingConfig>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<TextBlock<'a>>,
}

/// Thinking setting.
#[derive(Serialize)]
struct ThinkingConfig {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_tokens: Option<u32>,
    /// Display mode of thoughts; models from Opus 4.7 on omit them by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    display: Option<&'static str>,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

/// Effort of the model and format of its answer.
#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<Effort>,
    /// Strict mode, which refuses a schema with an open object.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<OutputFormat<'a>>,
}

#[derive(Serialize)]
struct OutputFormat<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

impl<'a> OutputConfig<'a> {
    fn of(effort: Option<Effort>, schema: Option<&'a ResponseSchema>) -> Option<Self> {
        let format = schema.map(|schema| OutputFormat { r#type: "json_schema", schema: schema.value() });
        (effort.is_some() || format.is_some()).then_some(Self { effort, format })
    }
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a Preserialized<String>,
    input_schema: &'a Preserialized<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> WireTool<'a> {
    fn new(tool: &'a ToolDefinition) -> Self {
        Self {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.parameters,
            cache_control: None,
        }
    }
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

/// Returns a text block; `None` for blank text, which the API refuses.
fn text(part: &Part) -> Option<TextBlock<'_>> {
    match part {
        Part::Text { text } if !text.trim().is_empty() => {
            Some(TextBlock { r#type: "text", text, cache_control: None })
        }
        Part::Image(_)
        | Part::Text { .. }
        | Part::Thinking { .. }
        | Part::ToolCall(_)
        | Part::ToolResult(_) => None,
    }
}

#[derive(Serialize)]
struct ThinkingBlock<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
}

/// Returns the reasoning that this codec received, unmodified; `None` for reasoning of another format, and for unsigned
/// reasoning, which a server that signs refuses.
fn thinking(part: &Part, quirks: Quirks) -> Option<ThinkingBlock<'_>> {
    let Part::Thinking { text, opaque: Some(opaque) } = part else { return None };
    if opaque.codec != CODEC {
        return None;
    }
    let stored = |key: &str| opaque.data.get(key).and_then(Value::as_str);
    if let Some(data) = stored(REDACTED) {
        return Some(ThinkingBlock {
            r#type: "redacted_thinking",
            thinking: None,
            signature: None,
            data: Some(data),
        });
    }
    let signature = stored(SIGNATURE);
    let is_sendable = signature.is_some() || quirks.unsigned_thinking;
    is_sendable.then_some(ThinkingBlock { r#type: "thinking", thinking: Some(text), signature, data: None })
}

#[derive(Serialize)]
struct WireCall<'a> {
    r#type: &'static str,
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    input: &'a RawValue,
}

fn write_call(call: &ToolCall, json: &mut Vec<u8>) -> serde_json::Result<()> {
    let input = arguments_object(call);
    let block = WireCall {
        r#type: "tool_use",
        id: sanitized_id(&call.id, ID_LENGTH),
        name: tool_name(call),
        input: serde_json::from_str(&input)?,
    };
    serde_json::to_writer(json, &block)
}

/// A text or an image: <https://platform.claude.com/docs/en/build-with-claude/vision>.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: Cow<'a, str> },
    Image { source: ImageContent },
}

#[derive(Serialize)]
struct ImageContent {
    r#type: &'static str,
    media_type: &'static str,
    data: String,
}

impl Block<'_> {
    fn of_image(image: &Image, images: Images<'_>) -> Self {
        match Piece::of_image(image, images) {
            Piece::Text(text) => Self::Text { text },
            Piece::Image { media_type, base64 } => {
                Self::Image { source: ImageContent { r#type: "base64", media_type, data: base64 } }
            }
        }
    }
}

/// Content of a result: its text, or a list if it has images.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
struct WireResult<'a> {
    r#type: &'static str,
    tool_use_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ResultContent<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl<'a> WireResult<'a> {
    /// Creates the block; an error result without text loses its `is_error`, because the API refuses it.
    fn new(result: &'a ToolResult, images: Images<'_>) -> Self {
        let text = Some(result.text.as_str()).filter(|text| !text.trim().is_empty());
        // A failed result may contain only text.
        let content = if result.images.is_empty() || result.is_error {
            text.map(ResultContent::Text)
        } else {
            let text = text.map(|text| Block::Text { text: Cow::Borrowed(text) });
            let images = result.images.iter().map(|image| Block::of_image(image, images));
            Some(ResultContent::Blocks(text.into_iter().chain(images).collect()))
        };
        Self {
            r#type: "tool_result",
            tool_use_id: sanitized_id(&result.call_id, ID_LENGTH),
            is_error: result.is_error && content.is_some(),
            content,
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
