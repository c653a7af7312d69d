//! Tests of runs that share a total budget and have requests under way at the same time.

use super::budget_tests::paid;
use super::tests::*;
use super::*;
use crate::total_budget::{TotalBudget, TotalShare};
use agent_core::budget_share::{Amount, BudgetCap};
use agent_core::price::Usd;
use agent_core::usage::Usage;
use proptest::prelude::*;
use std::cell::RefCell;
use std::rc::Rc;

/// A run that shares the budget.
struct SharingRun {
    session: Rc<RefCell<Session>>,
    share: TotalShare,
    requested: bool,
}

impl SharingRun {
    fn new(total: &Rc<TotalBudget>) -> Self {
        let session = started_session(paid(total.at_most().usd.map(f64::from), total.at_most().tokens));
        let session = Rc::new(RefCell::new(session));
        let share = total.join(&session);
        Self { session, share, requested: false }
    }

    fn update(&self) {
        self.share.cap_event().iter().for_each(|cap| self.session.borrow_mut().apply(cap));
    }

    /// Sends the next request if it fits, or answers the one under way with `dollars` and `tokens`.
    fn turn(&mut self, dollars: f64, tokens: u64) {
        if self.requested {
            let cost_usd = Some(Usd::try_from(dollars).unwrap());
            self.session.borrow_mut().apply(&answered(cost_usd, tokens));
            self.requested = false;
            return;
        }
        self.update();
        self.requested = self.session.borrow().exceeded_limit(Purpose::Step).is_none();
        if self.requested {
            let start = Event::StepStart { purpose: Purpose::Step, messages: 1, digest: None };
            self.session.borrow_mut().apply(&start);
        }
    }

    fn used(&self) -> Amount {
        self.session.borrow().used_in_run()
    }
}

fn answered(cost_usd: Option<Usd>, output: u64) -> Event {
    Event::ModelResponse {
        purpose: Purpose::Step,
        message: Message { role: Role::Assistant, parts: text("x") },
        finish: FinishReason::Stop,
        usage: Some(Usage { output, ..Usage::default() }),
        cost_usd,
        latency_ms: 1,
    }
}

proptest! {
    #[test]
    fn runs_never_use_more_than_the_total_and_what_ended_runs_used_stays_used(
        turns in prop::collection::vec((0_usize..3, 0.0_f64..0.05, 0_u64..400, 0_u32..20), 1..200),
    ) {
        let (usd, tokens) = (Usd::try_from(1.5).unwrap(), 40_000);
        let total = Rc::new(TotalBudget::new(BudgetCap { usd: Some(usd), tokens: Some(tokens) }));
        let mut runs: Vec<_> = (0..3).map(|_| SharingRun::new(&total)).collect();
        let mut ended = Amount::default();
        for (at, dollars, tokens_used, lot) in turns {
            runs[at].turn(dollars, tokens_used);
            if lot == 0 && !runs[at].requested {
                let run = std::mem::replace(&mut runs[at], SharingRun::new(&total));
                ended = ended + run.used();
            }
            let used = runs.iter().fold(ended, |sum, run| sum + run.used());
            prop_assert!(used.usd <= usd && used.tokens <= tokens, "{used:?}");
            prop_assert_eq!(total.left().usd, Some(usd.saturating_sub(used.usd)));
        }
    }
}

#[test]
fn a_run_that_only_lacks_what_others_have_reserved_may_wait_for_it() {
    let total = Rc::new(TotalBudget::new(BudgetCap { usd: Some(Usd::try_from(0.5).unwrap()), tokens: None }));
    let (mut one, mut other) = (SharingRun::new(&total), SharingRun::new(&total));
    one.turn(0.0, 0);
    other.turn(0.0, 0);
    assert!(one.requested && !other.requested);
    assert!(other.session.borrow().is_over_total_budget() && other.share.others_may_release());
    one.turn(0.001, 1);
    assert!(!other.share.others_may_release());
    other.turn(0.0, 0);
    assert!(other.requested);
}
