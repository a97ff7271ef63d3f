//! The plan of an experiment: its trials, and their order.

use super::info::{ArmInfo, CaseInfo, JudgeInfo, ReportKind};
use super::trial::Trial;
use crate::stats::{Rng, Stopping};
use crate::types::definition::hash;
use serde::{Deserialize, Serialize};

/// The plan of an experiment. An interrupted experiment resumes only with an equal plan.
///
/// One run of a case under each arm is a block, so that drift in the course of the experiment affects all arms alike. The
/// order of blocks is random, and so is the order of arms within each block.
///
/// ```
/// use patter_core::experiment::{ArmInfo, CaseInfo, Plan, ReportKind};
/// let arm = |name: &str| ArmInfo { name: name.to_owned(), ..ArmInfo::default() };
/// let plan = Plan {
///     arms: vec![arm("a"), arm("b")],
///     cases: vec![CaseInfo::default(); 3],
///     repeats: 2,
///     ..Plan::new("Greeting", ReportKind::Ab)
/// };
/// let trials = plan.planned_trials();
/// assert_eq!(trials.len(), 12);
/// assert!(trials.chunks(2).all(|block| block[0].case == block[1].case && block[0].arm != block[1].arm));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The title, in one line.
    pub title: String,
    /// The kind of experiment.
    pub kind: ReportKind,
    /// The arms; the first is the baseline.
    pub arms: Vec<ArmInfo>,
    /// The cases.
    pub cases: Vec<CaseInfo>,
    /// The hash of the cases with their checks.
    pub cases_hash: String,
    /// The agents that judge answers.
    pub judges: Vec<JudgeInfo>,
    /// How many times each case runs under each arm.
    pub repeats: u32,
    /// The seed of the random order.
    pub seed: u64,
    /// The order of blocks.
    pub blocks: BlockOrder,
}

/// The order of blocks.
///
/// ```
/// use patter_core::experiment::BlockOrder;
/// assert_eq!(BlockOrder::default(), BlockOrder::Mixed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockOrder {
    /// In random order.
    #[default]
    Mixed,
    /// Cases in random order, with the repeats of a case one after the other. A case is complete before the next one
    /// starts, as stopping early requires.
    ByCase,
}

/// One run of one case under one arm, not yet started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlannedTrial {
    /// The position in the plan.
    pub order: u64,
    /// The index of the arm.
    pub arm: usize,
    /// The index of the case.
    pub case: usize,
    /// The repeat of the case, counted from 0.
    pub repeat: u32,
}

impl BlockOrder {
    /// Returns the stopping rule that this order allows.
    pub fn stopping(self) -> Stopping {
        match self {
            BlockOrder::Mixed => Stopping::Fixed,
            BlockOrder::ByCase => Stopping::Anytime,
        }
    }
}

/// Returns the trials of the blocks that are complete, in the order in which they were drawn and up to the first block that
/// is not. With [`BlockOrder::ByCase`], that is up to the first incomplete case.
///
/// Leaving out only the blocks that still run would be biased: if failures take longer, they are missing.
///
/// ```
/// use patter_core::experiment::{BlockOrder, Trial, leading_blocks};
/// let done = [0, 1, 2, 4, 5].map(|order| Trial { order, ..Trial::default() });
/// let leading = leading_blocks(&done, 2, 1, BlockOrder::Mixed);
/// assert_eq!(leading.len(), 2, "the second block is not complete, so the third has to wait");
/// ```
pub fn leading_blocks(trials: &[Trial], arms: usize, repeats: u32, blocks: BlockOrder) -> Vec<&Trial> {
    let size = match blocks {
        BlockOrder::Mixed => arms,
        BlockOrder::ByCase => arms * repeats as usize,
    };
    let mut leading: Vec<_> = trials.iter().collect();
    leading.sort_by_key(|trial| trial.order);
    let gap = leading.iter().zip(0..).position(|(trial, order)| trial.order != order);
    let done = gap.unwrap_or(leading.len());
    leading.truncate(done - done.checked_rem(size).unwrap_or(0));
    leading
}

impl Plan {
    /// Returns an empty plan.
    pub fn new(title: &str, kind: ReportKind) -> Self {
        Self {
            title: title.to_owned(),
            kind,
            arms: Vec::new(),
            cases: Vec::new(),
            cases_hash: String::new(),
            judges: Vec::new(),
            repeats: 1,
            seed: 0,
            blocks: BlockOrder::Mixed,
        }
    }

    /// Returns all trials in the order in which they start. Equal plans have the same order.
    pub fn planned_trials(&self) -> Vec<PlannedTrial> {
        let mut rng = Rng::stream(self.seed, &[0]);
        let cases = 0..self.cases.len();
        let mut blocks: Vec<_> = match self.blocks {
            BlockOrder::Mixed => cases.flat_map(|case| (0..self.repeats).map(move |repeat| (case, repeat))).collect(),
            BlockOrder::ByCase => cases.map(|case| (case, 0)).collect(),
        };
        shuffle(&mut blocks, &mut rng);
        if self.blocks == BlockOrder::ByCase {
            let repeats = |(case, _)| (0..self.repeats).map(move |repeat| (case, repeat));
            blocks = blocks.into_iter().flat_map(repeats).collect();
        }
        let mut trials = Vec::with_capacity(blocks.len() * self.arms.len());
        let mut arms: Vec<_> = (0..self.arms.len()).collect();
        for (case, repeat) in blocks {
            shuffle(&mut arms, &mut rng);
            for &arm in &arms {
                trials.push(PlannedTrial { order: trials.len() as u64, arm, case, repeat });
            }
        }
        trials
    }

    /// Returns the number of planned trials.
    pub fn planned(&self) -> usize {
        (self.arms.len() * self.cases.len()).saturating_mul(self.repeats as usize)
    }

    /// Returns the hash of the plan.
    pub fn hash(&self) -> String {
        // The JSON of a plan contains no maps, so it is deterministic.
        hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Describes the first difference from another plan.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let names = |plan: &Self| plan.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>();
        if names(self) != names(other) {
            return Some("the arms changed".to_owned());
        }
        for (ours, theirs) in self.arms.iter().zip(&other.arms) {
            let parts = [
                ("the agent", ours.agent_hash == theirs.agent_hash && ours.agent == theirs.agent),
                ("the tool bindings", ours.bindings_hash == theirs.bindings_hash),
                ("the model", ours.model == theirs.model),
                ("the limits", ours.limits == theirs.limits),
                ("a rule, a script or a called agent", ours.setup_hash == theirs.setup_hash),
            ];
            if let Some((part, _)) = parts.into_iter().find(|(_, is_same)| !is_same) {
                return Some(format!("{part} of the arm `{}` changed", ours.name));
            }
        }
        let parts = [
            ("the cases changed", self.cases_hash == other.cases_hash && self.cases == other.cases),
            ("a judge changed", self.judges == other.judges),
            ("the number of repeats changed", self.repeats == other.repeats),
            ("the seed changed", self.seed == other.seed),
            ("the plan changed", self == other),
        ];
        parts.into_iter().find(|(_, is_same)| !is_same).map(|(difference, _)| difference.to_owned())
    }
}

/// Shuffles items (Fisher–Yates).
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last + 1));
    }
}
