//! Tests of encoding requests from conversations of any provider.

use super::super::opaque::CODEC;
use super::*;
use agent_core::message::OpaqueData;
use serde_json::json;

fn written(messages: &[Arc<Message>]) -> Vec<u8> {
    let mut json = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        Gemini.write_message(message, &messages[..at], None, &mut json).unwrap();
    }
    json
}

fn bytes_of(request: &Request<'_>, temperature: Option<f64>) -> Vec<u8> {
    let parameters = ModelParameters { model: "m".into(), temperature, ..ModelParameters::default() };
    let request = &Request { max_output_tokens: temperature.map(|_| 9), ..*request };
    Gemini.encode(request, &parameters, &written(request.messages)).unwrap()
}

fn contents(messages: Vec<Message>) -> Value {
    let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
    let request = Request { messages: &messages, tools: &[], stream: true, ..Request::default() };
    let body: Value = serde_json::from_slice(&bytes_of(&request, None)).unwrap();
    body["contents"].clone()
}

fn opaque(codec: &str, data: Value) -> OpaqueData {
    OpaqueData { codec: codec.into(), data }
}

fn call(id: &str, arguments: &str, opaque: impl Into<Option<OpaqueData>>) -> Part {
    Part::ToolCall(ToolCall::new(id, "read", arguments).with_opaque(opaque))
}

fn assistant(parts: Vec<Part>) -> Message {
    Message { role: Role::Assistant, parts }
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn thinking(text: &str, opaque: impl Into<Option<OpaqueData>>) -> Part {
    Part::Thinking { text: text.into(), opaque: opaque.into() }
}

fn result(id: &str, is_error: bool) -> ToolResult {
    ToolResult { call_id: id.into(), text: "ok\u{1b}".into(), is_error, images: Vec::new() }
}

fn history() -> Vec<Arc<Message>> {
    let signed = opaque(CODEC, json!({"id": "g1", "thoughtSignature": "s"}));
    let unsigned = opaque(CODEC, json!({}));
    vec![
        Message::text(Role::System, "s"),
        Message::text(Role::User, "u"),
        assistant(vec![call("a", "{\"p\": 1}", signed), call("b", "{\"p\":", unsigned)]),
        Message::tool_results(vec![result("a", false), result("b", true)]),
    ]
    .into_iter()
    .map(Arc::new)
    .collect()
}

#[test]
fn a_request_has_the_shape_the_format_wants() {
    let tools = [ToolDefinition {
        name: "read".into(),
        description: "Reads.".into(),
        parameters: json!({"a": 1}).into(),
    }];
    let history = history();
    let request = Request { messages: &history, tools: &tools, stream: true, ..Request::default() };
    let body: Value = serde_json::from_slice(&bytes_of(&request, Some(0.5))).unwrap();
    assert_eq!(
        body,
        json!({
            "systemInstruction": {"parts": [{"text": "s"}]},
            "tools": [{"functionDeclarations":
                [{"name": "read", "description": "Reads.", "parametersJsonSchema": {"a": 1}}]}],
            "generationConfig": {"temperature": 0.5, "maxOutputTokens": 9},
            "contents": [
                {"role": "user", "parts": [{"text": "u"}]},
                {"role": "model", "parts": [
                    {"functionCall": {"id": "g1", "name": "read", "args": {"p": 1}}, "thoughtSignature": "s"},
                    {"functionCall": {"name": "read", "args": {"invalid_json": "{\"p\":"}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "g1", "name": "read", "response": {"output": "ok\u{1b}"}}},
                    {"functionResponse": {"name": "read", "response": {"error": "ok\u{1b}"}}}]},
            ]
        })
    );
}

#[test]
fn absent_settings_are_omitted() {
    let messages = [Arc::new(Message::text(Role::User, "u"))];
    let request = Request { messages: &messages, tools: &[], stream: true, ..Request::default() };
    let body = String::from_utf8(bytes_of(&request, None)).unwrap();
    assert_eq!(body, r#"{"generationConfig":{},"contents":[{"role":"user","parts":[{"text":"u"}]}]}"#);
}

#[test]
fn signatures_go_back_on_the_part_on_which_they_came() {
    let signature = |on: &str| opaque(CODEC, json!({"thoughtSignature": on, "on": on}));
    let message = assistant(vec![
        thinking("hm", signature("thought")),
        thinking("left out", opaque(CODEC, Value::Null)),
        text("a"),
        text("b"),
        thinking("", signature("text")),
        thinking("", signature("nothing")),
    ]);
    assert_eq!(
        contents(vec![message])[0]["parts"],
        json!([
            {"text": "hm", "thought": true, "thoughtSignature": "thought"},
            {"text": "a"},
            {"text": "b", "thoughtSignature": "text"},
            {"text": "", "thoughtSignature": "nothing"},
        ])
    );
}

#[test]
fn a_signature_whose_text_is_gone_is_still_sent() {
    let signature = thinking("", opaque(CODEC, json!({"thoughtSignature": "s", "on": "text"})));
    let parts = contents(vec![assistant(vec![signature])])[0]["parts"].clone();
    assert_eq!(parts, json!([{"text": "", "thoughtSignature": "s"}]));
}

#[test]
fn what_another_provider_made_is_accepted() {
    let foreign = || opaque("messages", json!({"thoughtSignature": "x", "id": "y", "on": "thought"}));
    let parts =
        vec![thinking("hm", foreign()), call("functions.read:0", "{}", foreign()), call("b", "{}", None)];
    let sent =
        contents(vec![assistant(parts), Message::tool_results(vec![result("functions.read:0", false)])]);
    assert_eq!(
        sent,
        json!([
            {"role": "model", "parts": [
                {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": NO_SIGNATURE},
                {"functionCall": {"name": "read", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "ok\u{1b}"}}}]},
        ])
    );
}

#[test]
fn a_message_of_which_nothing_may_be_sent_is_left_out() {
    let user = |text: &str| Message::text(Role::User, text);
    let sent = contents(vec![user("a"), assistant(vec![text(""), thinking("hm", None)]), user("b")]);
    assert_eq!(sent.as_array().map(Vec::len), Some(2));
}

#[test]
fn a_result_without_its_call_has_a_name_all_the_same() {
    let sent = contents(vec![Message::tool_results(vec![result("gone", false)])]);
    assert_eq!(sent[0]["parts"][0]["functionResponse"]["name"], UNKNOWN_TOOL);
}

#[test]
fn k12_a_longer_history_begins_with_the_same_bytes() {
    let history = history();
    let short = Request { messages: &history[..2], tools: &[], stream: true, ..Request::default() };
    let long = Request { messages: &history, ..short };
    let (short, long) = (bytes_of(&short, None), bytes_of(&long, None));
    assert!(long.starts_with(short.strip_suffix(b"]}").unwrap()));
}

#[test]
fn a_model_is_a_resource_and_nothing_else() {
    for (model, path) in [
        ("gemini-3-pro", "models/gemini-3-pro"),
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/mine", "tunedModels/mine"),
        ("../x?key=1#é", "models/..%2Fx%3Fkey%3D1%23%C3%A9"),
    ] {
        assert_eq!(resource(model), path);
    }
}
