//! What is reported, in the order in which the page needs it.

use super::svg::quantile;
use crate::experiment::{CaseInfo, Report, Trial};
use std::collections::HashMap;

/// A report whose runs stand by case and arm.
pub(super) struct View<'r> {
    pub(super) report: &'r Report,
    pub(super) cases: Vec<Case<'r>>,
    /// Runs of arms or cases that the report does not list.
    pub(super) strays: usize,
}

/// A case and its runs.
pub(super) struct Case<'r> {
    pub(super) info: &'r CaseInfo,
    /// The runs of each arm, in the order of arms and repeats.
    pub(super) arms: Vec<Vec<&'r Trial>>,
}

impl<'r> View<'r> {
    pub(super) fn new(report: &'r Report) -> Self {
        let arms: HashMap<&str, usize> =
            report.arms.iter().enumerate().map(|(at, arm)| (arm.name.as_str(), at)).collect();
        let places: HashMap<&str, usize> =
            report.cases.iter().enumerate().map(|(at, case)| (case.id.as_str(), at)).collect();
        let blank = |info| Case { info, arms: vec![Vec::new(); report.arms.len()] };
        let mut cases: Vec<Case> = report.cases.iter().map(blank).collect();
        let mut strays = 0;
        for trial in &report.trials {
            let case = places.get(trial.case.as_str()).and_then(|at| cases.get_mut(*at));
            let arm = arms.get(trial.arm.as_str()).and_then(|at| case?.arms.get_mut(*at));
            match arm {
                Some(runs) => runs.push(trial),
                None => strays += 1,
            }
        }
        for runs in cases.iter_mut().flat_map(|case| &mut case.arms) {
            runs.sort_by_key(|trial| (trial.repeat, trial.order));
        }
        Self { report, cases, strays }
    }

    /// Returns the runs of an arm.
    pub(super) fn runs(&self, arm: usize) -> impl Iterator<Item = &'r Trial> {
        self.cases.iter().filter_map(move |case| case.arms.get(arm)).flatten().copied()
    }

    /// Returns how long the runs of an arm took that did not fail, sorted.
    pub(super) fn latencies(&self, arm: usize) -> Vec<f64> {
        let done = self.runs(arm).filter(|trial| trial.failure.is_none());
        let mut latencies: Vec<f64> = done.map(|trial| trial.latency_ms as f64).collect();
        latencies.sort_by(f64::total_cmp);
        latencies
    }

    /// Returns the share that an arm passed of the cases that are asked for, each counted once.
    pub(super) fn pass_rate(&self, arm: usize, wanted: impl Fn(&CaseInfo) -> bool) -> Option<f64> {
        let cases = self.cases.iter().filter(|case| wanted(case.info));
        let shares: Vec<f64> = cases.filter_map(|case| case.passed(arm)).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }
}

impl Case<'_> {
    /// Returns how often an arm passed, of its runs.
    fn passed(&self, arm: usize) -> Option<f64> {
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

    /// Tells whether an arm passed more often than another.
    pub(super) fn differs(&self) -> bool {
        let shares: Vec<f64> = (0..self.arms.len()).filter_map(|arm| self.passed(arm)).collect();
        shares.windows(2).any(|pair| pair.first() != pair.last())
    }

    /// Returns a figure of an arm over its repeats, without failed runs: the median.
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
