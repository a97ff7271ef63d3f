//! The sections `[models.PROVIDER]` and `[prices."PROVIDER/MODEL"]` of `patter.toml`.

use patter_core::name::ModelRef;
use patter_core::price::{Price, Prices, Rate, RateError, Rates};
use serde::Deserialize;

/// What a model costs, in dollars for a million tokens.
///
/// ```
/// use patter::project::Config;
/// let text = "[prices.'OpenAI/gpt-4o-mini']\ninput = 0.15\ncached = 0.075\noutput = 0.60";
/// let prices = Config::parse(text).unwrap().prices();
/// assert!(prices.price(&"OpenAI/gpt-4o-mini".parse().unwrap()).is_some());
/// assert!(Config::parse(&text.replace("0.15", "-0.15")).unwrap_err().contains("a price is a number of dollars"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriceConfig {
    /// What is read.
    pub input: Dollars,
    /// What is read from a cache; as the rest of the input where nothing is said.
    pub cached: Option<Dollars>,
    /// What is written to a cache; as the rest of the input where nothing is said.
    pub cache_write: Option<Dollars>,
    /// What is written.
    pub output: Dollars,
}

/// A number of dollars for a million tokens.
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
        Price { rates, long: None }
    }
}

/// Puts the prices of a project before the built-in ones.
pub(super) fn prices<'p>(ours: impl IntoIterator<Item = (&'p ModelKey, &'p PriceConfig)>) -> Prices {
    Prices::builtin().with(ours.into_iter().map(|(ModelKey(model), price)| (model.clone(), price.price())))
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
        let hinted = |error: patter_core::name::ModelError| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        name.parse().map(Self).map_err(hinted)
    }
}
