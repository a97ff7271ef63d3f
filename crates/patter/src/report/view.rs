//! A report, indexed by case and arm.

use super::svg::quantile;
use crate::experiment::{CaseInfo, Report, Trial};
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

    /// Iterates over the trials of an arm.
    pub(super) fn runs(&self, arm: usize) -> impl Iterator<Item = &'r Trial> {
        self.cases.iter().filter_map(move |case| case.arms.get(arm)).flatten().copied()
    }

    /// Returns the latencies of the trials of an arm that did not fail, sorted.
    pub(super) fn latencies(&self, arm: usize) -> Vec<f64> {
        let done = self.runs(arm).filter(|trial| trial.failure.is_none());
        let mut latencies: Vec<f64> = done.map(|trial| trial.latency_ms as f64).collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }

    /// Returns the pass rate of an arm over the selected cases, each counted once.
    pub(super) fn pass_rate(&self, arm: usize, is_selected: impl Fn(&CaseInfo) -> bool) -> Option<f64> {
        let cases = self.cases.iter().filter(|case| is_selected(case.info));
        let shares: Vec<f64> = cases.filter_map(|case| case.pass_rate(arm)).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

impl CaseView<'_> {
    /// Returns the pass rate of an arm.
    fn pass_rate(&self, arm: usize) -> Option<f64> {
        let runs = self.arms.get(arm)?;
        (!runs.is_empty()).then(|| share(runs.iter().filter(|trial| trial.passed).count(), runs.len()))
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Trial> {
        self.arms.iter().flatten().copied()
    }

    pub(super) fn has_unpassed(&self) -> bool {
        self.runs().any(|trial| !trial.passed)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.runs().any(|trial| trial.failure.is_some())
    }

    /// Returns whether arms have different pass rates.
    pub(super) fn differs(&self) -> bool {
        let shares: Vec<f64> = (0..self.arms.len()).filter_map(|arm| self.pass_rate(arm)).collect();
        shares.windows(2).any(|pair| pair.first() != pair.last())
    }

    /// Returns the median of a figure over the repeats of an arm, without failed runs.
    pub(super) fn figure(&self, arm: usize, figure: impl Fn(&Trial) -> Option<f64>) -> Option<f64> {
        let done = self.arms.get(arm)?.iter().filter(|trial| trial.failure.is_none());
        let mut values: Vec<f64> = done.filter_map(|trial| figure(trial)).collect();
        values.sort_by(f64::total_cmp);
        quantile(&values, 0.5)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}
