//! What was tried and measured, and which measurements belong together.

use super::{Kind, Metric};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Larger values cannot be squared and summed.
pub(super) const LARGEST: f64 = 1e90;

/// Arms that were tried on the same cases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The names of the arms. The first one is the baseline, which the others are compared with.
    pub arms: Vec<String>,
    /// What was measured.
    pub metrics: Vec<Metric>,
    /// What came of it, in any order.
    pub trials: Vec<Trial>,
}

/// One run of one case under one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which of the arms.
    pub arm: usize,
    /// Which case.
    pub case: usize,
    /// Which repeat of it. The same repeats of two arms are a pair.
    pub repeat: usize,
    /// A value for each metric, in their order. Where the run failed there is none: then the case is not passed, and
    /// nothing else is known.
    pub values: Vec<Option<f64>>,
}

/// The values of a metric in one repeat of a case under both arms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// Which case.
    pub case: usize,
    /// The value under the baseline.
    pub baseline: f64,
    /// The value under the other arm.
    pub arm: f64,
}

/// Why an experiment cannot be compared.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ExperimentError {
    /// There is nothing to compare.
    #[error("a comparison needs at least two arms, not {count}")]
    Arms {
        /// How many there are.
        count: usize,
    },
    /// A margin is not above 0.
    #[error("the margin of `{metric}` must be a number above 0")]
    Margin {
        /// The metric.
        metric: String,
    },
    /// A trial is of an arm that is not there.
    #[error("trial {trial} is of arm {arm}, and there are {count}")]
    NoSuchArm {
        /// Which trial, counted from 1.
        trial: usize,
        /// Which arm, counted from 0.
        arm: usize,
        /// How many there are.
        count: usize,
    },
    /// A trial has not one value for each metric.
    #[error("trial {trial} has {found} values for {expected} metrics")]
    Values {
        /// Which trial, counted from 1.
        trial: usize,
        /// How many values it has.
        found: usize,
        /// How many metrics there are.
        expected: usize,
    },
    /// A value cannot be reckoned with.
    #[error("the value of `{metric}` in trial {trial} is not a number below 1e90")]
    NotANumber {
        /// Which trial, counted from 1.
        trial: usize,
        /// The metric.
        metric: String,
    },
    /// A case can be passed or not.
    #[error("the value of `{metric}` in trial {trial} must be 0 or 1")]
    NotPassOrFail {
        /// Which trial, counted from 1.
        trial: usize,
        /// The metric.
        metric: String,
    },
    /// Two trials are of the same repeat.
    #[error("arm `{arm}` has repeat {repeat} of case {case} twice")]
    Twice {
        /// The arm.
        arm: String,
        /// Which case.
        case: usize,
        /// Which repeat.
        repeat: usize,
    },
}

/// The trials of an experiment that was checked, of each arm in the order of cases and repeats.
pub(super) struct Tried<'e> {
    arms: Vec<Vec<&'e Trial>>,
}

/// The pairs of a metric, sorted by case, and what became of the others.
pub(super) struct Paired {
    pub(super) pairs: Vec<Pair>,
    /// Pairs that are not there in full, because a trial was not made or has no value.
    pub(super) incomplete: usize,
    /// Pairs in which a run that failed counts as a case that is not passed.
    pub(super) failed: usize,
}

impl<'e> Tried<'e> {
    pub(super) fn new(experiment: &'e Experiment) -> Result<Self, ExperimentError> {
        let count = experiment.arms.len();
        if count < 2 {
            return Err(ExperimentError::Arms { count });
        }
        if let Some(metric) = experiment.metrics.iter().find(|metric| !(metric.margin > 0.0 && metric.margin < LARGEST))
        {
            return Err(ExperimentError::Margin { metric: metric.name.clone() });
        }
        let mut arms: Vec<Vec<&Trial>> = vec![Vec::new(); count];
        for (trial, tried) in (1..).zip(&experiment.trials) {
            check(trial, tried, &experiment.metrics)?;
            let missing = ExperimentError::NoSuchArm { trial, arm: tried.arm, count };
            arms.get_mut(tried.arm).ok_or(missing)?.push(tried);
        }
        for (trials, arm) in arms.iter_mut().zip(&experiment.arms) {
            trials.sort_by_key(|trial| trial.place());
            if let Some([twice, _]) = trials.array_windows().find(|[one, other]| one.place() == other.place()) {
                return Err(ExperimentError::Twice { arm: arm.clone(), case: twice.case, repeat: twice.repeat });
            }
        }
        Ok(Self { arms })
    }

    /// Pairs the values of a metric under the baseline and another arm.
    pub(super) fn pair(&self, arm: usize, column: usize, metric: &Metric) -> Paired {
        let trials = |arm: usize| self.arms.get(arm).map(Vec::as_slice).unwrap_or_default();
        let (mut baseline, mut others) = (trials(0).iter().peekable(), trials(arm).iter().peekable());
        let mut paired = Paired { pairs: Vec::new(), incomplete: 0, failed: 0 };
        loop {
            let next = match (baseline.peek().map(|trial| trial.place()), others.peek().map(|trial| trial.place())) {
                (Some(one), Some(other)) => one.min(other),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => return paired,
            };
            let of = |trial: Option<&&Trial>| trial.map(|trial| trial.values.get(column).copied().flatten());
            let one = of(baseline.next_if(|trial| trial.place() == next));
            let other = of(others.next_if(|trial| trial.place() == next));
            let (values, failed) = match (one, other, metric.kind) {
                (Some(one), Some(other), Kind::Pass) => {
                    (Some((one.unwrap_or(0.0), other.unwrap_or(0.0))), one.is_none() || other.is_none())
                }
                (one, other, _) => (one.flatten().zip(other.flatten()), false),
            };
            paired.failed += usize::from(failed);
            match values {
                Some((baseline, arm)) => paired.pairs.push(Pair { case: next.0, baseline, arm }),
                None => paired.incomplete += 1,
            }
        }
    }
}

impl Trial {
    /// Returns what it is paired by.
    const fn place(&self) -> (usize, usize) {
        (self.case, self.repeat)
    }
}

fn check(trial: usize, tried: &Trial, metrics: &[Metric]) -> Result<(), ExperimentError> {
    if tried.values.len() != metrics.len() {
        return Err(ExperimentError::Values { trial, found: tried.values.len(), expected: metrics.len() });
    }
    for (value, metric) in tried.values.iter().zip(metrics) {
        let Some(value) = *value else { continue };
        let name = || metric.name.clone();
        if value.is_nan() || value.abs() >= LARGEST {
            return Err(ExperimentError::NotANumber { trial, metric: name() });
        }
        if metric.kind == Kind::Pass && value != 0.0 && value != 1.0 {
            return Err(ExperimentError::NotPassOrFail { trial, metric: name() });
        }
    }
    Ok(())
}
