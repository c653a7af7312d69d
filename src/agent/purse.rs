//! Money and tokens: what is spent, what is set aside for the calls under way, and what is left of a cap.

use crate::price::Usd;
use std::ops::Add;

/// Money and tokens together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// US dollars.
    pub usd: Usd,
    /// Tokens.
    pub tokens: u64,
}

impl Amount {
    fn less(self, other: Self) -> Self {
        Self { usd: self.usd.less(other.usd), tokens: self.tokens.saturating_sub(other.tokens) }
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { usd: self.usd + other.usd, tokens: self.tokens.saturating_add(other.tokens) }
    }
}

/// What calls are paid from. Any number of them may be under way at once: the worst case of each is set aside before it
/// goes out, so that what they cost together is never more than was there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purse {
    /// Reported by the provider, or assumed where it was not.
    spent: Amount,
    /// The most that the calls under way can cost.
    set_aside: Amount,
}

impl Purse {
    /// What was spent.
    pub fn spent(&self) -> Amount {
        self.spent
    }

    /// What is spent or may yet be by the calls under way.
    pub fn bound(&self) -> Amount {
        self.spent + self.set_aside
    }

    /// A call goes out that can cost `most`.
    pub fn reserve(&mut self, most: Amount) {
        self.set_aside = self.set_aside + most;
    }

    /// A call for which `most` was set aside is over and cost `actual`.
    pub fn settle(&mut self, most: Amount, actual: Amount) {
        self.set_aside = self.set_aside.less(most);
        self.spend(actual);
    }

    /// Something was spent for which nothing is returned: what is set aside stays so.
    pub fn spend(&mut self, amount: Amount) {
        self.spent = self.spent + amount;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What one of several runs that share a purse does next.
    #[derive(Debug, Clone)]
    enum Act {
        /// Wants to make a call of at most so much, and makes it if that is there.
        Ask { run: usize, most: u64 },
        /// Its call is over: answered with this share of what it may cost, or broken off and billed in full.
        End { run: usize, share: Option<u8> },
        /// Its call broke off, may have been billed, and is repeated if that is there.
        Again { run: usize },
    }

    const RUNS: usize = 4;

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let run = 0..RUNS;
        let act = prop_oneof![
            (run.clone(), 0u64..500).prop_map(|(run, most)| Act::Ask { run, most }),
            (run.clone(), prop::option::of(any::<u8>())).prop_map(|(run, share)| Act::End { run, share }),
            run.prop_map(|run| Act::Again { run }),
        ];
        prop::collection::vec(act, 0..200)
    }

    proptest! {
        #[test]
        fn l12_runs_that_share_a_purse_never_spend_more_than_is_in_it(acts in acts(), cap in 0u64..5_000) {
            let mut purse = Purse::default();
            let mut under_way = [None; RUNS];
            let mut billed = 0;
            let amount = |tokens: u64| Amount { usd: Usd::ZERO, tokens };
            for act in acts {
                match act {
                    Act::Ask { run, most } => {
                        if under_way[run].is_none() && purse.bound().tokens + most <= cap {
                            purse.reserve(amount(most));
                            under_way[run] = Some(most);
                        }
                    }
                    Act::End { run, share } => {
                        let Some(most) = under_way[run].take() else { continue };
                        let actual = share.map_or(most, |share| most * u64::from(share) / 255);
                        billed += actual;
                        purse.settle(amount(most), amount(actual));
                    }
                    Act::Again { run } => {
                        let Some(most) = under_way[run] else { continue };
                        billed += most;
                        purse.spend(amount(most));
                        if purse.bound().tokens > cap {
                            purse.settle(amount(most), Amount::default());
                            under_way[run] = None;
                        }
                    }
                }
                let open: u64 = under_way.iter().flatten().sum();
                prop_assert!(billed + open <= cap, "{billed} and {open} of {cap}");
                prop_assert_eq!(purse.bound().tokens, billed + open);
            }
        }
    }
}
