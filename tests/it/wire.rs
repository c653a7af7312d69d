//! The streams of `tests/wire`, decoded whole and cut in two at every byte. The first comments of each name its source
//! and what must come of it.

use agent::llm::chat_completions::answer::{Answer, Surroundings};
use agent::llm::framing::SseDecoder;
use agent::llm::{LlmError, Response};
use agent::message::{Message, Part};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::path::Path;

fn decode(pieces: &[&[u8]]) -> Result<Response, LlmError> {
    let mut decoder = SseDecoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece, &mut events).unwrap();
    }
    decoder.finish(&mut events).unwrap();
    let mut answer = Answer::new(true);
    for event in events {
        answer.event(&event, &mut |_| {})?;
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
        if path.extension().is_none_or(|extension| extension != "sse") {
            continue;
        }
        seen += 1;
        let bytes = std::fs::File::open(&path)
            .and_then(|file| {
                std::io::Read::bytes(std::io::BufReader::new(file)).collect::<Result<Vec<u8>, _>>()
            })
            .unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let expected = text.split(['\r', '\n']).find_map(|line| line.strip_prefix(": expect: ")).unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap();
        for cut in 0..=bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(summary(decode(&[front, back])), expected, "{} cut at {cut}", path.display());
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(summary(decode(&single)), expected, "{} byte by byte", path.display());
    }
    assert!(seen >= 15, "only {seen} streams found");
}
