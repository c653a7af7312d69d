//! When checkpoints are made, and of which files.

use crate::core::file_change::Change;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// When checkpoints are made, and of what.
pub struct Checkpoints {
    session: String,
    /// Steps between two.
    every: u32,
    /// Steps of the session's earlier runs.
    previous_steps: u32,
    /// The files that the session has changed.
    files: RefCell<BTreeSet<String>>,
    /// Whether one of them was changed since the last checkpoint.
    is_due: Cell<bool>,
    /// The step that the session has come to.
    now: Cell<u32>,
    /// The step of the last checkpoint.
    last: Cell<u32>,
    /// Whether it was said that none can be made.
    failed: Cell<bool>,
}

impl Checkpoints {
    /// Checkpoints of `session` every so many steps; earlier runs had `previous_steps` steps and changed `files`.
    pub fn new(session: String, every: u32, previous_steps: u32, files: BTreeSet<String>) -> Self {
        let (now, last) = (Cell::new(previous_steps), Cell::new(previous_steps));
        let (is_due, failed) = (Cell::new(false), Cell::new(false));
        Self { session, every, previous_steps, files: RefCell::new(files), is_due, now, last, failed }
    }

    /// Takes note of what a call changed.
    pub fn record_changes(&self, changed: &[Change]) {
        self.files.borrow_mut().extend(changed.iter().map(|change| change.path.clone()));
        self.is_due.set(self.is_due.get() || !changed.is_empty());
    }

    /// Takes note of a step of this run that has ended; says whether it is time for a checkpoint.
    pub fn finish_step(&self, step: u32) -> bool {
        self.now.set(self.previous_steps.saturating_add(step));
        self.now.get().saturating_sub(self.last.get()) >= self.every
    }

    /// The step that the next checkpoint shows, which counts as made then; nothing where nothing was changed since the last.
    pub fn take_due_step(&self) -> Option<u32> {
        if !self.is_due.take() || self.failed.get() {
            return None;
        }
        self.last.set(self.now.get());
        Some(self.now.get())
    }

    /// Makes no more of them.
    pub fn disable(&self) {
        self.failed.set(true);
    }

    /// The session.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The files that the session has changed, by path.
    pub fn files(&self) -> Vec<String> {
        self.files.borrow().iter().cloned().collect()
    }
}
