//! A report, indexed by case and arm.

use super::svg::quantile;
use crate::experiment::{CaseInfo, Completion, Report, Trial, TrialOutcome};
use indexmap::IndexMap;
use std::collections::HashMap;

/// A report with its trials indexed by case and arm.
pub(super) struct ReportView<'r> {
    pub(super) report: &'r Report,
    pub(super) cases: Vec<CaseView<'r>>,
    /// The number of trials of arms or cases that the report does not list.
    pub(super) unlisted: usize,
}

/// A case with its trials.
pub(super) struct CaseView<'r> {
    pub(super) info: &'r CaseInfo,
    /// The trials of each arm, ordered by repeat.
    pub(super) arms: Vec<Vec<&'r Trial>>,
}

impl<'r> ReportView<'r> {
    pub(super) fn new(report: &'r Report) -> Self {
        let arms: HashMap<&str, usize> =
            report.arms.iter().enumerate().map(|(index, arm)| (arm.name.as_str(), index)).collect();
        let indices: HashMap<&str, usize> =
            report.cases.iter().enumerate().map(|(index, case)| (case.id.as_str(), index)).collect();
        let empty = |info| CaseView { info, arms: vec![Vec::new(); report.arms.len()] };
        let mut cases: Vec<CaseView> = report.cases.iter().map(empty).collect();
        let mut unlisted = 0;
        for trial in &report.trials {
            let case = indices.get(trial.case.as_str()).and_then(|index| cases.get_mut(*index));
            let arm = arms.get(trial.arm.as_str()).and_then(|index| case?.arms.get_mut(*index));
            match arm {
                Some(runs) => runs.push(trial),
                None => unlisted += 1,
            }
        }
        for runs in cases.iter_mut().flat_map(|case| &mut case.arms) {
            runs.sort_by_key(|trial| (trial.repeat, trial.order));
        }
        Self { report, cases, unlisted }
    }

    /// Returns the number of planned runs that have a result.
    pub(super) fn done(&self) -> usize {
        self.report.trials.len() - self.unlisted
    }

    /// Returns whether runs are missing, although the result was not clear.
    pub(super) fn is_interrupted(&self) -> bool {
        self.done() < self.report.planned() && self.report.completion != Completion::StoppedEarly
    }

    /// Iterates over the trials of an arm.
    pub(super) fn runs(&self, arm: usize) -> impl Iterator<Item = &'r Trial> {
        self.cases.iter().filter_map(move |case| case.arms.get(arm)).flatten().copied()
    }

    /// Returns the most frequent message of some runs.
    pub(super) fn common_message(&self, message: impl Fn(&'r Trial) -> Option<&'r str>) -> Option<&'r str> {
        let mut messages: IndexMap<&str, usize> = IndexMap::new();
        let runs = (0..self.report.arms.len()).flat_map(|arm| self.runs(arm));
        for message in runs.filter_map(message) {
            *messages.entry(message).or_default() += 1;
        }
        let most = messages.values().copied().max()?;
        messages.into_iter().find(|(_, times)| *times == most).map(|(message, _)| message)
    }

    /// Returns the latencies of the trials of an arm that did not fail, sorted.
    pub(super) fn latencies(&self, arm: usize) -> Vec<f64> {
        let done = self.runs(arm).filter(|trial| trial.failure.is_none());
        let mut latencies: Vec<f64> = done.map(|trial| trial.latency_ms as f64).collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }
}

impl CaseView<'_> {
    /// Returns the pass rate of an arm, without runs that ended with an error.
    pub(super) fn pass_rate(&self, arm: usize) -> Option<f64> {
        let count = |outcome| self.arms.get(arm).map(|runs| runs.iter().filter(|run| run.outcome() == outcome).count());
        let passed = count(TrialOutcome::Passed)?;
        let decided = passed + count(TrialOutcome::NotPassed)?;
        (decided > 0).then(|| passed as f64 / decided as f64)
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Trial> {
        self.arms.iter().flatten().copied()
    }

    pub(super) fn has_unpassed(&self) -> bool {
        self.runs().any(|trial| trial.outcome() == TrialOutcome::NotPassed)
    }

    pub(super) fn has_error(&self) -> bool {
        self.runs().any(|trial| trial.outcome() == TrialOutcome::Error)
    }

    /// Returns whether an arm passed more often than the baseline.
    pub(super) fn is_won(&self) -> bool {
        self.changes().any(|change| change > 0.0)
    }

    /// Returns whether an arm passed less often than the baseline.
    pub(super) fn is_lost(&self) -> bool {
        self.changes().any(|change| change < 0.0)
    }

    /// Iterates over the differences of the pass rates from that of the baseline.
    fn changes(&self) -> impl Iterator<Item = f64> {
        let baseline = self.pass_rate(0);
        (1..self.arms.len()).filter_map(move |arm| Some(self.pass_rate(arm)? - baseline?))
    }

    /// Returns the median of a figure over the repeats of an arm, without failed runs.
    pub(super) fn figure(&self, arm: usize, figure: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        let done = self.arms.get(arm)?.iter().filter(|trial| trial.failure.is_none());
        let mut values: Vec<f64> = done.filter_map(|trial| figure(trial)).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, 0.5)
    }
}
