//! The limits of all runs of a command together.

use crate::cli::commands::run_args::RunOptions;
use crate::cli::commands::work::record::WorkRecord;
use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::core::price::Usd;
use crate::core::work::WorkStopReason;
use crate::runtime::clock::Clock;
use std::rc::Rc;
use std::time::Duration;

/// Maximum cost and time of a command. Both are bounds of each of its runs too.
pub struct WorkLimits {
    budget: Option<Usd>,
    time: Option<Duration>,
    clock: Rc<Clock>,
    started_at: Duration,
}

impl WorkLimits {
    /// Creates the limits of a command that starts now, whose runs before took `used`. `budget` is in US dollars, `seconds` is
    /// the time.
    ///
    /// # Errors
    /// Fails for a budget that is no amount of money.
    pub fn new(
        clock: &Rc<Clock>,
        budget: Option<f64>,
        seconds: Option<u64>,
        used: Duration,
    ) -> CliResult<Self> {
        let budget = budget.map(Usd::try_from).transpose();
        let budget = budget.map_err(|error| CliError::new(FailureKind::Usage, error.to_string()))?;
        let time = seconds.map(|seconds| Duration::from_secs(seconds).saturating_sub(used));
        Ok(Self { budget, time, clock: Rc::clone(clock), started_at: clock.elapsed() })
    }

    /// Returns the options of the next run, whose bounds are what is left, or the limit that is reached.
    ///
    /// # Errors
    /// The reason why no run can follow.
    pub fn for_next_run(
        &self,
        options: &RunOptions,
        record: &WorkRecord,
    ) -> Result<RunOptions, WorkStopReason> {
        let left = self.budget.map(|budget| budget.saturating_sub(record.spent()));
        if left == Some(Usd::default()) {
            return Err(WorkStopReason::BudgetExceeded);
        }
        let elapsed = self.clock.elapsed().saturating_sub(self.started_at);
        let time = self.time.map(|time| time.saturating_sub(elapsed));
        if time == Some(Duration::ZERO) {
            return Err(WorkStopReason::Timeout);
        }
        let mut options = options.clone();
        options.bounds.budget = [options.bounds.budget, left].into_iter().flatten().min();
        options.bounds.timeout = [options.bounds.timeout, time].into_iter().flatten().min();
        Ok(options)
    }
}
