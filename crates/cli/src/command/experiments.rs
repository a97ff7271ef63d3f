//! `patter experiments`: lists experiments, and shows what came of them.

use super::sessions::ago;
use crate::experiment::{OutputOptions, ab_text, eval_text, latest, say_keep_error};
use crate::talk::{StoreOption, Stores, short};
use crate::{Outcome, diagnostics, print};
use clap::Args;
use patter::drive::now;
use patter::experiment::{ReportKind, StoredTrials, compare_arms};
use patter::stats::Options;
use patter::store::{self, SessionState, Summary};
use std::fmt::Write;
use std::io;

/// List experiments, or show what came of one, in any form
///
/// Experiments are kept in the store of the project, with all their runs. One is named by its id, by the beginning of it,
/// or as `latest`; `patter sessions rm` removes it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter experiments\n  \
                        patter experiments latest\n  \
                        patter experiments latest --format html -o report.html")]
pub(crate) struct Experiments {
    /// Experiment to show
    experiment: Option<String>,

    /// How many are listed
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: usize,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    store: StoreOption,
}

/// Among how many sessions experiments are looked for.
const AMONG: usize = 1000;

impl Experiments {
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let Some(Stores { runtime, store }) = self.store.open()? else { return Ok(Outcome::Failure) };
        let Some(named) = &self.experiment else {
            return match runtime.block_on(store.list(AMONG)) {
                Ok(sessions) => listed(sessions.into_iter().filter(Summary::is_experiment).take(self.limit)),
                Err(error) => {
                    diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                    Ok(Outcome::Failure)
                }
            };
        };
        let read = runtime.block_on(async {
            let id = match named.as_str() {
                "latest" => latest(&*store).await?,
                named => store::find(&*store, named).await?,
            };
            StoredTrials::read(&*store, &id).await
        });
        let mut report = match read {
            Ok(report) => report,
            Err(error) => {
                say_keep_error(&error)?;
                return Ok(Outcome::Failure);
            }
        };
        let text = match report.kind {
            ReportKind::Eval => eval_text(&report),
            ReportKind::Ab => {
                let arms: Vec<_> = report.arms.iter().map(|arm| arm.name.clone()).collect();
                let options = Options { seed: report.seed, stopping: report.blocks.stopping(), ..Options::default() };
                report.comparison = compare_arms(&arms, &report.trials, &options).ok();
                ab_text(&report)
            }
        };
        self.output.write(&report, &text)
    }
}

fn listed(experiments: impl Iterator<Item = Summary>) -> io::Result<Outcome> {
    let mut text = String::new();
    for experiment in experiments {
        let state = if experiment.state == SessionState::Running { "open" } else { "    " };
        let age = ago(now().saturating_sub(experiment.changed_ms));
        let runs = experiment.entries.saturating_sub(1);
        let (id, title) = (&experiment.id, short(&experiment.title));
        let _ = writeln!(text, "{id}  {age:>8}  {state}  {runs:>6} runs  {title}");
    }
    if text.is_empty() {
        diagnostics::say("there are no experiments yet; `patter eval` and `patter ab` begin one")?;
    }
    print(&text)?;
    Ok(Outcome::Success)
}
