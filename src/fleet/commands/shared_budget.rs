//! A worker within the money of a day of all workers (`fleet.budget_usd`): each run may cost its `--budget`, which is reserved before.

use crate::commands::claim::AttemptRun;
use crate::commands::context::WorkerContext;
use crate::day_budget::{DAY_BUDGET, DayBudget};
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::price::Usd;
use agent_messages as messages;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_terminal::Style;
use std::cell::Cell;

/// The money of a day.
pub struct SharedBudget {
    /// In US dollars, of all workers.
    limit: f64,
    /// What one run may cost.
    of_run: f64,
    /// Reservations of this worker so far.
    count: Cell<u64>,
    /// Whether the last reservation was refused.
    is_used_up: Cell<bool>,
}

/// An amount that is reserved.
#[derive(Debug)]
pub struct Reservation(String);

impl SharedBudget {
    /// Returns the limit of the configuration, if there is one.
    ///
    /// # Errors
    /// Fails if the runs have no budget that could be reserved.
    pub fn new(settings: &Settings, request: &RunRequest) -> AppResult<Option<Self>> {
        let Some(limit) = settings.fleet.budget_usd else { return Ok(None) };
        let of_run = request.overrides.budget.or(settings.costs.budget_usd).ok_or_else(|| {
            let why = "fleet.budget_usd needs a limit for each run: `--budget`, or costs.budget_usd";
            AppError::new(FailureKind::Config, why)
        })?;
        Ok(Some(Self { limit, of_run, count: Cell::default(), is_used_up: Cell::default() }))
    }

    /// Checks whether nothing was left for a run when the worker last asked.
    pub fn is_used_up(&self) -> bool {
        self.is_used_up.get()
    }

    /// Reserves the cost of a run for the worker called `name`; `None` if it does not fit, which is logged once.
    ///
    /// # Errors
    /// Fails when the queue cannot be used.
    pub async fn reserve(&self, worker: &WorkerContext<'_>, name: &str) -> AppResult<Option<Reservation>> {
        self.count.set(self.count.get() + 1);
        let id = format!("{name}-{}", self.count.get());
        let now = worker.now();
        let reserve = |budget: &mut DayBudget| budget.reserve(&id, self.of_run, self.limit, now);
        let Some(fits) = worker.or_later(worker.queue.change_value(DAY_BUDGET, reserve).await)? else {
            return Ok(None);
        };
        if !fits && !self.is_used_up.get() {
            worker.log(Style::Warning, &messages::day_budget_used(self.limit, worker.language));
        }
        self.is_used_up.set(!fits);
        Ok(fits.then_some(Reservation(id)))
    }

    /// Returns the request of a worker whose runs cost at most what is reserved for each.
    pub fn bounded(budget: Option<&Self>, mut request: RunRequest) -> RunRequest {
        let of_run = budget.and_then(|budget| Usd::try_from(budget.of_run).ok());
        request.bounds.budget = [request.bounds.budget, of_run].into_iter().flatten().min();
        request
    }

    /// Counts what a run has cost of what was reserved for it: nothing without a run, all of it for one that has begun and has no result.
    ///
    /// # Errors
    /// Fails when the queue cannot be used.
    pub async fn settle(
        &self,
        worker: &WorkerContext<'_>,
        Reservation(id): Reservation,
        run: &AttemptRun,
    ) -> AppResult<()> {
        let spent = match run.get() {
            Some(run) if run.requests > 0 => run.cost.total_usd.map(f64::from),
            None if run.has_begun() => None,
            _ => Some(0.0),
        };
        let settle = |budget: &mut DayBudget| budget.settle(&id, spent);
        worker.until_answered(async || worker.queue.change_value(DAY_BUDGET, settle).await).await
    }
}
