//! The streams of `tests/wire`, decoded whole and cut in two at every byte. The first comments of each name its source,
//! its format (Chat Completions where none is named) and what must come of it. Lines have no comments, so in a file of
//! lines these stand before the stream and are not part of it.

use agent::llm::answer::{Answer, Surroundings};
use agent::llm::codec::Codec;
use agent::llm::format::Format;
use agent::llm::framing::{FrameDecoder, Framing};
use agent::llm::quirks::Quirks;
use agent::llm::{LlmError, Response};
use agent::message::{Message, Part};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::path::Path;

fn decode(codec: &dyn Codec, pieces: &[&[u8]]) -> Result<Response, LlmError> {
    let mut frames = FrameDecoder::new(codec.framing());
    let mut events = Vec::new();
    for piece in pieces {
        frames.push(piece, &mut events).unwrap();
    }
    frames.finish(&mut events).unwrap();
    let mut answer = Answer::new(codec.name(), true);
    let mut decoder = codec.decoder();
    for event in events {
        if !answer.is_complete() {
            decoder.event(&event, &mut answer, &mut |_| {})?;
        }
    }
    let made = Cell::new(0);
    let new_id = || {
        made.set(made.get() + 1);
        format!("made_{}", made.get())
    };
    let surroundings = Surroundings { offered: &|_| true, taken: &|_| false, new_id: &new_id };
    answer.finish(&surroundings, &mut |_| {})
}

/// The outcome in the form of the fixtures' expectations.
fn summary(outcome: Result<Response, LlmError>) -> Value {
    let response = match outcome {
        Ok(response) => response,
        Err(error) => return json!({"error": error.kind}),
    };
    let mut summary = Map::new();
    summary.insert("text".into(), json!(response.message.joined_text()));
    if let Some(thinking) = thinking(&response.message) {
        summary.insert("thinking".into(), json!(thinking));
    }
    let calls: Vec<_> =
        response.message.tool_calls().map(|call| json!([call.id, call.name, call.arguments])).collect();
    if !calls.is_empty() {
        summary.insert("calls".into(), json!(calls));
    }
    summary.insert("finish".into(), json!(response.finish));
    if let Some(usage) = response.usage {
        summary.insert("usage".into(), json!([usage.input, usage.cached_read, usage.output]));
    }
    Value::Object(summary)
}

fn thinking(message: &Message) -> Option<&str> {
    message.parts.iter().find_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    })
}

#[test]
fn o07_known_streams_decode_the_same_however_they_are_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let mut seen = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let lines = path.extension().is_some_and(|extension| extension == "ndjson");
        if !lines && path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        seen += 1;
        let text = std::fs::File::open(&path).and_then(std::io::read_to_string).unwrap();
        let header = |name: &str| {
            let start = format!(": {name}: ");
            text.split(['\r', '\n']).find_map(|line| line.strip_prefix(&start))
        };
        let expected: Value = serde_json::from_str(header("expect").unwrap()).unwrap();
        let format: Format =
            serde_json::from_value(json!(header("format").unwrap_or("chat_completions"))).unwrap();
        let codec = format.codec(Quirks::default());
        assert_eq!(codec.framing() == Framing::Ndjson, lines, "{}", path.display());
        let mut bytes = text.as_bytes();
        while lines && bytes.starts_with(b": ") {
            bytes = &bytes[bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1..];
        }
        for cut in 0..=bytes.len() {
            let (front, back) = bytes.split_at(cut);
            let decoded = decode(codec.as_ref(), &[front, back]);
            assert_eq!(summary(decoded), expected, "{} cut at {cut}", path.display());
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(summary(decode(codec.as_ref(), &single)), expected, "{} byte by byte", path.display());
    }
    assert!(seen >= 15, "only {seen} streams found");
}
