//! What happens in the session of a subagent, told in the session of the run that asked it.

use super::purses::Purses;
use crate::change::Change;
use crate::emit::{EmitError, Emitter};
use crate::event::{Event, EventSink, Record};
use crate::purse::Purse;
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// The listener to a subagent that tells the run. It comes after the subagent's own session, whose purse it tells of.
pub(super) struct Nested {
    /// The call that asked the subagent.
    pub call_id: String,
    /// What the run tells.
    pub emitter: Rc<Emitter>,
    /// Who pays from the caps of the run.
    pub purses: Rc<Purses>,
    /// The purse of the subagent as it was told last.
    pub told: Purse,
    /// What the subagent has changed.
    pub changed: Rc<RefCell<Vec<Change>>>,
}

impl EventSink for Nested {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        // Pieces of its texts are of interest to nobody: the run waits for its answer.
        if record.event.is_delta() {
            return Ok(());
        }
        self.changed.borrow_mut().extend_from_slice(record.event.changed());
        let purse = self.purses.purse_of(&self.call_id).filter(|purse| *purse != self.told);
        self.told = purse.unwrap_or(self.told);
        let event =
            Event::Subagent { call_id: self.call_id.clone(), event: Box::new(record.event.clone()), purse };
        self.emitter.emit(event).map_err(|EmitError(error)| error)?;
        self.purses.share();
        Ok(())
    }

    fn required(&self) -> bool {
        true
    }

    fn unsynced(&self) -> io::Result<Option<Arc<File>>> {
        self.emitter.unsynced().map_err(|EmitError(error)| error)
    }
}
