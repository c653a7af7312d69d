//! Schedule of checkpoints, and the set of files that they contain.

use agent_core::file_change::Change;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// Schedule and files of checkpoints.
pub struct Checkpoints {
    session: String,
    /// Number of steps between two checkpoints.
    every: u32,
    /// Number of steps of the session's previous runs.
    previous_steps: u32,
    /// The files that the session has changed.
    files: RefCell<BTreeSet<String>>,
    /// Whether a file was changed since the last checkpoint.
    is_due: Cell<bool>,
    /// The current step of the session.
    now: Cell<u32>,
    /// The step of the last checkpoint.
    last: Cell<u32>,
    /// Whether checkpoints failed and the warning was emitted.
    failed: Cell<bool>,
}

impl Checkpoints {
    /// Creates the schedule for `session`, with a checkpoint every `every` steps. Previous runs had `previous_steps` steps and
    /// changed `files`.
    pub fn new(session: String, every: u32, previous_steps: u32, files: BTreeSet<String>) -> Self {
        let (now, last) = (Cell::new(previous_steps), Cell::new(previous_steps));
        let (is_due, failed) = (Cell::new(false), Cell::new(false));
        Self { session, every, previous_steps, files: RefCell::new(files), is_due, now, last, failed }
    }

    /// Records the changes of a call.
    pub fn record_changes(&self, changed: &[Change]) {
        self.files.borrow_mut().extend(changed.iter().map(|change| change.path.clone()));
        self.is_due.set(self.is_due.get() || !changed.is_empty());
    }

    /// Records the end of a step of this run, and returns whether a checkpoint is due.
    pub fn finish_step(&self, step: u32) -> bool {
        self.now.set(self.previous_steps.saturating_add(step));
        self.now.get().saturating_sub(self.last.get()) >= self.every
    }

    /// Returns the step for the next checkpoint and counts it as made. Returns `None` when nothing changed since the last one.
    pub fn take_due_step(&self) -> Option<u32> {
        if !self.is_due.take() || self.failed.get() {
            return None;
        }
        self.last.set(self.now.get());
        Some(self.now.get())
    }

    /// Stops making checkpoints.
    pub fn disable(&self) {
        self.failed.set(true);
    }

    /// Returns the session id.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// Returns the paths of the files that the session has changed, sorted.
    pub fn files(&self) -> Vec<String> {
        self.files.borrow().iter().cloned().collect()
    }
}
