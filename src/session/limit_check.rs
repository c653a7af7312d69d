//! Checks the limits of a run before each model call.

use agent_core::limits::Limits;
use agent_core::stop_reason::StopReason;
use std::time::Duration;

/// Current values that the limits are compared with.
#[derive(Debug, Clone, Copy)]
pub struct LimitReadings {
    /// Model calls of this run so far.
    pub steps: u32,
    /// Malformed calls in a row.
    pub malformed: u32,
    /// Time since the run started.
    pub elapsed: Duration,
    /// Whether the next step no longer fits into the budget.
    pub over_budget: bool,
    /// Whether a model call exceeded its time limit.
    pub step_timed_out: bool,
    /// Whether the conversation no longer fits into the model's window.
    pub context_full: bool,
    /// The stop reason of a breaker.
    pub breaker_stop: Option<StopReason>,
}

/// Returns the limit that is reached, in the documented order: steps, budget, timeout, context, breakers.
pub fn reached_limit(limits: &Limits, readings: LimitReadings) -> Option<StopReason> {
    let timed_out = readings.step_timed_out || limits.work_time().is_some_and(|end| readings.elapsed >= end);
    if readings.steps >= limits.max_steps {
        Some(StopReason::MaxSteps)
    } else if readings.over_budget {
        Some(StopReason::BudgetExceeded)
    } else if timed_out {
        Some(StopReason::Timeout)
    } else if readings.context_full {
        Some(StopReason::ContextFull)
    } else if limits.max_malformed > 0 && readings.malformed >= limits.max_malformed {
        Some(StopReason::ConsecutiveErrors)
    } else {
        readings.breaker_stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::compaction::CompactionLimits;
    use agent_core::evaluation::EvaluationLimits;
    use agent_core::language::Language;
    use agent_core::limits::{BreakerLimits, FallbackChain, OnLimit, SpendingCaps};

    fn limits() -> Limits {
        Limits {
            max_steps: 5,
            timeout: Some(Duration::from_secs(100)),
            step_timeout: Some(Duration::from_secs(30)),
            on_limit: OnLimit::Summary,
            max_continuations: 3,
            max_malformed: 3,
            breakers: BreakerLimits::default(),
            warns_when_low: false,
            language: Language::En,
            caps: SpendingCaps::default(),
            models: FallbackChain::default(),
            tools_bytes: 0,
            gate_rounds: None,
            compaction: CompactionLimits::default(),
            evaluation: EvaluationLimits::default(),
            review_passes: None,
        }
    }

    fn readings() -> LimitReadings {
        LimitReadings {
            steps: 0,
            malformed: 0,
            elapsed: Duration::ZERO,
            over_budget: false,
            step_timed_out: false,
            context_full: false,
            breaker_stop: None,
        }
    }

    #[test]
    fn no_limit_is_reached_at_the_start() {
        assert_eq!(reached_limit(&limits(), readings()), None);
    }

    #[test]
    fn steps_win_over_the_budget_the_budget_over_time_time_over_the_window_and_that_over_breakers() {
        let breaker_stop = LimitReadings { breaker_stop: Some(StopReason::RepeatedCall), ..readings() };
        assert_eq!(reached_limit(&limits(), breaker_stop), Some(StopReason::RepeatedCall));
        let full = LimitReadings { context_full: true, malformed: 3, ..breaker_stop };
        assert_eq!(reached_limit(&limits(), full), Some(StopReason::ContextFull));
        let late = LimitReadings { elapsed: Duration::from_secs(99), ..full };
        assert_eq!(reached_limit(&limits(), late), Some(StopReason::Timeout));
        let over = LimitReadings { over_budget: true, ..late };
        assert_eq!(reached_limit(&limits(), over), Some(StopReason::BudgetExceeded));
        assert_eq!(reached_limit(&limits(), LimitReadings { steps: 5, ..over }), Some(StopReason::MaxSteps));
        let malformed = LimitReadings { malformed: 3, ..readings() };
        assert_eq!(reached_limit(&limits(), malformed), Some(StopReason::ConsecutiveErrors));
        assert_eq!(reached_limit(&Limits { max_malformed: 0, ..limits() }, malformed), None);
    }

    #[test]
    fn work_ends_early_enough_for_the_closing_call() {
        assert_eq!(limits().work_time(), Some(Duration::from_secs(90)));
        let long = Limits { timeout: Some(Duration::from_mins(100)), ..limits() };
        assert_eq!(long.work_time(), Some(Duration::from_mins(99)));
        assert_eq!(limits().step_time(Duration::from_secs(80)), Some(Duration::from_secs(10)));
        assert_eq!(limits().closing_time(Duration::from_secs(90)), Duration::from_secs(10));
        assert_eq!(limits().closing_time(Duration::from_secs(101)), Duration::ZERO);
    }
}
