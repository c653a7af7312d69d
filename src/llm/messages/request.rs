//! A request as Messages JSON: roles that alternate, results first, the reasoning of earlier turns with its signatures.

use crate::llm::answer_schema::{AnswerSchema, StrictAnswers};
use crate::llm::codec::Parameters;
use crate::llm::replay::{arguments_object, name, placeholder, plain_id};
use crate::llm::{Request, ToolDefinition};
use crate::message::{Message, Part, Role, ToolCall, ToolResult};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// The name under which this codec stores what only it may replay.
pub const CODEC: &str = "messages";
/// The key of a thinking block's signature in what is stored.
pub const SIGNATURE: &str = "signature";
/// The key of a redacted thinking block's content in what is stored.
pub const REDACTED: &str = "data";
/// The longest answer, in tokens, where none is configured; the format demands a figure. It is the output limit of the
/// Claude 4 model with the smallest one (Opus 4), so a whole file fits into one call.
pub const DEFAULT_MAX_TOKENS: u32 = 32_000;
/// The longest id of a call that another provider's may keep, in characters; Anthropic's own have 30.
const ID_LENGTH: usize = 64;

/// The body of a request, as JSON; `messages` are its messages as [`write_message`] wrote them, the last still open.
///
/// # Errors
/// When a tool's schema or a number has no JSON form.
pub fn encode(
    request: &Request<'_>,
    parameters: &Parameters,
    messages: &[u8],
) -> serde_json::Result<Vec<u8>> {
    let has_calls = || request.messages.iter().any(|message| message.tool_calls().next().is_some());
    let closing = request.tools.is_empty() && has_calls();
    let placeholder = closing.then(placeholder);
    let tools = if closing { placeholder.as_slice() } else { request.tools };
    let system = request.messages.iter().filter(|message| message.role == Role::System);
    let body = Body {
        model: &parameters.model,
        max_tokens: request.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        temperature: parameters.temperature,
        stream: request.stream,
        tools: tools.iter().map(WireTool::new).collect(),
        tool_choice: closing.then_some(Choice { r#type: "none" }),
        output_config: request
            .strict_schema(StrictAnswers::BesideTools)
            .filter(|schema| schema.is_closed())
            .map(OutputConfig::of),
        system: system.flat_map(|message| &message.parts).filter_map(text).collect(),
    };
    let mut head = serde_json::to_vec(&body)?;
    head.pop();
    let end: &[u8] = if messages.is_empty() { b"]}" } else { b"]}]}" };
    Ok([head.as_slice(), b",\"messages\":[", messages, end].concat())
}

/// Appends what `message` adds to the `json` of the messages before it. Neighbours with one role become one message,
/// which is closed only when the role changes; the results of a turn come before what is said after them.
///
/// # Errors
/// When a message has no JSON form.
pub fn write_message(
    message: &Message,
    earlier: &[Arc<Message>],
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
    for part in kept(message) {
        let mut block = Vec::new();
        match part {
            Part::Text { .. } => write(text(part), &mut block)?,
            Part::Thinking { .. } => write(thinking(part), &mut block)?,
            Part::ToolCall(call) => write_call(call, &mut block)?,
            Part::ToolResult(result) => write(Some(WireResult::new(result)), &mut block)?,
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

fn write(block: Option<impl Serialize>, json: &mut Vec<u8>) -> serde_json::Result<()> {
    block.map_or(Ok(()), |block| serde_json::to_writer(json, &block))
}

/// The role on the wire; none for what stands elsewhere or has no content that may be sent.
fn role(message: &Message) -> Option<&'static str> {
    match message.role {
        _ if kept(message).is_empty() => None,
        Role::System => None,
        Role::User | Role::Tool => Some("user"),
        Role::Assistant => Some("assistant"),
    }
}

/// The parts up to the last that is not reasoning: a message may not end with reasoning, nor consist of it.
fn kept(message: &Message) -> &[Part] {
    let matters = |part: &Part| match part {
        Part::Text { .. } => text(part).is_some(),
        Part::Thinking { .. } => false,
        Part::ToolCall(_) | Part::ToolResult(_) => true,
    };
    let end = message.parts.iter().rposition(matters).map_or(0, |last| last + 1);
    message.parts.get(..end).unwrap_or_default()
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Text<'a>>,
}

#[derive(Serialize)]
struct Choice {
    r#type: &'static str,
}

/// The strict mode, which refuses a schema with an open object.
#[derive(Serialize)]
struct OutputConfig<'a> {
    format: OutputFormat<'a>,
}

#[derive(Serialize)]
struct OutputFormat<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

impl<'a> OutputConfig<'a> {
    fn of(schema: &'a AnswerSchema) -> Self {
        Self { format: OutputFormat { r#type: "json_schema", schema: schema.value() } }
    }
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

impl<'a> WireTool<'a> {
    fn new(tool: &'a ToolDefinition) -> Self {
        Self { name: &tool.name, description: &tool.description, input_schema: &tool.parameters }
    }
}

#[derive(Serialize)]
struct Text<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// A text block; none of blank text, which the API refuses.
fn text(part: &Part) -> Option<Text<'_>> {
    match part {
        Part::Text { text } if !text.trim().is_empty() => Some(Text { r#type: "text", text }),
        Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

#[derive(Serialize)]
struct Reasoning<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a str>,
}

/// The reasoning this codec received, unmodified; none that has no signature, which the API refuses, and none of
/// another format.
fn thinking(part: &Part) -> Option<Reasoning<'_>> {
    let Part::Thinking { text, opaque: Some(opaque) } = part else { return None };
    if opaque.codec != CODEC {
        return None;
    }
    let sealed = |key: &str| opaque.data.get(key).and_then(Value::as_str);
    if let Some(data) = sealed(REDACTED) {
        return Some(Reasoning {
            r#type: "redacted_thinking",
            thinking: None,
            signature: None,
            data: Some(data),
        });
    }
    let signature = sealed(SIGNATURE)?;
    Some(Reasoning { r#type: "thinking", thinking: Some(text), signature: Some(signature), data: None })
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
        id: plain_id(&call.id, ID_LENGTH),
        name: name(call),
        input: serde_json::from_str(&input)?,
    };
    serde_json::to_writer(json, &block)
}

#[derive(Serialize)]
struct WireResult<'a> {
    r#type: &'static str,
    tool_use_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

impl<'a> WireResult<'a> {
    /// The API refuses an error without words.
    fn new(result: &'a ToolResult) -> Self {
        let content = Some(result.text.as_str()).filter(|text| !text.trim().is_empty());
        Self {
            r#type: "tool_result",
            tool_use_id: plain_id(&result.call_id, ID_LENGTH),
            content,
            is_error: result.is_error && content.is_some(),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
