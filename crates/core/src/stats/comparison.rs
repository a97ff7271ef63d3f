//! The options and the result of a comparison.

use super::{Conclusion, ExperimentError, Interval, IntervalMethod, Metric, MetricKind, MetricVerdict, Relevance};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Options of a comparison.
///
/// ```
/// use patter_core::stats::{CompareOptions, Stopping};
/// let options = CompareOptions { seed: 42, ..CompareOptions::default() };
/// assert_eq!((options.alpha, options.power, options.stopping), (0.05, 0.8, Stopping::Fixed));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CompareOptions {
    /// The accepted probability of a false positive in the first metric, see [`gatekeep`](super::gatekeep); intervals have a
    /// confidence of `1 − alpha`.
    pub alpha: f64,
    /// The probability of detecting a true difference that plans aim for.
    pub power: f64,
    /// The number of resamples of cases and signs, from 100 to a million.
    pub resamples: usize,
    /// The seed of all random draws.
    pub seed: u64,
    /// How the end of the experiment was determined.
    pub stopping: Stopping,
}

/// How the end of an experiment was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// By a number of cases fixed in advance.
    Fixed,
    /// By interim results. Tests and intervals are those of [`Sequential`](super::Sequential), with the cases in the order
    /// of their numbers. That must be the order in which they were drawn, up to the first that is not complete: the order in
    /// which cases end depends on their results. Ratios are compared by difference, so that the first 0 does not change
    /// the method; their margin is a share of the baseline's mean.
    Anytime,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The arm that the others were compared with.
    pub baseline: String,
    /// The options.
    pub options: CompareOptions,
    /// One contrast per arm and metric: first all metrics of the first arm after the baseline.
    pub contrasts: Vec<Contrast>,
    /// The verdicts on each arm, as a sentence.
    pub summaries: Vec<ArmStatistics>,
}

/// The verdicts on an arm, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArmStatistics {
    /// The arm.
    pub arm: String,
    /// All verdicts in one sentence.
    #[serde(rename = "words")]
    pub text: String,
}

/// The comparison of one metric of an arm with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contrast {
    /// The arm.
    pub arm: String,
    /// The metric.
    pub metric: Metric,
    /// How it was compared: as the metric says, but ratios by difference if some values are not positive, or with interim
    /// results.
    pub kind: MetricKind,
    /// The smallest difference that matters, on the scale of the comparison: if a ratio is compared by difference, a share
    /// of the baseline's mean.
    pub margin: f64,
    /// The numbers of cases and pairs.
    pub counts: PairCounts,
    /// The mean under the baseline, over cases.
    pub baseline_mean: Option<f64>,
    /// The mean under the arm, over cases.
    pub arm_mean: Option<f64>,
    /// The effect: a difference of rates, a ratio of geometric means, or a difference of means.
    pub effect: Option<Estimate>,
    /// The difference of means, if the effect is a ratio.
    pub difference: Option<Estimate>,
    /// The mean difference divided by its standard deviation over cases: Cohen's d for pairs, on the scale of the effect.
    pub standardized: Option<f64>,
    /// The probability that the arm is better in a case, counting ties as one half.
    pub superiority: Option<f64>,
    /// The test of no difference.
    pub test: Option<TestResult>,
    /// What it would take to detect the margin; `None` if the experiment has no fixed end.
    pub plan: Option<PowerPlan>,
    /// The verdict.
    pub verdict: MetricVerdict,
}

/// The numbers of cases and pairs behind a contrast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairCounts {
    /// The cases compared.
    pub cases: usize,
    /// The pairs compared: as many as cases, unless there are repeats.
    pub pairs: usize,
    /// The pairs left out because a value is missing.
    pub incomplete: usize,
    /// The cases in which the arm is better.
    pub better: usize,
    /// The cases in which both arms are equal.
    pub same: usize,
    /// The cases in which the arm is worse.
    pub worse: usize,
}

/// An estimate with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The confidence interval at level `1 − alpha`, not adjusted for other metrics. `None` if no case varies, or if there are
    /// too few cases for an interval that says anything.
    pub interval: Option<Interval>,
    /// The method behind the interval.
    pub method: Option<IntervalMethod>,
}

/// The result of a test of no difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TestResult {
    /// The test.
    pub method: TestMethod,
    /// The p-value.
    pub p: f64,
    /// The p-value adjusted for other metrics and arms, see [`gatekeep`](super::gatekeep).
    pub adjusted: f64,
}

/// The kind of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestMethod {
    /// The exact McNemar test.
    #[serde(rename = "mcnemar")]
    McNemar,
    /// The sign-flip test with all signs.
    SignFlip,
    /// The sign-flip test with random signs.
    SignFlipDrawn,
    /// A test that is valid at any time.
    Anytime,
}

/// What it would take to detect a difference as large as the margin, corrected for all tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PowerPlan {
    /// The smallest difference this experiment could detect, on the scale of the margin.
    pub detectable: Option<f64>,
    /// The number of cases needed to detect the margin, with the current number of repeats.
    pub cases: Option<usize>,
    /// The correlation between repeats of a case, if there are repeats.
    pub correlation: Option<f64>,
}

/// An error comparing arms.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CompareError {
    /// The experiment is invalid.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// An option is invalid.
    #[error("`{name}` must be {expected}")]
    Option {
        /// The test.
        name: &'static str,
        /// What is expected.
        expected: &'static str,
    },
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { alpha: 0.05, power: 0.8, resamples: 10_000, seed: 0, stopping: Stopping::Fixed }
    }
}

impl CompareOptions {
    pub(super) fn check(&self) -> Result<(), CompareError> {
        let invalid = |name, expected| Err(CompareError::Option { name, expected });
        if !(self.alpha > 0.0 && self.alpha < 0.5) {
            return invalid("alpha", "between 0 and 0.5");
        }
        if !(self.power >= 0.5 && self.power < 1.0) {
            return invalid("power", "at least 0.5 and below 1");
        }
        if !(100..=1_000_000).contains(&self.resamples) {
            return invalid("resamples", "from 100 to 1000000");
        }
        Ok(())
    }
}

impl Contrast {
    /// Creates a contrast without results.
    pub(super) fn unmeasured(arm: &str, metric: &Metric, kind: MetricKind, counts: PairCounts) -> Self {
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
            verdict: MetricVerdict {
                conclusion: Conclusion::Unmeasured,
                relevance: Relevance::Unknown,
                text: String::new(),
                predicate: None,
                notes: Vec::new(),
            },
        }
    }
}

impl Estimate {
    /// Transforms the estimate by an increasing function.
    pub(super) fn map(self, function: fn(f64) -> f64) -> Self {
        let interval =
            self.interval.map(|Interval { low, high }| Interval { low: function(low), high: function(high) });
        Self { value: function(self.value), interval, ..self }
    }
}
