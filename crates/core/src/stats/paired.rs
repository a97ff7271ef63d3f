//! Trials of an experiment, and their pairing by case and repeat.

use super::{Metric, MetricKind};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The upper bound of values. Larger ones cannot be squared and summed.
pub(super) const MAX_VALUE: f64 = 1e90;

/// Arms that were tried on the same cases, and the measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The names of the arms. The first one is the baseline that the others are compared with.
    pub arms: Vec<String>,
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// The trials, in any order.
    pub trials: Vec<TrialValues>,
}

/// The measured values of one run of a case under one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialValues {
    /// The index of the arm.
    pub arm: usize,
    /// The number of the case.
    pub case: usize,
    /// The number of the repeat. The same repeats of two arms form a pair.
    pub repeat: usize,
    /// A value for each metric, in order. `None` if it is unknown: its pair is left out.
    pub values: Vec<Option<f64>>,
}

/// The values of a metric in one repeat of a case under both arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The number of the case.
    pub case: usize,
    /// The value under the baseline.
    pub baseline: f64,
    /// The value under the other arm.
    pub arm: f64,
}

/// An error in an experiment.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    /// There are fewer than two arms.
    #[error("a comparison needs at least two arms, not {count}")]
    TooFewArms {
        /// The number of arms.
        count: usize,
    },
    /// A margin is not positive.
    #[error("the margin of `{metric}` must be a positive number")]
    InvalidMargin {
        /// The metric.
        metric: String,
    },
    /// A trial refers to an unknown arm.
    #[error("trial {trial} refers to arm {arm}, but there are {count} arms")]
    UnknownArm {
        /// The number of the trial, starting at 1.
        trial: usize,
        /// The index of the arm, starting at 0.
        arm: usize,
        /// The number of arms.
        count: usize,
    },
    /// A trial does not have one value per metric.
    #[error("trial {trial} has {found} values for {expected} metrics")]
    ValueCount {
        /// The number of the trial, starting at 1.
        trial: usize,
        /// The number of values.
        found: usize,
        /// The number of metrics.
        expected: usize,
    },
    /// A value is not finite, or too large.
    #[error("the value of `{metric}` in trial {trial} is not a number below 1e90")]
    NotANumber {
        /// The number of the trial, starting at 1.
        trial: usize,
        /// The metric.
        metric: String,
    },
    /// A pass or fail value is neither 0 nor 1.
    #[error("the value of `{metric}` in trial {trial} must be 0 or 1")]
    NotPassOrFail {
        /// The number of the trial, starting at 1.
        trial: usize,
        /// The metric.
        metric: String,
    },
    /// Two trials have the same arm, case and repeat.
    #[error("arm `{arm}` has two trials for repeat {repeat} of case {case}")]
    DuplicateTrial {
        /// The arm.
        arm: String,
        /// The number of the case.
        case: usize,
        /// The number of the repeat.
        repeat: usize,
    },
}

/// The trials of a valid experiment, by arm and sorted by case and repeat.
pub(super) struct SortedTrials<'e> {
    arms: Vec<Vec<&'e TrialValues>>,
}

/// The pairs of a metric, sorted by case.
pub(super) struct MetricPairs {
    pub(super) pairs: Vec<Pair>,
    /// The number of incomplete pairs, with a missing trial or value.
    pub(super) incomplete: usize,
}

impl<'e> SortedTrials<'e> {
    pub(super) fn new(experiment: &'e Experiment) -> Result<Self, ExperimentError> {
        let count = experiment.arms.len();
        if count < 2 {
            return Err(ExperimentError::TooFewArms { count });
        }
        if let Some(metric) =
            experiment.metrics.iter().find(|metric| !(metric.margin > 0.0 && metric.margin < MAX_VALUE))
        {
            return Err(ExperimentError::InvalidMargin { metric: metric.name.clone() });
        }
        let mut arms: Vec<Vec<&TrialValues>> = vec![Vec::new(); count];
        for (number, trial) in (1..).zip(&experiment.trials) {
            check_trial(number, trial, &experiment.metrics)?;
            let unknown = ExperimentError::UnknownArm { trial: number, arm: trial.arm, count };
            arms.get_mut(trial.arm).ok_or(unknown)?.push(trial);
        }
        for (trials, arm) in arms.iter_mut().zip(&experiment.arms) {
            trials.sort_by_key(|trial| trial.pairing_key());
            if let Some([duplicate, _]) =
                trials.array_windows().find(|[one, other]| one.pairing_key() == other.pairing_key())
            {
                return Err(ExperimentError::DuplicateTrial {
                    arm: arm.clone(),
                    case: duplicate.case,
                    repeat: duplicate.repeat,
                });
            }
        }
        Ok(Self { arms })
    }

    /// Pairs the values of a metric under the baseline and another arm.
    pub(super) fn pair(&self, arm: usize, column: usize) -> MetricPairs {
        let trials = |arm: usize| self.arms.get(arm).map(Vec::as_slice).unwrap_or_default();
        let mut baseline = trials(0).iter().peekable();
        let mut others = trials(arm).iter().peekable();
        let mut paired = MetricPairs { pairs: Vec::new(), incomplete: 0 };
        loop {
            let next = match (
                baseline.peek().map(|trial| trial.pairing_key()),
                others.peek().map(|trial| trial.pairing_key()),
            ) {
                (Some(one), Some(other)) => one.min(other),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => return paired,
            };
            let value =
                |trial: Option<&&TrialValues>| trial.and_then(|trial| trial.values.get(column).copied().flatten());
            let one = value(baseline.next_if(|trial| trial.pairing_key() == next));
            let other = value(others.next_if(|trial| trial.pairing_key() == next));
            match one.zip(other) {
                Some((baseline, arm)) => paired.pairs.push(Pair { case: next.0, baseline, arm }),
                None => paired.incomplete += 1,
            }
        }
    }
}

impl Pair {
    /// Returns the difference of the values, arm minus baseline; for ratios, on a logarithmic scale.
    pub fn difference(&self, kind: MetricKind) -> f64 {
        match kind {
            MetricKind::Pass | MetricKind::Difference => self.arm - self.baseline,
            MetricKind::Ratio => libm::log(self.arm) - libm::log(self.baseline),
        }
    }
}

impl TrialValues {
    /// Returns the key by which trials are paired.
    const fn pairing_key(&self) -> (usize, usize) {
        (self.case, self.repeat)
    }
}

fn check_trial(number: usize, trial: &TrialValues, metrics: &[Metric]) -> Result<(), ExperimentError> {
    if trial.values.len() != metrics.len() {
        return Err(ExperimentError::ValueCount { trial: number, found: trial.values.len(), expected: metrics.len() });
    }
    for (value, metric) in trial.values.iter().zip(metrics) {
        let Some(value) = *value else { continue };
        let name = || metric.name.clone();
        if value.is_nan() || value.abs() >= MAX_VALUE {
            return Err(ExperimentError::NotANumber { trial: number, metric: name() });
        }
        if metric.kind == MetricKind::Pass && value != 0.0 && value != 1.0 {
            return Err(ExperimentError::NotPassOrFail { trial: number, metric: name() });
        }
    }
    Ok(())
}
