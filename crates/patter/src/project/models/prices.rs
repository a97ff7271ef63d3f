//! The sections `[prices."PROVIDER/MODEL"]`.

use patter_core::provider::price::{Price, Prices, Rate, RateError, Rates};
use patter_core::provider::{ModelRef, ModelRefError};
use serde::Deserialize;

/// The price of a model, in dollars per million tokens.
///
/// ```
/// use patter::project::Config;
/// let text = "[prices.'OpenAI/gpt-4o-mini']\ninput = 0.15\ncached = 0.075\noutput = 0.60";
/// let prices = Config::parse(text).unwrap().prices();
/// assert!(prices.price(&"OpenAI/gpt-4o-mini".parse().unwrap()).is_some());
/// assert!(Config::parse(&text.replace("0.15", "-0.15")).unwrap_err().contains("a price must be between 0 and"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriceConfig {
    /// Input.
    pub input: Dollars,
    /// Input that is read from a cache; by default the price of input.
    pub cached: Option<Dollars>,
    /// Input that is written to a cache; by default the price of input.
    pub cache_write: Option<Dollars>,
    /// Output.
    pub output: Dollars,
}

/// A number of dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Dollars(Rate);

/// The name of a model as the key of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelKey(ModelRef);

impl PriceConfig {
    fn price(self) -> Price {
        let Dollars(input) = self.input;
        let or_input = |dollars: Option<Dollars>| dollars.map_or(input, |Dollars(rate)| rate);
        let rates = Rates {
            input,
            cached: or_input(self.cached),
            cache_write: or_input(self.cache_write),
            output: self.output.0,
        };
        Price { rates, long_context: None }
    }
}

/// Returns the built-in prices, overridden by those of a project.
pub(in crate::project) fn prices<'p>(overrides: impl IntoIterator<Item = (&'p ModelKey, &'p PriceConfig)>) -> Prices {
    let overrides = overrides.into_iter().map(|(ModelKey(model), price)| (model.clone(), price.price()));
    Prices::builtin().with_overrides(overrides)
}

impl TryFrom<f64> for Dollars {
    type Error = RateError;

    fn try_from(dollars: f64) -> Result<Self, RateError> {
        Rate::try_from(dollars).map(Self)
    }
}

impl TryFrom<String> for ModelKey {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse().map(Self).map_err(|error: ModelRefError| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
    }
}
