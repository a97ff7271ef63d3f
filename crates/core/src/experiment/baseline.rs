//! Comparing a report with an earlier one.

use super::contrast::compare_arms;
use super::info::CaseInfo;
use super::report::Report;
use super::trial::Trial;
use crate::stats::{CompareError, CompareOptions, Comparison};
use std::collections::HashMap;

/// Which cases of a report can be compared with those of an earlier one.
///
/// ```
/// use patter_core::experiment::{BaselineCases, CaseInfo};
/// let case = |id: &str, hash: &str| CaseInfo { id: id.into(), hash: hash.into(), ..CaseInfo::default() };
/// let before = [case("greets", "1"), case("refuses", "2")];
/// let cases = BaselineCases::find(&before, &[case("greets", "1"), case("refuses", "3")]);
/// assert_eq!((cases.same, cases.changed), (vec!["greets".to_owned()], vec!["refuses".to_owned()]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaselineCases {
    /// The ids of the cases that are the same in both.
    pub same: Vec<String>,
    /// The ids of the cases whose messages, checks, judges or scripts changed. They are not compared.
    pub changed: Vec<String>,
    /// The number of the same cases whose checks are unknown, because one of the reports does not record them.
    pub unverified: usize,
}

impl BaselineCases {
    /// Finds the cases that can be compared with earlier ones.
    pub fn find(before: &[CaseInfo], after: &[CaseInfo]) -> Self {
        let earlier: HashMap<_, _> = before.iter().map(|case| (case.id.as_str(), case)).collect();
        let mut found = Self::default();
        for case in after {
            let Some(before) = earlier.get(case.id.as_str()) else { continue };
            let is_known = !case.hash.is_empty() && !before.hash.is_empty();
            if before.turns != case.turns || (is_known && before.hash != case.hash) {
                found.changed.push(case.id.clone());
            } else {
                found.unverified += usize::from(!is_known);
                found.same.push(case.id.clone());
            }
        }
        found
    }
}

/// Compares a report with an earlier one on the cases that did not change. Both have one arm.
pub fn compare_with_baseline(
    before: &Report,
    after: &Report,
    cases: &BaselineCases,
    options: &CompareOptions,
) -> Result<Comparison, CompareError> {
    let arms = ["before".to_owned(), "now".to_owned()];
    let numbers: HashMap<&str, u64> = cases.same.iter().map(String::as_str).zip(0..).collect();
    let of_report = |report: &Report, arm: &str| -> Vec<Trial> {
        let name = report.arms.first().map(|arm| arm.name.as_str()).unwrap_or_default();
        let trials = report.arm_trials(name).filter_map(|trial| {
            let order = *numbers.get(trial.case.as_str())?;
            Some(Trial { arm: arm.to_owned(), order, ..trial.clone().without_details() })
        });
        trials.collect()
    };
    let [earlier, later] = &arms;
    let before = of_report(before, earlier);
    let after = of_report(after, later);
    compare_arms(&arms, before.iter().chain(&after), options)
}
