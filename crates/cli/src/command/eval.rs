//! `patter eval`: measures an agent on test cases.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::experiment::{
    ArmSpec, Baseline, Detail, ExperimentOptions, FailOn, OutputOptions, Question, comparison_text,
    describe_regressions, document, eval_text, regressions_since, write_report,
};
use crate::ui;
use clap::Args;
use patter::experiment::{Gate, GateError, Report, ReportKind, SeriesEnd};
use patter::stats::Stopping;
use std::path::{Path, PathBuf};

/// Run test cases against an agent, check the results, and report the pass rate
///
/// Each run is stored as it ends. To continue an interrupted experiment, repeat the command. Exits with 1 if a gate
/// fails; without --gate and --fail-on, if a case does. An error of a model, a judge or a program is not a failed case:
/// with too many of them there is no result, and the command exits with 1.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter eval examples/hello.gram --cases cases.gram --model demo\n  \
                        patter eval shop.gram#clerk --cases cases.jsonl --repeats 3 --gate 'pass>=0.95'\n  \
                        patter eval shop.gram --cases cases.csv --format junit -o report.xml\n  \
                        patter eval shop.gram --cases cases.gram --save-baseline last.json\n  \
                        patter eval shop.gram --cases cases.gram --baseline last.json --fail-on regression")]
pub(crate) struct Eval {
    /// File containing the agent; by default its top-level agent, which no other agent calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// Required threshold, e.g. `pass>=95%` or `latency_p95<=2s`; metrics: pass, latency_p50, latency_p95, cost,
    /// total_cost, tokens, turns, tool_calls
    #[arg(long, value_name = "GATE", value_parser = gate)]
    gate: Vec<Gate>,

    /// Compare with an earlier report, on the cases that did not change since: a file, or the id of an experiment
    #[arg(long, value_name = "FILE|ID")]
    baseline: Option<String>,

    /// Write the report to this file, for --baseline, unless it is worse than the one that it would replace
    #[arg(long, value_name = "FILE")]
    save_baseline: Option<PathBuf>,

    /// Exit with 1 if the results are worse than the baseline; latency does not count
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    experiment: ExperimentOptions,
}

/// Why results are not saved as a baseline.
#[derive(Clone, Copy)]
enum Unsaved {
    Errors,
    Regression,
    Gate,
}

impl Command for Eval {
    fn error_format(&self) -> ErrorFormat {
        self.output.error_format()
    }

    fn run(&self) -> CommandResult {
        if self.fail_on.is_some() && self.baseline.is_none() && self.save_baseline.is_none() {
            let hint = "add --baseline FILE, or --save-baseline FILE to compare with the file from the last time";
            return Err(CommandError::usage("--fail-on needs a baseline to compare with").with_hint(hint));
        }
        let arms = [ArmSpec::base("agent")];
        let question = Question { kind: ReportKind::Eval, agent: &self.agent, arms: &arms, stopping: Stopping::Fixed };
        let detail = if self.save_baseline.is_some() { Detail::Full } else { self.output.detail() };
        let mut baseline = None;
        let mut answer = self.experiment.run(&question, detail, |prepared| {
            baseline = self.baseline().map(|name| Baseline::read(&name, prepared)).transpose()?;
            Ok(())
        })?;
        let gates = match (self.gate.as_slice(), self.fail_on) {
            ([], None) => vec![Gate::ALL_PASS],
            (gates, _) => gates.to_vec(),
        };
        answer.report.gates = gates.iter().map(|gate| gate.judge(&answer.report.trials)).collect();
        let mut text = eval_text(&answer.report);
        let mut worse = Vec::new();
        if let Some(baseline) = &baseline {
            let comparison = baseline.compare(&answer, &self.experiment.statistics(Stopping::Fixed))?;
            text.push_str(&comparison_text(&comparison));
            worse = regressions_since(&comparison);
            answer.report.comparison = Some(comparison);
        }
        self.output.write(&answer.report, &text)?;
        answer.finish()?;
        let is_undecided = answer.report_errors()?;
        if answer.end == SeriesEnd::Stopped {
            return answer.report_stopped();
        }
        let is_regression = !worse.is_empty();
        if is_regression {
            ui::warning(&format!("regression: {}", describe_regressions(&worse)))?;
        }
        let is_gate_failed = !answer.report.gates.iter().all(|gate| gate.passed);
        let is_saved = match &self.save_baseline {
            None => true,
            Some(path) => {
                let reasons = [
                    (is_undecided, Unsaved::Errors),
                    (is_regression, Unsaved::Regression),
                    (is_gate_failed && !self.gate.is_empty(), Unsaved::Gate),
                ];
                self.save(path, &answer.report, reasons.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why))?
            }
        };
        let fails = is_undecided || is_gate_failed || !is_saved;
        Ok(Outcome::from_findings(fails || (is_regression && self.fail_on == Some(FailOn::Regression))))
    }
}

impl Eval {
    /// Returns the baseline: the one that is named, or else the one that would be replaced.
    fn baseline(&self) -> Option<String> {
        let replaced = || self.save_baseline.as_ref().filter(|path| path.is_file());
        self.baseline.clone().or_else(|| replaced().map(|path| path.display().to_string()))
    }

    /// Saves the results for later comparisons, unless there is a reason not to. Returns whether they are saved.
    fn save(&self, path: &Path, report: &Report, refusal: Option<Unsaved>) -> Result<bool, CommandError> {
        let Some(why) = refusal else {
            write_report(path, &format!("{}\n", document(report)))?;
            return Ok(true);
        };
        let name = path.display();
        let (why, hint) = match why {
            Unsaved::Errors => ("too many runs ended with an error", "fix the cause of the errors, and run it again"),
            Unsaved::Regression => (
                "the results are worse than the baseline",
                "to accept these results as they are, save them to a new file, without --baseline",
            ),
            Unsaved::Gate => ("a gate failed", "to accept these results as they are, omit --gate"),
        };
        CommandError::failure(format!("`{name}` is not saved: {why}")).with_hint(hint).print_problem()?;
        Ok(false)
    }
}

fn gate(text: &str) -> Result<Gate, String> {
    text.parse().map_err(|error: GateError| format!("{error}; {}", error.hint()))
}
