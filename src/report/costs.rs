//! Event sink that prints the cost of a session at the end of a run (`--show-costs`).

use crate::core::event::{Event, Record};
use crate::core::event_sink::EventSink;
use crate::core::language::Language;
use crate::messages;
use crate::terminal::{Style, Terminal};
use std::io;
use std::sync::Arc;

/// Prints the cost when the run ends.
pub struct CostSummary {
    terminal: Arc<Terminal>,
    language: Language,
}

impl CostSummary {
    /// Creates a sink that writes to the standard error of `terminal`.
    pub fn new(terminal: Arc<Terminal>, language: Language) -> Self {
        Self { terminal, language }
    }
}

impl EventSink for CostSummary {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        let Event::RunEnd { result } = &record.event else { return Ok(()) };
        self.terminal.eprintln(Style::Plain, &messages::costs(&result.cost, result.usage, self.language))
    }
}
