//! Encodes a request as Responses JSON, straight from the history; equal prefixes give equal bytes.
//!
//! Ids of messages and calls are not sent: the server would look for its own items with these ids, and refuse a
//! request in which one of them is missing. `call_id` links a call to its result.

use super::Responses;
use crate::codec::{Encoder, ModelParameters};
use crate::effort::{Effort, Thinking};
use crate::preserialized::Preserialized;
use crate::request_body::{encode_body, push_item};
use crate::request_images::{Piece, data_url, user_pieces};
use crate::request_parts::{arguments_json, content, sanitized_id, tool_name};
use crate::response_schema::{NamedSchema, StrictSchemaSupport};
use crate::{Images, Request, ToolDefinition};
use agent_core::message::{Message, Part, Role, ToolResult};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Codec name of stored data that only this codec may replay.
pub const CODEC: &str = "responses";

/// Longest `call_id` that `OpenAI` accepts, in characters.
const CALL_ID_LENGTH: usize = 64;

/// Name prefixes of models that do not reason: `OpenAI` refuses to encrypt their reasoning ("Encrypted content is
/// not supported with this model").
const NON_REASONING_PREFIXES: [&str; 4] = ["gpt-3.5", "gpt-4", "chatgpt", "gpt-5-chat"];

impl Encoder for Responses {
    fn write_message(
        &self,
        message: &Message,
        _earlier: &[Arc<Message>],
        images: Images<'_>,
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let mut write = |item: &Item<'_>| push_item(json, item);
        match message.role {
            Role::System => write(&input("system", message)),
            Role::User => write(&user(message, images)),
            Role::Assistant => output(message).try_for_each(|item| write(&item)),
            Role::Tool => results(message, images).try_for_each(|item| write(&item)),
        }
    }

    fn encode(
        &self,
        request: &Request<'_>,
        parameters: &ModelParameters,
        items: &[u8],
    ) -> serde_json::Result<Vec<u8>> {
        encode_body(&Head { request, parameters }, "input", items)
    }
}

struct Head<'a> {
    request: &'a Request<'a>,
    parameters: &'a ModelParameters,
}

impl Serialize for Head<'_> {
    /// Writes the constant part first; the growing history follows it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, parameters } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &parameters.model)?;
        map.serialize_entry("store", &false)?;
        if may_reason(&parameters.model) {
            map.serialize_entry("include", &["reasoning.encrypted_content"])?;
        }
        if let Some(temperature) = parameters.temperature {
            map.serialize_entry("temperature", &temperature)?;
        }
        if let Some(tokens) = request.max_output_tokens {
            map.serialize_entry("max_output_tokens", &tokens)?;
        }
        if let Some(Thinking::Effort(effort)) = parameters.thinking {
            map.serialize_entry("reasoning", &Reasoning { effort, summary: "auto" })?;
        }
        if let (true, Some(session)) = (parameters.caching.use_session_key, request.session) {
            map.serialize_entry("prompt_cache_key", session)?;
        }
        map.serialize_entry("stream", &request.stream)?;
        if !request.tools.is_empty() {
            map.serialize_entry("tools", &Tools(request.tools))?;
        }
        if let Some(schema) =
            request.strict_schema(StrictSchemaSupport::BesideTools).and_then(NamedSchema::of)
        {
            map.serialize_entry("text", &Text { format: TextFormat { r#type: "json_schema", schema } })?;
        }
        map.end()
    }
}

/// Reasoning effort, and the request for a summary of the reasoning.
#[derive(Serialize)]
struct Reasoning {
    effort: Effort,
    summary: &'static str,
}

/// Format of the answer's text.
#[derive(Serialize)]
struct Text<'a> {
    format: TextFormat<'a>,
}

#[derive(Serialize)]
struct TextFormat<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    schema: NamedSchema<'a>,
}

/// Checks whether a model, named with or without its vendor prefix, may have reasoning to send back.
fn may_reason(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    !NON_REASONING_PREFIXES.iter().any(|beginning| name.starts_with(beginning))
}

struct Tools<'a>(&'a [ToolDefinition]);

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a Preserialized<String>,
    parameters: &'a Preserialized<Value>,
    /// Always sent, because the default is true, which refuses schemas with optional properties.
    strict: bool,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| WireTool {
            r#type: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            strict: false,
        }))
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Output<'a>,
    },
    /// Reasoning as received.
    #[serde(untagged)]
    Reasoning(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: Cow<'a, str> },
}

impl<'a> Content<'a> {
    fn of_piece(piece: Piece<'a>) -> Self {
        match piece {
            Piece::Text(text) => Self::InputText { text },
            Piece::Image { media_type, base64 } => {
                Self::InputImage { image_url: data_url(media_type, &base64) }
            }
        }
    }
}

/// Output of a call: its text, or a list if it has images.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Parts(Vec<Content<'a>>),
}

fn user<'a>(message: &'a Message, images: Images<'_>) -> Item<'a> {
    let content = user_pieces(message, images).into_iter().map(Content::of_piece).collect();
    Item::Message { role: "user", phase: None, content }
}

fn input<'a>(role: &'static str, message: &'a Message) -> Item<'a> {
    Item::Message { role, phase: None, content: vec![Content::InputText { text: content(message) }] }
}

/// Returns the model's items in their order. Reasoning without a following item, such as that of a cut answer, is
/// omitted: `OpenAI` refuses it "without its required following item".
fn output(message: &Message) -> impl Iterator<Item = Item<'_>> {
    let follows = |part: &Part| match part {
        Part::Text { text } => !text.is_empty(),
        Part::ToolCall(_) => true,
        Part::Image(_) | Part::Thinking { .. } | Part::ToolResult(_) => false,
    };
    let end = message.parts.iter().rposition(follows).map_or(0, |last| last + 1);
    let mut phase = None;
    message.parts.iter().take(end).filter_map(move |part| match part {
        Part::Text { text } if !text.is_empty() => Some(Item::Message {
            role: "assistant",
            phase: phase.take(),
            content: vec![Content::OutputText { text: Cow::Borrowed(text) }],
        }),
        Part::ToolCall(call) => Some(Item::FunctionCall {
            call_id: sanitized_id(&call.id, CALL_ID_LENGTH),
            name: tool_name(call),
            arguments: arguments_json(call),
        }),
        Part::Thinking { opaque: Some(opaque), .. } if opaque.codec == CODEC => {
            phase = opaque.data.get("phase").and_then(Value::as_str);
            (opaque.data.get("type")? == "reasoning").then_some(Item::Reasoning(&opaque.data))
        }
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolResult(_) => None,
    })
}

/// Returns each result of a turn as a separate item.
fn results<'a>(message: &'a Message, images: Images<'_>) -> impl Iterator<Item = Item<'a>> {
    message.parts.iter().filter_map(move |part| match part {
        Part::ToolResult(result) => Some(Item::FunctionCallOutput {
            call_id: sanitized_id(&result.call_id, CALL_ID_LENGTH),
            output: result_output(result, images),
        }),
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    })
}

fn result_output<'a>(result: &'a ToolResult, images: Images<'_>) -> Output<'a> {
    if result.images.is_empty() {
        return Output::Text(&result.text);
    }
    let text = Content::InputText { text: Cow::Borrowed(&result.text) };
    let images = result.images.iter().map(|image| Content::of_piece(Piece::of_image(image, images)));
    Output::Parts([text].into_iter().chain(images).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::message::{OpaqueData, ToolCall};
    use serde_json::json;

    fn bytes_of(model: &str, request: &Request<'_>) -> Vec<u8> {
        let parameters =
            ModelParameters { model: model.into(), temperature: Some(0.5), ..ModelParameters::default() };
        let request = &Request { max_output_tokens: Some(99), ..*request };
        let mut items = Vec::new();
        for message in request.messages {
            Responses.write_message(message, &[], None, &mut items).unwrap();
        }
        Responses.encode(request, &parameters, &items).unwrap()
    }

    fn items(parts: Vec<Part>) -> Value {
        let mut json = vec![];
        Responses.write_message(&Message { role: Role::Assistant, parts }, &[], None, &mut json).unwrap();
        serde_json::from_slice(&[b"[", json.as_slice(), b"]"].concat()).unwrap()
    }

    fn thinking(codec: &str, data: Value) -> Part {
        Part::Thinking { text: "hm".into(), opaque: Some(OpaqueData { codec: codec.into(), data }) }
    }

    fn text(text: &str) -> Part {
        Part::Text { text: text.into() }
    }

    fn call(id: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall::new(id, "read", arguments))
    }

    fn reasoning() -> Value {
        json!({"type": "reasoning", "summary": [], "encrypted_content": "x=="})
    }

    fn history() -> Vec<Arc<Message>> {
        let result = |id: &str| ToolResult {
            call_id: id.into(),
            text: "ok\u{1b}".into(),
            is_error: false,
            images: Vec::new(),
        };
        vec![
            Message::text(Role::System, "s"),
            Message::text(Role::User, "u"),
            Message {
                role: Role::Assistant,
                parts: vec![thinking(CODEC, reasoning()), call("a", "{\"p\": 1}"), call("b", "{\"p\":")],
            },
            Message::tool_results(vec![result("a"), result("b")]),
        ]
        .into_iter()
        .map(Arc::new)
        .collect()
    }

    fn tool() -> ToolDefinition {
        ToolDefinition {
            name: "read".into(),
            description: "Reads.".into(),
            parameters: json!({"type": "object"}).into(),
        }
    }

    #[test]
    fn a_request_has_the_shape_the_format_wants() {
        let (messages, tools) = (history(), [tool()]);
        let request = Request { messages: &messages, tools: &tools, stream: true, ..Request::default() };
        let body: Value = serde_json::from_slice(&bytes_of("m", &request)).unwrap();
        assert_eq!(
            body,
            json!({
                "model": "m", "store": false, "include": ["reasoning.encrypted_content"],
                "temperature": 0.5, "max_output_tokens": 99, "stream": true,
                "tools": [{"type": "function", "name": "read", "description": "Reads.",
                    "parameters": {"type": "object"}, "strict": false}],
                "input": [
                    {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "s"}]},
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "u"}]},
                    {"type": "reasoning", "summary": [], "encrypted_content": "x=="},
                    {"type": "function_call", "call_id": "a", "name": "read", "arguments": "{\"p\": 1}"},
                    {"type": "function_call", "call_id": "b", "name": "read",
                        "arguments": "{\"invalid_json\":\"{\\\"p\\\":\"}"},
                    {"type": "function_call_output", "call_id": "a", "output": "ok\u{1b}"},
                    {"type": "function_call_output", "call_id": "b", "output": "ok\u{1b}"},
                ]
            })
        );
    }

    #[test]
    fn models_that_do_not_reason_are_not_asked_for_their_reasoning() {
        let request = Request { messages: &[], tools: &[], stream: false, ..Request::default() };
        for (model, asked) in
            [("gpt-5.4", true), ("o3", true), ("gpt-oss:20b", true), ("openai/gpt-4.1", false)]
        {
            let body: Value = serde_json::from_slice(&bytes_of(model, &request)).unwrap();
            assert_eq!(body.get("include").is_some(), asked, "{model}");
            assert_eq!((body.get("tools"), &body["input"]), (None, &json!([])));
        }
    }

    #[test]
    fn the_order_in_which_the_model_wrote_its_items_is_kept() {
        let phase = |phase: &str| thinking(CODEC, json!({ "phase": phase }));
        let message = |phase: &str, text: &str| {
            json!({"type": "message", "role": "assistant", "phase": phase,
                "content": [{"type": "output_text", "text": text}]})
        };
        let parts = vec![
            phase("commentary"),
            text("First."),
            thinking(CODEC, reasoning()),
            call("a", "{}"),
            thinking(CODEC, reasoning()),
            phase("final_answer"),
            text("Second."),
        ];
        let call = json!({"type": "function_call", "call_id": "a", "name": "read", "arguments": "{}"});
        let expected = [
            message("commentary", "First."),
            reasoning(),
            call,
            reasoning(),
            message("final_answer", "Second."),
        ];
        assert_eq!(items(parts), json!(expected));
    }

    #[test]
    fn reasoning_of_others_and_reasoning_without_an_outcome_is_not_sent() {
        let parts = vec![
            thinking("messages", reasoning()),
            thinking(CODEC, Value::Null),
            text("a"),
            thinking(CODEC, reasoning()),
            text(""),
        ];
        let only = json!([{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]);
        assert_eq!(items(parts), only);
        assert_eq!(items(vec![thinking(CODEC, reasoning())]), json!([]));
    }

    #[test]
    fn an_id_of_another_provider_still_joins_call_and_result() {
        let id = format!("functions.read:0{}", "x".repeat(100));
        let sent = items(vec![call(&id, "{}")])[0]["call_id"].clone();
        let mut json = vec![];
        let result = ToolResult { call_id: id, text: String::new(), is_error: false, images: Vec::new() };
        Responses.write_message(&Message::tool_results(vec![result]), &[], None, &mut json).unwrap();
        let result: Value = serde_json::from_slice(&json).unwrap();
        assert!(sent == result["call_id"] && sent.as_str().unwrap().len() <= CALL_ID_LENGTH, "{sent}");
    }

    #[test]
    fn k12_a_longer_history_begins_with_the_same_bytes() {
        let (history, tools) = (history(), [tool()]);
        let short = Request { messages: &history[..2], tools: &tools, stream: true, ..Request::default() };
        let long = Request { messages: &history, ..short };
        let (short, long) = (bytes_of("m", &short), bytes_of("m", &long));
        assert!(long.starts_with(short.strip_suffix(b"]}").unwrap()));
    }
}
