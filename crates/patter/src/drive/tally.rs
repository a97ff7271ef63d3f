//! The cost of runs, computed from their events.

use super::event::{RunEvent, RunEventKind};
use patter_core::message::conversation::Usage;
use patter_core::provider::ModelRef;
use patter_core::provider::price::{Bill, Cost, Prices};
use std::sync::{Mutex, PoisonError};

/// The total cost of model replies, including those of agents that other agents call. A listener passes it the events.
///
/// ```
/// use patter::drive::{RunEvent, RunEventKind, Tally};
/// use patter::message::conversation::Usage;
/// use patter::provider::price::Prices;
///
/// let tally = Tally::new(Prices::builtin());
/// let usage = Usage { input_tokens: 1000, output_tokens: 10, ..Usage::default() };
/// let kind = RunEventKind::Replied { model: "OpenAI/gpt-4o-mini".into(), usage, calls: 0, finish: "stop".into() };
/// tally.record(&RunEvent { agent: "greeter".into(), depth: 0, kind });
/// assert_eq!(tally.cost().unwrap().to_string(), "$0.000156");
/// ```
#[derive(Debug)]
pub struct Tally {
    prices: Prices,
    bill: Mutex<Bill>,
    usage: Mutex<Usage>,
}

impl Tally {
    /// Returns an empty tally.
    pub fn new(prices: Prices) -> Self {
        Self { prices, bill: Mutex::default(), usage: Mutex::default() }
    }

    /// Adds the cost of an event.
    pub fn record(&self, event: &RunEvent) {
        if let RunEventKind::Replied { model, usage, .. } = &event.kind {
            let cost = model.parse::<ModelRef>().ok().and_then(|model| self.prices.cost(&model, *usage));
            self.bill.lock().unwrap_or_else(PoisonError::into_inner).add(cost);
            *self.usage.lock().unwrap_or_else(PoisonError::into_inner) += *usage;
        }
    }

    /// Returns how many tokens all replies used.
    pub fn usage(&self) -> Usage {
        *self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the total cost, or `None` if the cost of some reply is unknown.
    pub fn cost(&self) -> Option<Cost> {
        self.bill.lock().unwrap_or_else(PoisonError::into_inner).total()
    }
}
