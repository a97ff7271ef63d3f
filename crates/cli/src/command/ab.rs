//! `patter ab`: tells which of several arms is better, and how sure that is.

use crate::experiment::{ArmSpec, ExperimentOptions, OutputOptions, Question, ab_text, say_stopped};
use crate::{Outcome, diagnostics};
use clap::Args;
use patter::experiment::{ReportKind, SeriesEnd, compare_arms};
use patter::stats::Stopping;
use std::collections::HashSet;
use std::io;

/// Run the same cases under several arms, and tell which is better, by how much, and how sure that is
///
/// An arm is a name and what is different: a file with a toolbox whose tools take the place of others, `model:NAME`,
/// `agent:FILE`, `git:REVISION` for the files as they were, or several of these with commas between. `base`, or nothing, is
/// the file as it is. The first arm is what the others are compared with.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter ab hello.gram --cases cases.gram --arm a=helloA.gram --arm b=helloB.gram\n  \
                        patter ab shop.gram --cases cases.jsonl --arm now=base --arm mini=model:OpenAI/gpt-4o-mini\n  \
                        patter ab shop.gram --cases cases.jsonl --arm before=git:HEAD~1 --arm now --repeats 3\n  \
                        patter ab shop.gram --cases cases.jsonl --arm a --arm b=agent:shop2.gram --stop-early")]
pub(crate) struct Ab {
    /// File with the agent; without a name the one that no other of the file calls
    #[arg(value_name = "FILE[#AGENT]")]
    agent: String,

    /// Arm: NAME=WHAT; at least two
    #[arg(long = "arm", value_name = "NAME=WHAT", required = true)]
    arms: Vec<ArmSpec>,

    /// Stop as soon as the pass rates are known to differ, or to make no difference that matters; errors stay as rare
    #[arg(long)]
    stop_early: bool,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    experiment: ExperimentOptions,
}

impl Ab {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let mut names = HashSet::new();
        if let Some(twice) = self.arms.iter().find(|arm| !names.insert(arm.name.clone())) {
            diagnostics::error(&format!("there are two arms `{}`", twice.name), None)?;
            return Ok(Outcome::Usage);
        }
        if self.arms.len() < 2 {
            diagnostics::error("a comparison needs two arms", Some("`--arm base` is the file as it is"))?;
            return Ok(Outcome::Usage);
        }
        let stopping = if self.stop_early { Stopping::Anytime } else { Stopping::Fixed };
        let question = Question { kind: ReportKind::Ab, agent: &self.agent, arms: &self.arms, stopping };
        let Some(mut answer) = self.experiment.run(&question, self.output.detail())? else {
            return Ok(Outcome::Failure);
        };
        let arms: Vec<_> = answer.report.arms.iter().map(|arm| arm.name.clone()).collect();
        match compare_arms(&arms, &answer.report.trials, &self.experiment.statistics(stopping)) {
            Ok(comparison) => answer.report.comparison = Some(comparison),
            Err(error) => diagnostics::error(&format!("cannot compare: {error}"), None)?,
        }
        let outcome = self.output.write(&answer.report, &ab_text(&answer.report))?;
        match answer.end {
            SeriesEnd::Stopped => say_stopped(&answer),
            SeriesEnd::Enough => {
                diagnostics::say("stopped early: what was found is enough")?;
                Ok(outcome)
            }
            SeriesEnd::Complete => Ok(outcome),
        }
    }
}
