//! The report of an experiment: its plan, all trials, and the conclusions.

use super::gate::GateResult;
use super::info::{ArmInfo, CaseInfo, JudgeInfo, ReportKind};
use super::plan::BlockOrder;
use super::trial::Trial;
use crate::stats::Comparison;
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
            comparison: None,
            gates: Vec::new(),
            judges: Vec::new(),
            began_ms: 0,
            ended_ms: 0,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }

    /// Iterates over the trials of an arm, in the order of the plan.
    pub fn arm_trials<'r>(&'r self, arm: &'r str) -> impl Iterator<Item = &'r Trial> {
        self.trials.iter().filter(move |trial| trial.arm == arm)
    }
}
