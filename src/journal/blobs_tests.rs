//! Tests of the blob store: lines of long records are bounded, and the records are read back unchanged.

use super::*;
use crate::read::{self, JournalContents};
use crate::write::{encode, encode_with_blobs};
use agent_core::event::{EVENT_SCHEMA_VERSION, Event, FinishReason, Purpose};
use agent_core::message::{Message, OpaqueData, Part, Role, ToolCall, ToolResult};
use agent_core::run_result::{Output, RunResult, ToolUse};
use proptest::prelude::*;
use serde_json::json;
use std::fs;

fn record(event: Event) -> Record {
    Record { v: EVENT_SCHEMA_VERSION, seq: 7, run: "r".into(), step: 1, wall_ms: 1, mono_us: 2, event }
}

fn answer(parts: Vec<Part>) -> Event {
    Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message { role: Role::Assistant, parts },
        finish: FinishReason::Stop,
        usage: None,
        cost_usd: None,
        latency_ms: 1,
    }
}

fn ended(result: ToolResult) -> Event {
    Event::tool_not_run("grep".into(), "s".into(), result, Vec::new())
}

fn run_end(output: Output, tools: usize) -> Event {
    let failure = agent_core::failure::Failure {
        kind: agent_core::failure::FailureKind::Config,
        message: String::new(),
        retryable: false,
    };
    let mut result = RunResult::not_started(failure, None);
    let tool = ToolUse { name: "grep".into(), success: true, path: Some("a/b".into()), error: None };
    (result.output, result.tools_used) = (output, vec![tool; tools]);
    Event::RunEnd { result: Box::new(result) }
}

struct TestJournal {
    _dir: tempfile::TempDir,
    journal: PathBuf,
}

impl TestJournal {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { journal: dir.path().join("journal.jsonl"), _dir: dir }
    }

    /// Writes `records` and returns the length of the longest line.
    fn write(&self, records: &[Record]) -> usize {
        let mut bytes = Vec::new();
        for record in records {
            let mut line = Vec::new();
            encode_with_blobs(record, &BlobStore::for_journal(&self.journal), &mut line).unwrap();
            bytes.push(line);
        }
        fs::write(&self.journal, bytes.concat()).unwrap();
        bytes.iter().map(Vec::len).max().unwrap_or_default()
    }

    fn read(&self) -> JournalContents {
        read::read(&self.journal).unwrap()
    }

    fn blob_files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.journal.with_file_name("texts")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }
}

#[test]
fn o10_every_kind_of_long_record_has_a_short_line_and_is_read_as_it_was() {
    let long = "line \u{e9}\u{1}\n".repeat(10_000);
    let call = |at: usize, text: &str| {
        let opaque = OpaqueData { codec: "c".into(), data: json!({"a/b": vec![text; 9], "c": {"~": text}}) };
        let (id, arguments) = (format!("call {at}"), json!({"path": text}).to_string());
        Part::ToolCall(ToolCall::new(id, "write_file", arguments).with_opaque(Some(opaque)))
    };
    let result = ToolResult { call_id: "a".into(), text: long.clone(), is_error: false, images: Vec::new() };
    let events = [
        Event::user_message(long.clone(), agent_core::event::MessageOrigin::Prompt),
        ended(result),
        answer((0..100).map(|at| call(at, "x")).collect()),
        answer(vec![Part::Text { text: long.clone() }, call(0, &long)]),
        run_end(Output::Text(long.clone()), 5_000),
        run_end(Output::Value(json!({"a": vec![json!({"b": 1}); 5_000]})), 1),
    ];
    let records: Vec<Record> = events.into_iter().map(record).collect();
    let fixture = TestJournal::new();
    let longest = fixture.write(&records);
    assert!(longest <= MAX_INLINE_RECORD_BYTES, "{longest}");
    assert_eq!(fixture.read(), JournalContents { records, ..JournalContents::default() });
}

#[test]
fn what_is_short_is_in_its_line_alone() {
    let fixture = TestJournal::new();
    let record = record(Event::user_message("x".repeat(9_000), agent_core::event::MessageOrigin::Prompt));
    fixture.write(std::slice::from_ref(&record));
    let mut line = Vec::new();
    encode(&record, &mut line).unwrap();
    assert_eq!(fs::read(&fixture.journal).unwrap(), line);
    assert_eq!(fixture.blob_files(), Vec::<PathBuf>::new());
}

#[test]
fn a_text_that_is_missing_or_altered_is_told_and_one_that_is_no_text_damages_its_record() {
    let result = ToolResult {
        call_id: "a".into(),
        text: "alpha ".repeat(40_000),
        is_error: false,
        images: Vec::new(),
    };
    let records = [record(ended(result)), record(Event::StepEnd)];
    let alterations: [fn(&Path); 4] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::write(path, "\"another\"").unwrap(),
        |path| File::options().write(true).open(path).unwrap().set_len(100).unwrap(),
        |path| {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/etc/passwd", path).unwrap();
        },
    ];
    for alter in alterations {
        let fixture = TestJournal::new();
        fixture.write(&records);
        alter(&fixture.blob_files()[0]);
        let reading = fixture.read();
        assert_eq!((reading.records.len(), &reading.incomplete[..], reading.damaged.len()), (2, &[1][..], 0));
        let Event::ToolCallEnd { result, .. } = &reading.records[0].event else { panic!() };
        assert!(result.text.starts_with("alpha alpha") && result.text.len() < 600, "{}", result.text);
        assert!(result.text.contains("is missing from the files of this session"), "{}", result.text);
    }
    let fixture = TestJournal::new();
    fixture.write(&[record(run_end(Output::Text(String::new()), 5_000)), record(Event::StepEnd)]);
    fs::remove_file(&fixture.blob_files()[0]).unwrap();
    let reading = fixture.read();
    assert_eq!((reading.records.len(), &reading.damaged[..]), (1, &[1][..]));
}

#[test]
fn places_lead_nowhere_else() {
    let fixture = TestJournal::new();
    fs::write(fixture.journal.with_file_name("secret.json"), "\"secret\"").unwrap();
    fs::create_dir(fixture.journal.with_file_name("texts")).unwrap();
    let texts = BlobStore::for_journal(&fixture.journal);
    for hash in ["../secret", "", "/etc/passwd", &"g".repeat(64), &"0".repeat(63)] {
        let mut value = json!({"event": {"text": "begins"}});
        let places = vec![("/event/text".to_owned(), hash.to_owned())];
        assert_eq!(texts.restore_blobs(&mut value, &places), Some(false), "{hash}");
        assert!(!value.to_string().contains("secret\""), "{value}");
    }
    let nowhere = vec![("/event/other".to_owned(), "0".repeat(64))];
    assert_eq!(texts.restore_blobs(&mut json!({"event": {}}), &nowhere), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn whatever_an_answer_holds_its_line_is_bounded_and_it_is_read_as_it_was(
        texts in prop::collection::vec(("\\PC{0,20}", 0usize..3_000), 0..20),
    ) {
        let parts = texts.iter().map(|(text, times)| Part::Text { text: text.repeat(*times) }).collect();
        let records = vec![record(answer(parts))];
        let fixture = TestJournal::new();
        prop_assert!(fixture.write(&records) <= MAX_INLINE_RECORD_BYTES);
        prop_assert_eq!(fixture.read(), JournalContents { records, ..JournalContents::default() });
    }
}
