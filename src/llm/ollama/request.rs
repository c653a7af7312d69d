//! Encodes a request as Ollama's JSON, straight from the history; equal prefixes give equal bytes.

use super::Ollama;
use super::window::DEFAULT_WINDOW;
use crate::chat_completions::request::Tools;
use crate::codec::{Encoder, ModelParameters};
use crate::effort::{Effort, Thinking};
use crate::request_body::{encode_body, push_item};
use crate::request_images::{Piece, result_pieces, user_pieces};
use crate::request_parts::{arguments_object, content, tool_name};
use crate::response_schema::{ResponseSchema, StrictSchemaSupport};
use crate::{Images, Request};
use agent_core::message::{Message, Part, Role, ToolCall};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

/// Codec name of stored data that only this codec may replay.
pub const CODEC: &str = "ollama";

/// Name of a call that is not in the conversation; this does not occur in sessions.
const UNKNOWN_CALL: &str = "unknown";

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    options: Options,
    stream: bool,
    /// Whether the server truncates the front of a long prompt instead of reporting an error. Servers before October
    /// 2025 ignore this and `shift`.
    truncate: bool,
    /// Whether the server truncates the prompt to make room for the answer, which otherwise ends with `length`.
    shift: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Tools<'a>>,
    /// Schema of the answer. The server converts it to a grammar, which makes tool calls impossible.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a Value>,
}

/// Thinking switch or level.
#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Switch(bool),
    Effort(Effort),
}

impl Think {
    fn new(thinking: Thinking) -> Self {
        match thinking {
            Thinking::Effort(effort) => Self::Effort(effort),
            Thinking::Budget(_) | Thinking::Switch(_) => Self::Switch(thinking.is_enabled()),
        }
    }
}

#[derive(Serialize)]
struct Options {
    num_ctx: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    content: Cow<'a, str>,
    /// Images in base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: Cow<'a, str>,
    arguments: Box<RawValue>,
}

impl Encoder for Ollama {
    fn write_message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        images: Images<'_>,
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let mut write = |wire: &WireMessage<'_>| push_item(json, wire);
        match message.role {
            Role::System => write(&plain("system", content(message))),
            Role::User => write(&user(user_pieces(message, images))),
            Role::Assistant => write(&assistant(message)?),
            Role::Tool => {
                results(message, earlier).try_for_each(|result| write(&result))?;
                // The templates of most models show no images of results.
                let pieces = result_pieces(message, earlier, images);
                if pieces.is_empty() { Ok(()) } else { write(&user(pieces)) }
            }
        }
    }

    fn encode(
        &self,
        request: &Request<'_>,
        parameters: &ModelParameters,
        messages: &[u8],
    ) -> serde_json::Result<Vec<u8>> {
        let head = Head {
            model: &parameters.model,
            options: Options {
                num_ctx: parameters.window.unwrap_or(DEFAULT_WINDOW),
                num_predict: request.max_output_tokens,
                temperature: parameters.temperature,
            },
            stream: request.stream,
            truncate: false,
            shift: false,
            think: parameters.thinking.map(Think::new),
            tools: (!request.tools.is_empty()).then_some(Tools(request.tools)),
            format: request.strict_schema(StrictSchemaSupport::Alone).map(ResponseSchema::value),
        };
        encode_body(&head, "messages", messages)
    }
}

fn plain<'a>(role: &'static str, content: Cow<'a, str>) -> WireMessage<'a> {
    let (images, tool_calls) = (Vec::new(), Vec::new());
    WireMessage { role, tool_name: None, content, images, thinking: String::new(), tool_calls }
}

fn user(pieces: Vec<Piece<'_>>) -> WireMessage<'_> {
    let mut images = Vec::new();
    let texts = pieces.into_iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Image { base64, .. } => {
            images.push(base64);
            None
        }
    });
    let text = texts.reduce(|all, text| all + text).unwrap_or_default();
    WireMessage { images, ..plain("user", text) }
}

fn assistant(message: &Message) -> serde_json::Result<WireMessage<'_>> {
    let call =
        |call| Ok(WireCall { function: WireFunction { name: tool_name(call), arguments: arguments(call)? } });
    Ok(WireMessage {
        thinking: thinking(message),
        tool_calls: message.tool_calls().map(call).collect::<serde_json::Result<_>>()?,
        ..plain("assistant", content(message))
    })
}

/// Returns the arguments as raw JSON.
fn arguments(call: &ToolCall) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(arguments_object(call).into_owned())
}

/// Returns the reasoning that this codec received: models that call tools while they think expect it back.
fn thinking(message: &Message) -> String {
    let own = message.parts.iter().filter_map(|part| match part {
        Part::Thinking { text, opaque: Some(opaque) } if opaque.codec == CODEC => Some(text.as_str()),
        Part::Image(_)
        | Part::Thinking { .. }
        | Part::Text { .. }
        | Part::ToolCall(_)
        | Part::ToolResult(_) => None,
    });
    own.collect()
}

/// Returns each result of a turn as a separate message; it is matched to its call by the tool's name and by its position.
fn results<'a>(message: &'a Message, earlier: &'a [Arc<Message>]) -> impl Iterator<Item = WireMessage<'a>> {
    let named = |id: &str| {
        let mut calls = earlier.iter().rev().flat_map(|message| message.tool_calls());
        calls.find(|call| call.id == id).map_or(Cow::Borrowed(UNKNOWN_CALL), tool_name)
    };
    message.parts.iter().filter_map(move |part| match part {
        Part::ToolResult(result) => Some(WireMessage {
            tool_name: Some(named(&result.call_id)),
            ..plain("tool", Cow::Borrowed(&result.text))
        }),
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolDefinition;
    use crate::quirks::TextCallFormat;
    use agent_core::message::{OpaqueData, ToolResult};
    use serde_json::{Value, json};

    fn bytes_of(request: &Request<'_>, parameters: &ModelParameters) -> Vec<u8> {
        let codec = Ollama { text_calls: TextCallFormat::Json };
        let mut messages = Vec::new();
        for (at, message) in request.messages.iter().enumerate() {
            codec.write_message(message, &request.messages[..at], None, &mut messages).unwrap();
        }
        codec.encode(request, parameters, &messages).unwrap()
    }

    fn parameters() -> ModelParameters {
        ModelParameters { model: "m".into(), temperature: None, ..ModelParameters::default() }
    }

    fn call(id: &str, name: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall::new(id, name, arguments))
    }

    fn thought(text: &str, codec: &str) -> Part {
        let opaque = Some(OpaqueData { codec: codec.into(), data: Value::Null });
        Part::Thinking { text: text.into(), opaque }
    }

    fn result(id: &str) -> ToolResult {
        ToolResult { call_id: id.into(), text: format!("of {id}"), is_error: false, images: Vec::new() }
    }

    fn history() -> Vec<Arc<Message>> {
        let calls = vec![
            thought("hm", CODEC),
            thought("foreign", "messages"),
            call("a", "read", "{\"p\": 1.50}"),
            call("b", "list", "{\"p\":"),
        ];
        vec![
            Message::text(Role::System, "s"),
            Message::text(Role::User, "u"),
            Message { role: Role::Assistant, parts: calls },
            Message::tool_results(vec![result("a"), result("b"), result("lost")]),
        ]
        .into_iter()
        .map(Arc::new)
        .collect()
    }

    fn tools() -> [ToolDefinition; 1] {
        let parameters = json!({"type": "object"});
        [ToolDefinition { name: "read".into(), description: "Reads.".into(), parameters: parameters.into() }]
    }

    #[test]
    fn a_request_has_the_shape_the_format_wants() {
        let messages = history();
        let max_output_tokens = Some(9);
        let request = Request {
            messages: &messages,
            tools: &tools(),
            stream: true,
            max_output_tokens,
            ..Request::default()
        };
        let parameters = ModelParameters { temperature: Some(0.5), window: Some(8192), ..parameters() };
        let bytes = bytes_of(&request, &parameters);
        assert_eq!(
            serde_json::from_slice::<Value>(&bytes).unwrap(),
            json!({
                "model": "m", "options": {"num_ctx": 8192, "num_predict": 9, "temperature": 0.5},
                "stream": true, "truncate": false, "shift": false,
                "tools": [{"type": "function", "function":
                    {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": "u"},
                    {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [
                        {"function": {"name": "read", "arguments": {"p": 1.50}}},
                        {"function": {"name": "list", "arguments": {"invalid_json": "{\"p\":"}}}]},
                    {"role": "tool", "tool_name": "read", "content": "of a"},
                    {"role": "tool", "tool_name": "list", "content": "of b"},
                    {"role": "tool", "tool_name": "unknown", "content": "of lost"},
                ]
            })
        );
        assert!(String::from_utf8(bytes).unwrap().contains("{\"p\": 1.50}"), "arguments are not rewritten");
    }

    #[test]
    fn a_window_is_asked_for_even_where_none_is_known() {
        let request = Request { messages: &history(), tools: &[], stream: false, ..Request::default() };
        let body: Value = serde_json::from_slice(&bytes_of(&request, &parameters())).unwrap();
        assert_eq!(body["options"], json!({"num_ctx": DEFAULT_WINDOW}));
        assert_eq!((&body["stream"], body.get("tools")), (&json!(false), None));
    }

    #[test]
    fn k12_a_longer_history_begins_with_the_same_bytes() {
        let (history, tools) = (history(), tools());
        let short = Request { messages: &history[..2], tools: &tools, stream: true, ..Request::default() };
        let long = Request { messages: &history, ..short };
        let (short, long) = (bytes_of(&short, &parameters()), bytes_of(&long, &parameters()));
        assert!(long.starts_with(short.strip_suffix(b"]}").unwrap()));
    }
}
