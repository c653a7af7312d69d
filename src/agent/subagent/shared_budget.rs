//! Who pays from the caps of a run: it, and the subagents at work.

use crate::agent::session::Session;
use crate::core::budget_share::BudgetShare;
use std::cell::RefCell;
use std::rc::Rc;

/// Everybody who pays from the caps of a run.
pub(super) struct SharedBudget {
    run: Rc<RefCell<Session>>,
    subagents: RefCell<Vec<(String, Rc<RefCell<Session>>)>>,
}

impl SharedBudget {
    /// Those of the run that this session is of.
    pub(super) fn of(run: &Rc<RefCell<Session>>) -> Self {
        Self { run: Rc::clone(run), subagents: RefCell::default() }
    }

    /// The subagent that `call_id` asked begins to pay.
    pub(super) fn join(&self, call_id: &str, session: Rc<RefCell<Session>>) {
        self.subagents.borrow_mut().push((call_id.to_owned(), session));
    }

    /// It pays nothing more.
    pub(super) fn leave(&self, call_id: &str) {
        self.subagents.borrow_mut().retain(|(id, _)| id != call_id);
    }

    /// That of the subagent which `call_id` asked.
    pub(super) fn budget_share_of(&self, call_id: &str) -> Option<BudgetShare> {
        let subagents = self.subagents.borrow();
        let (_, session) = subagents.iter().find(|(id, _)| id == call_id)?;
        Some(session.borrow().budget_share())
    }

    /// Lets each subagent know what everybody else has used up.
    pub(super) fn share(&self) {
        for (call_id, session) in &*self.subagents.borrow() {
            session.borrow_mut().set_used_elsewhere(self.run.borrow().used_by_others(call_id));
        }
    }
}
