//! Finding the price of a model.

use super::cost::Cost;
use super::rate::Price;
use crate::provider::known::{find_row, strip_snapshot};
use crate::provider::model_ref::ModelRef;
use crate::provider::usage::Usage;

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
    /// Prices that override list prices; earlier ones win.
    overrides: Vec<(ModelRef, Price)>,
}

impl Prices {
    /// Returns the built-in prices.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Adds prices that override the present ones.
    #[must_use]
    pub fn with_overrides(mut self, prices: impl IntoIterator<Item = (ModelRef, Price)>) -> Self {
        self.overrides.splice(0..0, prices);
        self
    }

    /// Returns the price of a model, looked up by its name and then by its name without a snapshot date.
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        let ids = [Some(model.id.as_str()), strip_snapshot(&model.id)];
        let overridden = ids.into_iter().flatten().find_map(|id| {
            let is_same = |(other, _): &&(ModelRef, Price)| other.provider == model.provider && other.id == id;
            self.overrides.iter().find(is_same).map(|(_, price)| *price)
        });
        let listed = overridden.or_else(|| find_row(model).map(|row| row.price));
        listed.or_else(|| model.provider.profile().is_free.then_some(Price::FREE))
    }

    /// Returns the cost of one request; `None` if the price or the number of tokens is unknown. Requests are priced one
    /// by one because long ones may cost more per token.
    pub fn cost(&self, model: &ModelRef, usage: Usage) -> Option<Cost> {
        let price = self.price(model)?;
        // Some servers do not report token counts.
        let is_counted = usage.input_tokens > 0 || usage.output_tokens > 0;
        (is_counted || price == Price::FREE).then(|| price.cost(usage))
    }
}
