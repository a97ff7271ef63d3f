//! The cost of runs, computed from their events.

use patter_core::event::{INTERRUPTED, RunEvent, RunEventKind};
use patter_core::message::conversation::Usage;
use patter_core::provider::ModelRef;
use patter_core::provider::price::{Bill, Cost, Prices};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The total cost of model replies, including those to agents that other agents call and to tools. A listener passes it the
/// events.
///
/// ```
/// use patter::drive::{RunEvent, RunEventKind, Tally};
/// use patter::message::conversation::Usage;
/// use patter::provider::price::Prices;
///
/// let tally = Tally::new(Prices::builtin());
/// let usage = Usage { input_tokens: 1000, output_tokens: 10, ..Usage::default() };
/// let kind = RunEventKind::Replied { model: "OpenAI/gpt-4o-mini".into(), usage, calls: 0, finish: "stop".into() };
/// tally.record(&RunEvent::new("greeter", &vec![], kind));
/// assert_eq!(tally.cost().unwrap().to_string(), "$0.000156");
/// ```
#[derive(Debug)]
pub struct Tally {
    prices: Prices,
    bill: Mutex<Bill>,
    usage: Mutex<Usage>,
    /// The models of the agents that run, by agent.
    models: Mutex<HashMap<String, String>>,
}

impl Tally {
    /// Returns an empty tally.
    pub fn new(prices: Prices) -> Self {
        Self { prices, bill: Mutex::default(), usage: Mutex::default(), models: Mutex::default() }
    }

    /// Adds the cost of an event.
    pub fn record(&self, event: &RunEvent) {
        match &event.kind {
            RunEventKind::Started { model, .. } => {
                lock(&self.models).insert(event.agent.clone(), model.clone());
            }
            RunEventKind::Compacted { usage, .. } if *usage == Usage::default() => {}
            RunEventKind::Replied { model, usage, .. }
            | RunEventKind::Compacted { model, usage, .. }
            | RunEventKind::Sampled { model, usage, .. } => {
                lock(&self.bill).add(self.cost_of(model, *usage));
                *lock(&self.usage) += *usage;
            }
            RunEventKind::CostUnknown { .. } => lock(&self.bill).add(None),
            // The provider does not say what the part cost that was received.
            RunEventKind::Incomplete { finish, .. } if finish == INTERRUPTED => {
                let model = lock(&self.models).get(&event.agent).cloned().unwrap_or_default();
                let some = Usage { input_tokens: 1, output_tokens: 1, ..Usage::default() };
                lock(&self.bill).add(self.cost_of(&model, some).filter(|cost| *cost == Cost::FREE));
            }
            _ => {}
        }
    }

    fn cost_of(&self, model: &str, usage: Usage) -> Option<Cost> {
        model.parse::<ModelRef>().ok().and_then(|model| self.prices.cost(&model, usage))
    }

    /// Returns how many tokens all replies used.
    pub fn usage(&self) -> Usage {
        *lock(&self.usage)
    }

    /// Returns the costs, known or not.
    pub fn bill(&self) -> Bill {
        *lock(&self.bill)
    }

    /// Returns the total cost, or `None` if the cost of some reply is unknown.
    pub fn cost(&self) -> Option<Cost> {
        lock(&self.bill).total()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
