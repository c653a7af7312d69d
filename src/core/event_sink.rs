//! The interface of event sinks: journal, logs, streams and reports.

use crate::event::Record;
use std::fs::File;
use std::sync::Arc;

/// Receives the events of a run.
pub trait EventSink {
    /// Receives one record.
    ///
    /// # Errors
    /// The error of a [required](Self::is_required) sink ends the run; any other sink is removed after its first error.
    fn emit(&mut self, record: &Record) -> std::io::Result<()>;

    /// Checks whether the run must end if this sink fails. True only for the journal.
    fn is_required(&self) -> bool {
        false
    }

    /// Returns the file to sync to make all received events durable, if there is one. The run syncs it before a side effect
    /// that cannot be repeated, and at its end.
    ///
    /// # Errors
    /// When a received event is missing from the file.
    fn file_to_sync(&self) -> std::io::Result<Option<Arc<File>>> {
        Ok(None)
    }
}
