//! Shares the caps of a run among the run and its subagents.

use crate::session::Session;
use agent_core::budget_share::BudgetShare;
use std::cell::RefCell;
use std::rc::Rc;

/// The sessions that share the caps of a run.
pub(super) struct SharedBudget {
    run: Rc<RefCell<Session>>,
    subagents: RefCell<Vec<(String, Rc<RefCell<Session>>)>>,
}

impl SharedBudget {
    /// Creates the shared budget of `run`, without subagents.
    pub(super) fn of(run: &Rc<RefCell<Session>>) -> Self {
        Self { run: Rc::clone(run), subagents: RefCell::default() }
    }

    /// Adds the subagent that `call_id` started.
    pub(super) fn join(&self, call_id: &str, session: Rc<RefCell<Session>>) {
        self.subagents.borrow_mut().push((call_id.to_owned(), session));
    }

    /// Removes a subagent that has ended.
    pub(super) fn leave(&self, call_id: &str) {
        self.subagents.borrow_mut().retain(|(id, _)| id != call_id);
    }

    /// Returns the budget share of the subagent that `call_id` started.
    pub(super) fn budget_share_of(&self, call_id: &str) -> Option<BudgetShare> {
        let subagents = self.subagents.borrow();
        let (_, session) = subagents.iter().find(|(id, _)| id == call_id)?;
        Some(session.borrow().budget_share())
    }

    /// Updates in each session what all the others have used of the caps.
    pub(super) fn share(&self) {
        for (call_id, session) in &*self.subagents.borrow() {
            session.borrow_mut().set_used_elsewhere(self.run.borrow().used_by_others(call_id));
        }
    }
}
