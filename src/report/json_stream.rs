//! The stream of `--output-format stream-json`: every event as a line of JSON on standard output, as it happens.
//!
//! A reader that is slow does not hold the run up: a thread writes what is waiting, and what waits is bounded. Pieces of
//! answers give way first, because the whole answer follows; a line says how many events a reader has missed.

use super::json;
use crate::core::event::{Event, EventSink, Record};
use crate::core::run_result::RunResult;
use crate::terminal::{PrintOutcome, Terminal};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Bytes that may wait for the reader before an event is left out: some thousand steps.
const MAX_WAITING: usize = 64 << 20;

/// Bytes that may wait before pieces of answers are left out.
const MAX_WAITING_PIECES: usize = 1 << 20;

/// A line of the stream.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StreamLine<'a> {
    /// Something happened.
    Event(EventLine<'a>),
    /// The stream goes on after events that the reader was too slow for.
    Missed(MissedLine),
    /// The run is over: the last line of every stream.
    Result(ResultLine<'a>),
}

/// An event, with its fields beside those that place it.
#[derive(Serialize, JsonSchema)]
pub struct EventLine<'a> {
    /// What happened, by its `type`.
    #[serde(flatten)]
    event: &'a Event,
    /// The version of this schema.
    v: u32,
    /// Counts the records of a session from 0 without gaps; a piece of an answer has the number of the next record.
    seq: u64,
    /// The run (one process's work on the session) it belongs to.
    run: &'a str,
    /// The step of the run it happened in; 0 before the first.
    step: u32,
    /// Wall clock, milliseconds since the Unix epoch.
    wall_ms: u64,
    /// Monotonic clock, microseconds since the process began.
    mono_us: u64,
}

/// How many events were left out since the line before.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename = "missed")]
pub struct MissedLine {
    /// Events, pieces of answers included.
    events: u64,
}

/// The document of `--json`.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename = "result")]
pub struct ResultLine<'a> {
    /// Its keys.
    #[serde(flatten)]
    result: &'a RunResult,
}

impl<'a> From<&'a Record> for StreamLine<'a> {
    fn from(record: &'a Record) -> Self {
        let Record { v, seq, ref run, step, wall_ms, mono_us, ref event } = *record;
        Self::Event(EventLine { event, v, seq, run, step, wall_ms, mono_us })
    }
}

/// The last line of a stream.
///
/// # Errors
/// When the result cannot be written as JSON, which its types rule out.
pub fn last_line(result: &RunResult) -> io::Result<String> {
    json::line(&StreamLine::Result(ResultLine { result }))
}

/// Tells every event but the last, which is the result's to tell.
pub struct JsonStream {
    lines: Sender<Option<String>>,
    waiting: Arc<AtomicUsize>,
    missed: u64,
}

/// The end of a stream: when it is dropped, everything that waits is written first.
pub struct JsonStreamGuard {
    lines: Sender<Option<String>>,
    writer: Option<JoinHandle<()>>,
}

impl JsonStream {
    /// A stream on standard output.
    pub fn start(terminal: Arc<Terminal>) -> (Self, JsonStreamGuard) {
        let (lines, to_write) = mpsc::channel::<Option<String>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let writer = std::thread::spawn(move || {
            while let Ok(Some(line)) = to_write.recv() {
                // Nobody reads any more, or nobody can: the result, which is told later, says why.
                if !matches!(terminal.print(&line), Ok(PrintOutcome::Written)) {
                    return;
                }
                left.fetch_sub(line.len(), Ordering::Relaxed);
            }
        });
        let end = JsonStreamGuard { lines: lines.clone(), writer: Some(writer) };
        (Self { lines, waiting, missed: 0 }, end)
    }

    fn send(&self, line: &StreamLine<'_>) -> io::Result<()> {
        let line = json::line(line)?;
        self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        self.lines.send(Some(line)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl EventSink for JsonStream {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        if matches!(record.event, Event::RunEnd { .. }) {
            return Ok(());
        }
        let limit = if record.event.is_delta() { MAX_WAITING_PIECES } else { MAX_WAITING };
        if self.waiting.load(Ordering::Relaxed) > limit {
            self.missed = self.missed.saturating_add(1);
            return Ok(());
        }
        if self.missed > 0 {
            let events = std::mem::take(&mut self.missed);
            self.send(&StreamLine::Missed(MissedLine { events }))?;
        }
        self.send(&record.into())
    }
}

impl Drop for JsonStreamGuard {
    fn drop(&mut self) {
        // A writer that has given up needs no telling.
        let _ = self.lines.send(None);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script;
    use super::*;
    use crate::terminal::{StreamInfo, TerminalEnvironment};
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

    /// A reader that takes nothing until it is let.
    #[derive(Clone, Default)]
    struct Stopped(Arc<(Mutex<bool>, Condvar)>, script::Kept);

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
        assert!(stream.waiting.load(Ordering::Relaxed) < MAX_WAITING_PIECES + 2_000);
        let missed = stream.missed;
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
        let result = json::not_started(
            crate::core::failure::Failure {
                kind: crate::core::failure::FailureKind::Usage,
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
