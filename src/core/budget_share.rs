//! Budget of money and tokens: the amounts spent, reserved for running calls, and left of a cap.

use crate::price::Usd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Add;

/// An amount of money and tokens.
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

/// The most that a run may use of a budget that runs share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetCap {
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    /// Tokens, prompts and answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// A budget that calls are paid from. Calls may run in parallel: the maximum cost of each is reserved before it is sent, so
/// that together they never exceed the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetShare {
    /// The amount reported by the provider, or the assumed amount if none was reported.
    spent: Amount,
    /// The maximum cost of the running calls.
    set_aside: Amount,
}

impl BudgetShare {
    /// Returns the amount spent.
    pub fn spent(&self) -> Amount {
        self.spent
    }

    /// Returns the amount spent and reserved.
    pub fn committed(&self) -> Amount {
        self.spent + self.set_aside
    }

    /// Reserves `most` for a call that is about to be sent.
    pub fn reserve(&mut self, most: Amount) {
        self.set_aside = self.set_aside + most;
    }

    /// Releases the reservation of `most` for a completed call, and adds its cost `actual`.
    pub fn settle(&mut self, most: Amount, actual: Amount) {
        self.set_aside = self.set_aside.saturating_sub(most);
        self.spend(actual);
    }

    /// Adds an amount that was spent without a reservation to release.
    pub fn spend(&mut self, amount: Amount) {
        self.spent = self.spent + amount;
    }
}
