//! The trials of an arm, summarized.

use super::trial::{Trial, TrialOutcome};
use crate::provider::price::{Bill, Cost};
use crate::stats::distribution::normal_quantile;
use crate::stats::{Interval, common_multiple};
use indexmap::IndexMap;
use serde::Serialize;

/// The probability that an interval misses the true value.
const ALPHA: f64 = 0.05;

/// A summary of the trials of an arm.
///
/// ```
/// use patter_core::experiment::{Trial, summarize};
/// let trials = [10, 20, 30].map(|latency_ms| Trial { passed: true, latency_ms, ..Trial::default() });
/// let summary = summarize(&trials);
/// assert_eq!((summary.runs, summary.passed, summary.latency_p50_ms), (3, 3, Some(20)));
/// assert_eq!((summary.errors, summary.pass_rate), (0, Some(1.0)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The number of trials.
    pub runs: usize,
    /// The number of trials that passed.
    pub passed: usize,
    /// The number of trials without an answer.
    pub failed: usize,
    /// The number of trials in which the agent did not answer, or not within its limits. They count as not passed.
    pub unanswered: usize,
    /// The number of trials that ended with an error of the infrastructure, which says nothing about the answers.
    pub errors: usize,
    /// The mean pass rate of the cases, without trials that ended with an error.
    pub pass_rate: Option<f64>,
    /// The 95% confidence interval of the pass rate.
    pub pass_interval: Option<Interval>,
    /// The median latency of the trials with an answer.
    pub latency_p50_ms: Option<u64>,
    /// The 95th percentile of the latency of the trials with an answer.
    pub latency_p95_ms: Option<u64>,
    /// The number of tokens of the trials with an answer.
    pub tokens: u64,
    /// The total cost of all trials, if known. Its JSON is a number of dollars.
    #[serde(serialize_with = "super::trial::dollars::serialize")]
    pub cost: Option<Cost>,
    /// The cost of the trials with an answer, if known. Its JSON is a number of dollars.
    #[serde(serialize_with = "super::trial::dollars::serialize")]
    pub answered_cost: Option<Cost>,
    /// The number of model calls of the trials with an answer.
    pub model_calls: u64,
    /// The number of tool calls of the trials with an answer.
    pub tool_calls: u64,
}

/// Summarizes the trials of an arm.
pub fn summarize<'t>(trials: impl IntoIterator<Item = &'t Trial>) -> ArmSummary {
    let trials: Vec<_> = trials.into_iter().collect();
    // What a run without an answer used says nothing about what an answer takes.
    let answered = || trials.iter().filter(|trial| trial.failure.is_none());
    let mut latencies: Vec<_> = answered().map(|trial| trial.latency_ms).collect();
    latencies.sort_unstable();
    let bill = |trials: &mut dyn Iterator<Item = &&Trial>| {
        let mut bill = Bill::default();
        trials.for_each(|trial| bill.add(trial.cost));
        bill.total()
    };
    let counts = case_counts(&trials, None);
    let pass_rate = mean_rate(&counts);
    // The case is the unit, because runs of one case are alike. Where they differ, this errs on the safe side.
    let pass_interval = pass_rate.and_then(|rate| wilson(rate, counts.len()));
    ArmSummary {
        runs: trials.len(),
        passed: trials.iter().filter(|trial| trial.passed).count(),
        failed: trials.iter().filter(|trial| trial.failure.is_some()).count(),
        unanswered: trials
            .iter()
            .filter(|trial| trial.failure.is_some() && trial.outcome() == TrialOutcome::NotPassed)
            .count(),
        errors: trials.iter().filter(|trial| trial.outcome() == TrialOutcome::Error).count(),
        pass_rate,
        pass_interval,
        latency_p50_ms: percentile(&latencies, 50),
        latency_p95_ms: percentile(&latencies, 95),
        tokens: answered().map(|trial| trial.tokens()).sum(),
        cost: bill(&mut trials.iter()),
        answered_cost: bill(&mut answered()),
        model_calls: answered().map(|trial| u64::from(trial.model_calls)).sum(),
        tool_calls: answered().map(|trial| trial.tools.len() as u64).sum(),
    }
}

impl ArmSummary {
    /// Returns the number of trials with an answer.
    pub const fn answered(&self) -> usize {
        self.runs - self.failed
    }

    /// Returns the number of trials that passed or did not, without those that ended with an error.
    pub const fn decided(&self) -> usize {
        self.runs - self.errors
    }

    /// Divides a sum by the number of trials with an answer.
    pub fn mean(&self, sum: u64) -> Option<f64> {
        (self.answered() > 0).then(|| sum as f64 / self.answered() as f64)
    }

    /// Returns the mean cost of the trials with an answer in dollars, if known.
    pub fn mean_cost(&self) -> Option<f64> {
        // One division, so that the result is the number closest to the quotient.
        let cost = self.answered_cost.filter(|_| self.answered() > 0)?;
        Some(cost.picodollars() as f64 / (1e12 * self.answered() as f64))
    }
}

/// The number of trials of a case that passed, and of all that count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PassCount {
    passed: usize,
    runs: usize,
}

/// Counts the trials of each case that passed. Errors are left out, or count as `errors` says.
pub(super) fn case_counts(trials: &[&Trial], errors: Option<TrialOutcome>) -> Vec<PassCount> {
    let mut counts: IndexMap<&str, PassCount> = IndexMap::new();
    for trial in trials {
        let outcome = match (trial.outcome(), errors) {
            (TrialOutcome::Error, Some(outcome)) => outcome,
            (outcome, _) => outcome,
        };
        if outcome != TrialOutcome::Error {
            let count = counts.entry(&trial.case).or_default();
            count.passed += usize::from(outcome == TrialOutcome::Passed);
            count.runs += 1;
        }
    }
    counts.into_values().collect()
}

/// Returns the mean pass rate of cases. It is a single quotient of counts, because a sum of rounded rates may end up just
/// below a threshold that the counts meet exactly.
pub(super) fn mean_rate(cases: &[PassCount]) -> Option<f64> {
    /// The largest number up to which all integers are floating-point numbers.
    const MAX_EXACT: usize = 1 << 53;
    let multiple = cases.iter().map(|case| case.runs).reduce(common_multiple)?;
    let total = multiple.saturating_mul(cases.len());
    if total > MAX_EXACT {
        let rates = cases.iter().map(|case| case.passed as f64 / case.runs as f64);
        return Some(rates.sum::<f64>() / cases.len() as f64);
    }
    let passed: usize = cases.iter().map(|case| case.passed * (multiple / case.runs)).sum();
    Some(passed as f64 / total as f64)
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
