//! Money and tokens: what is spent, what is set aside for the calls under way, and what is left of a cap.

use crate::core::price::Usd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// Money and tokens together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// US dollars.
    pub usd: Usd,
    /// Tokens.
    pub tokens: u64,
}

impl Amount {
    fn saturating_sub(self, other: Self) -> Self {
        Self { usd: self.usd.saturating_sub(other.usd), tokens: self.tokens.saturating_sub(other.tokens) }
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetShare {
    /// Reported by the provider, or assumed where it was not.
    spent: Amount,
    /// The most that the calls under way can cost.
    set_aside: Amount,
}

impl BudgetShare {
    /// What was spent.
    pub fn spent(&self) -> Amount {
        self.spent
    }

    /// What is spent or may yet be by the calls under way.
    pub fn committed(&self) -> Amount {
        self.spent + self.set_aside
    }

    /// A call goes out that can cost `most`.
    pub fn reserve(&mut self, most: Amount) {
        self.set_aside = self.set_aside + most;
    }

    /// A call for which `most` was set aside is over and cost `actual`.
    pub fn settle(&mut self, most: Amount, actual: Amount) {
        self.set_aside = self.set_aside.saturating_sub(most);
        self.spend(actual);
    }

    /// Something was spent for which nothing is returned: what is set aside stays so.
    pub fn spend(&mut self, amount: Amount) {
        self.spent = self.spent + amount;
    }
}
