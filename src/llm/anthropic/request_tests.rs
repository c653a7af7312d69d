//! Tests of encoding a conversation as Messages JSON.

use super::*;
use crate::codec::PromptCaching;
use agent_core::message::OpaqueData;
use serde_json::json;

fn bytes_of(request: &Request<'_>, max_output_tokens: Option<u32>) -> Vec<u8> {
    let parameters = ModelParameters { model: "m".into(), ..ModelParameters::default() };
    let request = &Request { max_output_tokens, ..*request };
    let codec = AnthropicMessages { quirks: Quirks::default() };
    let mut json = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        codec.write_message(message, &request.messages[..at], None, &mut json).unwrap();
    }
    codec.encode(request, &parameters, &json).unwrap()
}

fn encoded(messages: Vec<Message>, tools: &[ToolDefinition]) -> Value {
    let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
    let request = Request { messages: &messages, tools, stream: true, ..Request::default() };
    serde_json::from_slice(&bytes_of(&request, Some(9))).unwrap()
}

fn sent(messages: Vec<Message>) -> Value {
    encoded(messages, &[])["messages"].take()
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall::new(id, "read", arguments))
}

fn thought(codec: &str, text: &str, data: Value) -> Part {
    Part::Thinking { text: text.into(), opaque: Some(OpaqueData { codec: codec.into(), data }) }
}

fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

fn result(id: &str, text: &str, is_error: bool) -> ToolResult {
    ToolResult { call_id: id.into(), text: text.into(), is_error, images: Vec::new() }
}

fn text_part(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn tool() -> ToolDefinition {
    let parameters = json!({"type": "object"});
    ToolDefinition { name: "read".into(), description: "Reads.".into(), parameters: parameters.into() }
}

fn conversation() -> Vec<Message> {
    vec![
        Message::text(Role::System, "s"),
        Message::text(Role::User, "u"),
        assistant(vec![
            thought(CODEC, "hm", json!({"signature": "sig"})),
            thought(CODEC, "", json!({"data": "enc"})),
            text_part("t"),
            call("a", "{\"p\": 1}"),
            call("b", "{\"p\":"),
        ]),
        Message::tool_results(vec![result("a", "ok", false), result("b", "bad", true)]),
        Message::text(Role::User, "[SYSTEM] go on"),
    ]
}

#[test]
fn a_request_has_the_shape_the_format_wants() {
    assert_eq!(
        encoded(conversation(), &[tool()]),
        json!({
            "model": "m", "max_tokens": 9, "stream": true,
            "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
            "system": [{"type": "text", "text": "s"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "u"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "redacted_thinking", "data": "enc"},
                    {"type": "text", "text": "t"},
                    {"type": "tool_use", "id": "a", "name": "read", "input": {"p": 1}},
                    {"type": "tool_use", "id": "b", "name": "read", "input": {"invalid_json": "{\"p\":"}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "bad", "is_error": true},
                    {"type": "text", "text": "[SYSTEM] go on"}]},
            ]
        })
    );
}

#[test]
fn an_answer_always_has_a_limit() {
    let request = Request { messages: &[], tools: &[], stream: false, ..Request::default() };
    let body: Value = serde_json::from_slice(&bytes_of(&request, None)).unwrap();
    assert_eq!(
        body,
        json!({"model": "m", "max_tokens": DEFAULT_MAX_TOKENS, "stream": false, "messages": []})
    );
}

#[test]
fn a_history_with_calls_names_a_tool_even_when_none_may_be_called() {
    let body = encoded(conversation(), &[]);
    assert_eq!((&body["tools"][0]["name"], &body["tool_choice"]), (&json!("none"), &json!({"type": "none"})));
    assert_eq!(encoded(vec![Message::text(Role::User, "u")], &[]).get("tools"), None);
}

#[test]
fn reasoning_of_another_format_or_without_signature_is_dropped() {
    let parts = vec![
        thought("responses", "foreign", json!({"signature": "x"})),
        thought(CODEC, "unsigned", Value::Null),
        Part::Thinking { text: "bare".into(), opaque: None },
        text_part("t"),
    ];
    let expected = json!([{"role": "assistant", "content": [{"type": "text", "text": "t"}]}]);
    assert_eq!(sent(vec![assistant(parts)]), expected);
}

#[test]
fn a_message_neither_ends_with_reasoning_nor_holds_blank_text() {
    let own = || thought(CODEC, "hm", json!({"signature": "s"}));
    let messages = vec![
        Message::text(Role::User, "u"),
        assistant(vec![own(), text_part(" \n")]),
        Message::text(Role::User, "v"),
        assistant(vec![own(), text_part("t"), own()]),
    ];
    let blocks = |body: &Value| {
        let content = body["content"].as_array().unwrap().iter();
        content.map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let sent = sent(messages);
    let shapes: Vec<_> = sent.as_array().unwrap().iter().map(blocks).collect();
    assert_eq!(shapes, [vec!["text", "text"], vec!["thinking", "text"]]);
}

#[test]
fn foreign_ids_are_rewritten_alike_in_call_and_result() {
    let id = "functions.read:0";
    let sent = sent(vec![assistant(vec![call(id, "{}")]), Message::tool_results(vec![result(id, "", true)])]);
    let written = sent[0]["content"][0]["id"].as_str().unwrap();
    assert!(written.starts_with("functions_read_0_"), "{written}");
    // An error result without text is sent without `content` and `is_error`.
    assert_eq!(sent[1]["content"][0], json!({"type": "tool_result", "tool_use_id": written}));
}

#[test]
fn k12_a_longer_conversation_begins_with_the_same_bytes() {
    let messages: Vec<_> = conversation().into_iter().map(Arc::new).collect();
    let tools = [tool()];
    let long = Request { messages: &messages, tools: &tools, stream: true, ..Request::default() };
    let whole = bytes_of(&long, None);
    for length in 2..messages.len() {
        let short = bytes_of(&Request { messages: &messages[..length], ..long }, None);
        assert!(whole.starts_with(short.strip_suffix(b"]}]}").unwrap()), "{length}");
    }
}

#[test]
fn thinking_that_was_never_signed_goes_back_where_the_server_does_not_sign() {
    let opaque = Some(OpaqueData { codec: CODEC.into(), data: Value::Null });
    let parts = vec![Part::Thinking { text: "hm".into(), opaque }, Part::Text { text: "so".into() }];
    let message = Message { role: Role::Assistant, parts };
    let written = |unsigned_thinking| {
        let quirks = Quirks { unsigned_thinking, ..Quirks::default() };
        let mut json = Vec::new();
        AnthropicMessages { quirks }.write_message(&message, &[], None, &mut json).unwrap();
        String::from_utf8(json).unwrap()
    };
    assert!(
        written(true).contains("[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":\"text\""),
        "{}",
        written(true)
    );
    assert!(!written(false).contains("thinking"), "{}", written(false));
}

/// Encodes the first `count` messages of the conversation with a tool, cache breakpoints and `thinking`.
fn marked(count: usize, tools: &[ToolDefinition], thinking: Option<Thinking>, max_tokens: u32) -> Value {
    serde_json::from_slice(&marked_bytes(count, tools, thinking, max_tokens)).unwrap()
}

fn marked_bytes(
    count: usize,
    tools: &[ToolDefinition],
    thinking: Option<Thinking>,
    max_tokens: u32,
) -> Vec<u8> {
    let messages: Vec<_> = conversation().into_iter().take(count).map(Arc::new).collect();
    let caching = PromptCaching { use_session_key: true, use_breakpoints: true };
    let parameters = ModelParameters { model: "m".into(), thinking, caching, ..ModelParameters::default() };
    let codec = AnthropicMessages { quirks: Quirks::default() };
    let mut json = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        codec.write_message(message, &messages[..at], None, &mut json).unwrap();
    }
    let request = Request {
        messages: &messages,
        tools,
        max_output_tokens: Some(max_tokens),
        session: Some("s"),
        ..Request::default()
    };
    codec.encode(&request, &parameters, &json).unwrap()
}

/// Collects the positions of the cache breakpoints in `body`.
fn places(body: &Value, path: &str, found: &mut Vec<String>) {
    match body {
        Value::Object(members) => {
            for (name, value) in members {
                if name == "cache_control" {
                    assert_eq!(value, &json!({"type": "ephemeral"}));
                    found.push(path.to_owned());
                } else {
                    places(value, &format!("{path}/{name}"), found);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                places(item, &format!("{path}/{at}"), found);
            }
        }
        _ => {}
    }
}

fn marks_in(body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    places(body, "", &mut found);
    found
}

#[test]
fn k14_the_instructions_the_last_end_and_this_end_are_marked() {
    let first = marked(2, &[tool()], None, 9);
    assert_eq!(marks_in(&first), ["/system/0", "/messages/0/content/0"]);
    let second = marked(4, &[tool()], None, 9);
    let results = second["messages"][2]["content"].as_array().unwrap().len();
    let end = format!("/messages/2/content/{}", results - 1);
    assert_eq!(marks_in(&second), ["/system/0", "/messages/0/content/0", &end]);
}

#[test]
fn k14_a_closing_call_which_nothing_follows_is_not_written_to_the_cache() {
    assert_eq!(marks_in(&marked(4, &[], None, 9)), [""; 0]);
}

#[test]
fn k12_marks_aside_a_marked_request_is_the_request_without_marks() {
    let messages: Vec<_> = conversation().into_iter().map(Arc::new).collect();
    let plain = {
        let request = Request { messages: &messages, tools: &[tool()], ..Request::default() };
        String::from_utf8(bytes_of(&request, Some(9))).unwrap()
    };
    let marked = String::from_utf8(marked_bytes(messages.len(), &[tool()], None, 9)).unwrap();
    assert_eq!(marked.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", ""), plain);
}

#[test]
fn a_turn_that_began_without_thought_goes_on_without() {
    let thinks = |thought: &[Part]| {
        let called = assistant([thought, &[call("a", "{}")]].concat());
        let messages =
            [Message::text(Role::User, "u"), called, Message::tool_results(vec![result("a", "ok", false)])];
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let hook = [&messages[..], &[Arc::new(Message::text(Role::User, "[Hook context]: x"))]].concat();
        let more = [&hook[..], &[Arc::new(Message::text(Role::User, "next"))]].concat();
        [messages, hook, more].map(|messages| turn_began_with_thought(&messages, Quirks::default()))
    };
    assert_eq!(thinks(&[thought(CODEC, "hm", json!({"signature": "sig"}))]), [true; 3]);
    assert_eq!(thinks(&[]), [false, false, true]);
    assert_eq!(thinks(&[thought("gemini", "hm", json!({}))]), [false, false, true]);
}

#[test]
fn thinking_is_adaptive_or_has_a_budget_beside_the_answer() {
    let config = |thinking, max_tokens| {
        let body = marked(2, &[], Some(thinking), max_tokens);
        (body["thinking"].clone(), body["output_config"].clone())
    };
    let adaptive = (json!({"type": "adaptive", "display": "summarized"}), json!({"effort": "xhigh"}));
    assert_eq!(config(Thinking::Effort(Effort::Xhigh), 9), adaptive);
    assert_eq!(config(Thinking::Effort(Effort::None), 9), (json!({"type": "disabled"}), Value::Null));
    assert_eq!(config(Thinking::Budget(0), 9), (json!({"type": "disabled"}), Value::Null));
    let budget = |tokens| (json!({"type": "enabled", "budget_tokens": tokens}), Value::Null);
    assert_eq!(config(Thinking::Budget(8_192), 32_000), budget(8_192));
    assert_eq!(config(Thinking::Budget(8_192), 4_096), budget(2_048));
    assert_eq!(config(Thinking::Budget(8_192), 2_000), (Value::Null, Value::Null));
}
