//! What a session cost, on lines of its own (`--show-costs`).

use crate::event::{Event, EventSink, Record};
use crate::messages;
use crate::terminal::{Style, Terminal};
use std::io;
use std::sync::Arc;

/// Tells the costs when the run ends.
pub struct CostLines(Arc<Terminal>);

impl CostLines {
    /// A listener that writes to the standard error of `terminal`.
    pub fn new(terminal: Arc<Terminal>) -> Self {
        Self(terminal)
    }
}

impl EventSink for CostLines {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        let Event::RunEnd { result } = &record.event else { return Ok(()) };
        self.0.say(Style::Plain, &messages::costs(&result.cost, result.usage))
    }
}
