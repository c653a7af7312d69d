//! The steps of a session, counted over all its runs, as `--to-step` counts them; a record counts those of its run.

use crate::core::event::{Event, Record};

/// How far the count has come.
#[derive(Debug, Clone, Copy, Default)]
pub struct StepCounter {
    /// Steps of the runs before.
    earlier: u32,
    /// The last step of this run.
    last: u32,
}

impl StepCounter {
    /// The step in which, or after which, the next `record` was written; 0 before the first.
    pub fn next(&mut self, record: &Record) -> u32 {
        if matches!(record.event, Event::RunStart { .. }) {
            self.earlier = self.earlier.saturating_add(std::mem::take(&mut self.last));
        }
        self.last = self.last.max(record.step);
        self.earlier.saturating_add(record.step)
    }
}
