//! Tasks that could not be read, such as those of a newer version of this program. They are left out and reported once.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Why tasks could not be read.
#[derive(Default)]
pub struct Unreadable {
    noted: RefCell<BTreeSet<String>>,
    not_reported: RefCell<Vec<String>>,
}

impl Unreadable {
    /// Notes why a task could not be read, unless that is known.
    pub fn note(&self, why: String) {
        if self.noted.borrow_mut().insert(why.clone()) {
            self.not_reported.borrow_mut().push(why);
        }
    }

    /// Returns what was noted since the last call.
    pub fn take(&self) -> Vec<String> {
        self.not_reported.take()
    }
}
