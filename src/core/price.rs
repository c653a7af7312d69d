//! Amounts of money and prices of models: cost of tokens exact to a picodollar, and the maximum cost of a call.

use crate::usage::Usage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Picodollars in a US dollar.
const PICODOLLARS_PER_USD: f64 = 1e12;

/// Number of tokens that a quoted price is for.
const QUOTED_TOKENS: u64 = 1_000_000;

/// An amount of US dollars, stored in picodollars: a price of $0.000001 per million tokens is a whole number per token, so
/// sums are exact. Serialized as a number of dollars.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Usd(u64);

/// A number that is not a valid amount of money.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not an amount from 0 to 1,000,000 US dollars")]
pub struct InvalidAmount(f64);

impl Usd {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The largest valid amount; far above the cost of any run.
    pub const MAX_DOLLARS: f64 = 1_000_000.0;

    /// Multiplies the amount by `factor`.
    #[must_use]
    pub fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Divides the amount by `parts`, rounded down.
    #[must_use]
    pub fn div_floor(self, parts: u64) -> Self {
        Self(self.0.checked_div(parts).unwrap_or(0))
    }

    /// Subtracts `other`; zero if `other` is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Creates an amount from picodollars.
    pub const fn from_picodollars(count: u64) -> Self {
        Self(count)
    }

    /// Returns the amount in picodollars.
    pub const fn picodollars(self) -> u64 {
        self.0
    }

    /// Returns how many items at `price` the amount pays for; `u64::MAX` if they are free.
    pub fn affordable_count(self, price: Self) -> u64 {
        self.0.checked_div(price.0).unwrap_or(u64::MAX)
    }
}

impl std::ops::Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl TryFrom<f64> for Usd {
    type Error = InvalidAmount;

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked: a million dollars is 10^18 picodollars"
    )]
    fn try_from(dollars: f64) -> Result<Self, InvalidAmount> {
        if (0.0..=Self::MAX_DOLLARS).contains(&dollars) {
            Ok(Self((dollars * PICODOLLARS_PER_USD).round() as u64))
        } else {
            Err(InvalidAmount(dollars))
        }
    }
}

impl From<Usd> for f64 {
    #[expect(clippy::cast_precision_loss, reason = "beyond $1,000 the last picodollar does not matter")]
    fn from(amount: Usd) -> Self {
        (amount.0 as Self / PICODOLLARS_PER_USD).min(Usd::MAX_DOLLARS)
    }
}

impl std::fmt::Display for Usd {
    /// Formats the amount as `$0.0042` or `$12.3000`: four decimals, more for small amounts to show two significant digits.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dollars = f64::from(*self);
        let decimals = match self.0 {
            0 | 1_000_000_000.. => 4,
            1_000_000.. => 7,
            _ => 12,
        };
        write!(f, "${dollars:.decimals$}")
    }
}

/// Cost of one token of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRates {
    /// A prompt token.
    pub input: Usd,
    /// A generated token.
    pub output: Usd,
    /// A prompt token read from the cache.
    pub cached_read: Usd,
    /// A prompt token written to the cache.
    pub cached_write: Usd,
}

/// Prices as providers quote them, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceQuote {
    /// Prompt tokens.
    pub input: f64,
    /// Generated tokens.
    pub output: f64,
    /// Prompt tokens read from the cache; the price of `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_read: Option<f64>,
    /// Prompt tokens written to the cache; the price of `input` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_write: Option<f64>,
}

impl TryFrom<PriceQuote> for TokenRates {
    type Error = InvalidAmount;

    fn try_from(quote: PriceQuote) -> Result<Self, InvalidAmount> {
        let rate = |quoted: f64| Usd::try_from(quoted).map(|amount| amount.div_floor(QUOTED_TOKENS));
        Ok(Self {
            input: rate(quote.input)?,
            output: rate(quote.output)?,
            cached_read: rate(quote.cached_read.unwrap_or(quote.input))?,
            cached_write: rate(quote.cached_write.unwrap_or(quote.input))?,
        })
    }
}

impl TokenRates {
    fn cost(self, usage: Usage) -> Usd {
        self.input.times(usage.input)
            + self.cached_read.times(usage.cached_read)
            + self.cached_write.times(usage.cached_write)
            + self.output.times(usage.output)
    }

    /// Returns the highest rate of a prompt token.
    fn max_input_rate(self) -> Usd {
        self.input.max(self.cached_read).max(self.cached_write)
    }

    fn max_cost(self, prompt: u64, output: u64) -> Usd {
        self.max_input_rate().times(prompt) + self.output.times(output)
    }
}

/// Price of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// The default rates.
    pub rates: TokenRates,
    /// The rates of a call whose prompt is longer than this number of tokens.
    pub long: Option<(u64, TokenRates)>,
}

impl Price {
    /// Price of a model that costs nothing.
    pub const FREE: Self = Self {
        rates: TokenRates {
            input: Usd::ZERO,
            output: Usd::ZERO,
            cached_read: Usd::ZERO,
            cached_write: Usd::ZERO,
        },
        long: None,
    };

    /// Returns the cost of a call with this usage.
    pub fn cost(self, usage: Usage) -> Usd {
        match self.long {
            Some((above, rates)) if usage.prompt_tokens() > above => rates.cost(usage),
            _ => self.rates.cost(usage),
        }
    }

    /// Returns the length, in tokens, of the longest response to a prompt of `prompt` tokens that `money` is sure to pay
    /// for; `None` if it does not pay for the prompt.
    pub fn max_answer_tokens(self, prompt: u64, money: Usd) -> Option<u64> {
        let fits = |rates: TokenRates| {
            let asked = rates.max_cost(prompt, 0);
            (asked <= money).then(|| money.saturating_sub(asked).affordable_count(rates.output))
        };
        let regular = fits(self.rates)?;
        match self.long {
            Some((above, rates)) if prompt > above => fits(rates).map(|long| long.min(regular)),
            _ => Some(regular),
        }
    }

    /// Returns the maximum cost of a call with at most this many tokens in prompt and response.
    pub fn max_cost(self, prompt: u64, output: u64) -> Usd {
        let regular = self.rates.max_cost(prompt, output);
        match self.long {
            Some((above, rates)) if prompt > above => rates.max_cost(prompt, output).max(regular),
            _ => regular,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quote(input: f64, output: f64) -> PriceQuote {
        PriceQuote { input, output, cached_read: None, cached_write: None }
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let rates = TokenRates::try_from(PriceQuote { cached_read: Some(1.25), ..quote(2.5, 10.0) }).unwrap();
        let price = Price { rates, long: None };
        let usage = Usage { input: 12_000, cached_read: 500, cached_write: 0, output: 3_200, reasoning: 9 };
        let cost = price.cost(usage);
        assert!((f64::from(cost) - 0.062_625).abs() < 1e-12, "{cost}");
        assert_eq!(cost.to_string(), "$0.0626");
    }

    #[test]
    fn a_long_prompt_has_its_own_rates() {
        let (usual, long) = (quote(1.0, 2.0), quote(2.0, 4.0));
        let price = Price {
            rates: TokenRates::try_from(usual).unwrap(),
            long: Some((100, TokenRates::try_from(long).unwrap())),
        };
        let usage = |input| Usage { input, output: 1, ..Usage::default() };
        assert_eq!(price.cost(usage(100)), Usd::try_from(0.000_102).unwrap());
        assert_eq!(price.cost(usage(101)), Usd::try_from(0.000_206).unwrap());
    }

    #[test]
    fn small_amounts_keep_their_figures_and_what_is_no_money_is_refused() {
        assert_eq!(Usd::ZERO.to_string(), "$0.0000");
        assert_eq!(Usd::try_from(0.000_012).unwrap().to_string(), "$0.0000120");
        assert_eq!(Usd::try_from(12.3).unwrap().to_string(), "$12.3000");
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert!(Usd::try_from(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_call_costs_more_than_its_worst_case(
            rates in prop::array::uniform8(0.0..100.0f64),
            tokens in prop::array::uniform4(0u64..300_000),
            above in prop::option::of(1u64..400_000),
            more in prop::array::uniform2(0u64..200_000),
        ) {
            let [input, output, read, write, long_input, long_output, long_read, long_write] = rates;
            let rates = |input, output, read, write| {
                TokenRates::try_from(PriceQuote { input, output, cached_read: Some(read), cached_write: Some(write) }).unwrap()
            };
            let long = rates(long_input, long_output, long_read, long_write);
            let price = Price { rates: rates(input, output, read, write), long: above.map(|above| (above, long)) };
            let [input, cached_read, cached_write, output] = tokens;
            let usage = Usage { input, cached_read, cached_write, output, reasoning: 0 };
            let [more_prompt, more_output] = more;
            prop_assert!(price.cost(usage) <= price.max_cost(usage.prompt_tokens() + more_prompt, output + more_output));
        }

        #[test]
        fn the_longest_answer_fits_and_one_token_more_does_not(
            rates in prop::array::uniform4(0.0..100.0f64),
            prompt in 0u64..300_000,
            above in prop::option::of(1u64..400_000),
            money in 0.0..10.0f64,
        ) {
            let [input, output, long_input, long_output] = rates;
            let rates = |input, output| TokenRates::try_from(quote(input, output)).unwrap();
            let long = above.map(|above| (above, rates(long_input, long_output)));
            let price = Price { rates: rates(input, output), long };
            let money = Usd::try_from(money).unwrap();
            match price.max_answer_tokens(prompt, money) {
                Some(u64::MAX) => prop_assert!(price.max_cost(prompt, 1_000_000) <= money),
                Some(tokens) => {
                    prop_assert!(price.max_cost(prompt, tokens) <= money);
                    prop_assert!(price.max_cost(prompt, tokens + 1) > money);
                }
                None => prop_assert!(price.max_cost(prompt, 0) > money),
            }
        }

        #[test]
        fn an_amount_survives_being_written_down(pico in 0u64..1_000_000_000_000_000) {
            let amount = Usd(pico);
            let json = serde_json::to_string(&amount).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), amount);
        }
    }
}
