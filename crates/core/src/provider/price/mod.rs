//! The cost of requests.
//!
//! Each provider has a table of list prices in dollars, taken from public price collections on [`AS_OF`]. Projects can
//! override them with [`Prices::with_overrides`]. A price belongs to a model name, whichever server runs the model. The
//! cost of a model without a price is unknown, which is not the same as free; nothing is estimated.
//!
//! Sums are exact: costs are whole numbers of picodollars, and so is the price of each token.

mod cost;
mod rate;
mod prices;

pub use cost::{Bill, Cost};
pub use prices::Prices;
pub use rate::{Price, Rate, RateError, Rates};

/// The date of the built-in prices.
pub const AS_OF: &str = "2026-08-21";
