//! What requests cost.
//!
//! The built-in table has list prices in dollars, as public collections of them had it on [`AS_OF`]. They change, so a
//! project may say others, and [`Prices::with`] puts them first. Prices go by the name of a model, whoever serves it. What
//! has no price costs an unknown amount, which is not the same as nothing: there is no guess.
//!
//! Sums are exact: all is counted in whole picodollars, and a price per million tokens is a whole number of them for each
//! token.

use super::{ModelRef, Provider, Usage};
use std::fmt;
use std::iter::Sum;
use thiserror::Error;

/// The day of the built-in prices.
pub const AS_OF: &str = "2026-08-21";

/// How many picodollars for a token are a dollar for a million tokens.
const PER_MILLION: f64 = 1e6;
/// The highest price, in dollars for a million tokens: a slip of the keyboard is more likely than one above it.
const HIGHEST: f64 = 1e6;
const PICODOLLARS: u128 = 1_000_000_000_000;

/// An amount of money: an exact number of picodollars.
///
/// ```
/// use patter_core::provider::price::Cost;
/// let cost = Cost::picodollars(12_300_000_000);
/// assert_eq!((cost.to_string(), cost.dollars()), ("$0.0123".to_owned(), 0.0123));
/// assert_eq!(Cost::FREE.to_string(), "$0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cost(u128);

/// What a token costs.
///
/// ```
/// use patter_core::provider::price::Rate;
/// assert_eq!(Rate::try_from(0.15).unwrap(), Rate::per_million(0.15));
/// assert_eq!(Rate::try_from(-1.0).unwrap_err().to_string(), "a price is a number of dollars from 0 to 1000000");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u64);

/// Why a number is no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a price is a number of dollars from 0 to {HIGHEST}")]
pub struct RateError;

/// What the tokens of a request cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// What is read.
    pub input: Rate,
    /// What is read from a cache.
    pub cached: Rate,
    /// What is read and written to a cache.
    pub cache_write: Rate,
    /// What is written, thoughts included.
    pub output: Rate,
}

/// What a model costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// What requests cost.
    pub rates: Rates,
    /// What requests cost that read more tokens than this, where that is something else.
    pub long: Option<(u64, Rates)>,
}

/// The list price of a model.
#[derive(Debug, Clone, Copy)]
pub struct PriceRow {
    /// The name of the model at its provider.
    pub id: &'static str,
    /// Its price.
    pub price: Price,
}

/// The prices of models.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::provider::price::Prices;
/// let usage = Usage { input_tokens: 1000, cached_tokens: 400, output_tokens: 100, ..Usage::default() };
/// let cost = |model: &str| Prices::builtin().cost(&model.parse().unwrap(), usage).map(|cost| cost.to_string());
/// assert_eq!(cost("OpenAI/gpt-4o-mini").as_deref(), Some("$0.00018"));
/// assert_eq!(cost("OpenAI/gpt-4o-mini-2024-07-18"), cost("OpenAI/gpt-4o-mini"));
/// assert_eq!(cost("Ollama/llama3.2").as_deref(), Some("$0"));
/// assert_eq!(cost("OpenAI/gpt-4o-mini-tts"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    ours: Vec<(ModelRef, Price)>,
}

/// What several requests cost, also of different models.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::provider::price::{Bill, Prices};
/// let (prices, mut bill) = (Prices::builtin(), Bill::default());
/// let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
/// bill.add(prices.cost(&"OpenAI/gpt-4o-mini".parse().unwrap(), usage));
/// assert_eq!(bill.total().unwrap().to_string(), "$0.15");
/// bill.add(prices.cost(&"OpenAI/unheard-of".parse().unwrap(), usage));
/// assert_eq!(bill.total(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bill {
    known: Cost,
    has_unknown: bool,
}

impl Prices {
    /// Returns the built-in prices.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Puts other prices before those that are there.
    #[must_use]
    pub fn with(mut self, prices: impl IntoIterator<Item = (ModelRef, Price)>) -> Self {
        self.ours.splice(0..0, prices);
        self
    }

    /// Returns the price of a model: by its name, else by its name without the date of a snapshot.
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        let ids = [Some(model.id.as_str()), undated(&model.id)];
        let listed = ids.into_iter().flatten().find_map(|id| {
            let is_it = |(ours, _): &&(ModelRef, Price)| ours.provider == model.provider && ours.id == id;
            let ours = self.ours.iter().find(is_it).map(|(_, price)| *price);
            ours.or_else(|| list_price(model.provider, id))
        });
        listed.or_else(|| model.provider.profile().is_free.then_some(Price::FREE))
    }

    /// Returns what one request cost; nothing where the price or the number of tokens is not known. Requests are priced
    /// one by one, as long ones may cost more for each token.
    pub fn cost(&self, model: &ModelRef, usage: Usage) -> Option<Cost> {
        let price = self.price(model)?;
        // Some servers do not count.
        let is_counted = usage.input_tokens > 0 || usage.output_tokens > 0;
        (is_counted || price == Price::FREE).then(|| price.of(usage))
    }
}

impl Price {
    /// The price of what costs nothing.
    pub const FREE: Self = {
        let free = Rate(0);
        Self { rates: Rates { input: free, cached: free, cache_write: free, output: free }, long: None }
    };

    /// Returns what a request cost.
    fn of(&self, usage: Usage) -> Cost {
        let Rates { input, cached, cache_write, output } = match self.long {
            Some((above, rates)) if usage.input_tokens > above => rates,
            _ => self.rates,
        };
        let plain = usage.input_tokens.saturating_sub(usage.cached_tokens).saturating_sub(usage.cache_write_tokens);
        let parts = [
            (plain, input),
            (usage.cached_tokens, cached),
            (usage.cache_write_tokens, cache_write),
            (usage.output_tokens, output),
        ];
        parts.into_iter().map(|(tokens, Rate(rate))| Cost(u128::from(tokens) * u128::from(rate))).sum()
    }
}

impl Rate {
    /// Returns the rate of a price in dollars for a million tokens, for prices that are written in a program; what is no
    /// price counts as nothing.
    pub const fn per_million(dollars: f64) -> Self {
        // Rounds to the nearest; a price has at most six places after the point.
        Self((dollars * PER_MILLION + 0.5) as u64)
    }
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    fn try_from(dollars: f64) -> Result<Self, RateError> {
        if (0.0..=HIGHEST).contains(&dollars) { Ok(Self::per_million(dollars)) } else { Err(RateError) }
    }
}

impl Bill {
    /// Adds what a request cost, which may be unknown.
    pub fn add(&mut self, cost: Option<Cost>) {
        match cost {
            Some(cost) => self.known = [self.known, cost].into_iter().sum(),
            None => self.has_unknown = true,
        }
    }

    /// Returns what all of it cost; nothing where a part is not known.
    pub fn total(&self) -> Option<Cost> {
        (!self.has_unknown).then_some(self.known)
    }
}

impl Cost {
    /// Nothing.
    pub const FREE: Self = Self(0);

    /// Returns an amount of picodollars, a millionth of a millionth of a dollar each.
    pub const fn picodollars(amount: u128) -> Self {
        Self(amount)
    }

    /// Returns an amount of dollars, to the nearest picodollar; nothing where it is none, or above a million dollars.
    pub fn of_dollars(dollars: f64) -> Option<Self> {
        (0.0..=HIGHEST).contains(&dollars).then(|| Self((dollars * PICODOLLARS as f64).round() as u128))
    }

    /// Returns the dollars, as near as a number of this type comes.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PICODOLLARS as f64
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        Self(costs.fold(0, |sum, Cost(cost)| sum.saturating_add(cost)))
    }
}

/// Shows three digits that say something, and cents at least: `$0.000123`, `$12.50`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FREE {
            return f.write_str("$0");
        }
        // The place of the first digit, counted from a picodollar on.
        let first = self.0.ilog10();
        let unit = 10_u128.pow(first.saturating_sub(2).min(10));
        let rounded = self.0.saturating_add(unit / 2) / unit * unit;
        let fraction = format!("{:012}", rounded % PICODOLLARS);
        let (cents, rest) = fraction.split_at_checked(2).unwrap_or((&fraction, ""));
        write!(f, "${}.{cents}{}", rounded / PICODOLLARS, rest.trim_end_matches('0'))
    }
}

fn list_price(provider: Provider, id: &str) -> Option<Price> {
    provider.profile().prices.iter().find(|row| row.id == id).map(|row| row.price)
}

/// A model with one price each for input, cached input and output, in dollars per million tokens.
pub(super) const fn row(id: &'static str, input: f64, cached: f64, output: f64) -> PriceRow {
    let input = Rate::per_million(input);
    let rates =
        Rates { input, cached: Rate::per_million(cached), cache_write: input, output: Rate::per_million(output) };
    PriceRow { id, price: Price { rates, long: None } }
}

/// Doubles the input price and raises the output price by half for requests with more than `above` input tokens.
pub(super) const fn long_context(row: PriceRow, above: u64) -> PriceRow {
    let Rates { input, cached, cache_write, output } = row.price.rates;
    let rates = Rates {
        input: Rate(input.0 * 2),
        cached: Rate(cached.0 * 2),
        cache_write: Rate(cache_write.0 * 2),
        output: Rate(output.0 * 3 / 2),
    };
    PriceRow { id: row.id, price: Price { rates: row.price.rates, long: Some((above, rates)) } }
}

/// Returns the name of a model without the mark of a snapshot: `-2024-07-18`, `-20250929`, `-001`, `-latest`. Anything
/// else after a name is another model, which may cost something else.
fn undated(id: &str) -> Option<&str> {
    ["-0000-00-00", "-00000000", "-000", "-latest"].into_iter().find_map(|form| {
        let (rest, mark) = id.split_at_checked(id.len().checked_sub(form.len())?)?;
        let fits = |(found, wanted): (u8, u8)| if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
        mark.bytes().zip(form.bytes()).all(fits).then_some(rest)
    })
}
