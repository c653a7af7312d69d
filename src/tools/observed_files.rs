//! Content hashes of the files that the model has seen.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Content hashes by workspace path, filled by reads and writes and restored from the journal on resume.
#[derive(Debug, Default)]
pub struct ObservedFiles(RefCell<BTreeMap<String, String>>);

impl ObservedFiles {
    /// Records that the model has seen `path` with the content `hash`.
    pub fn record(&self, path: &str, hash: &str) {
        self.0.borrow_mut().insert(path.to_owned(), hash.to_owned());
    }

    /// Returns the hash that `path` had when the model last saw it.
    pub fn hash(&self, path: &str) -> Option<String> {
        self.0.borrow().get(path).cloned()
    }

    /// Removes `path`.
    pub fn forget(&self, path: &str) {
        self.0.borrow_mut().remove(path);
    }
}
