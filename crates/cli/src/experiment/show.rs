//! What an experiment says at the terminal.

use super::plot::plot;
use crate::diagnostics::visible;
use crate::talk::{DIM, short};
use anstyle::{AnsiColor, Style};
use patter::experiment::{Report, Summary, Trial, summary};
use patter::provider::price::Cost;
use patter::stats::{Comparison, Contrast, Finding, Interval, Kind};
use std::fmt::Write;

/// Up to how many cases are all shown; of more, those that failed.
const ALL: usize = 50;
/// The widest a column of names is.
const NAME: usize = 30;
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const BOLD: Style = Style::new().bold();

/// Returns what came of one arm: a line for each case, a summary, and the gates.
pub(crate) fn eval_text(report: &Report) -> String {
    let mut text = String::new();
    let width = report.cases.iter().map(|case| case.id.chars().count()).max().unwrap_or(0).min(NAME);
    let of_case = |id: &str| report.trials.iter().filter(|trial| trial.case == id).collect::<Vec<_>>();
    let (mut shown, mut hidden) = (0, 0);
    for case in &report.cases {
        let mut trials = of_case(&case.id);
        trials.sort_by_key(|trial| trial.repeat);
        let failed = trials.iter().find(|trial| !trial.passed);
        if shown >= ALL || (report.cases.len() > ALL && failed.is_none()) {
            hidden += 1;
            continue;
        }
        shown += 1;
        let marks: String = trials.iter().map(|trial| mark(trial)).collect();
        let why = failed.and_then(|trial| trial.why_not()).map(short).unwrap_or_default();
        let id = cut(&visible(&case.id), width);
        let _ = writeln!(text, "{}", format!("{id:width$}  {marks}  {why}").trim_end());
    }
    if hidden > 0 {
        let _ = writeln!(text, "{DIM}… and {hidden} more{DIM:#}");
    }
    let _ = writeln!(text, "\n{}", summary_text(&summary(&report.trials)));
    for gate in &report.gates {
        let (style, word) = if gate.passed { (GOOD, "holds") } else { (BAD, "fails") };
        let _ = writeln!(text, "gate {} {style}{word}{style:#}: {}", gate.gate, gate.why);
    }
    text
}

/// Returns what came of each arm, and how they compare.
pub(crate) fn ab_text(report: &Report) -> String {
    let mut text = String::new();
    let width = report.arms.iter().map(|arm| arm.name.chars().count()).max().unwrap_or(0).min(NAME);
    for arm in &report.arms {
        let summed = summary(report.of_arm(&arm.name));
        let _ = writeln!(text, "{BOLD}{:width$}{BOLD:#}  {DIM}{}, {}{DIM:#}", arm.name, visible(&arm.what), arm.model);
        let _ = writeln!(text, "{:width$}  {}", "", summary_text(&summed).replace('\n', &format!("\n{:width$}  ", "")));
    }
    text + &report.comparison.as_ref().map(comparison_text).unwrap_or_default()
}

/// Returns how arms compare: a table of metrics with plots, and the verdict, for each.
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
            let style = match contrast.verdict.finding {
                Finding::Better => GOOD,
                Finding::Worse => BAD,
                _ => Style::new(),
            };
            let line = format!("  {}  {style}{}{style:#}", cells.collect::<Vec<_>>().join("  "), plot(contrast));
            let _ = writeln!(text, "{}", line.trim_end());
        }
        let _ = writeln!(text, "{}", compared.words);
    }
    text
}

fn row(contrast: &Contrast) -> [String; 4] {
    let number = |value: Option<f64>| value.map_or_else(|| "?".to_owned(), |value| level(contrast, value));
    let means = format!("{} → {}", number(contrast.baseline_mean), number(contrast.arm_mean));
    let effect = contrast.effect.map_or_else(String::new, |effect| {
        let interval = effect.interval.map_or_else(String::new, |Interval { low, high }| {
            format!(" ({} to {})", change(contrast, low).split(' ').next().unwrap_or_default(), change(contrast, high))
        });
        format!("{}{interval}", change(contrast, effect.value))
    });
    let p = contrast.test.map_or_else(String::new, |test| match test.adjusted {
        p if p < 0.001 => "p < 0.001".to_owned(),
        p => format!("p = {p:.3}"),
    });
    [contrast.metric.name.clone(), means, effect, p]
}

/// Returns a mean as it is written.
fn level(contrast: &Contrast, value: f64) -> String {
    match contrast.metric.name.as_str() {
        _ if contrast.kind == Kind::Pass => format!("{:.1} %", value * 100.0),
        "cost" => dollars(value),
        _ => digits(value),
    }
}

/// Returns a change as it is written.
fn change(contrast: &Contrast, value: f64) -> String {
    match contrast.kind {
        Kind::Pass => format!("{:+.1} points", value * 100.0),
        Kind::Ratio => format!("{:+.1} %", (value - 1.0) * 100.0),
        Kind::Difference if contrast.metric.name == "cost" => {
            format!("{}{}", if value < 0.0 { "-" } else { "+" }, dollars(value.abs()))
        }
        Kind::Difference => {
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
    Cost::of_dollars(value).map_or_else(|| format!("${value:.2}"), |cost| cost.to_string())
}

fn summary_text(summed: &Summary) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let rate = summed.pass_rate.map_or_else(|| "nothing ran".to_owned(), |rate| format!("{} %", percent(rate)));
    let interval = summed.pass_interval.map_or_else(String::new, |Interval { low, high }| {
        format!(" (95 % sure: {}–{} %)", percent(low), percent(high))
    });
    let failed = if summed.failed > 0 { format!(", {} without an answer", summed.failed) } else { String::new() };
    let mut text = format!("passed {} of {}, {rate}{interval}{failed}", summed.passed, summed.runs);
    if let Some((p50, p95)) = summed.latency_p50_ms.zip(summed.latency_p95_ms) {
        let mean = |sum| summed.mean(sum).map(digits).unwrap_or_default();
        let cost = summed.cost.map_or_else(|| "cost unknown".to_owned(), |cost| cost.to_string());
        let (tokens, calls, tools) = (mean(summed.tokens), mean(summed.model_calls), mean(summed.tool_calls));
        let _ = write!(
            text,
            "\nlatency {p50} ms (p95 {p95} ms), a run: {tokens} tokens, {calls} model calls, {tools} tool calls; {cost}"
        );
    }
    text
}

fn mark(trial: &Trial) -> String {
    match (trial.passed, &trial.failure) {
        (true, _) => format!("{GOOD}✓{GOOD:#}"),
        (false, None) => format!("{BAD}✗{BAD:#}"),
        (false, Some(_)) => format!("{BAD}!{BAD:#}"),
    }
}

fn cut(text: &str, width: usize) -> String {
    crate::terminal::cut(text, width)
}
