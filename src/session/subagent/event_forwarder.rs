//! Event sink that forwards the events of a subagent, its changed files and its budget share to the session of its run.

use super::shared_budget::SharedBudget;
use agent_core::budget_share::BudgetShare;
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::file_change::Change;
use agent_runtime::emitter::{EmitError, Emitter};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

/// Forwards events to the run. Must be registered after the sink of the subagent's session: it reads the budget share that
/// this sink updates.
pub(super) struct EventForwarder {
    /// The call that started the subagent.
    pub call_id: String,
    /// The emitter of the run.
    pub emitter: Rc<Emitter>,
    /// The sessions that share the caps of the run.
    pub shared_budget: Rc<SharedBudget>,
    /// The budget share of the subagent that was reported last.
    pub last_reported: BudgetShare,
    /// The files that the subagent has changed.
    pub changed: Rc<RefCell<Vec<Change>>>,
}

impl EventSink for EventForwarder {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        // The run uses only the complete answer, not its pieces.
        if record.event.is_delta() {
            return Ok(());
        }
        self.changed.borrow_mut().extend_from_slice(record.event.changed());
        let budget_share = self
            .shared_budget
            .budget_share_of(&self.call_id)
            .filter(|budget_share| *budget_share != self.last_reported);
        self.last_reported = budget_share.unwrap_or(self.last_reported);
        let event = Event::Subagent {
            call_id: self.call_id.clone(),
            event: Box::new(record.event.clone()),
            budget_share,
        };
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
