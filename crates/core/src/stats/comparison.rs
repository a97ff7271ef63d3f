//! What is asked of a comparison, and what comes of it.

use super::{ExperimentError, Finding, Interval, IntervalMethod, Kind, Matters, Metric, Verdict};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How arms are compared.
///
/// ```
/// use patter_core::stats::{Options, Stopping};
/// let options = Options { seed: 42, ..Options::default() };
/// assert_eq!((options.alpha, options.power, options.stopping), (0.05, 0.8, Stopping::Fixed));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// How probable it may be that anything at all is wrongly called a difference; intervals hold with the rest.
    pub alpha: f64,
    /// How probable plans make it that a true difference is seen.
    pub power: f64,
    /// How often cases and signs are drawn again, from 100 to a million.
    pub resamples: usize,
    /// What all draws start from.
    pub seed: u64,
    /// What ended the experiment.
    pub stopping: Stopping,
}

/// What ended an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// The number of cases, which was fixed before.
    Fixed,
    /// What came out: someone looked in between. Tests and intervals are those of [`Sequential`](super::Sequential),
    /// with the cases in the order of their numbers, which must be the order in which they were run. What may be 0
    /// should be a metric of differences from the start, so that the first 0 does not change how it is compared.
    Anytime,
}

/// What came of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What the arms were compared with.
    pub baseline: String,
    /// How it was compared.
    pub options: Options,
    /// Each metric of each arm: first all metrics of the first arm after the baseline.
    pub contrasts: Vec<Contrast>,
    /// What is to be said of each arm.
    pub summaries: Vec<Summary>,
}

/// What is to be said of an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The arm.
    pub arm: String,
    /// All verdicts in one sentence.
    pub words: String,
}

/// One metric of an arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// The arm.
    pub arm: String,
    /// What was measured.
    pub metric: Metric,
    /// How it was compared: as the metric says, but by difference where some values are not above 0.
    pub kind: Kind,
    /// The smallest difference that matters, as it was compared: where a ratio cannot be, a share of the baseline's
    /// mean.
    pub margin: f64,
    /// Which pairs there are.
    pub counts: Counts,
    /// The mean under the baseline, over cases.
    pub baseline_mean: Option<f64>,
    /// The mean under the arm, over cases.
    pub arm_mean: Option<f64>,
    /// How much more the arm has: a difference of rates, a ratio of geometric means, or a difference of means.
    pub effect: Option<Estimate>,
    /// The difference of means, where the effect is a ratio.
    pub difference: Option<Estimate>,
    /// The mean difference over its standard deviation from case to case: Cohen's d for pairs, on the scale of the
    /// effect.
    pub standardized: Option<f64>,
    /// The probability that the arm does better in a case, ties counted half.
    pub superiority: Option<f64>,
    /// The test of no difference.
    pub test: Option<Test>,
    /// What it would take to see the margin; none where the experiment may go on at any time.
    pub plan: Option<Plan>,
    /// What is to be said of it.
    pub verdict: Verdict,
}

/// Which cases and pairs there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Cases that were compared.
    pub cases: usize,
    /// Pairs that were compared: as many as cases, unless there are repeats.
    pub pairs: usize,
    /// Pairs that were left out because one value or both are missing.
    pub incomplete: usize,
    /// Pairs in which a run that failed counts as not passed.
    pub failed: usize,
    /// Cases in which the arm did better.
    pub better: usize,
    /// Cases in which both did the same.
    pub same: usize,
    /// Cases in which the arm did worse.
    pub worse: usize,
}

/// A value and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Where the truth is, with a probability of `1 − alpha` for this metric by itself.
    pub interval: Option<Interval>,
    /// How the interval was found.
    pub method: Option<IntervalMethod>,
}

/// A test of no difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// Which one.
    pub method: TestMethod,
    /// The p-value.
    pub p: f64,
    /// The p-value adjusted for all metrics and arms.
    pub adjusted: f64,
}

/// Which test was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestMethod {
    /// The exact test of McNemar.
    #[serde(rename = "mcnemar")]
    McNemar,
    /// Flipped signs, all of them.
    SignFlip,
    /// Flipped signs, drawn.
    SignFlipDrawn,
    /// A test that holds at all times.
    Anytime,
}

/// What it would take to see a difference as large as the margin, corrected for all tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The smallest difference that this experiment was able to show, in the terms of the margin.
    pub detectable: Option<f64>,
    /// How many cases show a difference as large as the margin, with as many repeats as now.
    pub cases: Option<usize>,
    /// How alike repeats of a case are, where there are repeats.
    pub correlation: Option<f64>,
}

/// Why arms cannot be compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CompareError {
    /// The experiment is wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An option is wrong.
    #[error("`{name}` must be {expected}")]
    Option {
        /// Which one.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self { alpha: 0.05, power: 0.8, resamples: 10_000, seed: 0, stopping: Stopping::Fixed }
    }
}

impl Options {
    pub(super) fn check(&self) -> Result<(), CompareError> {
        let wrong = |name, expected| Err(CompareError::Option { name, expected });
        if !(self.alpha > 0.0 && self.alpha < 0.5) {
            return wrong("alpha", "between 0 and 0.5");
        }
        if !(self.power >= 0.5 && self.power < 1.0) {
            return wrong("power", "at least 0.5 and below 1");
        }
        if !(100..=1_000_000).contains(&self.resamples) {
            return wrong("resamples", "from 100 to 1000000");
        }
        Ok(())
    }
}

impl Contrast {
    /// Returns a contrast of which nothing is known yet but how many pairs there are.
    pub(super) fn unmeasured(arm: &str, metric: &Metric, kind: Kind, counts: Counts) -> Self {
        Self {
            arm: arm.to_owned(),
            metric: metric.clone(),
            kind,
            margin: metric.margin,
            counts,
            baseline_mean: None,
            arm_mean: None,
            effect: None,
            difference: None,
            standardized: None,
            superiority: None,
            test: None,
            plan: None,
            verdict: Verdict { finding: Finding::Unmeasured, matters: Matters::Unknown, words: String::new() },
        }
    }
}

impl Estimate {
    /// Returns the estimate on another scale, by a function that rises.
    pub(super) fn map(self, rising: fn(f64) -> f64) -> Self {
        let interval = self.interval.map(|Interval { low, high }| Interval { low: rising(low), high: rising(high) });
        Self { value: rising(self.value), interval, ..self }
    }
}
