//! Questions about stored sessions.

use super::{QueryCommand, QueryFormat, stopped};
use crate::error::CommandError;
use crate::session::{OpenStore, state};
use crate::ui;
use patter::project::{Config, find_root};
use patter::query::{Answer, Limits, PropertyGraph, Query, SessionGraph, Stop};
use patter::store::{SessionSummary, StoredSession};

impl QueryCommand {
    /// Asks each session by itself, so that only one is in memory. Returns how many rows there are, and whether a session
    /// could not be read.
    pub(super) fn ask_sessions(&self, query: &Query) -> Result<(usize, bool), CommandError> {
        let OpenStore { runtime, store } = self.store.open_existing()?;
        let prices = Config::read(find_root().as_deref())?.prices();
        let sessions = runtime.block_on(store.list(usize::MAX >> 1))?;
        let sessions = sessions.into_iter().filter(|session| !session.is_experiment());
        let mut limits = Limits::default();
        let mut answer = Answer { columns: query.columns().map(str::to_owned).collect(), rows: Vec::new() };
        let mut has_problems = false;
        for summary in sessions {
            let stored = runtime.block_on(store.read(&summary.id))?;
            let graph = match graph(&summary, &stored, &prices) {
                Ok(graph) => graph,
                Err(mut error) => {
                    error.print_problem()?;
                    has_problems = true;
                    continue;
                }
            };
            let mut found = Answer::new(&graph, query, limits, self.paths_wanted()).map_err(|stop| match stop {
                Stop::Rows(_) => stopped(&Stop::Rows(Limits::default().rows)),
                stop => stopped(&stop),
            })?;
            limits.rows -= found.rows.len();
            if self.format.format == QueryFormat::Text {
                // A table has names only, and results of tools can be large.
                found.forget_properties();
            }
            answer.rows.extend(found.rows);
        }
        if answer.rows.is_empty() && has_problems {
            ui::warning("some sessions could not be read, so there may be more rows")?;
        }
        self.write(&self.text(&answer), answer.rows.len())?;
        Ok((answer.rows.len(), has_problems))
    }
}

fn graph(
    summary: &SessionSummary,
    stored: &StoredSession,
    prices: &patter::provider::price::Prices,
) -> Result<PropertyGraph, CommandError> {
    let id = summary.id.as_str();
    let source = SessionGraph {
        id,
        title: &summary.title,
        state: state(summary),
        agent: &summary.agent,
        created_ms: summary.created_ms,
        prices,
    };
    source
        .build(&stored.entries)
        .map_err(|error| CommandError::failure(format!("the session `{id}` is damaged: {error}")))
}
