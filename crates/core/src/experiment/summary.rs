//! The trials of an arm, summarized.

use super::trial::Trial;
use crate::provider::price::{Bill, Cost};
use crate::stats::Interval;
use crate::stats::distribution::normal_quantile;
use serde::Serialize;
use std::collections::HashMap;

/// The probability that an interval misses the true value.
const ALPHA: f64 = 0.05;

/// A summary of the trials of an arm.
///
/// ```
/// use patter_core::experiment::{Trial, summarize};
/// let trials = [10, 20, 30].map(|latency_ms| Trial { passed: true, latency_ms, ..Trial::default() });
/// let summary = summarize(&trials);
/// assert_eq!((summary.runs, summary.passed, summary.latency_p50_ms), (3, 3, Some(20)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The number of trials.
    pub runs: usize,
    /// The number of trials that passed.
    pub passed: usize,
    /// The number of trials without an answer.
    pub failed: usize,
    /// The mean pass rate of the cases.
    pub pass_rate: Option<f64>,
    /// The 95% confidence interval of the pass rate.
    pub pass_interval: Option<Interval>,
    /// The median latency of the trials with an answer.
    pub latency_p50_ms: Option<u64>,
    /// The 95th percentile of the latency of the trials with an answer.
    pub latency_p95_ms: Option<u64>,
    /// The total number of tokens.
    pub tokens: u64,
    /// The total cost, if known. Its JSON is a number of dollars.
    #[serde(serialize_with = "super::trial::dollars::serialize")]
    pub cost: Option<Cost>,
    /// The total number of model calls.
    pub model_calls: u64,
    /// The total number of tool calls.
    pub tool_calls: u64,
}

/// Summarizes the trials of an arm.
pub fn summarize<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> ArmSummary {
    let trials: Vec<_> = trials.into_iter().collect();
    let mut latencies: Vec<_> =
        trials.iter().filter(|trial| trial.failure.is_none()).map(|trial| trial.latency_ms).collect();
    latencies.sort_unstable();
    let mut bill = Bill::default();
    trials.iter().for_each(|trial| bill.add(trial.cost));
    let rates = case_rates(&trials);
    let pass_rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    // The case is the unit, because runs of one case are alike. Where they differ, this errs on the safe side.
    let pass_interval = pass_rate.and_then(|rate| wilson(rate, rates.len()));
    ArmSummary {
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

impl ArmSummary {
    /// Divides a sum by the number of trials.
    pub fn mean(&self, sum: u64) -> Option<f64> {
        (self.runs > 0).then(|| sum as f64 / self.runs as f64)
    }
}

/// Returns the pass rate of each case.
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

/// Returns the Wilson score interval (1927).
fn wilson(rate: f64, count: usize) -> Option<Interval> {
    if count == 0 {
        return None;
    }
    let n = count as f64;
    let z = normal_quantile(1.0 - ALPHA / 2.0);
    let middle = (rate + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    Some(Interval { low: (middle - half).max(0.0), high: (middle + half).min(1.0) })
}

/// Returns the smallest value that at least `percent` of the sorted values do not exceed.
fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}
