//! Amounts of money.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::iter::Sum;

const PICODOLLARS_PER_DOLLAR: u128 = 1_000_000_000_000;
/// The largest number of dollars that is accepted.
const MAX_DOLLARS: f64 = 1e6;

/// An amount of money: an exact number of picodollars.
///
/// ```
/// use patter_core::provider::price::Cost;
/// let cost = Cost::from_picodollars(12_300_000_000);
/// assert_eq!((cost.to_string(), cost.dollars()), ("$0.0123".to_owned(), 0.0123));
/// assert_eq!(Cost::FREE.to_string(), "$0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cost(u128);

/// The cost of several requests, possibly to different models.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::provider::price::{Bill, Prices};
/// let prices = Prices::builtin();
/// let mut bill = Bill::default();
/// let usage = Usage { input_tokens: 1_000_000, ..Usage::default() };
/// bill.add(prices.cost(&"OpenAI/gpt-4o-mini".parse().unwrap(), usage));
/// assert_eq!(bill.total().unwrap().to_string(), "$0.15");
/// bill.add(prices.cost(&"OpenAI/unheard-of".parse().unwrap(), usage));
/// assert_eq!(bill.total(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Bill {
    #[serde(rename = "picodollars")]
    known: Cost,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_unknown: bool,
}

impl Cost {
    /// No cost.
    pub const FREE: Self = Self(0);

    /// Returns a number of picodollars, each a millionth of a millionth of a dollar.
    pub const fn from_picodollars(amount: u128) -> Self {
        Self(amount)
    }

    /// Returns the number of picodollars.
    pub const fn picodollars(self) -> u128 {
        self.0
    }

    /// Returns a number of dollars, rounded to the nearest picodollar; `None` if it is negative, not a number or above a
    /// million.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (0.0..=MAX_DOLLARS).contains(&dollars).then(|| Self((dollars * PICODOLLARS_PER_DOLLAR as f64).round() as u128))
    }

    /// Returns what is left of this amount after another one was spent, at least nothing.
    #[must_use]
    pub const fn saturating_sub(self, spent: Self) -> Self {
        Self(self.0.saturating_sub(spent.0))
    }

    /// Returns the number of dollars, as precisely as a float can represent it.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PICODOLLARS_PER_DOLLAR as f64
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        Self(costs.fold(0, |sum, Cost(cost)| sum.saturating_add(cost)))
    }
}

/// Shows three significant digits, and at least cents: `$0.000123`, `$12.50`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::FREE {
            return f.write_str("$0");
        }
        // The position of the first digit, where 0 is a picodollar.
        let first = self.0.ilog10();
        let unit = 10_u128.pow(first.saturating_sub(2).min(10));
        let rounded = self.0.saturating_add(unit / 2) / unit * unit;
        let fraction = format!("{:012}", rounded % PICODOLLARS_PER_DOLLAR);
        let (cents, rest) = fraction.split_at_checked(2).unwrap_or((&fraction, ""));
        write!(f, "${}.{cents}{}", rounded / PICODOLLARS_PER_DOLLAR, rest.trim_end_matches('0'))
    }
}

/// Written as a number of picodollars. Amounts beyond 18 million dollars are written as that.
impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(self.0).unwrap_or(u64::MAX))
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u64::deserialize(deserializer).map(|amount| Self(u128::from(amount)))
    }
}

impl From<Option<Cost>> for Bill {
    fn from(cost: Option<Cost>) -> Self {
        let mut bill = Self::default();
        bill.add(cost);
        bill
    }
}

/// Shows the total, or what is known of it: `$0.0123`, `at least $0.0123`, `cost unknown`.
impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.total(), self.known) {
            (Some(total), _) => total.fmt(f),
            (None, Cost::FREE) => f.write_str("cost unknown"),
            (None, known) => write!(f, "at least {known}"),
        }
    }
}

impl Bill {
    /// A bill of a request whose cost is not known.
    pub const UNKNOWN: Self = Self { known: Cost::FREE, has_unknown: true };

    /// Returns whether nothing was spent.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the sum of the costs that are known.
    pub const fn known(&self) -> Cost {
        self.known
    }

    /// Adds another bill.
    pub fn add_all(&mut self, other: Self) {
        self.add(Some(other.known));
        self.has_unknown |= other.has_unknown;
    }

    /// Adds the cost of a request, which may be unknown.
    pub fn add(&mut self, cost: Option<Cost>) {
        match cost {
            Some(cost) => self.known = [self.known, cost].into_iter().sum(),
            None => self.has_unknown = true,
        }
    }

    /// Returns the total; `None` if the cost of any request is unknown.
    pub fn total(&self) -> Option<Cost> {
        (!self.has_unknown).then_some(self.known)
    }
}
