//! `patter fleet`: the servers that share a session store, and their work.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::session::{OpenStore, StoreOption};
use crate::ui;
use crate::ui::style::{BAD, BOLD, CAUTION, DIM};
use clap::{Args, Subcommand};
use patter::drive::now_ms;
use patter::store::{QueueCounts, Store, Work, WorkChange, WorkFilter, WorkQueue, WorkState, WorkerStatus};
use patter_serve::{LastTick, ScheduleStatus, schedule_statuses};
use serde_json::json;
use std::sync::Arc;

/// How much work is listed.
const MAX_LISTED: usize = 20;
/// How much work is in the JSON form.
const MAX_JSON: usize = 10_000;

/// Show the servers that share a session store, their schedules, and the work in their queue
///
/// Turns that outlive the request that started them are work until they end: those in the background, and those whose client
/// does not wait. If a server stops, another one continues its work. Work that failed too often is parked until somebody
/// looks at it.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter fleet --store postgres://db.example.com/agents\n  \
                        patter fleet retry 42\n  \
                        patter fleet remove 42\n  \
                        patter fleet --format json")]
pub(crate) struct Fleet {
    #[command(subcommand)]
    action: Option<Action>,

    #[command(flatten)]
    format: FormatOption<DataFormat>,

    #[command(flatten)]
    store: StoreOption,
}

#[derive(Subcommand)]
enum Action {
    /// Try work again that is parked, or that waits to be tried again
    Retry {
        /// Number of the work, as `patter fleet` shows it
        id: u64,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
    /// Remove work that is parked, or that waits for a server
    ///
    /// The session stays: `patter resume` continues a run that was interrupted.
    Remove {
        /// Number of the work, as `patter fleet` shows it
        id: u64,
        #[command(flatten)]
        format: FormatOption<DataFormat>,
    },
}

impl Command for Fleet {
    fn error_format(&self) -> ErrorFormat {
        self.chosen_format().error_format()
    }

    fn run(&self) -> CommandResult {
        let OpenStore { runtime, store } = self.store.open_existing()?;
        match &self.action {
            None => {
                let state = runtime.block_on(async {
                    let queue = queue(&store)?;
                    Ok::<_, CommandError>(FleetState {
                        workers: queue.workers().await?,
                        counts: queue.counts().await?,
                        schedules: schedule_statuses(&*store).await?,
                        work: queue.list(&WorkFilter::default(), MAX_JSON).await?,
                    })
                })?;
                self.show(&state)?;
            }
            Some(Action::Retry { id, .. }) => {
                self.change(&store, &runtime, *id, WorkChange::Retry, "is tried again")?;
            }
            Some(Action::Remove { id, .. }) => {
                self.change(&store, &runtime, *id, WorkChange::Remove, "was removed")?;
            }
        }
        Ok(Outcome::Success)
    }
}

impl Fleet {
    fn chosen_format(&self) -> DataFormat {
        let own = match &self.action {
            Some(Action::Retry { format, .. } | Action::Remove { format, .. }) => format.format,
            None => self.format.format,
        };
        if own == DataFormat::Json { own } else { self.format.format }
    }

    fn change(
        &self,
        store: &Arc<dyn Store>,
        runtime: &tokio::runtime::Runtime,
        id: u64,
        change: WorkChange,
        done: &str,
    ) -> Result<(), CommandError> {
        if !runtime.block_on(async { queue(store)?.change(id, change).await.map_err(CommandError::from) })? {
            let error = CommandError::usage(format!("there is no work {id} that waits for a server or is parked"));
            return Err(error.with_hint("list all work with `patter fleet`"));
        }
        match self.chosen_format() {
            DataFormat::Json => Ok(ui::print(&format!("{:#}\n", json!({ "changed": id })))?),
            DataFormat::Text => Ok(ui::status(&format!("work {id} {done}"))?),
        }
    }

    fn show(&self, state: &FleetState) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            let FleetState { workers, counts, schedules, work } = state;
            let fleet = json!({"workers": workers, "queue": counts, "schedules": schedules, "work": work});
            return Ok(ui::print(&format!("{fleet:#}\n"))?);
        }
        let now = now_ms();
        let text = state.workers_text(now) + &state.schedules_text(now) + &state.work_text(now);
        Ok(ui::print(&text)?)
    }
}

/// What a store knows about its servers.
struct FleetState {
    workers: Vec<WorkerStatus>,
    counts: QueueCounts,
    schedules: Vec<ScheduleStatus>,
    work: Vec<Work>,
}

impl FleetState {
    fn workers_text(&self, now: u64) -> String {
        let workers = &self.workers;
        let age = |since_ms: u64| ui::format_age(now.saturating_sub(since_ms));
        let mut text = match workers.len() {
            0 => format!("{CAUTION}no servers{CAUTION:#}\n"),
            count => format!("{BOLD}{}{BOLD:#}\n", ui::plural(count, "server")),
        };
        for worker in workers {
            let address = worker.about.address.as_deref().unwrap_or("no address");
            text += &format!(
                "  {}  {DIM}{}, started {} ago, seen {} ago{DIM:#}  {} running\n",
                address,
                worker.about.name,
                age(worker.started_ms),
                ui::format_age(worker.seen_ago_ms),
                worker.running
            );
        }
        text
    }

    fn schedules_text(&self, now: u64) -> String {
        if self.schedules.is_empty() {
            return String::new();
        }
        let mut text = format!("{BOLD}{}{BOLD:#}\n", ui::plural(self.schedules.len(), "schedule"));
        for ScheduleStatus { name, agent, at, timezone, next_ms, last } in &self.schedules {
            let next = match next_ms.checked_sub(now) {
                Some(left) => format!("next in {}", ui::format_age(left)),
                None => format!("due since {}", ui::format_age(now.saturating_sub(*next_ms))),
            };
            text += &format!("  {name}  {agent}  {DIM}{at} {timezone}{DIM:#}  {next}\n");
            if let Some(LastTick { due_ms, session, status }) = last {
                let status = status.replace('_', " ");
                let style = if matches!(status.as_str(), "failed" | "parked") { BAD } else { DIM };
                let ago = ui::format_age(now.saturating_sub(*due_ms));
                text += &format!("      {DIM}last {ago} ago{DIM:#}  {style}{status}{style:#}  {DIM}{session}{DIM:#}\n");
            }
        }
        text
    }

    fn work_text(&self, now: u64) -> String {
        let age = |since_ms: u64| ui::format_age(now.saturating_sub(since_ms));
        let QueueCounts { queued, running, waiting, parked, oldest_ms, .. } = &self.counts;
        let total = queued + running + waiting + parked;
        let mut text = match total {
            0 => "no work\n".to_owned(),
            _ => format!(
                "{BOLD}{} of work{BOLD:#}: {queued} queued, {running} running, {waiting} waiting, {parked} parked\n",
                ui::plural(usize::try_from(total).unwrap_or(usize::MAX), "piece")
            ),
        };
        if *queued > 0 {
            text += &format!("  {DIM}the oldest has been due for {}{DIM:#}\n", ui::format_age(*oldest_ms));
        }
        // Ticks that have not come are listed with the schedules.
        let is_shown = |work: &&Work| work.state != WorkState::Queued || work.attempts > 0 || work.due_ms <= now;
        let shown: Vec<_> = self.work.iter().filter(is_shown).take(MAX_LISTED).collect();
        for work in &shown {
            let style = if work.state == WorkState::Parked { BAD } else { DIM };
            let attempts = match work.attempts {
                0 | 1 => String::new(),
                attempts => format!(", attempt {attempts}"),
            };
            text += &format!(
                "  {}  {style}{}{style:#}  {}  {}  {DIM}{} ago{attempts}{DIM:#}\n",
                work.id,
                work.state.as_str(),
                work.agent,
                work.session,
                age(work.created_ms),
            );
            if let Some(reason) = &work.reason {
                text += &format!("      {DIM}{reason}{DIM:#}\n");
            }
        }
        let hidden = total.saturating_sub(shown.len() as u64);
        if hidden > 0 {
            text += &format!("  {DIM}and {hidden} more{DIM:#}\n");
        }
        text
    }
}

fn queue(store: &Arc<dyn Store>) -> Result<&dyn WorkQueue, CommandError> {
    store.queue().ok_or_else(|| CommandError::usage("the session store has no queue"))
}
