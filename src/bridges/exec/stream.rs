//! Standard output of `agent exec --json`: Codex's events as JSON lines.

use agent_core::event::Event;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_messages as messages;
use agent_report::codex_events::{CodexEvents, ThreadEvent};
use agent_report::json;
use agent_report::line_writer::{LineWriter, LineWriterGuard, MAX_WAITING};
use agent_terminal::Terminal;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The stream of one run.
pub struct CodexStream {
    events: RefCell<CodexEvents>,
    lines: LineWriter,
    missed: Cell<u64>,
}

impl CodexStream {
    /// Starts the stream; its lines are written when the guard is dropped.
    pub fn start(terminal: &Arc<Terminal>) -> (Self, LineWriterGuard) {
        let (lines, end) = LineWriter::start(Arc::clone(terminal));
        (Self { events: RefCell::default(), lines, missed: Cell::new(0) }, end)
    }

    /// Prepares the stream for a run that resumes `thread`, or creates a session; `warnings` become items.
    pub fn begin(&self, thread: Option<String>, warnings: Vec<String>) {
        self.events.replace(CodexEvents::new(thread, warnings));
    }

    /// Writes the lines for an event. A reader that is too slow misses events.
    pub fn event(&self, event: &Event) {
        let lines = self.events.borrow_mut().lines(event);
        if lines.is_empty() {
            return;
        }
        if self.lines.waiting() > MAX_WAITING {
            self.missed.set(self.missed.get().saturating_add(1));
            return;
        }
        self.tell_missed();
        self.write(&lines);
    }

    /// Writes how the run ended.
    pub fn finish(&self, result: &RunResult, language: Language) {
        self.tell_missed();
        let lines = self.events.borrow_mut().end(result, language);
        self.write(&lines);
    }

    fn tell_missed(&self) {
        let missed = self.missed.take();
        if missed > 0 {
            let line = self.events.borrow_mut().problem(messages::codex_lines_missed(missed));
            self.write(&[line]);
        }
    }

    fn write(&self, lines: &[ThreadEvent]) {
        for line in lines.iter().filter_map(|line| json::line(line).ok()) {
            // A reader that has gone interrupts the run by itself.
            let _sent = self.lines.send(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::event::NoticeLevel;
    use agent_core::failure::{Failure, FailureKind};
    use agent_terminal::{StreamInfo, TerminalEnvironment};
    use serde_json::Value;
    use std::io::{self, Write};
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};

    /// A reader that reads nothing until it is released.
    struct SlowReader(Receiver<()>, Arc<Mutex<Vec<u8>>>);

    impl Write for SlowReader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Fails from the moment on at which the sender is gone.
            let _released = self.0.recv();
            self.1.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_reader_is_told_what_it_missed_and_gets_the_end() {
        let (hold, released) = channel();
        let written = Arc::default();
        let terminal = Terminal::with_streams(
            StreamInfo::default(),
            &TerminalEnvironment::default(),
            Box::new(SlowReader(released, Arc::clone(&written))),
            Box::<Vec<u8>>::default(),
        );
        let (stream, end) = CodexStream::start(&Arc::new(terminal));
        let notice = Event::Notice { level: NoticeLevel::Warn, text: "x".repeat(1 << 20) };
        for _ in 0..70 {
            stream.event(&notice);
        }
        let missed = stream.missed.get();
        assert!(missed > 0);
        drop(hold);
        let failure = Failure { kind: FailureKind::Internal, message: "why".to_owned(), retryable: false };
        stream.finish(&RunResult::not_started(failure, None), Language::En);
        drop(end);
        let text = String::from_utf8(written.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [.., note, error, last] = lines.as_slice() else { panic!("{}", lines.len()) };
        assert_eq!(note["item"]["message"], messages::codex_lines_missed(missed));
        assert_eq!((&error["type"], &last["type"]), (&"error".into(), &"turn.failed".into()));
        assert_eq!(lines.len() as u64, 70 - missed + 3);
    }
}
