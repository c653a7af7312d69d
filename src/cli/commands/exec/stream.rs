//! Standard output of `agent exec --json`: Codex's events as JSON lines.

use crate::core::event::Event;
use crate::core::language::Language;
use crate::core::run_result::RunResult;
use crate::messages;
use crate::report::codex_events::{CodexEvents, ThreadEvent};
use crate::report::json;
use crate::report::line_writer::{LineWriter, LineWriterGuard, MAX_WAITING};
use crate::terminal::Terminal;
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
