//! Encodes a request as Gemini JSON, straight from the history; equal prefixes give equal bytes.

use super::Gemini;
use super::opaque::{self, CallOpaque, PartSignature, SignedContent};
use crate::codec::{Encoder, ModelParameters};
use crate::effort::{Effort, Thinking};
use crate::endpoint_overrides::percent_encoded;
use crate::preserialized::Preserialized;
use crate::request_body::{encode_body, push_item};
use crate::request_images::{Piece, result_pieces, user_pieces};
use crate::request_parts::{arguments_object, content, tool_name};
use crate::response_schema::{ResponseSchema, StrictSchemaSupport};
use crate::{Images, Request, ToolDefinition};
use agent_core::message::{Message, Part, Role, ToolCall, ToolResult};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// Placeholder for the signature of a call from another provider's model: Gemini 3 refuses calls without one.
/// Documented for this purpose at <https://ai.google.dev/gemini-api/docs/thought-signatures#faqs>.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";
/// Name of a result whose call is not part of the conversation.
const UNKNOWN_TOOL: &str = "unknown";

/// Returns the resource name of `model`, as part of a path.
pub fn resource(model: &str) -> String {
    let (kind, id) = match model.split_once('/') {
        Some((kind @ ("models" | "tunedModels"), id)) => (kind, id),
        _ => ("models", model),
    };
    format!("{kind}/{}", percent_encoded(id))
}

impl Encoder for Gemini {
    /// Appends the content for `message` to `json`, separated by a comma. The system message is skipped because it belongs to
    /// another field; a message without parts is skipped because Gemini refuses it.
    fn write_message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        images: Images<'_>,
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let (role, parts) = match message.role {
            Role::System => return Ok(()),
            Role::User => {
                ("user", user_pieces(message, images).into_iter().map(WirePart::of_piece).collect())
            }
            Role::Assistant => ("model", assistant_parts(message)?),
            Role::Tool => ("user", results(message, earlier)),
        };
        if parts.is_empty() {
            return Ok(());
        }
        push_item(json, &Content { role, parts })?;
        // Only some models accept images in a result.
        let parts: Vec<_> =
            result_pieces(message, earlier, images).into_iter().map(WirePart::of_piece).collect();
        if parts.is_empty() { Ok(()) } else { push_item(json, &Content { role, parts }) }
    }

    fn encode(
        &self,
        request: &Request<'_>,
        parameters: &ModelParameters,
        contents: &[u8],
    ) -> serde_json::Result<Vec<u8>> {
        let systems = request.messages.iter().filter(|message| message.role == Role::System);
        let parts: Vec<_> = systems.map(|message| WirePart::text(content(message))).collect();
        let declarations: Vec<_> = request.tools.iter().map(Declaration::of).collect();
        // Gemini 2 refuses a schema in combination with tools: "Function calling with a response mime type … is unsupported".
        let schema = request.strict_schema(StrictSchemaSupport::Alone);
        let head = Head {
            system_instruction: (!parts.is_empty()).then_some(Instruction { parts }),
            tools: (!declarations.is_empty()).then_some([Tools { function_declarations: declarations }]),
            generation_config: Generation {
                response_mime_type: schema.map(|_| "application/json"),
                response_json_schema: schema.map(ResponseSchema::value),
                temperature: parameters.temperature,
                max_output_tokens: request.max_output_tokens,
                thinking_config: parameters.thinking.map(ThinkingConfig::new),
            },
        };
        encode_body(&head, "contents", contents)
    }
}

/// Everything but the conversation. It is constant and precedes the growing conversation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: Generation<'a>,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: Vec<WirePart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a Preserialized<String>,
    /// Accepts any JSON Schema; `parameters` accepts only a subset.
    parameters_json_schema: &'a Preserialized<Value>,
}

impl<'a> Declaration<'a> {
    fn of(tool: &'a ToolDefinition) -> Self {
        Self { name: &tool.name, description: &tool.description, parameters_json_schema: &tool.parameters }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    /// Accepts any JSON Schema; `response_schema` accepts only a subset.
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

/// Thinking setting: a level for Gemini 3 and later, a token budget for Gemini 2.5, never both.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
    /// Whether the answer includes summaries of the thoughts.
    include_thoughts: bool,
}

impl ThinkingConfig {
    fn new(thinking: Thinking) -> Self {
        let (thinking_level, thinking_budget) = match thinking {
            Thinking::Effort(effort) => (Some(effort), None),
            Thinking::Budget(tokens) => (None, Some(tokens)),
            Thinking::Switch(_) => (None, None),
        };
        Self { thinking_level, thinking_budget, include_thoughts: thinking.is_enabled() }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<WirePart<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WirePart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inline_data: Option<InlineData>,
}

/// An image: <https://ai.google.dev/gemini-api/docs/image-understanding>.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData {
    mime_type: &'static str,
    data: String,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: Cow<'a, str>,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: Cow<'a, str>,
    response: Outcome<'a>,
}

/// A tool result as an object with one of the keys that Gemini defines.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome<'a> {
    Output(&'a str),
    Error(&'a str),
}

impl<'a> WirePart<'a> {
    fn of_piece(piece: Piece<'a>) -> Self {
        match piece {
            Piece::Text(text) => Self::text(text),
            Piece::Image { media_type, base64 } => {
                let inline_data = Some(InlineData { mime_type: media_type, data: base64 });
                Self { inline_data, ..Self::default() }
            }
        }
    }

    fn text(text: Cow<'a, str>) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

/// Returns the model's parts with their signatures. Thoughts without a signature are omitted; Gemini does not require them.
fn assistant_parts(message: &Message) -> serde_json::Result<Vec<WirePart<'_>>> {
    let mut parts: Vec<WirePart<'_>> = Vec::new();
    let mut calls = 0;
    for part in &message.parts {
        match part {
            Part::Text { text } if text.is_empty() => {}
            Part::Text { text } => parts.push(WirePart::text(Cow::Borrowed(text))),
            Part::Thinking { text, opaque } => {
                if let Some(signature) = opaque::read(opaque.as_ref()) {
                    attach_signature(text, signature, &mut parts);
                }
            }
            Part::ToolCall(call) => {
                parts.push(call_part(call, calls == 0)?);
                calls += 1;
            }
            Part::Image(_) | Part::ToolResult(_) => {}
        }
    }
    Ok(parts)
}

fn attach_signature<'a>(text: &'a str, signature: PartSignature, parts: &mut Vec<WirePart<'a>>) {
    let PartSignature { thought_signature, on } = signature;
    let thought_signature = Some(Cow::Owned(thought_signature));
    let before = parts.last_mut().filter(|part| part.text.is_some() && part.thought_signature.is_none());
    match (on, before) {
        (SignedContent::Text, Some(part)) => part.thought_signature = thought_signature,
        (SignedContent::Thought, _) => {
            let text = WirePart::text(Cow::Borrowed(text));
            parts.push(WirePart { thought: true, thought_signature, ..text });
        }
        (SignedContent::Text, None) | (SignedContent::Nothing, _) => {
            parts.push(WirePart { thought_signature, ..WirePart::text(Cow::Borrowed("")) });
        }
    }
}

/// Returns a call as Gemini sent it. Of parallel calls by another model, only the `first` gets a signature, as with Gemini's own.
fn call_part(call: &ToolCall, first: bool) -> serde_json::Result<WirePart<'_>> {
    let args = RawValue::from_string(arguments_object(call).into_owned())?;
    let (id, thought_signature) = match opaque::read::<CallOpaque>(call.opaque.as_ref()) {
        Some(own) => (own.id, own.thought_signature.map(Cow::Owned)),
        None => (None, first.then_some(Cow::Borrowed(NO_SIGNATURE))),
    };
    let function_call = Some(FunctionCall { id, name: tool_name(call), args });
    Ok(WirePart { function_call, thought_signature, ..WirePart::default() })
}

/// Returns all results of a turn, which Gemini expects in one content.
fn results<'a>(message: &'a Message, earlier: &'a [Arc<Message>]) -> Vec<WirePart<'a>> {
    let result = |part: &'a Part| match part {
        Part::ToolResult(result) => {
            let function_response = Some(response(result, earlier));
            Some(WirePart { function_response, ..WirePart::default() })
        }
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    };
    message.parts.iter().filter_map(result).collect()
}

fn response<'a>(result: &'a ToolResult, earlier: &'a [Arc<Message>]) -> FunctionResponse<'a> {
    let mut calls = earlier.iter().rev().flat_map(|message| message.tool_calls());
    let call = calls.find(|call| call.id == result.call_id);
    let response = if result.is_error { Outcome::Error(&result.text) } else { Outcome::Output(&result.text) };
    FunctionResponse {
        id: call.and_then(|call| opaque::read::<CallOpaque>(call.opaque.as_ref())?.id),
        name: call.map_or(Cow::Borrowed(UNKNOWN_TOOL), tool_name),
        response,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
