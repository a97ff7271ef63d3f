//! Reports as text.

use super::plot::plot;
use crate::ui::style::{BAD, BOLD, DIM, GOOD, PLAIN};
use crate::ui::{self, short, truncate};
use patter::experiment::{ArmSummary, Completion, Report, Trial, TrialOutcome, summarize};
use patter::provider::price::Cost;
use patter::stats::{Comparison, Conclusion, Contrast, Interval, MetricKind};
use std::collections::HashMap;
use std::fmt::Write;

/// The maximum number of cases to show; with more cases, only those that failed are shown.
const MAX_CASES: usize = 50;
/// The maximum width of a column of names.
const NAME_WIDTH: usize = 30;

/// Returns the report of one arm: a line for each case, a summary, and the gates.
pub(crate) fn eval_text(report: &Report) -> String {
    let mut text = banner(report);
    let width = report.cases.iter().map(|case| ui::width(&case.id)).max().unwrap_or(0).min(NAME_WIDTH);
    let mut of_case: HashMap<&str, Vec<&Trial>> = HashMap::new();
    for trial in &report.trials {
        of_case.entry(&trial.case).or_default().push(trial);
    }
    let mut shown = 0;
    let mut hidden = 0;
    for case in &report.cases {
        let mut trials = of_case.remove(case.id.as_str()).unwrap_or_default();
        trials.sort_by_key(|trial| trial.repeat);
        let failed = trials.iter().find(|trial| !trial.passed);
        if shown >= MAX_CASES || (report.cases.len() > MAX_CASES && failed.is_none()) {
            hidden += 1;
            continue;
        }
        shown += 1;
        let marks: String = trials.iter().map(|trial| mark(trial)).collect();
        let why = failed.and_then(|trial| trial.failure_reason()).map(short).unwrap_or_default();
        let id = ui::pad(&truncate(&case.id, width), width);
        let _ = writeln!(text, "{}", format!("{id}  {marks}  {why}").trim_end());
    }
    if hidden > 0 {
        let _ = writeln!(text, "{DIM}… and {hidden} more{DIM:#}");
    }
    let _ = writeln!(text, "\n{}", summary_text(&summarize(&report.trials)));
    for gate in &report.gates {
        let (style, word) = match (gate.passed, gate.undecided) {
            (true, _) => (GOOD, "passed"),
            (false, true) => (BAD, "undecided"),
            (false, false) => (BAD, "failed"),
        };
        let _ = writeln!(text, "gate {} {style}{word}{style:#}: {}", gate.gate, gate.why);
    }
    text
}

/// Returns the summary of each arm, and how they compare.
pub(crate) fn ab_text(report: &Report) -> String {
    let mut text = banner(report);
    let width = report.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or(0).min(NAME_WIDTH);
    for arm in &report.arms {
        let summed = summarize(report.arm_trials(&arm.name));
        let _ = writeln!(text, "{BOLD}{:width$}{BOLD:#}  {DIM}{}, {}{DIM:#}", arm.name, arm.description, arm.model);
        let _ = writeln!(text, "{:width$}  {}", "", summary_text(&summed).replace('\n', &format!("\n{:width$}  ", "")));
    }
    text + &report.comparison.as_ref().map(comparison_text).unwrap_or_default()
}

/// Returns a line that marks the report of an experiment that is not complete.
fn banner(report: &Report) -> String {
    let runs = format!("{} of {} runs", report.trials.len(), report.planned());
    match report.completion {
        Completion::Complete => String::new(),
        Completion::StoppedEarly => format!("stopped early, after {runs}: the result is clear\n\n"),
        Completion::Interrupted => format!("{BAD}interrupted{BAD:#} after {runs}: these results are provisional\n\n"),
    }
}

/// Returns how arms compare: for each a table of metrics with plots, and the verdict.
pub(crate) fn comparison_text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for compared in &comparison.summaries {
        let contrasts: Vec<_> = comparison.contrasts.iter().filter(|contrast| contrast.arm == compared.arm).collect();
        let _ = writeln!(text, "\n{BOLD}{}{BOLD:#} against {}", compared.arm, comparison.baseline);
        let rows: Vec<_> = contrasts.iter().map(|contrast| row(contrast)).collect();
        let widths: Vec<_> = (0..4)
            .map(|column| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max())
            .map(Option::unwrap_or_default)
            .collect();
        for (row, contrast) in rows.iter().zip(&contrasts) {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
            let style = match contrast.verdict.conclusion {
                Conclusion::Better => GOOD,
                Conclusion::Worse => BAD,
                _ => PLAIN,
            };
            let line = format!("  {}  {style}{}{style:#}", cells.collect::<Vec<_>>().join("  "), plot(contrast));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(text, "{}", compared.text);
    }
    text
}

fn row(contrast: &Contrast) -> [String; 4] {
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| format_level(contrast, value));
    let means = format!("{} → {}", number(contrast.baseline_mean), number(contrast.arm_mean));
    let effect = contrast.effect.map_or_else(String::new, |effect| {
        let interval = effect.interval.map_or_else(String::new, |Interval { low, high }| {
            format!(
                " ({} to {})",
                format_change(contrast, low).split(' ').next().unwrap_or_default(),
                format_change(contrast, high)
            )
        });
        let is_inconclusive = effect.interval.is_none() && contrast.verdict.conclusion == Conclusion::Unclear;
        let caution =
            if is_inconclusive && contrast.counts.same < contrast.counts.cases { " (too few cases)" } else { "" };
        format!("{}{interval}{caution}", format_change(contrast, effect.value))
    });
    let p = contrast.test.map_or_else(String::new, |test| match test.adjusted {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    });
    [contrast.metric.name.clone(), means, effect, p]
}

/// Formats a mean.
fn format_level(contrast: &Contrast, value: f64) -> String {
    match contrast.metric.name.as_str() {
        _ if contrast.kind == MetricKind::Pass => format!("{:.1}%", value * 100.0),
        "cost" => dollars(value),
        _ => digits(value),
    }
}

/// Formats a change.
fn format_change(contrast: &Contrast, value: f64) -> String {
    match contrast.kind {
        MetricKind::Pass => format!("{:+.1} points", value * 100.0),
        MetricKind::Ratio => format!("{:+.1}%", (value - 1.0) * 100.0),
        MetricKind::Difference if contrast.metric.name == "cost" => {
            format!("{}{}", if value < 0.0 { "-" } else { "+" }, dollars(value.abs()))
        }
        MetricKind::Difference => {
            let unit = &contrast.metric.unit;
            let sign = if value < 0.0 { "-" } else { "+" };
            format!("{sign}{} {unit}", digits(value.abs()))
        }
    }
}

fn digits(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn dollars(value: f64) -> String {
    Cost::from_dollars(value).map_or_else(|| format!("${value:.2}"), |cost| cost.to_string())
}

fn summary_text(summed: &ArmSummary) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let rate = summed.pass_rate.map_or_else(|| "no runs".to_owned(), |rate| format!("{}%", percent(rate)));
    let interval = summed
        .pass_interval
        .map_or_else(String::new, |Interval { low, high }| format!(" (95% CI {}–{}%)", percent(low), percent(high)));
    let errors = match summed.errors {
        0 => String::new(),
        1 => ", 1 error".to_owned(),
        errors => format!(", {errors} errors"),
    };
    let unanswered = match summed.unanswered {
        0 => String::new(),
        unanswered => format!(", {unanswered} without an answer"),
    };
    let passed = match summed.decided() {
        0 if summed.errors > 0 => "no result".to_owned(),
        decided => format!("passed {} of {decided}, {rate}{interval}", summed.passed),
    };
    let mut text = format!("{passed}{unanswered}{errors}");
    if let Some((p50, p95)) = summed.latency_p50_ms.zip(summed.latency_p95_ms) {
        let mean = |sum| summed.mean(sum).map(digits).unwrap_or_default();
        let cost = summed.cost.map_or_else(|| "cost unknown".to_owned(), |cost| cost.to_string());
        let tokens = mean(summed.tokens);
        let calls = mean(summed.model_calls);
        let tools = mean(summed.tool_calls);
        let _ = write!(
            text,
            "\nlatency {p50} ms (p95 {p95} ms); per run: {tokens} tokens, {calls} model calls, {tools} tool calls; {cost}"
        );
    }
    text
}

fn mark(trial: &Trial) -> String {
    match (trial.passed, &trial.failure) {
        (true, _) => format!("{GOOD}✓{GOOD:#}"),
        (false, None) if trial.outcome() != TrialOutcome::Error => format!("{BAD}✗{BAD:#}"),
        (false, _) => format!("{BAD}!{BAD:#}"),
    }
}
