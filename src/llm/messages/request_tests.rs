//! What a conversation becomes on the wire.

use super::*;
use crate::message::Opaque;
use serde_json::json;

fn bytes_of(request: &Request<'_>, max_output_tokens: Option<u32>) -> Vec<u8> {
    let parameters = Parameters { model: "m".into(), ..Parameters::default() };
    let request = &Request { max_output_tokens, ..*request };
    let mut json = Vec::new();
    for (at, message) in request.messages.iter().enumerate() {
        write_message(message, &request.messages[..at], Quirks::default(), &mut json).unwrap();
    }
    encode(request, &parameters, &json).unwrap()
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
    Part::ToolCall(ToolCall { id: id.into(), name: "read".into(), arguments: arguments.into(), opaque: None })
}

fn thought(codec: &str, text: &str, data: Value) -> Part {
    Part::Thinking { text: text.into(), opaque: Some(Opaque { codec: codec.into(), data }) }
}

fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

fn result(id: &str, text: &str, is_error: bool) -> ToolResult {
    ToolResult { call_id: id.into(), text: text.into(), is_error }
}

fn text_part(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn tool() -> ToolDefinition {
    let parameters = json!({"type": "object"});
    ToolDefinition { name: "read".into(), description: "Reads.".into(), parameters }
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
        Message::results(vec![result("a", "ok", false), result("b", "bad", true)]),
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
    let sent = sent(vec![assistant(vec![call(id, "{}")]), Message::results(vec![result(id, "", true)])]);
    let written = sent[0]["content"][0]["id"].as_str().unwrap();
    assert!(written.starts_with("functions_read_0_"), "{written}");
    // An error without words is sent as neither.
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
    let opaque = Some(Opaque { codec: CODEC.into(), data: Value::Null });
    let parts = vec![Part::Thinking { text: "hm".into(), opaque }, Part::Text { text: "so".into() }];
    let message = Message { role: Role::Assistant, parts };
    let written = |unsigned_thinking| {
        let quirks = Quirks { unsigned_thinking, ..Quirks::default() };
        let mut json = Vec::new();
        write_message(&message, &[], quirks, &mut json).unwrap();
        String::from_utf8(json).unwrap()
    };
    assert!(
        written(true).contains("[{\"type\":\"thinking\",\"thinking\":\"hm\"},{\"type\":\"text\""),
        "{}",
        written(true)
    );
    assert!(!written(false).contains("thinking"), "{}", written(false));
}
