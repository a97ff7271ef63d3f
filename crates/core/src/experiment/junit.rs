//! Reports as JUnit XML, for continuous integration.

use super::report::Report;
use super::trial::{Trial, TrialOutcome};
use std::collections::HashMap;
use std::fmt::Write;

/// Renders a report as JUnit XML: a suite for each arm, and a test for each trial.
///
/// ```
/// use patter_core::experiment::{Report, ReportKind, junit};
/// let xml = junit(&Report::new("Greeting", ReportKind::Eval));
/// assert!(xml.contains("<testsuites name=\"Greeting\" tests=\"0\""));
/// ```
pub fn junit(report: &Report) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let counts = counts(&report.trials.iter().collect::<Vec<_>>());
    let _ = writeln!(xml, "<testsuites name=\"{}\" {counts}>", escape(&report.title));
    let positions: HashMap<&str, usize> = report.cases.iter().map(|case| case.id.as_str()).zip(0..).collect();
    for arm in &report.arms {
        let mut trials: Vec<_> = report.arm_trials(&arm.name).collect();
        trials.sort_by_key(|trial| (positions.get(trial.case.as_str()), trial.repeat));
        let _ = writeln!(xml, "  <testsuite name=\"{}\" {}>", escape(&arm.name), self::counts(&trials));
        let _ = writeln!(xml, "    <properties>");
        for (name, value) in [("agent", &arm.agent), ("model", &arm.model), ("bindings", &arm.bindings_hash)] {
            let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{}\"/>", escape(value));
        }
        let _ = writeln!(xml, "    </properties>");
        for trial in trials {
            test(&mut xml, &arm.agent, trial, report.repeats);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn test(xml: &mut String, agent: &str, trial: &Trial, repeats: u32) {
    let repeat = if repeats > 1 { format!(" #{}", trial.repeat + 1) } else { String::new() };
    let name = format!("{}{repeat}", trial.case);
    let time = seconds(trial.latency_ms);
    let _ = write!(xml, "    <testcase classname=\"{}\" name=\"{}\" time=\"{time}\"", escape(agent), escape(&name));
    if trial.passed {
        xml.push_str("/>\n");
        return;
    }
    xml.push_str(">\n");
    let why = escape(trial.failure_reason().unwrap_or_default());
    if is_error(trial) {
        let kind = trial.failure.as_ref().map_or("check", |failure| failure.kind.name());
        let _ = writeln!(xml, "      <error type=\"{kind}\" message=\"{why}\"/>");
    } else {
        let failed: Vec<_> = trial.judged.iter().filter(|judged| !judged.passed).collect();
        let lines: Vec<_> = failed.iter().map(|judged| format!("{}: {}", judged.check, judged.why)).collect();
        let _ =
            writeln!(xml, "      <failure type=\"check\" message=\"{why}\">{}</failure>", escape(&lines.join("\n")));
    }
    let _ = writeln!(xml, "      <system-out>{}</system-out>", escape(&trial.content));
    xml.push_str("    </testcase>\n");
}

fn counts(trials: &[&Trial]) -> String {
    let errors = trials.iter().filter(|trial| is_error(trial)).count();
    let failures = trials.iter().filter(|trial| !trial.passed && !is_error(trial)).count();
    let time = seconds(trials.iter().map(|trial| trial.latency_ms).sum());
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time}\"", trials.len())
}

/// Returns whether there is no answer, or no verdict on it.
fn is_error(trial: &Trial) -> bool {
    trial.failure.is_some() || trial.outcome() == TrialOutcome::Error
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// Escapes a text, and replaces characters that XML cannot represent.
fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut xml, c| {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' | '\t' => {
                let _ = write!(xml, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
        xml
    })
}
