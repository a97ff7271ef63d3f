//! Comparing with earlier results.

use super::output::read_report;
use super::{Answer, Prepared};
use crate::error::CommandError;
use crate::ui;
use clap::ValueEnum;
use patter::experiment::{BaselineCases, Completion, Report, compare_with_baseline, regressions};
use patter::stats::{CompareOptions, Comparison, Contrast};

/// The maximum number of cases to name in a message.
const MAX_NAMED: usize = 5;

/// What makes a command exit with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Results that are worse
    Regression,
}

/// Earlier results to compare with.
pub(crate) struct Baseline {
    name: String,
    report: Report,
    cases: BaselineCases,
}

impl Baseline {
    /// Reads a baseline, and warns about what cannot be compared with the experiment.
    pub(crate) fn read(name: &str, prepared: &Prepared<'_>) -> Result<Self, CommandError> {
        let report = read_report(name, prepared.store, prepared.runtime)?;
        let cases = BaselineCases::find(&report.cases, &prepared.plan.cases);
        if cases.same.is_empty() {
            let message = match cases.changed.as_slice() {
                [] => format!("the baseline `{name}` has none of these cases"),
                changed => format!("all cases changed since the baseline `{name}`: {}", list(changed)),
            };
            return Err(CommandError::failure(message).with_hint("save a new baseline under another name"));
        }
        if !cases.changed.is_empty() {
            let changed = list(&cases.changed);
            let number = ui::plural(cases.changed.len(), "case");
            ui::warning(&format!("{number} changed since the baseline `{name}`, and will not be compared: {changed}"))?;
        }
        if cases.unverified > 0 {
            ui::warning(&format!(
                "the baseline `{name}` does not record its checks; if they changed, so did the results"
            ))?;
        }
        if report.completion == Completion::Interrupted {
            ui::warning(&format!("the baseline `{name}` is an experiment that was interrupted"))?;
        }
        Ok(Self { name: name.to_owned(), report, cases })
    }

    /// Compares the results with the baseline.
    pub(crate) fn compare(&self, answer: &Answer, options: &CompareOptions) -> Result<Comparison, CommandError> {
        let compared = compare_with_baseline(&self.report, &answer.report, &self.cases, options);
        compared.map_err(|error| CommandError::failure(format!("cannot compare with `{}`: {error}", self.name)))
    }
}

/// Returns what became worse since a baseline. Latency does not count: it depends on when the runs were made.
pub(crate) fn regressions_since(comparison: &Comparison) -> Vec<Contrast> {
    regressions(comparison).filter(|contrast| contrast.metric.name != "latency").cloned().collect()
}

/// Describes regressions in words.
pub(crate) fn describe_regressions(regressions: &[Contrast]) -> String {
    regressions.iter().map(|contrast| contrast.verdict.text.as_str()).collect::<Vec<_>>().join("; ")
}

fn list(ids: &[String]) -> String {
    let named: Vec<_> = ids.iter().take(MAX_NAMED).map(|id| format!("`{id}`")).collect();
    let more = ids.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
