//! The money of a day that all workers of a queue share (`fleet.budget_usd`): reserved before a task is claimed, settled when its attempt has
//! ended. What a killed worker had reserved stays reserved for the day.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the value in the queue's store.
pub const DAY_BUDGET: &str = "day-budget";
/// Seconds of a day (UTC).
const DAY: u64 = 24 * 60 * 60;

/// What is used of the money of a day, in US dollars.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DayBudget {
    day: u64,
    spent: f64,
    reserved: BTreeMap<String, f64>,
    /// What was reserved the day before: a run that goes on counts when it ends, and one that was killed no longer does.
    earlier: BTreeMap<String, f64>,
}

impl DayBudget {
    /// Reserves `amount` under the name `id` if that is within `limit`; returns whether it was. `now` is in seconds since the Unix epoch.
    pub fn reserve(&mut self, id: &str, amount: f64, limit: f64, now: u64) -> bool {
        // A clock that is set back, or that of another machine, begins no new day.
        if now / DAY > self.day {
            let earlier = std::mem::take(&mut self.reserved);
            *self = Self { day: now / DAY, earlier, ..Self::default() };
        }
        let used = self.spent + self.reserved.values().sum::<f64>();
        let fits = used + amount <= limit + f64::EPSILON;
        if fits {
            self.reserved.insert(id.to_owned(), amount);
        }
        fits
    }

    /// Counts what was spent of a reserved amount; `None`: it is not known, and the whole amount counts.
    pub fn settle(&mut self, id: &str, spent: Option<f64>) {
        if let Some(reserved) = self.reserved.remove(id).or_else(|| self.earlier.remove(id)) {
            self.spent += spent.unwrap_or(reserved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_and_spent_stays_within_the_limit_of_a_day() {
        let mut budget = DayBudget::default();
        assert!(budget.reserve("a", 0.5, 1.0, 10) && budget.reserve("b", 0.5, 1.0, 10));
        assert!(!budget.reserve("c", 0.01, 1.0, 10));
        budget.settle("a", Some(0.1));
        assert!(budget.reserve("c", 0.4, 1.0, 10) && !budget.reserve("d", 0.1, 1.0, 10));
        budget.settle("b", None);
        budget.settle("c", Some(0.0));
        budget.settle("c", Some(9.0));
        assert!(budget.reserve("d", 0.4, 1.0, 10) && !budget.reserve("e", 0.1, 1.0, 10));
        assert!(budget.reserve("e", 1.0, 1.0, DAY + 10), "the next day");
        assert!(!budget.reserve("f", 0.1, 1.0, 20), "another clock");
    }

    #[test]
    fn a_run_over_midnight_counts_on_the_day_on_which_it_ends() {
        let mut budget = DayBudget::default();
        assert!(budget.reserve("a", 0.6, 1.0, DAY - 1) && budget.reserve("b", 0.4, 1.0, DAY - 1));
        assert!(budget.reserve("c", 0.4, 1.0, DAY + 1));
        budget.settle("a", Some(0.5));
        assert!(!budget.reserve("d", 0.2, 1.0, DAY + 2) && budget.reserve("d", 0.1, 1.0, DAY + 2));
    }
}
