//! `patter eval`: holds an agent to what is expected of it.

use crate::experiment::{
    ArmSpec, Detail, ExperimentOptions, OutputOptions, Question, comparison_text, document, eval_text, read_report,
    say_stopped, write_file,
};
use crate::{Outcome, diagnostics};
use clap::Args;
use patter::experiment::{Gate, ReportKind, SeriesEnd, compare_reports};
use patter::stats::Stopping;
use std::io;
use std::path::PathBuf;

/// Run cases with an agent, check what comes of them, and tell how often that is as it should be
///
/// Each run is kept as it ends. An experiment that was interrupted goes on where it was, when the same command is given
/// again. The exit code is 1 where a gate fails; without --gate, where a case does.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter eval examples/hello.gram --cases cases.gram --model demo\n  \
                        patter eval shop.gram#clerk --cases cases.jsonl --repeats 3 --gate 'pass>=0.95'\n  \
                        patter eval shop.gram --cases cases.csv --format junit -o report.xml\n  \
                        patter eval shop.gram --cases cases.gram --baseline last.json --save-baseline last.json")]
pub(crate) struct Eval {
    /// File with the agent; without a name the one that no other of the file calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// What must be so: pass, latency_p50, latency_p95, cost, total_cost, tokens, turns or tool_calls, with >= or <=
    #[arg(long, value_name = "GATE", value_parser = gate)]
    gate: Vec<Gate>,

    /// Compare with an earlier report: a file, or the id of an experiment
    #[arg(long, value_name = "FILE|ID")]
    baseline: Option<String>,

    /// Write the report into this file, for --baseline
    #[arg(long, value_name = "FILE")]
    save_baseline: Option<PathBuf>,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    experiment: ExperimentOptions,
}

impl Eval {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let arms = [ArmSpec::base("agent")];
        let question = Question { kind: ReportKind::Eval, agent: &self.agent, arms: &arms, stopping: Stopping::Fixed };
        let detail = if self.save_baseline.is_some() { Detail::Full } else { self.output.detail() };
        let Some(mut answer) = self.experiment.run(&question, detail)? else { return Ok(Outcome::Failure) };
        let gates = if self.gate.is_empty() { vec![Gate::ALL_PASS] } else { self.gate };
        answer.report.gates = gates.iter().map(|gate| gate.judge(&answer.report.trials)).collect();
        let mut text = eval_text(&answer.report);
        if let Some(named) = &self.baseline {
            let runtime = &answer.setup.toolset.runtime;
            let Some(before) = read_report(named, &*answer.store, runtime)? else { return Ok(Outcome::Failure) };
            match compare_reports(&before, &answer.report, &self.experiment.statistics(Stopping::Fixed)) {
                Ok(comparison) => {
                    text.push_str(&comparison_text(&comparison));
                    answer.report.comparison = Some(comparison);
                }
                Err(error) => diagnostics::error(&format!("cannot compare with `{named}`: {error}"), None)?,
            }
        }
        let mut outcome = self.output.write(&answer.report, &text)?;
        if answer.end == SeriesEnd::Stopped {
            return say_stopped(&answer);
        }
        if let Some(path) = &self.save_baseline {
            outcome = match write_file(path, &format!("{}\n", document(&answer.report)))? {
                Outcome::Success => outcome,
                failed => failed,
            };
        }
        match answer.report.gates.iter().all(|gate| gate.passed) {
            true => Ok(outcome),
            false => Ok(Outcome::Failure),
        }
    }
}

fn gate(text: &str) -> Result<Gate, String> {
    text.parse().map_err(|error: patter::experiment::GateError| format!("{error}; {}", error.hint()))
}
