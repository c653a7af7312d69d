//! Saves the state of a session next to its journal each time the journal has grown enough.

use crate::session_state::LoadedSession;
use agent_core::event::Event;
use agent_core::limits::Limits;
use agent_journal::blobs::BlobStore;
use agent_journal::saved_state::{next_at, saved_event};
use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;

/// Decides when to save the state, and remembers the last one saved.
pub struct StateSaver {
    journal: PathBuf,
    /// Length of the journal in bytes at which the next state is due.
    next_at: Cell<u64>,
    last: RefCell<Option<String>>,
}

impl StateSaver {
    /// Creates the saver for the session with this journal, as it was opened.
    pub fn new(journal: PathBuf, opened: &LoadedSession) -> Self {
        Self { journal, next_at: Cell::new(opened.next_at), last: RefCell::new(opened.hash.clone()) }
    }

    /// Saves the state that the journal folds to, if one is due. Returns the event to record next and the hash of the state that it replaces.
    ///
    /// # Errors
    /// When the journal cannot be read or the state cannot be written. No further state is saved then.
    pub fn save_if_due(&self, limits: &Limits) -> io::Result<Option<(Event, Option<String>)>> {
        if !self.journal.metadata().is_ok_and(|journal| journal.len() >= self.next_at.get()) {
            return Ok(None);
        }
        self.next_at.set(u64::MAX);
        // The session in memory cannot be used: it contains secrets in the arguments of calls, which the journal must not contain.
        let opened = LoadedSession::load(&self.journal)?;
        let lines = opened.reading.lines;
        let mut known = opened.into_state(limits.clone());
        // The record of this state counts too.
        known.about.next_seq = known.about.next_seq.saturating_add(1);
        let json = serde_json::to_vec(&known)?;
        let hash = BlobStore::for_journal(&self.journal).store(&json)?;
        self.next_at.set(next_at(self.journal.metadata()?.len(), json.len()));
        let before = self.last.replace(Some(hash.clone()));
        Ok(Some((saved_event(hash, lines), before)))
    }

    /// Removes a state that was replaced.
    pub fn remove(&self, hash: &str) {
        BlobStore::for_journal(&self.journal).remove(hash);
    }
}
