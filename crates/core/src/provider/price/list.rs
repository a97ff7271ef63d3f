//! Rows of the price tables of providers.

use super::rate::{Price, Rate, Rates};

/// The list price of a model.
#[derive(Debug, Clone, Copy)]
pub struct PriceRow {
    /// The name of the model at its provider.
    pub id: &'static str,
    /// Its price.
    pub price: Price,
}

/// Returns a row with the prices of input, cached input and output, in dollars per million tokens.
pub(in crate::provider) const fn row(id: &'static str, input: f64, cached: f64, output: f64) -> PriceRow {
    let input = Rate::per_million(input);
    let cached = Rate::per_million(cached);
    let output = Rate::per_million(output);
    let rates = Rates { input, cached, cache_write: input, output };
    PriceRow { id, price: Price { rates, long_context: None } }
}

/// Doubles the input price and raises the output price by half for requests with more than `above` input tokens.
pub(in crate::provider) const fn long_context(row: PriceRow, above: u64) -> PriceRow {
    let rates = row.price.rates;
    PriceRow { id: row.id, price: Price { rates, long_context: Some((above, rates.long_context())) } }
}
