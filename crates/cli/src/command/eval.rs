//! `patter eval`: measures an agent on test cases.

use super::Command;
use crate::error::{CommandResult, ErrorFormat, Outcome};
use crate::experiment::{
    ArmSpec, Detail, ExperimentOptions, OutputOptions, Question, comparison_text, document, eval_text, read_report,
    write_report,
};
use crate::ui;
use clap::Args;
use patter::experiment::{Gate, GateError, ReportKind, SeriesEnd, compare_reports};
use patter::stats::Stopping;
use std::path::PathBuf;

/// Run test cases against an agent, check the results, and report the pass rate
///
/// Each run is stored as it ends. To continue an interrupted experiment, repeat the command. Exits with 1 if a gate
/// fails; without --gate, if a case does.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter eval examples/hello.gram --cases cases.gram --model demo\n  \
                        patter eval shop.gram#clerk --cases cases.jsonl --repeats 3 --gate 'pass>=0.95'\n  \
                        patter eval shop.gram --cases cases.csv --format junit -o report.xml\n  \
                        patter eval shop.gram --cases cases.gram --baseline last.json --save-baseline last.json")]
pub(crate) struct Eval {
    /// File containing the agent; by default its top-level agent, which no other agent calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// Required threshold, e.g. `pass>=0.95`; metrics: pass, latency_p50, latency_p95, cost, total_cost, tokens, turns,
    /// tool_calls
    #[arg(long, value_name = "GATE", value_parser = gate)]
    gate: Vec<Gate>,

    /// Compare with an earlier report: a file, or the id of an experiment
    #[arg(long, value_name = "FILE|ID")]
    baseline: Option<String>,

    /// Write the report to this file, for --baseline
    #[arg(long, value_name = "FILE")]
    save_baseline: Option<PathBuf>,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    experiment: ExperimentOptions,
}

impl Command for Eval {
    fn error_format(&self) -> ErrorFormat {
        self.output.error_format()
    }

    fn run(&self) -> CommandResult {
        let arms = [ArmSpec::base("agent")];
        let question = Question { kind: ReportKind::Eval, agent: &self.agent, arms: &arms, stopping: Stopping::Fixed };
        let detail = if self.save_baseline.is_some() { Detail::Full } else { self.output.detail() };
        let mut answer = self.experiment.run(&question, detail)?;
        let gates = if self.gate.is_empty() { vec![Gate::ALL_PASS] } else { self.gate.clone() };
        answer.report.gates = gates.iter().map(|gate| gate.judge(&answer.report.trials)).collect();
        let mut text = eval_text(&answer.report);
        if let Some(named) = &self.baseline {
            let before = read_report(named, &*answer.store, &answer.setup.toolset.runtime)?;
            match compare_reports(&before, &answer.report, &self.experiment.statistics(Stopping::Fixed)) {
                Ok(comparison) => {
                    text.push_str(&comparison_text(&comparison));
                    answer.report.comparison = Some(comparison);
                }
                Err(error) => ui::warning(&format!("cannot compare with `{named}`: {error}"))?,
            }
        }
        self.output.write(&answer.report, &text)?;
        if answer.end == SeriesEnd::Stopped {
            return answer.report_stopped();
        }
        if let Some(path) = &self.save_baseline {
            write_report(path, &format!("{}\n", document(&answer.report)))?;
        }
        Ok(Outcome::from_findings(!answer.report.gates.iter().all(|gate| gate.passed)))
    }
}

fn gate(text: &str) -> Result<Gate, String> {
    text.parse().map_err(|error: GateError| format!("{error}; {}", error.hint()))
}
