//! The budget that all runs of a process share (`--budget-total`).

use crate::cli::error::{CliError, CliResult};
use crate::core::failure::FailureKind;
use crate::core::price::Usd;
use std::cell::Cell;

/// Parses the amount of `--budget-total`.
///
/// # Errors
/// For an amount that is not valid.
pub fn parse_total(dollars: f64) -> CliResult<Usd> {
    Usd::try_from(dollars)
        .map_err(|error| CliError::new(FailureKind::Usage, format!("--budget-total: {error}")))
}

/// Money that runs share. A run reserves the most that it may cost before it starts, because others may start while it works.
#[derive(Debug)]
pub struct TotalBudget {
    left: Cell<Usd>,
}

impl TotalBudget {
    /// Creates a budget of which nothing is spent.
    pub fn new(total: Usd) -> Self {
        Self { left: Cell::new(total) }
    }

    /// Reserves the budget of a run: `most`, or everything that is left if that is less. `None` if nothing is left.
    pub fn reserve(&self, most: Option<Usd>) -> Option<Usd> {
        let left = self.left.get();
        let reserved = most.map_or(left, |most| most.min(left));
        self.left.set(left.saturating_sub(reserved));
        (left > Usd::ZERO).then_some(reserved)
    }

    /// Returns what a run did not spend.
    pub fn release(&self, unspent: Usd) {
        self.left.set(self.left.get() + unspent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Runs start and end in any order; each spends at most what it has reserved.
        #[test]
        fn runs_never_spend_more_than_the_total(steps in prop::collection::vec((0_u64..200, any::<bool>(), 0_u64..300), 1..60)) {
            let total = Usd::from_picodollars(1_000);
            let budget = TotalBudget::new(total);
            let (mut running, mut spent) = (Vec::new(), Usd::ZERO);
            for (most, is_start, cost) in steps {
                if is_start {
                    let most = (most > 0).then(|| Usd::from_picodollars(most));
                    running.extend(budget.reserve(most));
                } else if let Some(reserved) = running.pop() {
                    let cost = reserved.min(Usd::from_picodollars(cost));
                    spent += cost;
                    budget.release(reserved.saturating_sub(cost));
                }
                let reserved = running.iter().fold(Usd::ZERO, |sum, one| sum + *one);
                prop_assert_eq!(spent + reserved + budget.left.get(), total);
            }
        }
    }

    #[test]
    fn a_run_without_a_budget_of_its_own_reserves_everything_until_it_ends() {
        let budget = TotalBudget::new(Usd::from_picodollars(10));
        let all = budget.reserve(None).unwrap();
        assert_eq!((all, budget.reserve(None)), (Usd::from_picodollars(10), None));
        budget.release(Usd::from_picodollars(4));
        assert_eq!(budget.reserve(Some(Usd::from_picodollars(9))), Some(Usd::from_picodollars(4)));
    }
}
