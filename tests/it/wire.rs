//! The answers of `tests/wire`, decoded whole, the streams also cut in two at every byte. The first comments of each name its source,
//! the fault it shows (Fault D1 to D7), its format (Chat Completions where none is named), its status if that is an error, how its server
//! differs, and what must come of it.
//! Lines and whole bodies have no comments, so there these stand before what was sent and are not part of it.

use agent_core::message::{Message, Part};
use agent_core::usage::Usage;
use agent_llm::codec::Codec;
use agent_llm::framing::{FrameDecoder, Framing};
use agent_llm::quirks::Quirks;
use agent_llm::response_builder::{FinishContext, ResponseBuilder};
use agent_llm::response_reader::ResponseReader;
use agent_llm::tagged_call::TaggedCallParser;
use agent_llm::wire_format::WireFormat;
use agent_llm::{LlmError, Progress, Response, ToolDefinition};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::path::Path;

/// The tools that every answer may call.
fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "".into(),
        parameters: json!({"properties": {"path": {"type": "string"}}}).into(),
    };
    ["list", "read", "write"].map(tool).into()
}

/// The events of a stream that arrives in these pieces.
fn events(codec: &dyn Codec, pieces: &[&[u8]]) -> Vec<String> {
    let mut frames = FrameDecoder::new(codec.framing());
    let mut events = Vec::new();
    for piece in pieces {
        frames.push(piece, &mut events).unwrap();
    }
    frames.finish(&mut events).unwrap();
    events
}

/// The answer in a body, which is a stream if one was requested.
fn decode(codec: &dyn Codec, body: &[u8], is_stream: bool) -> Result<Response, LlmError> {
    let tools = tools();
    let mut show = |_: Progress<'_>| {};
    let mut answer = ResponseBuilder::new(codec.name(), true, &mut show);
    if codec.accepts_tagged_calls() {
        answer = answer.with_tagged_calls(TaggedCallParser::new(&tools));
    }
    let mut reader = ResponseReader::new(codec, is_stream);
    reader.push(body, &mut answer)?;
    reader.finish(&mut answer)?;
    let made = Cell::new(0);
    let new_id = || {
        made.set(made.get() + 1);
        format!("made_{}", made.get())
    };
    let context = FinishContext {
        is_offered: &|name| tools.iter().any(|tool| tool.name == name),
        is_echo: &|_| false,
        is_structured_answer: &|_| false,
        new_id: &new_id,
    };
    answer.finish(&context)
}

/// The outcome in the form of the fixtures' expectations.
fn summary(outcome: Result<Response, LlmError>) -> Value {
    let response = match outcome {
        Ok(response) => response,
        Err(error) => return error_summary(&error),
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
    summary.extend(response.usage.map(usage));
    Value::Object(summary)
}

fn error_summary(error: &LlmError) -> Value {
    let mut summary = Map::from_iter([("error".into(), json!(error.kind))]);
    if error.retryable != LlmError::new(error.kind, "").retryable {
        summary.insert("retryable".into(), json!(error.retryable));
    }
    summary.extend(error.usage.map(usage));
    Value::Object(summary)
}

fn usage(usage: Usage) -> (String, Value) {
    ("usage".into(), json!([usage.input, usage.cached_read, usage.output]))
}

fn thinking(message: &Message) -> Option<&str> {
    message.parts.iter().find_map(|part| match part {
        Part::Thinking { text, .. } => Some(text.as_str()),
        Part::Image(_) | Part::Text { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    })
}

/// A file of `tests/wire`.
struct Fixture {
    name: String,
    text: String,
    /// Whether its comments are part of it.
    sse: bool,
}

impl Fixture {
    /// All files of one of these kinds, sorted.
    fn all(kinds: &[&str]) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
        let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
        let wanted =
            paths.filter(|path| kinds.iter().any(|kind| path.extension().is_some_and(|is| is == *kind)));
        let mut all: Vec<_> = wanted
            .map(|path| Self {
                name: path.file_name().unwrap().to_string_lossy().into_owned(),
                text: std::fs::File::open(&path).and_then(std::io::read_to_string).unwrap(),
                sse: path.extension().is_some_and(|is| is == "sse"),
            })
            .collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn header(&self, name: &str) -> Option<&str> {
        let start = format!(": {name}: ");
        self.text.split(['\r', '\n']).find_map(|line| line.strip_prefix(&start))
    }

    fn expected(&self) -> Value {
        serde_json::from_str(self.header("expect").unwrap()).unwrap()
    }

    fn codec(&self) -> Box<dyn Codec> {
        let format = self.header("format").unwrap_or("chat_completions");
        let format: WireFormat = serde_json::from_value(json!(format)).unwrap();
        format.codec(
            self.header("quirks")
                .map_or_else(Quirks::default, |quirks| serde_json::from_str(quirks).unwrap()),
        )
    }

    /// What the server sent.
    fn bytes(&self) -> &[u8] {
        let mut bytes = self.text.as_bytes();
        while !self.sse && bytes.starts_with(b": ") {
            bytes = &bytes[bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1..];
        }
        bytes
    }
}

#[test]
fn o07_known_streams_decode_the_same_however_they_are_cut() {
    let fixtures = Fixture::all(&["sse", "ndjson"]);
    assert!(fixtures.len() >= 85, "only {} streams found", fixtures.len());
    for fixture in fixtures {
        let (codec, expected, bytes) = (fixture.codec(), fixture.expected(), fixture.bytes());
        assert_eq!(codec.framing() == Framing::Sse, fixture.sse, "{}", fixture.name);
        let whole = events(codec.as_ref(), &[bytes]);
        assert_eq!(summary(decode(codec.as_ref(), bytes, true)), expected, "{}", fixture.name);
        for cut in 0..=bytes.len() {
            let (front, back) = bytes.split_at(cut);
            assert_eq!(events(codec.as_ref(), &[front, back]), whole, "{} cut at {cut}", fixture.name);
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(events(codec.as_ref(), &single), whole, "{} byte by byte", fixture.name);
    }
}

#[test]
fn known_bodies_decode_to_what_they_mean() {
    for fixture in Fixture::all(&["body"]) {
        let (codec, expected) = (fixture.codec(), fixture.expected());
        if let Some(status) = fixture.header("status") {
            let error = codec.status_error(status.parse().unwrap(), fixture.bytes());
            assert_eq!(error_summary(&error), expected, "{}", fixture.name);
            continue;
        }
        // Fault D2: servers send white space while a request waits, more than is read to detect the kind of a body.
        for before in [String::new(), "\n         ".repeat(60), format!("\u{feff}{}", " ".repeat(600))] {
            let body = [before.as_bytes(), fixture.bytes()].concat();
            let decoded = summary(decode(codec.as_ref(), &body, false));
            assert_eq!(decoded, expected, "{} after {} bytes", fixture.name, before.len());
        }
    }
}

#[test]
fn the_table_of_quirks_names_every_fixture_and_only_those() {
    let table = include_str!("../wire/README.md");
    let fixtures = Fixture::all(&["sse", "ndjson", "body"]);
    for fixture in &fixtures {
        assert!(
            table.contains(&format!("`{}`", fixture.name)),
            "{} is not in tests/wire/README.md",
            fixture.name
        );
    }
    let named =
        table.split('`').filter(|word| [".sse", ".ndjson", ".body"].iter().any(|end| word.ends_with(end)));
    for name in named {
        assert!(fixtures.iter().any(|fixture| fixture.name == name), "{name} is not in tests/wire");
    }
}
