//! Errors of the infrastructure, which say nothing about the quality of an arm.

use super::trial::Trial;
use serde::Serialize;

/// The share of trials with an error beyond which an arm is not compared: what is left may not be a fair sample.
const MAX_SHARE: f64 = 0.1;

/// The trials of an arm that ended with an error.
///
/// ```
/// use patter_core::experiment::{ArmErrors, Trial};
/// use patter_core::run::{FailureKind, RunFailure};
/// let failure = RunFailure { kind: FailureKind::Model, message: "HTTP 400".to_owned() };
/// let trials = [Trial { arm: "b".to_owned(), failure: Some(failure), ..Trial::default() }];
/// let errors = ArmErrors::find("b", &trials).unwrap();
/// assert_eq!(errors.to_string(), "the only run of `b` ended with an error: HTTP 400");
/// assert!(errors.is_undecidable());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArmErrors {
    /// The arm.
    pub arm: String,
    /// The number of trials that ended with an error.
    pub errors: usize,
    /// The number of all trials.
    pub runs: usize,
    /// The first error.
    pub first: String,
}

impl ArmErrors {
    /// Finds the errors of an arm, if there are any.
    pub fn find<'t>(arm: &str, trials: impl IntoIterator<Item = &'t Trial>) -> Option<Self> {
        let mut runs = 0;
        let mut errors = 0;
        let mut first: Option<(u64, &str)> = None;
        for trial in trials.into_iter().filter(|trial| trial.arm == arm) {
            runs += 1;
            if let Some(error) = trial.error() {
                errors += 1;
                first = Some(first.map_or((trial.order, error), |first| first.min((trial.order, error))));
            }
        }
        first.map(|(_, first)| Self { arm: arm.to_owned(), errors, runs, first: first.to_owned() })
    }

    /// Returns whether there are too many errors to say anything about the arm.
    pub fn is_undecidable(&self) -> bool {
        self.errors as f64 > self.runs as f64 * MAX_SHARE
    }
}

impl std::fmt::Display for ArmErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { arm, errors, runs, first } = self;
        match (*errors, *runs) {
            (1, 1) => write!(f, "the only run of `{arm}` ended with an error: {first}"),
            (errors, runs) if errors == runs => write!(f, "all {runs} runs of `{arm}` ended with an error: {first}"),
            (errors, runs) => write!(f, "{errors} of {runs} runs of `{arm}` ended with an error: {first}"),
        }
    }
}
