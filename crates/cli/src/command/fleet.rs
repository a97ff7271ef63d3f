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
use serde_json::json;
use std::sync::Arc;

/// How much work is listed.
const MAX_LISTED: usize = 20;
/// How much work is in the JSON form.
const MAX_JSON: usize = 10_000;

/// Show the servers that share a session store, and the work in their queue
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
                let (workers, counts, work) = runtime.block_on(async {
                    let queue = queue(&store)?;
                    let workers = queue.workers().await?;
                    let counts = queue.counts().await?;
                    let work = queue.list(&WorkFilter::default(), self.listed()).await?;
                    Ok::<_, CommandError>((workers, counts, work))
                })?;
                self.show(&workers, &counts, &work)?;
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

    fn listed(&self) -> usize {
        if self.chosen_format() == DataFormat::Json { MAX_JSON } else { MAX_LISTED }
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

    fn show(&self, workers: &[WorkerStatus], counts: &QueueCounts, work: &[Work]) -> Result<(), CommandError> {
        if self.chosen_format() == DataFormat::Json {
            let fleet = json!({"workers": workers, "queue": counts, "work": work});
            return Ok(ui::print(&format!("{fleet:#}\n"))?);
        }
        let now = now_ms();
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
        let QueueCounts { queued, running, waiting, parked, oldest_ms } = counts;
        let total = queued + running + waiting + parked;
        text += &match total {
            0 => "no work\n".to_owned(),
            _ => format!(
                "{BOLD}{} of work{BOLD:#}: {queued} queued, {running} running, {waiting} waiting, {parked} parked\n",
                ui::plural(usize::try_from(total).unwrap_or(usize::MAX), "piece")
            ),
        };
        if *queued > 0 {
            text += &format!("  {DIM}the oldest has been due for {}{DIM:#}\n", ui::format_age(*oldest_ms));
        }
        for work in work {
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
        let hidden = total.saturating_sub(work.len() as u64);
        if hidden > 0 {
            text += &format!("  {DIM}and {hidden} more{DIM:#}\n");
        }
        Ok(ui::print(&text)?)
    }
}

fn queue(store: &Arc<dyn Store>) -> Result<&dyn WorkQueue, CommandError> {
    store.queue().ok_or_else(|| CommandError::usage("the session store has no queue"))
}
