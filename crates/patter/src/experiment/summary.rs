//! What the runs of an arm are like together.

use super::Trial;
use patter_core::provider::price::{Bill, Cost};
use patter_core::stats::Interval;
use patter_core::stats::distribution::normal_quantile;
use serde::Serialize;
use std::collections::HashMap;

/// How often an interval may miss.
const ALPHA: f64 = 0.05;

/// The runs of an arm, in numbers.
///
/// ```
/// use patter::experiment::{Trial, summary};
/// let trials = [10, 20, 30].map(|latency_ms| Trial { passed: true, latency_ms, ..Trial::default() });
/// let summary = summary(&trials);
/// assert_eq!((summary.runs, summary.passed, summary.latency_p50_ms), (3, 3, Some(20)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// How many runs there are.
    pub runs: usize,
    /// How many of them passed.
    pub passed: usize,
    /// How many of them gave no answer.
    pub failed: usize,
    /// The share that passed, over cases.
    pub pass_rate: Option<f64>,
    /// Where the true share is, with a probability of 95 %.
    pub pass_interval: Option<Interval>,
    /// How long half of the runs that gave an answer took at most.
    pub latency_p50_ms: Option<u64>,
    /// How long 95 % of them took at most.
    pub latency_p95_ms: Option<u64>,
    /// All tokens.
    pub tokens: u64,
    /// What all runs cost, where that is known. Its JSON is a number of dollars.
    #[serde(serialize_with = "super::report::dollars::serialize")]
    pub cost: Option<Cost>,
    /// How often the model was called.
    pub model_calls: u64,
    /// How often tools were called.
    pub tool_calls: u64,
}

/// Sums up the runs of an arm.
pub fn summary<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> Summary {
    let trials: Vec<_> = trials.into_iter().collect();
    let mut latencies: Vec<_> =
        trials.iter().filter(|trial| trial.failure.is_none()).map(|trial| trial.latency_ms).collect();
    latencies.sort_unstable();
    let mut bill = Bill::default();
    trials.iter().for_each(|trial| bill.add(trial.cost));
    let rates = case_rates(&trials);
    let pass_rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    // The case is the unit, as runs of one case are alike; that they may differ makes this only more careful.
    let pass_interval = pass_rate.and_then(|rate| wilson(rate, rates.len()));
    Summary {
        runs: trials.len(),
        passed: trials.iter().filter(|trial| trial.passed).count(),
        failed: trials.iter().filter(|trial| trial.failure.is_some()).count(),
        pass_rate,
        pass_interval,
        latency_p50_ms: percentile(&latencies, 50),
        latency_p95_ms: percentile(&latencies, 95),
        tokens: trials.iter().map(|trial| trial.tokens()).sum(),
        cost: bill.total(),
        model_calls: trials.iter().map(|trial| u64::from(trial.model_calls)).sum(),
        tool_calls: trials.iter().map(|trial| trial.tools.len() as u64).sum(),
    }
}

impl Summary {
    /// Returns a sum for each run.
    pub fn mean(&self, sum: u64) -> Option<f64> {
        (self.runs > 0).then(|| sum as f64 / self.runs as f64)
    }
}

/// Returns the share of each case that passed.
fn case_rates(trials: &[&Trial]) -> Vec<f64> {
    let mut order = Vec::new();
    let mut counts: HashMap<&str, (f64, f64)> = HashMap::new();
    for trial in trials {
        let count = counts.entry(&trial.case).or_insert_with(|| {
            order.push(trial.case.as_str());
            (0.0, 0.0)
        });
        *count = (count.0 + f64::from(u8::from(trial.passed)), count.1 + 1.0);
    }
    order.iter().filter_map(|case| counts.get(case)).map(|(passed, runs)| passed / runs).collect()
}

/// Returns the score interval of Wilson (1927).
fn wilson(rate: f64, count: usize) -> Option<Interval> {
    if count == 0 {
        return None;
    }
    let (n, z) = (count as f64, normal_quantile(1.0 - ALPHA / 2.0));
    let middle = (rate + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    Some(Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) })
}

/// Returns the smallest value that a share of all, in hundredths, does not exceed.
fn percentile(sorted: &[u64], share: usize) -> Option<u64> {
    let rank = (sorted.len() * share).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}
