//! The streams of `tests/wire`, decoded whole and cut in two at every byte. The first comments of each name its source,
//! its format (Chat Completions where none is named), how its server differs, and what must come of it. Lines and whole
//! bodies have no comments, so there these stand before what was sent and are not part of it.

use agent::core::message::{Message, Part};
use agent::llm::codec::{Codec, Decoder};
use agent::llm::framing::{FrameDecoder, Framing};
use agent::llm::quirks::Quirks;
use agent::llm::response_builder::{FinishContext, ResponseBuilder};
use agent::llm::tagged_call::TaggedCallParser;
use agent::llm::wire_format::WireFormat;
use agent::llm::{LlmError, Progress, Response, ToolDefinition};
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

fn decode(codec: &dyn Codec, events: &[String]) -> Result<Response, LlmError> {
    finished(codec, |decoder, answer| {
        events.iter().try_for_each(|event| {
            if answer.is_complete() { Ok(()) } else { decoder.decode_event(event, answer) }
        })
    })
}

/// The answer that `feed` makes.
fn finished(
    codec: &dyn Codec,
    feed: impl FnOnce(&mut dyn Decoder, &mut ResponseBuilder<'_>) -> Result<(), LlmError>,
) -> Result<Response, LlmError> {
    let tools = tools();
    let mut show = |_: Progress<'_>| {};
    let mut answer = ResponseBuilder::new(codec.name(), true, &mut show);
    if codec.accepts_tagged_calls() {
        answer = answer.with_tagged_calls(TaggedCallParser::new(&tools));
    }
    feed(codec.decoder().as_mut(), &mut answer)?;
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
        assert_eq!(summary(decode(codec.as_ref(), &whole)), expected, "{}", fixture.name);
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
        let codec = fixture.codec();
        let decoded =
            finished(codec.as_ref(), |decoder, answer| decoder.decode_body(fixture.bytes(), answer));
        assert_eq!(summary(decoded), fixture.expected(), "{}", fixture.name);
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
