//! The report of an experiment: its plan, all trials, and the conclusions.

use super::contrast::compare_arms;
use super::gate::GateResult;
use super::info::{ArmInfo, CaseInfo, JudgeInfo, ReportKind};
use super::plan::{BlockOrder, leading_blocks};
use super::trial::Trial;
use crate::stats::{CompareError, CompareOptions, Comparison};
use serde::{Deserialize, Serialize};

/// An experiment with all its results.
///
/// ```
/// use patter_core::experiment::{Report, ReportKind};
/// let report = Report::new("Greeting", ReportKind::Eval);
/// assert_eq!((report.title.as_str(), report.repeats), ("Greeting", 1));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The title, in one line.
    pub title: String,
    /// The kind of experiment.
    pub kind: ReportKind,
    /// The arms; the first is the baseline.
    pub arms: Vec<ArmInfo>,
    /// The cases.
    pub cases: Vec<CaseInfo>,
    /// How many times each case runs under each arm.
    pub repeats: u32,
    /// The seed of the order of trials.
    pub seed: u64,
    /// The order of blocks: by case if the experiment could stop early.
    #[serde(default)]
    pub blocks: BlockOrder,
    /// The trials, in the order of the plan.
    pub trials: Vec<Trial>,
    /// Whether all trials are done.
    #[serde(default)]
    pub completion: Completion,
    /// The comparison of the arms, if there are several.
    pub comparison: Option<Comparison>,
    /// The results of the gates.
    pub gates: Vec<GateResult>,
    /// The agents that judged answers.
    pub judges: Vec<JudgeInfo>,
    /// When the experiment started, in milliseconds since 1970.
    pub began_ms: u64,
    /// When the last trial ended, in milliseconds since 1970.
    pub ended_ms: u64,
    /// The version of Patter.
    pub version: String,
}

/// Whether all trials of an experiment are done.
///
/// ```
/// use patter_core::experiment::Completion;
/// assert_eq!(serde_json::to_string(&Completion::StoppedEarly).unwrap(), r#""stopped_early""#);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// All trials are done.
    #[default]
    Complete,
    /// The result was clear before all trials were done.
    StoppedEarly,
    /// The experiment was interrupted, so conclusions are provisional.
    Interrupted,
}

impl Report {
    /// Returns an empty report.
    pub fn new(title: &str, kind: ReportKind) -> Self {
        Self {
            title: title.to_owned(),
            kind,
            arms: Vec::new(),
            cases: Vec::new(),
            repeats: 1,
            seed: 0,
            blocks: BlockOrder::Mixed,
            trials: Vec::new(),
            completion: Completion::Complete,
            comparison: None,
            gates: Vec::new(),
            judges: Vec::new(),
            began_ms: 0,
            ended_ms: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Returns the number of planned trials.
    pub fn planned(&self) -> usize {
        (self.arms.len() * self.cases.len()).saturating_mul(self.repeats as usize)
    }

    /// Compares the arms, by the leading blocks if some trials are missing. Conclusions of an interrupted experiment are
    /// marked as provisional.
    pub fn compare(&self, options: &CompareOptions) -> Result<Comparison, CompareError> {
        let arms: Vec<_> = self.arms.iter().map(|arm| arm.name.clone()).collect();
        if self.completion == Completion::Complete {
            return compare_arms(&arms, &self.trials, options);
        }
        let trials = leading_blocks(&self.trials, self.arms.len(), self.repeats, self.blocks);
        let compared = trials.len();
        let mut comparison = compare_arms(&arms, trials, options)?;
        if self.completion == Completion::Interrupted {
            let mark = format!("provisional, by {compared} of {} runs: ", self.planned());
            comparison.summaries.iter_mut().for_each(|summary| summary.text.insert_str(0, &mark));
        }
        Ok(comparison)
    }

    /// Iterates over the trials of an arm, in the order of the plan.
    pub fn arm_trials<'r>(&'r self, arm: &'r str) -> impl Iterator<Item = &'r Trial> {
        self.trials.iter().filter(move |trial| trial.arm == arm)
    }
}
