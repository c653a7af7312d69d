//! The stream of `--output-format stream-json`: each event as a line of JSON on standard output.
//!
//! A slow reader does not delay the run; the queue of lines is bounded. Pieces of responses are
//! dropped first, because the whole response follows; a line reports how many events were dropped.

use super::json;
use super::line_writer::{LineWriter, LineWriterGuard, MAX_WAITING};
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::run_result::RunResult;
use agent_terminal::Terminal;
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::sync::Arc;

/// Maximum queued bytes before pieces of responses are dropped.
const MAX_WAITING_PIECES: usize = 1 << 20;

/// A line of the stream.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StreamLine<'a> {
    /// An event.
    Event(EventLine<'a>),
    /// A number of events were dropped here because the reader was too slow.
    Missed(MissedLine),
    /// The result; the last line of every stream.
    Result(ResultLine<'a>),
}

/// An event, with the fields of its record.
#[derive(Serialize, JsonSchema)]
pub struct EventLine<'a> {
    /// The event; `type` is its kind.
    #[serde(flatten)]
    event: &'a Event,
    /// Version of this schema.
    v: u32,
    /// Sequence number of the record in the session, from 0 without gaps; a piece of a response has the number of the next
    /// record.
    seq: u64,
    /// Id of the run (one process's work on the session).
    run: &'a str,
    /// Step of the run; 0 before the first.
    step: u32,
    /// Wall clock, milliseconds since the Unix epoch.
    wall_ms: u64,
    /// Monotonic clock, microseconds since the process started.
    mono_us: u64,
}

/// Number of events dropped since the previous line.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename = "missed")]
pub struct MissedLine {
    /// Number of events, including pieces of responses.
    events: u64,
}

/// The document of `--json`.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename = "result")]
pub struct ResultLine<'a> {
    /// Keys of the document.
    #[serde(flatten)]
    result: &'a RunResult,
}

impl<'a> From<&'a Record> for StreamLine<'a> {
    fn from(record: &'a Record) -> Self {
        let Record { v, seq, ref run, step, wall_ms, mono_us, ref event } = *record;
        Self::Event(EventLine { event, v, seq, run, step, wall_ms, mono_us })
    }
}

/// Returns the last line of a stream.
///
/// # Errors
/// When the result cannot be serialized, which cannot happen for its types.
pub fn last_line(result: &RunResult) -> io::Result<String> {
    json::line(&StreamLine::Result(ResultLine { result }))
}

/// Selects the lines that a slow reader gets.
#[derive(Default)]
pub struct SlowReader {
    missed: u64,
}

impl SlowReader {
    /// Returns the lines for `record` while `waiting` bytes are queued for the reader. The end of a run has none: the result
    /// replaces it.
    pub fn lines<'r>(&mut self, record: &'r Record, waiting: usize) -> impl Iterator<Item = StreamLine<'r>> {
        let limit = if record.event.is_delta() { MAX_WAITING_PIECES } else { MAX_WAITING };
        let is_line = !matches!(record.event, Event::RunEnd { .. });
        let is_sent = is_line && waiting <= limit;
        if is_line && !is_sent {
            self.missed = self.missed.saturating_add(1);
        }
        let events = if is_sent { std::mem::take(&mut self.missed) } else { 0 };
        let missed = (events > 0).then_some(StreamLine::Missed(MissedLine { events }));
        missed.into_iter().chain(is_sent.then(|| record.into()))
    }
}

/// Event sink that writes every event except the last; the result line replaces it.
pub struct JsonStream {
    lines: LineWriter,
    reader: SlowReader,
}

impl JsonStream {
    /// Starts a stream on standard output.
    pub fn start(terminal: Arc<Terminal>) -> (Self, LineWriterGuard) {
        let (lines, end) = LineWriter::start(terminal);
        (Self { lines, reader: SlowReader::default() }, end)
    }
}

impl EventSink for JsonStream {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        let lines = self.reader.lines(record, self.lines.waiting());
        for line in lines {
            self.lines.send(json::line(&line)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::script;
    use super::*;
    use agent_terminal::{StreamInfo, TerminalEnvironment};
    use serde_json::Value;
    use std::io::Write;
    use std::sync::{Condvar, Mutex};

    fn lines(text: &str) -> Vec<Value> {
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn o09_every_event_but_the_end_is_a_line_with_its_type_and_place() {
        let (terminal, out, _) = script::pipe();
        let (mut stream, end) = JsonStream::start(terminal);
        let records = script::run();
        for record in &records {
            stream.emit(record).unwrap();
        }
        drop(end);
        let lines = lines(&out.text());
        assert_eq!(lines.len(), records.len() - 1);
        for (line, record) in lines.iter().zip(&records) {
            let mut expected = serde_json::to_value(record).unwrap();
            let event = expected.as_object_mut().unwrap().remove("event").unwrap();
            expected.as_object_mut().unwrap().extend(event.as_object().unwrap().clone());
            assert_eq!(line, &expected);
        }
    }

    /// A reader that blocks until it is released.
    #[derive(Clone, Default)]
    struct Stopped(Arc<(Mutex<bool>, Condvar)>, script::CapturedStream);

    impl Write for Stopped {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (goes, changed) = &*self.0;
            drop(changed.wait_while(goes.lock().unwrap(), |goes| !*goes).unwrap());
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn o09_a_reader_that_stops_holds_nothing_up_and_is_told_what_it_missed() {
        let reader = Stopped::default();
        let terminal = Terminal::with_streams(
            StreamInfo::default(),
            &TerminalEnvironment::default(),
            Box::new(reader.clone()),
            Box::<Vec<u8>>::default(),
        );
        let (mut stream, end) = JsonStream::start(Arc::new(terminal));
        let piece = script::record(1, Event::TextDelta { text: "x".repeat(1000) });
        for _ in 0..5_000 {
            stream.emit(&piece).unwrap();
        }
        assert!(stream.lines.waiting() < MAX_WAITING_PIECES + 2_000);
        let missed = stream.reader.missed;
        stream.emit(&script::record(1, Event::StepEnd)).unwrap();
        *reader.0.0.lock().unwrap() = true;
        reader.0.1.notify_all();
        drop(end);
        let lines = lines(&reader.1.text());
        let (last, before) = lines.split_last().unwrap();
        assert_eq!(last["type"], "step_end");
        assert_eq!(before.last().unwrap(), &serde_json::json!({"type": "missed", "events": missed}));
        assert_eq!(before.len() as u64 - 1 + missed, 5_000);
    }

    #[test]
    fn o09_a_reader_that_has_gone_ends_the_stream_and_nothing_else() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let terminal = Terminal::with_streams(
            StreamInfo::default(),
            &TerminalEnvironment::default(),
            Box::new(Gone),
            Box::<Vec<u8>>::default(),
        );
        let (mut stream, end) = JsonStream::start(Arc::new(terminal));
        stream.emit(&script::record(1, Event::StepEnd)).unwrap();
        drop(end);
        assert_eq!(
            stream.emit(&script::record(1, Event::StepEnd)).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }

    #[test]
    fn o09_the_last_line_is_the_document() {
        let result = RunResult::not_started(
            agent_core::failure::Failure {
                kind: agent_core::failure::FailureKind::Usage,
                message: "no".to_owned(),
                retryable: false,
            },
            None,
        );
        let mut line: Value = serde_json::from_str(&last_line(&result).unwrap()).unwrap();
        assert_eq!(line.as_object_mut().unwrap().remove("type"), Some("result".into()));
        assert_eq!(line, serde_json::to_value(&result).unwrap());
    }
}
