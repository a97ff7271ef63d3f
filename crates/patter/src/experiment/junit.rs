//! Reports as JUnit XML, which systems of continuous integration read.

use super::report::{Report, Trial};
use std::fmt::Write;

/// Writes a report as JUnit XML: a suite for each arm, and a test for each run of a case.
///
/// ```
/// use patter::experiment::{Report, ReportKind, junit};
/// let xml = junit(&Report::new("Greeting", ReportKind::Eval));
/// assert!(xml.contains("<testsuites name=\"Greeting\" tests=\"0\""));
/// ```
pub fn junit(report: &Report) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let counts = counts(&report.trials.iter().collect::<Vec<_>>());
    let _ = writeln!(xml, "<testsuites name=\"{}\" {counts}>", escaped(&report.title));
    for arm in &report.arms {
        let mut trials: Vec<_> = report.of_arm(&arm.name).collect();
        let place = |trial: &Trial| report.cases.iter().position(|case| case.id == trial.case);
        trials.sort_by_cached_key(|trial| (place(trial), trial.repeat));
        let _ = writeln!(xml, "  <testsuite name=\"{}\" {}>", escaped(&arm.name), self::counts(&trials));
        let _ = writeln!(xml, "    <properties>");
        for (name, value) in [("agent", &arm.agent), ("model", &arm.model), ("bindings", &arm.bindings_hash)] {
            let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{}\"/>", escaped(value));
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
    let _ = write!(xml, "    <testcase classname=\"{}\" name=\"{}\" time=\"{time}\"", escaped(agent), escaped(&name));
    if trial.passed {
        xml.push_str("/>\n");
        return;
    }
    xml.push_str(">\n");
    let why = escaped(trial.why_not().unwrap_or_default());
    if let Some(failure) = &trial.failure {
        let _ = writeln!(xml, "      <error type=\"{}\" message=\"{why}\"/>", failure.kind.name());
    } else {
        let failed: Vec<_> = trial.judged.iter().filter(|judged| !judged.passed).collect();
        let lines: Vec<_> = failed.iter().map(|judged| format!("{}: {}", judged.check, judged.why)).collect();
        let _ =
            writeln!(xml, "      <failure type=\"check\" message=\"{why}\">{}</failure>", escaped(&lines.join("\n")));
    }
    let _ = writeln!(xml, "      <system-out>{}</system-out>", escaped(&trial.content));
    xml.push_str("    </testcase>\n");
}

fn counts(trials: &[&Trial]) -> String {
    let errors = trials.iter().filter(|trial| trial.failure.is_some()).count();
    let failures = trials.iter().filter(|trial| !trial.passed && trial.failure.is_none()).count();
    let time = seconds(trials.iter().map(|trial| trial.latency_ms).sum());
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time}\"", trials.len())
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// Escapes a text. What XML has no place for at all is replaced.
fn escaped(text: &str) -> String {
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
