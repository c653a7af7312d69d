//! Which content of which file the model has seen.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Content hashes by workspace path; filled by reads and writes, restored from the journal on resume.
#[derive(Debug, Default)]
pub struct ObservedFiles(RefCell<BTreeMap<String, String>>);

impl ObservedFiles {
    /// Notes that the model has seen `path` with content `hash`.
    pub fn record(&self, path: &str, hash: &str) {
        self.0.borrow_mut().insert(path.to_owned(), hash.to_owned());
    }

    /// The hash `path` had when the model last saw it.
    pub fn hash(&self, path: &str) -> Option<String> {
        self.0.borrow().get(path).cloned()
    }

    /// Forgets `path`, after it was deleted.
    pub fn forget(&self, path: &str) {
        self.0.borrow_mut().remove(path);
    }
}
