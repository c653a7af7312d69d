//! Flag that keeps the final answer from being printed twice on one terminal.

use std::cell::Cell;
use std::rc::Rc;

/// Whether the final answer was streamed to the terminal of standard output; known after the run has ended.
#[derive(Debug, Clone, Default)]
pub struct AnswerShown(Rc<Cell<bool>>);

impl AnswerShown {
    /// Checks whether printing the answer would show it twice.
    pub fn get(&self) -> bool {
        self.0.get()
    }

    /// Records whether the answer was shown.
    pub fn set(&self, shown: bool) {
        self.0.set(shown);
    }
}
