//! `patter ab`: compares arms on the same cases.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::experiment::{ArmSpec, ExperimentOptions, OutputOptions, Question, ab_text};
use crate::ui;
use clap::Args;
use patter::experiment::{ReportKind, SeriesEnd, compare_arms};
use patter::stats::Stopping;
use std::collections::HashSet;

/// Run the same cases under several arms, and report which is better, by how much, and with what confidence
///
/// An arm is a name and what differs: a file with a toolbox whose tools replace others, `model:NAME`, `agent:FILE`,
/// `git:REVISION` for the files of a commit, or several of these, separated by commas. `base`, or nothing, is the file
/// unchanged. The first arm is the one that the others are compared with.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter ab hello.gram --cases cases.gram --arm a=helloA.gram --arm b=helloB.gram\n  \
                        patter ab shop.gram --cases cases.jsonl --arm now=base --arm mini=model:OpenAI/gpt-4o-mini\n  \
                        patter ab shop.gram --cases cases.jsonl --arm before=git:HEAD~1 --arm now --repeats 3\n  \
                        patter ab shop.gram --cases cases.jsonl --arm a --arm b=agent:shop2.gram --stop-early")]
pub(crate) struct Ab {
    /// File containing the agent; by default its top-level agent, which no other agent calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// Arm to compare; at least two are required
    #[arg(long = "arm", value_name = "NAME=WHAT", required = true)]
    arms: Vec<ArmSpec>,

    /// Stop once the pass rates are known to differ or not to differ meaningfully; error rates are still controlled
    #[arg(long)]
    stop_early: bool,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    experiment: ExperimentOptions,
}

impl Command for Ab {
    fn error_format(&self) -> ErrorFormat {
        self.output.error_format()
    }

    fn run(&self) -> CommandResult {
        let mut names = HashSet::new();
        if let Some(duplicate) = self.arms.iter().find(|arm| !names.insert(arm.name.clone())) {
            return Err(CommandError::usage(format!("the arm `{}` is given twice", duplicate.name)));
        }
        if self.arms.len() < 2 {
            let error = CommandError::usage("a comparison needs two arms");
            return Err(error.with_hint("`--arm base` is the file unchanged"));
        }
        let stopping = if self.stop_early { Stopping::Anytime } else { Stopping::Fixed };
        let question = Question { kind: ReportKind::Ab, agent: &self.agent, arms: &self.arms, stopping };
        let mut answer = self.experiment.run(&question, self.output.detail())?;
        let arms: Vec<_> = answer.report.arms.iter().map(|arm| arm.name.clone()).collect();
        match compare_arms(&arms, &answer.report.trials, &self.experiment.statistics(stopping)) {
            Ok(comparison) => answer.report.comparison = Some(comparison),
            Err(error) => ui::warning(&format!("cannot compare the arms: {error}"))?,
        }
        self.output.write(&answer.report, &ab_text(&answer.report))?;
        match answer.end {
            SeriesEnd::Stopped => answer.report_stopped(),
            SeriesEnd::Enough => {
                ui::status("stopped early: the result is clear")?;
                Ok(Outcome::Success)
            }
            SeriesEnd::Complete => Ok(Outcome::Success),
        }
    }
}
