//! Encodes a request as Chat Completions JSON, straight from the history; equal prefixes give equal bytes.

use super::ChatCompletions;
use super::reasoning_details::DETAILS;
use crate::cache_control::CacheControl;
use crate::codec::{Encoder, ModelParameters};
use crate::effort::Thinking;
use crate::preserialized::Preserialized;
use crate::quirks::{EmptyContent, MaxTokensField, Quirks, ReasoningReplayField, ThinkingField};
use crate::request_body::{encode_body, push_item};
use crate::request_images::{Piece, data_url, joined_text, result_pieces, user_pieces};
use crate::request_parts::{arguments_json, content, placeholder_tool, tool_name};
use crate::response_schema::NamedSchema;
use crate::{Images, Request, ToolDefinition};
use agent_core::message::{Message, Part, Role};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Codec name of stored data that only this codec may replay.
pub const CODEC: &str = "chat_completions";

/// Placeholder for missing reasoning where a server requires some; an empty text might count as missing.
const NO_REASONING: &str = " ";

impl Encoder for ChatCompletions {
    fn write_message(
        &self,
        message: &Message,
        earlier: &[Arc<Message>],
        images: Images<'_>,
        json: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        let mut write = |wire: &WireMessage<'_>| push_item(json, wire);
        match message.role {
            Role::System => write(&plain(self.quirks.system_role.name(), message)),
            Role::User => write(&user(user_pieces(message, images))),
            Role::Assistant => write(&assistant(message, self.quirks)),
            Role::Tool => {
                results(message, self.quirks).try_for_each(|result| write(&result))?;
                // A result is text in this format.
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
        encode_body(&Head { request, parameters, quirks: self.quirks }, "messages", messages)
    }
}

struct Head<'a> {
    request: &'a Request<'a>,
    parameters: &'a ModelParameters,
    quirks: Quirks,
}

impl Serialize for Head<'_> {
    /// Writes the constant part first; the growing history follows it.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { request, parameters, quirks } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &parameters.model)?;
        if let Some(temperature) = parameters.temperature {
            map.serialize_entry("temperature", &temperature)?;
        }
        if let Some(tokens) = request.max_output_tokens {
            let field = match quirks.token_field {
                MaxTokensField::MaxTokens => "max_tokens",
                MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
            };
            map.serialize_entry(field, &tokens)?;
        }
        if let Some(thinking) = parameters.thinking {
            write_thinking(thinking, quirks.thinking, &mut map)?;
        }
        if let (true, Some(session)) = (parameters.caching.use_session_key, request.session) {
            map.serialize_entry("prompt_cache_key", session)?;
        }
        if parameters.caching.use_breakpoints {
            map.serialize_entry("cache_control", &CacheControl::default())?;
        }
        map.serialize_entry("stream", &request.stream)?;
        if request.stream && quirks.stream_usage {
            map.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
        }
        if !request.tools.is_empty() {
            map.serialize_entry("tools", &Tools(request.tools))?;
            if quirks.ask_parallel_calls {
                map.serialize_entry("parallel_tool_calls", &true)?;
            }
        } else if quirks.tools_with_history && has_calls(request.messages) {
            map.serialize_entry("tools", &Tools(&[placeholder_tool()]))?;
            map.serialize_entry("tool_choice", "none")?;
        }
        if let Some(json_schema) = request.strict_schema(quirks.strict_answers).and_then(NamedSchema::of) {
            let format = ResponseFormat { r#type: "json_schema", json_schema };
            map.serialize_entry("response_format", &format)?;
        }
        map.end()
    }
}

/// Writes the thinking setting in the server's own field.
fn write_thinking<M: SerializeMap>(
    thinking: Thinking,
    field: Option<ThinkingField>,
    map: &mut M,
) -> Result<(), M::Error> {
    match (field, thinking) {
        (Some(ThinkingField::ReasoningEffort), Thinking::Effort(effort)) => {
            map.serialize_entry("reasoning_effort", &effort)
        }
        (Some(ThinkingField::Reasoning), Thinking::Effort(effort)) => {
            map.serialize_entry("reasoning", &BTreeMap::from([("effort", effort)]))
        }
        (Some(ThinkingField::Thinking), Thinking::Switch(on)) => {
            let kind = if on { "enabled" } else { "disabled" };
            map.serialize_entry("thinking", &BTreeMap::from([("type", kind)]))
        }
        (Some(ThinkingField::EnableThinking), Thinking::Switch(on)) => {
            map.serialize_entry("enable_thinking", &on)
        }
        (Some(ThinkingField::ChatTemplate), Thinking::Switch(on)) => {
            map.serialize_entry("chat_template_kwargs", &BTreeMap::from([("enable_thinking", on)]))
        }
        (Some(ThinkingField::ChatTemplate), Thinking::Effort(effort)) => {
            map.serialize_entry("chat_template_kwargs", &BTreeMap::from([("reasoning_effort", effort)]))
        }
        _ => Ok(()),
    }
}

fn has_calls(messages: &[Arc<Message>]) -> bool {
    messages.iter().any(|message| message.tool_calls().next().is_some())
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

/// Tools in the notation of this format, which Ollama's own API shares.
pub struct Tools<'a>(pub &'a [ToolDefinition]);

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a Preserialized<String>,
    parameters: &'a Preserialized<Value>,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| WireTool {
            r#type: "function",
            function: WireFunction {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
            },
        }))
    }
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
}

/// Content of a message: its text, or a list if it has images.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

impl<'a> WireMessage<'a> {
    fn new(role: &'static str, content: Option<Cow<'a, str>>) -> Self {
        Self {
            role,
            tool_call_id: None,
            content: content.map(Content::Text),
            reasoning_content: None,
            reasoning: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
        }
    }
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: WireCallFunction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a Value>,
}

#[derive(Serialize)]
struct WireCallFunction<'a> {
    name: Cow<'a, str>,
    arguments: Cow<'a, str>,
}

fn user(pieces: Vec<Piece<'_>>) -> WireMessage<'_> {
    let part = |piece| match piece {
        Piece::Text(text) => ContentPart::Text { text },
        Piece::Image { media_type, base64 } => {
            ContentPart::ImageUrl { image_url: ImageUrl { url: data_url(media_type, &base64) } }
        }
    };
    let content = match joined_text(pieces) {
        Ok(text) => Content::Text(text),
        Err(pieces) => Content::Parts(pieces.into_iter().map(part).collect()),
    };
    WireMessage { content: Some(content), ..WireMessage::new("user", None) }
}

fn plain<'a>(role: &'static str, message: &'a Message) -> WireMessage<'a> {
    WireMessage::new(role, Some(content(message)))
}

/// Returns each result of a turn as a separate message.
fn results(message: &Message, quirks: Quirks) -> impl Iterator<Item = WireMessage<'_>> {
    message.parts.iter().filter_map(move |part| match part {
        Part::ToolResult(result) => Some(WireMessage {
            tool_call_id: Some(quirks.call_ids.conform(&result.call_id)),
            ..WireMessage::new("tool", Some(Cow::Borrowed(&result.text)))
        }),
        Part::Image(_) | Part::Text { .. } | Part::Thinking { .. } | Part::ToolCall(_) => None,
    })
}

fn assistant(message: &Message, quirks: Quirks) -> WireMessage<'_> {
    let text = content(message);
    let tool_calls: Vec<_> = message
        .tool_calls()
        .map(|call| WireCall {
            id: quirks.call_ids.conform(&call.id),
            r#type: "function",
            function: WireCallFunction { name: tool_name(call), arguments: arguments_json(call) },
            extra_content: call
                .opaque
                .as_ref()
                .filter(|opaque| opaque.codec == CODEC)
                .map(|opaque| &opaque.data),
        })
        .collect();
    let null = text.is_empty() && quirks.no_content == EmptyContent::Null && !tool_calls.is_empty();
    let blank = || quirks.reasoning_required.then(|| NO_REASONING.to_owned());
    let replayed =
        |field| (quirks.replay_reasoning == field).then(|| reasoning(message).or_else(blank)).flatten();
    WireMessage {
        reasoning_content: replayed(ReasoningReplayField::ReasoningContent),
        reasoning: replayed(ReasoningReplayField::Reasoning),
        reasoning_details: details(message)
            .filter(|_| quirks.replay_reasoning == ReasoningReplayField::ReasoningDetails),
        tool_calls,
        ..WireMessage::new("assistant", (!null).then_some(text))
    }
}

/// Returns the reasoning that this codec received, for servers that expect it back.
fn reasoning(message: &Message) -> Option<String> {
    let text: String = message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Thinking { text, opaque: Some(opaque) } if opaque.codec == CODEC => Some(text.as_str()),
            Part::Image(_)
            | Part::Thinking { .. }
            | Part::Text { .. }
            | Part::ToolCall(_)
            | Part::ToolResult(_) => None,
        })
        .collect();
    (!text.is_empty()).then_some(text)
}

/// Returns the opaque reasoning that this codec received.
fn details(message: &Message) -> Option<&Value> {
    message.parts.iter().find_map(|part| match part {
        Part::Thinking { opaque: Some(opaque), .. } if opaque.codec == CODEC => opaque.data.get(DETAILS),
        Part::Image(_)
        | Part::Thinking { .. }
        | Part::Text { .. }
        | Part::ToolCall(_)
        | Part::ToolResult(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quirks::SystemRole;
    use agent_core::message::{OpaqueData, ToolCall, ToolResult};
    use serde_json::json;

    fn bytes_of(request: &Request<'_>, quirks: Quirks) -> Vec<u8> {
        let parameters =
            ModelParameters { model: "m".into(), temperature: Some(0.5), ..ModelParameters::default() };
        let request = &Request { max_output_tokens: Some(9), ..*request };
        let codec = ChatCompletions { quirks };
        let mut messages = Vec::new();
        for message in request.messages {
            codec.write_message(message, &[], None, &mut messages).unwrap();
        }
        codec.encode(request, &parameters, &messages).unwrap()
    }

    fn call(id: &str, arguments: &str) -> Part {
        Part::ToolCall(ToolCall::new(id, "read", arguments))
    }

    #[test]
    fn only_this_codecs_signatures_are_sent_back() {
        let signed = |codec: &str| {
            let opaque = Some(OpaqueData { codec: codec.into(), data: json!({"google": "s"}) });
            Part::ToolCall(ToolCall::new(codec, "read", "{}").with_opaque(opaque))
        };
        let message = Message { role: Role::Assistant, parts: vec![signed(CODEC), signed("messages")] };
        let body = encoded(&[Arc::new(message)], &[], false, Quirks::default());
        let calls = &body["messages"][0]["tool_calls"];
        assert_eq!(calls[0]["extra_content"], json!({"google": "s"}));
        assert_eq!(calls[1].get("extra_content"), None);
    }

    fn result(id: &str) -> ToolResult {
        ToolResult { call_id: id.into(), text: "ok\u{1b}".into(), is_error: false, images: Vec::new() }
    }

    fn history() -> Vec<Arc<Message>> {
        let thinking = Part::Thinking {
            text: "hm".into(),
            opaque: Some(OpaqueData { codec: CODEC.into(), data: Value::Null }),
        };
        vec![
            Message::text(Role::System, "s"),
            Message::text(Role::User, "u"),
            Message {
                role: Role::Assistant,
                parts: vec![thinking, call("a", "{\"p\": 1}"), call("b", "{\"p\":")],
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

    fn encoded(messages: &[Arc<Message>], tools: &[ToolDefinition], stream: bool, quirks: Quirks) -> Value {
        let request = Request { messages, tools, stream, ..Request::default() };
        serde_json::from_slice(&bytes_of(&request, quirks)).unwrap()
    }

    #[test]
    fn a_request_has_the_shape_the_format_wants() {
        let body = encoded(&history(), &[tool()], true, Quirks::default());
        assert_eq!(
            body,
            json!({
                "model": "m", "temperature": 0.5, "max_tokens": 9,
                "stream": true, "stream_options": {"include_usage": true},
                "tools": [{"type": "function", "function":
                    {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}],
                "messages": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": "u"},
                    {"role": "assistant", "content": "", "tool_calls": [
                        {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{\"p\": 1}"}},
                        {"id": "b", "type": "function", "function":
                            {"name": "read", "arguments": "{\"invalid_json\":\"{\\\"p\\\":\"}"}}]},
                    {"role": "tool", "tool_call_id": "a", "content": "ok\u{1b}"},
                    {"role": "tool", "tool_call_id": "b", "content": "ok\u{1b}"},
                ]
            })
        );
    }

    #[test]
    fn quirks_change_the_token_field_the_null_content_and_the_reasoning() {
        let quirks = Quirks {
            token_field: MaxTokensField::MaxCompletionTokens,
            no_content: EmptyContent::Null,
            stream_usage: false,
            replay_reasoning: ReasoningReplayField::ReasoningContent,
            tools_with_history: true,
            system_role: SystemRole::Developer,
            ..Quirks::default()
        };
        let body = encoded(&history(), &[], true, quirks);
        assert_eq!(body["messages"][0]["role"], "developer");
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(9), &Value::Null));
        assert!(body.get("stream_options").is_none());
        assert_eq!(body["messages"][2]["content"], Value::Null);
        assert_eq!(body["messages"][2]["reasoning_content"], "hm");
        assert_eq!(body["tool_choice"], "none");
    }

    #[test]
    fn reasoning_goes_back_where_and_as_the_server_wants_it() {
        let mut history = history();
        let details = json!([{"type": "reasoning.encrypted", "data": "x"}]);
        let sealed = OpaqueData { codec: CODEC.into(), data: json!({DETAILS: details}) };
        let thinking = Part::Thinking { text: "hm".into(), opaque: Some(sealed) };
        history.push(Arc::new(Message { role: Role::Assistant, parts: vec![thinking, call("c", "{}")] }));
        history.push(Arc::new(Message::text(Role::Assistant, "no thought")));
        let sent = |replay_reasoning, reasoning_required| {
            let quirks = Quirks { replay_reasoning, reasoning_required, ..Quirks::default() };
            let body = encoded(&history, &[], true, quirks);
            let keys = ["reasoning_content", "reasoning", "reasoning_details"];
            [5, 6].map(|at| keys.map(|key| body["messages"][at][key].clone()))
        };
        let none = [Value::Null, Value::Null, Value::Null];
        assert_eq!(sent(ReasoningReplayField::Nowhere, true), [none.clone(), none.clone()]);
        let with = |at: usize, value: Value| {
            let mut row = none.clone();
            row[at] = value;
            row
        };
        assert_eq!(sent(ReasoningReplayField::ReasoningContent, false), [with(0, json!("hm")), none.clone()]);
        assert_eq!(
            sent(ReasoningReplayField::ReasoningContent, true),
            [with(0, json!("hm")), with(0, json!(" "))]
        );
        assert_eq!(sent(ReasoningReplayField::Reasoning, false), [with(1, json!("hm")), none.clone()]);
        assert_eq!(sent(ReasoningReplayField::ReasoningDetails, false), [with(2, details), none]);
    }

    #[test]
    fn no_tools_means_no_field_because_some_servers_refuse_an_empty_list() {
        assert!(encoded(&history(), &[], false, Quirks::default()).get("tools").is_none());
    }

    #[test]
    fn k12_a_longer_history_begins_with_the_same_bytes() {
        let history = history();
        let tools = [tool()];
        let short = Request { messages: &history[..2], tools: &tools, stream: true, ..Request::default() };
        let long = Request { messages: &history, ..short };
        let (short, long) = (bytes_of(&short, Quirks::default()), bytes_of(&long, Quirks::default()));
        assert!(long.starts_with(short.strip_suffix(b"]}").unwrap()));
    }
}
