//! `patter experiments`: lists experiments, and reports their results.

use super::Command;
use crate::argument::parse_count;
use crate::error::{CommandResult, ErrorFormat, Outcome};
use crate::experiment::{OutputOptions, ReportFormat, ab_text, eval_text, find_experiment};
use crate::session::{OpenStore, RECENT_SESSIONS, StoreOption, state, summary_json};
use crate::ui::{self, Align, Column, listing};
use clap::Args;
use patter::drive::now_ms;
use patter::experiment::{ReportKind, StoredTrials};
use patter::stats::CompareOptions;
use patter::store::SessionSummary;
use serde_json::Value as Json;
use std::num::NonZeroU32;

/// List experiments, or report the result of one
///
/// Experiments are stored with the sessions of the project, with all their runs. An experiment is named by its id, by the
/// start of it, or as `latest`; remove it with `patter sessions rm`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter experiments\n  \
                        patter experiments latest\n  \
                        patter experiments latest --format html -o report.html")]
pub(crate) struct Experiments {
    /// Experiment to report
    experiment: Option<String>,

    /// Maximum number of experiments to list
    #[arg(long, default_value = "20", value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    limit: NonZeroU32,

    #[command(flatten)]
    output: OutputOptions,

    #[command(flatten)]
    store: StoreOption,
}

impl Command for Experiments {
    fn error_format(&self) -> ErrorFormat {
        self.output.error_format()
    }

    fn run(&self) -> CommandResult {
        let OpenStore { runtime, store } = self.store.open_existing()?;
        let Some(named) = &self.experiment else {
            let sessions = runtime.block_on(store.list(RECENT_SESSIONS))?;
            let experiments =
                sessions.into_iter().filter(SessionSummary::is_experiment).take(self.limit.get() as usize);
            return self.list(&experiments.collect::<Vec<_>>());
        };
        let mut report = runtime.block_on(async {
            let id = find_experiment(&*store, named).await?;
            StoredTrials::read(&*store, &id).await
        })?;
        let text = match report.kind {
            ReportKind::Eval => eval_text(&report),
            ReportKind::Ab => {
                let options = CompareOptions {
                    seed: report.seed,
                    stopping: report.blocks.stopping(),
                    ..CompareOptions::default()
                };
                report.comparison = report.compare(&options).ok();
                ab_text(&report)
            }
        };
        self.output.write(&report, &text)?;
        Ok(Outcome::Success)
    }
}

const COLUMNS: [Column; 5] = [
    Column { name: "EXPERIMENT", align: Align::Left, max: usize::MAX },
    Column { name: "CHANGED", align: Align::Right, max: usize::MAX },
    Column { name: "STATE", align: Align::Left, max: usize::MAX },
    Column { name: "RUNS", align: Align::Right, max: usize::MAX },
    Column { name: "TITLE", align: Align::Left, max: usize::MAX },
];

impl Experiments {
    fn list(&self, experiments: &[SessionSummary]) -> CommandResult {
        self.output.check_list()?;
        if self.output.format() == ReportFormat::Json {
            ui::print(&format!("{:#}\n", Json::Array(experiments.iter().map(summary_json).collect())))?;
            return Ok(Outcome::Success);
        }
        if experiments.is_empty() {
            ui::status("no experiments yet; start one with `patter eval` or `patter ab`")?;
            return Ok(Outcome::Success);
        }
        let rows = experiments.iter().map(|experiment| {
            let age = ui::format_age(now_ms().saturating_sub(experiment.changed_ms));
            let runs = experiment.entries.saturating_sub(1).to_string();
            [experiment.id.to_string(), age, state(experiment).to_owned(), runs, ui::short(&experiment.title)]
        });
        ui::print(&listing(&COLUMNS, &rows.collect::<Vec<_>>(), ui::line_width()))?;
        Ok(Outcome::Success)
    }
}
