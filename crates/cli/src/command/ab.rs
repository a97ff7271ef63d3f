//! `patter ab`: compares arms on the same cases.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::experiment::{ArmSpec, ExperimentOptions, FailOn, OutputOptions, Question, ab_text, describe_regressions};
use crate::ui;
use clap::Args;
use patter::experiment::{ReportKind, SeriesEnd, regressions};
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

    /// Arm to compare; a single one is compared with the file unchanged
    #[arg(long = "arm", value_name = "NAME=WHAT", required = true)]
    arms: Vec<ArmSpec>,

    /// Stop once the pass rates are known to differ or not to differ meaningfully; error rates are still controlled
    #[arg(long)]
    stop_early: bool,

    /// Exit with 1 if an arm is worse than the first, in any metric and by an amount that may matter
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,

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
            let error = CommandError::usage(format!("the arm `{}` is given twice", duplicate.name));
            return Err(error.with_hint("the name before `=` identifies an arm; choose another"));
        }
        let mut arms = self.arms.clone();
        // One arm that differs is compared with the file unchanged.
        if let [only] = arms.as_slice()
            && !only.is_unchanged()
            && let Ok(base) = "base".parse()
        {
            arms.insert(0, base);
        }
        if arms.len() < 2 {
            let error = CommandError::usage("a comparison needs two arms");
            return Err(error.with_hint("`--arm base` is the file unchanged"));
        }
        let stopping = if self.stop_early { Stopping::Anytime } else { Stopping::Fixed };
        let question = Question { kind: ReportKind::Ab, agent: &self.agent, arms: &arms, stopping };
        let mut answer = self.experiment.run(&question, self.output.detail(), |_| Ok(()))?;
        let comparison = answer.report.compare(&self.experiment.statistics(stopping));
        let comparison =
            comparison.map_err(|error| CommandError::failure(format!("cannot compare the arms: {error}")))?;
        let worse: Vec<_> = regressions(&comparison).cloned().collect();
        answer.report.comparison = Some(comparison);
        self.output.write(&answer.report, &ab_text(&answer.report))?;
        answer.finish()?;
        let is_undecided = answer.report_errors()?;
        if answer.end == SeriesEnd::Stopped {
            return answer.report_stopped();
        }
        let is_regression = self.fail_on == Some(FailOn::Regression) && !worse.is_empty();
        if is_regression {
            ui::warning(&format!("regression: {}", describe_regressions(&worse)))?;
        }
        Ok(Outcome::from_findings(is_undecided || is_regression))
    }
}
