//! The limits of all runs of a command together.

use crate::work::record::WorkRecord;
use agent_core::budget_share::BudgetCap;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_core::work::WorkStopReason;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_runtime::clock::Clock;
use agent_session::total_budget::TotalBudget;
use std::rc::Rc;
use std::time::Duration;

/// Longest time at the end of the limit of time in which no run begins.
const MAX_TIME_UNUSED: Duration = Duration::from_secs(1);

/// Maximum cost, tokens and time of a command. They bound each of its runs too.
pub struct WorkLimits {
    budget: Rc<TotalBudget>,
    time: Option<Duration>,
    clock: Rc<Clock>,
    started_at: Duration,
}

impl WorkLimits {
    /// Takes `--budget`, `--max-tokens` and `--timeout` out of the request of the runs, as limits of all runs of `record` together.
    ///
    /// # Errors
    /// Fails for a budget that is no amount of money.
    pub fn take(clock: &Rc<Clock>, request: &mut RunRequest, record: &WorkRecord) -> AppResult<Self> {
        let usd = request.overrides.budget.take().map(Usd::try_from).transpose();
        let usd = usd.map_err(|error| AppError::new(FailureKind::Usage, error.to_string()))?;
        let budget = TotalBudget::new(BudgetCap { usd, tokens: request.overrides.max_tokens.take() });
        budget.add_used(record.used());
        let taken = record.ended_runs().iter().map(|run| run.result.duration_seconds).sum();
        let time = request.overrides.timeout.take().map(Duration::from_secs);
        let time = time.map(|time| time.saturating_sub(Duration::from_secs_f64(taken)));
        Ok(Self { budget: Rc::new(budget), time, clock: Rc::clone(clock), started_at: clock.elapsed() })
    }

    /// Returns the limits of a part of the command, which has at most `time`.
    #[must_use]
    pub fn within(&self, time: Option<Duration>) -> Self {
        let time = [self.time_left(), time].into_iter().flatten().min();
        let (budget, clock) = (Rc::clone(&self.budget), Rc::clone(&self.clock));
        Self { budget, time, started_at: clock.elapsed(), clock }
    }

    /// Returns the remaining time; `None` without a limit.
    pub fn time_left(&self) -> Option<Duration> {
        let elapsed = self.clock.elapsed().saturating_sub(self.started_at);
        self.time.map(|time| time.saturating_sub(elapsed))
    }

    /// Returns the limit that is reached. That of time is with a tenth of it left, at most a second: a run that was bounded by it ends that
    /// early, and no other one could do anything.
    pub fn reached(&self) -> Option<WorkStopReason> {
        if self.budget.is_used_up() {
            return Some(WorkStopReason::BudgetExceeded);
        }
        let is_over =
            self.time.is_some_and(|time| self.time_left() <= Some((time / 10).min(MAX_TIME_UNUSED)));
        is_over.then_some(WorkStopReason::Timeout)
    }

    /// Returns the request of the next run, which shares the budget and has the time that is left, or the limit that is reached.
    ///
    /// # Errors
    /// The reason why no run can follow.
    pub fn for_next_run(&self, request: &RunRequest) -> Result<RunRequest, WorkStopReason> {
        if let Some(reason) = self.reached() {
            return Err(reason);
        }
        let mut request = request.clone();
        request.total_budget = Some(Rc::clone(&self.budget));
        request.bounds.timeout = [request.bounds.timeout, self.time_left()].into_iter().flatten().min();
        Ok(request)
    }
}
