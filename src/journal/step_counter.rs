//! Counter of steps over all runs of a session, as `--to-step` counts them; records contain the step within their run.

use agent_core::event::{Event, Record};

/// Counts the steps of all runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepCounter {
    /// Steps of earlier runs.
    earlier: u32,
    /// The last step of this run.
    last: u32,
}

impl StepCounter {
    /// Returns the step in which, or after which, the next `record` was written; 0 before the first step.
    pub fn next(&mut self, record: &Record) -> u32 {
        if matches!(record.event, Event::RunStart { .. }) {
            self.earlier = self.earlier.saturating_add(std::mem::take(&mut self.last));
        }
        self.last = self.last.max(record.step);
        self.earlier.saturating_add(record.step)
    }
}
