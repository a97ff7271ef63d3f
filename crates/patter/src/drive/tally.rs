//! What runs cost, by what is heard of them.

use super::{RunEvent, RunEventKind};
use patter_core::provider::ModelRef;
use patter_core::provider::price::{Bill, Cost, Prices};
use std::sync::{Mutex, PoisonError};

/// Adds up what the replies of models cost, also those of agents that other agents call. A listener tells it what
/// happens.
///
/// ```
/// use patter::message::conversation::Usage;
/// use patter::drive::{RunEventKind, RunEvent, Tally};
/// use patter::provider::price::Prices;
///
/// let tally = Tally::new(Prices::builtin());
/// let usage = Usage { input_tokens: 1000, output_tokens: 10, ..Usage::default() };
/// let happened = RunEventKind::Replied { model: "OpenAI/gpt-4o-mini".into(), usage, calls: 0 };
/// tally.hear(&RunEvent { agent: "greeter".into(), depth: 0, happened });
/// assert_eq!(tally.cost().unwrap().to_string(), "$0.000156");
/// ```
#[derive(Debug)]
pub struct Tally {
    prices: Prices,
    bill: Mutex<Bill>,
}

impl Tally {
    /// Returns a tally of nothing yet.
    pub fn new(prices: Prices) -> Self {
        Self { prices, bill: Mutex::default() }
    }

    /// Hears what happened.
    pub fn hear(&self, event: &RunEvent) {
        if let RunEventKind::Replied { model, usage, .. } = &event.kind {
            let cost = model.parse::<ModelRef>().ok().and_then(|model| self.prices.cost(&model, *usage));
            self.bill.lock().unwrap_or_else(PoisonError::into_inner).add(cost);
        }
    }

    /// Returns what all of it cost; nothing where a part is not known.
    pub fn cost(&self) -> Option<Cost> {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner).total()
    }
}
