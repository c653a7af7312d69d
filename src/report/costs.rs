//! Event sink that prints the cost of a session at the end of a run (`--show-costs`).

use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::language::Language;
use agent_messages as messages;
use agent_terminal::{Style, Terminal};
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
