//! What happens in the session of a subagent, told in the session of the run that asked it.

use super::shared_budget::SharedBudget;
use crate::core::budget_share::BudgetShare;
use crate::core::event::{Event, EventSink, Record};
use crate::core::file_change::Change;
use crate::runtime::emitter::{EmitError, Emitter};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// The listener to a subagent that tells the run. It comes after the subagent's own session, whose purse it tells of.
pub(super) struct EventForwarder {
    /// The call that asked the subagent.
    pub call_id: String,
    /// What the run tells.
    pub emitter: Rc<Emitter>,
    /// Who pays from the caps of the run.
    pub shared_budget: Rc<SharedBudget>,
    /// The purse of the subagent as it was told last.
    pub last_reported: BudgetShare,
    /// What the subagent has changed.
    pub changed: Rc<RefCell<Vec<Change>>>,
}

impl EventSink for EventForwarder {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        // Pieces of its texts are of interest to nobody: the run waits for its answer.
        if record.event.is_delta() {
            return Ok(());
        }
        self.changed.borrow_mut().extend_from_slice(record.event.changed());
        let purse =
            self.shared_budget.budget_share_of(&self.call_id).filter(|purse| *purse != self.last_reported);
        self.last_reported = purse.unwrap_or(self.last_reported);
        let event =
            Event::Subagent { call_id: self.call_id.clone(), event: Box::new(record.event.clone()), purse };
        self.emitter.emit(event).map_err(|EmitError(error)| error)?;
        self.shared_budget.share();
        Ok(())
    }

    fn is_required(&self) -> bool {
        true
    }

    fn file_to_sync(&self) -> io::Result<Option<Arc<File>>> {
        self.emitter.file_to_sync().map_err(|EmitError(error)| error)
    }
}
