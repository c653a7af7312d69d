//! The budget that several runs share, some of them at the same time. Before each request a run learns what the others leave of it.

use crate::session::Session;
use agent_core::budget_share::{Amount, BudgetCap};
use agent_core::event::Event;
use agent_core::price::Usd;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::Notify;

/// A budget that runs share.
#[derive(Debug, Default)]
pub struct TotalBudget {
    total: BudgetCap,
    /// What ended runs have used.
    ended: Cell<Amount>,
    running: RefCell<Vec<Rc<RefCell<Session>>>>,
    /// Notified when a request of a run has ended.
    changed: Notify,
}

impl TotalBudget {
    /// Creates a budget of which nothing is used.
    pub fn new(total: BudgetCap) -> Self {
        Self { total, ..Self::default() }
    }

    /// Counts an amount that was used before.
    pub fn add_used(&self, amount: Amount) {
        self.ended.set(self.ended.get() + amount);
    }

    /// Returns the remaining budget if each request under way costs its highest possible amount.
    pub fn left(&self) -> BudgetCap {
        self.left_by(self.ended.get() + sum(self.running.borrow().iter()))
    }

    /// Returns the most that a run which starts now could use.
    pub fn at_most(&self) -> BudgetCap {
        self.left_by(self.ended.get())
    }

    /// Checks whether money or tokens are used up.
    pub fn is_used_up(&self) -> bool {
        let left = self.left();
        left.usd == Some(Usd::ZERO) || left.tokens == Some(0)
    }

    fn left_by(&self, used: Amount) -> BudgetCap {
        BudgetCap {
            usd: self.total.usd.map(|usd| usd.saturating_sub(used.usd)),
            tokens: self.total.tokens.map(|tokens| tokens.saturating_sub(used.tokens)),
        }
    }

    /// Adds the run of `session`, which counts until the last copy of the returned value is dropped.
    pub fn join(self: &Rc<Self>, session: &Rc<RefCell<Session>>) -> TotalShare {
        self.running.borrow_mut().push(Rc::clone(session));
        let run = Rc::new(JoinedRun { total: Rc::clone(self), session: Rc::clone(session) });
        TotalShare { run, last: Cell::default() }
    }
}

fn sum<'a>(sessions: impl Iterator<Item = &'a Rc<RefCell<Session>>>) -> Amount {
    sessions.fold(Amount::default(), |sum, session| sum + session.borrow().used_in_run())
}

/// A run that shares the budget.
struct JoinedRun {
    total: Rc<TotalBudget>,
    session: Rc<RefCell<Session>>,
}

impl JoinedRun {
    fn others(&self) -> Vec<Rc<RefCell<Session>>> {
        let running = self.total.running.borrow();
        running.iter().filter(|session| !Rc::ptr_eq(session, &self.session)).cloned().collect()
    }
}

impl Drop for JoinedRun {
    fn drop(&mut self) {
        self.total.running.replace(self.others());
        self.total.add_used(self.session.borrow().used_in_run());
        self.total.changed.notify_waiters();
    }
}

/// The part of a run, and of its subagents, in the shared budget.
pub struct TotalShare {
    run: Rc<JoinedRun>,
    /// The cap in the last event.
    last: Cell<BudgetCap>,
}

impl Clone for TotalShare {
    /// Returns the share of a subagent, which emits its own events about caps.
    fn clone(&self) -> Self {
        Self { run: Rc::clone(&self.run), last: Cell::default() }
    }
}

impl TotalShare {
    /// Returns the event with the cap of the run, if it has changed.
    pub fn cap_event(&self) -> Option<Event> {
        let JoinedRun { total, .. } = &*self.run;
        let cap = total.left_by(total.ended.get() + sum(self.run.others().iter()));
        (self.last.replace(cap) != cap).then_some(Event::BudgetCap(cap))
    }

    /// Checks whether another run has a request under way, which may cost less than what is reserved for it.
    pub fn others_may_release(&self) -> bool {
        self.run.others().iter().any(|session| session.borrow().has_reserved())
    }

    /// Waits until a request of another run, or the run itself, has ended.
    pub async fn changed(&self) {
        self.run.total.changed.notified().await;
    }

    /// Wakes the other runs: a request has ended.
    pub fn notify(&self) {
        self.run.total.changed.notify_waiters();
    }
}
