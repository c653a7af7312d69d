//! Keeps the state of a session beside its journal while the run works, each time the journal has grown enough.

use crate::agent::session_state::LoadedSession;
use crate::core::event::Event;
use crate::core::limits::Limits;
use crate::journal::blobs::BlobStore;
use crate::journal::saved_state::{next_at, saved_event};
use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;

/// When a state is due, and which was kept last.
pub struct StateSaver {
    journal: PathBuf,
    /// The length of the journal at which the next one is due.
    next_at: Cell<u64>,
    last: RefCell<Option<String>>,
}

impl StateSaver {
    /// That of the session with this journal, as it was opened.
    pub fn new(journal: PathBuf, opened: &LoadedSession) -> Self {
        Self { journal, next_at: Cell::new(opened.next_at), last: RefCell::new(opened.hash.clone()) }
    }

    /// Keeps what follows from the journal as it is, where that is due. Returns what the journal has to tell next, and the state
    /// in whose place this one stands then.
    ///
    /// # Errors
    /// When the journal cannot be read or the state cannot be written; no further one is due then.
    pub fn save_if_due(&self, limits: &Limits) -> io::Result<Option<(Event, Option<String>)>> {
        if !self.journal.metadata().is_ok_and(|journal| journal.len() >= self.next_at.get()) {
            return Ok(None);
        }
        self.next_at.set(u64::MAX);
        // The session in memory will not do: it holds what the journal must not, the secrets in the calls that it runs.
        let opened = LoadedSession::load(&self.journal)?;
        let lines = opened.reading.lines;
        let mut known = opened.into_state(limits.clone());
        // The record that tells of it is one too.
        known.about.next_seq = known.about.next_seq.saturating_add(1);
        let json = serde_json::to_vec(&known)?;
        let hash = BlobStore::for_journal(&self.journal).store(&json)?;
        self.next_at.set(next_at(self.journal.metadata()?.len(), json.len()));
        let before = self.last.replace(Some(hash.clone()));
        Ok(Some((saved_event(hash, lines), before)))
    }

    /// Removes a state that another one stands in the place of.
    pub fn remove(&self, hash: &str) {
        BlobStore::for_journal(&self.journal).remove(hash);
    }
}
