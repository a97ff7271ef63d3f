//! Prices per token.

use super::cost::Cost;
use crate::provider::usage::Usage;
use thiserror::Error;

/// The number of picodollars per token in a dollar per million tokens.
const PICODOLLARS: f64 = 1e6;
/// The highest price in dollars per million tokens; anything above is more likely a typo.
const MAX_DOLLARS: f64 = 1e6;

/// The price of a token.
///
/// ```
/// use patter_core::provider::price::Rate;
/// assert_eq!(Rate::try_from(0.15).unwrap(), Rate::per_million(0.15));
/// assert_eq!(Rate::try_from(-1.0).unwrap_err().to_string(), "a price must be between 0 and 1000000 dollars");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u64);

/// An error about a number that is not a valid price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a price must be between 0 and {MAX_DOLLARS} dollars")]
pub struct RateError;

/// The prices of the tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// Input.
    pub input: Rate,
    /// Input that is read from a cache.
    pub cached: Rate,
    /// Input that is written to a cache.
    pub cache_write: Rate,
    /// Output, including reasoning.
    pub output: Rate,
}

/// The price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// The rates of a request.
    pub rates: Rates,
    /// The rates of requests with more input tokens than this number, if they differ.
    pub long_context: Option<(u64, Rates)>,
}

impl Rate {
    const FREE: Self = Self(0);

    /// Returns the rate for a price in dollars per million tokens. This is for prices in source code: use `try_from` to
    /// validate a number.
    pub const fn per_million(dollars: f64) -> Self {
        // Rounds to the nearest integer. Prices have at most six decimal places.
        Self((dollars * PICODOLLARS + 0.5) as u64)
    }

    /// Returns the price of a million tokens.
    pub fn million(self) -> Cost {
        self.cost(1_000_000)
    }

    fn cost(self, tokens: u64) -> Cost {
        Cost::from_picodollars(u128::from(tokens) * u128::from(self.0))
    }
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    fn try_from(dollars: f64) -> Result<Self, RateError> {
        if (0.0..=MAX_DOLLARS).contains(&dollars) { Ok(Self::per_million(dollars)) } else { Err(RateError) }
    }
}

impl Rates {
    /// Returns the rates of requests that exceed the standard context: input costs twice as much, output half as much
    /// again.
    pub(in crate::provider) const fn long_context(self) -> Self {
        let Self { input, cached, cache_write, output } = self;
        Self {
            input: Rate(input.0 * 2),
            cached: Rate(cached.0 * 2),
            cache_write: Rate(cache_write.0 * 2),
            output: Rate(output.0 * 3 / 2),
        }
    }
}

impl Price {
    /// The price of models that cost nothing.
    pub const FREE: Self = Self {
        rates: Rates { input: Rate::FREE, cached: Rate::FREE, cache_write: Rate::FREE, output: Rate::FREE },
        long_context: None,
    };

    /// Returns the most that a request with so many tokens can cost, cached or not.
    ///
    /// ```
    /// use patter_core::provider::price::{Price, Prices};
    /// let price = Prices::builtin().price(&"OpenAI/gpt-4o-mini".parse().unwrap()).unwrap();
    /// assert_eq!(price.most(1_000_000, 1_000_000).to_string(), "$0.75");
    /// ```
    pub fn most(&self, input_tokens: u64, output_tokens: u64) -> Cost {
        let most = |rates: &Rates| {
            let input = rates.input.0.max(rates.cached.0).max(rates.cache_write.0);
            [Rate(input).cost(input_tokens), rates.output.cost(output_tokens)].into_iter().sum::<Cost>()
        };
        let long = self.long_context.map(|(_, rates)| most(&rates));
        most(&self.rates).max(long.unwrap_or(Cost::FREE))
    }

    /// Returns the cost of a request.
    pub(super) fn cost(&self, usage: Usage) -> Cost {
        let rates = match self.long_context {
            Some((above, rates)) if usage.input_tokens > above => rates,
            _ => self.rates,
        };
        let uncached = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let costs = [
            rates.input.cost(uncached),
            rates.cached.cost(usage.cached_tokens),
            rates.cache_write.cost(usage.cache_write_tokens),
            rates.output.cost(usage.output_tokens),
        ];
        costs.into_iter().sum()
    }
}
