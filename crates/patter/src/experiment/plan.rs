//! What is run, and in which order.

use super::report::{ArmInfo, CaseInfo, JudgeInfo, ReportKind};
use patter_core::stats::{Rng, Stopping};
use patter_core::types::definition::hash;
use serde::{Deserialize, Serialize};

/// Everything that must be the same for an experiment to go on.
///
/// A case under all arms, once, is a block: what drifts in the course of an experiment hits the arms alike. Blocks come in
/// random order, and so do the arms in each.
///
/// ```
/// use patter::experiment::{ArmInfo, CaseInfo, Plan, ReportKind};
/// let arm = |name: &str| ArmInfo { name: name.to_owned(), ..ArmInfo::default() };
/// let plan = Plan {
///     arms: vec![arm("a"), arm("b")],
///     cases: vec![CaseInfo::default(); 3],
///     repeats: 2,
///     ..Plan::new("Greeting", ReportKind::Ab)
/// };
/// let jobs = plan.jobs();
/// assert_eq!(jobs.len(), 12);
/// assert!(jobs.chunks(2).all(|block| block[0].case == block[1].case && block[0].arm != block[1].arm));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is about, in a line.
    pub title: String,
    /// What kind of experiment it is.
    pub kind: ReportKind,
    /// The arms; the first is what the others are compared with.
    pub arms: Vec<ArmInfo>,
    /// The cases.
    pub cases: Vec<CaseInfo>,
    /// The hash of the cases with their checks.
    pub cases_hash: String,
    /// The agents that judge.
    pub judges: Vec<JudgeInfo>,
    /// How often each case is run under each arm.
    pub repeats: u32,
    /// What the order is drawn from.
    pub seed: u64,
    /// How blocks follow one another.
    pub blocks: Blocks,
}

/// How blocks follow one another.
///
/// ```
/// use patter::experiment::Blocks;
/// assert_eq!(Blocks::default(), Blocks::Mixed);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocks {
    /// In random order.
    #[default]
    Mixed,
    /// The repeats of a case one after the other, and cases in random order: so a case is complete before the next
    /// begins, which stopping early needs.
    ByCase,
}

/// One run of one case under one arm, to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Job {
    /// Its place in the plan.
    pub order: u64,
    /// Which arm.
    pub arm: usize,
    /// Which case.
    pub case: usize,
    /// Which repeat of it.
    pub repeat: u32,
}

impl Blocks {
    /// Returns what ends an experiment whose blocks follow one another so.
    pub fn stopping(self) -> Stopping {
        match self {
            Blocks::Mixed => Stopping::Fixed,
            Blocks::ByCase => Stopping::Anytime,
        }
    }
}

impl Plan {
    /// Returns a plan of nothing yet.
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
            blocks: Blocks::Mixed,
        }
    }

    /// Returns all runs, in the order in which they begin. It is the same for the same plan.
    pub fn jobs(&self) -> Vec<Job> {
        let mut rng = Rng::stream(self.seed, &[0]);
        let cases = 0..self.cases.len();
        let mut blocks: Vec<_> = match self.blocks {
            Blocks::Mixed => cases.flat_map(|case| (0..self.repeats).map(move |repeat| (case, repeat))).collect(),
            Blocks::ByCase => cases.map(|case| (case, 0)).collect(),
        };
        shuffle(&mut blocks, &mut rng);
        if self.blocks == Blocks::ByCase {
            let repeated = |(case, _)| (0..self.repeats).map(move |repeat| (case, repeat));
            blocks = blocks.into_iter().flat_map(repeated).collect();
        }
        let mut jobs = Vec::with_capacity(blocks.len() * self.arms.len());
        let mut arms: Vec<_> = (0..self.arms.len()).collect();
        for (case, repeat) in blocks {
            shuffle(&mut arms, &mut rng);
            for &arm in &arms {
                jobs.push(Job { order: jobs.len() as u64, arm, case, repeat });
            }
        }
        jobs
    }

    /// Returns the hash of all that must be the same.
    pub fn hash(&self) -> String {
        // Its JSON has no map, so that it is the same each time.
        hash(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns what differs from another plan: in words, the first thing.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let names = |plan: &Self| plan.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>();
        if names(self) != names(other) {
            return Some("it has other arms".to_owned());
        }
        for (ours, theirs) in self.arms.iter().zip(&other.arms) {
            let parts = [
                ("the agent", ours.agent_hash == theirs.agent_hash && ours.agent == theirs.agent),
                ("what the tools are bound to", ours.bindings_hash == theirs.bindings_hash),
                ("the model", ours.model == theirs.model),
            ];
            if let Some((what, _)) = parts.into_iter().find(|(_, is_same)| !is_same) {
                return Some(format!("{what} of the arm `{}` has changed", ours.name));
            }
        }
        let parts = [
            ("the cases have changed", self.cases_hash == other.cases_hash && self.cases == other.cases),
            ("a judge has changed", self.judges == other.judges),
            ("there are other repeats", self.repeats == other.repeats),
            ("the seed is another", self.seed == other.seed),
            ("it is another experiment", self == other),
        ];
        parts.into_iter().find(|(_, is_same)| !is_same).map(|(what, _)| what.to_owned())
    }
}

/// Puts items into random order (Fisher and Yates).
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last + 1));
    }
}
