//! The log of a session as rows with times, computed from its entries.

use super::figures;
use super::transcript::entry_time;
use patter::store::SessionId;
use patter_core::message::conversation::{ToolOutcome, Usage};
use patter_core::provider::price::{Bill, Prices};
use patter_core::run::RunInput;
use patter_core::session::{Log, LogEntry, LogError, RunPath};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// How much of a text a row shows.
const MAX_DIGEST: usize = 160;

/// The rows of a session.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    pub(super) rows: Vec<Row>,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    pub(super) usage: Usage,
    pub(super) cost: Option<String>,
}

/// An entry of the log.
#[derive(Debug, Default, Clone, Serialize)]
pub(super) struct Row {
    pub(super) number: usize,
    pub(super) kind: Kind,
    /// How deeply the agent is nested.
    pub(super) depth: usize,
    pub(super) agent: String,
    /// What it is about: an agent whose model replied, a tool.
    pub(super) name: String,
    pub(super) text: String,
    #[serde(skip)]
    pub(super) model: String,
    /// When it started, in milliseconds since the first entry.
    pub(super) start: u64,
    /// How long it took, in milliseconds.
    pub(super) took: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) tokens: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) cost: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) failed: bool,
}

/// What an entry is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    #[default]
    Session,
    Message,
    Model,
    Start,
    Tool,
    Decision,
    Run,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Message => "message",
            Self::Model => "model",
            Self::Start => "start",
            Self::Tool => "tool",
            Self::Decision => "decision",
            Self::Run => "run",
        }
    }
}

/// The timelines that were looked at last, so that a long one is not computed for each page of its rows.
#[derive(Default)]
pub(crate) struct TimelineCache(Mutex<VecDeque<(TimelineKey, Arc<Timeline>)>>);

/// A state of a session. Logs only grow, so it is the same if it has as many entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TimelineKey {
    pub(super) id: SessionId,
    pub(super) created_ms: u64,
    pub(super) entries: u64,
}

impl TimelineCache {
    const MAX: usize = 4;

    /// Returns the timeline of a state of a session, if it is known.
    pub(super) fn get(&self, key: &TimelineKey) -> Option<Arc<Timeline>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(known, _)| known == key).map(|(_, timeline)| Arc::clone(timeline))
    }

    /// Remembers a timeline.
    pub(super) fn insert(&self, key: TimelineKey, timeline: Arc<Timeline>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(known, _)| known.id != key.id);
        while known.len() >= Self::MAX {
            known.pop_front();
        }
        known.push_back((key, timeline));
    }
}

/// What is known of a run while its entries are read.
#[derive(Default)]
struct RunState {
    agent: String,
    model: String,
    /// Since when the model may have been called.
    since: u64,
    /// The tools of the calls, by id.
    tools: HashMap<String, String>,
}

impl Timeline {
    /// Computes the rows from the entries of a log.
    pub(super) fn read(entries: &[String], prices: &Prices) -> Result<Self, LogError> {
        let mut timeline = Self::default();
        let mut runs: HashMap<RunPath, RunState> = HashMap::new();
        let mut models: HashMap<String, String> = HashMap::new();
        let mut bill = Bill::default();
        let mut last = None;
        for (number, text) in entries.iter().enumerate() {
            let entry: LogEntry = serde_json::from_str(text)
                .map_err(|error| LogError { number: number + 1, message: error.to_string() })?;
            let at = entry_time(&entry).or(last).unwrap_or_default();
            if timeline.start_ms == 0 {
                timeline.start_ms = at;
            }
            last = entry_time(&entry).or(last);
            timeline.end_ms = timeline.end_ms.max(at);
            let mut row = Row { number, ..Row::default() };
            let mut since = at;
            match entry {
                LogEntry::RunStarted { run, frame, start, .. } => {
                    if let Some(frame) = frame {
                        models.insert(start.spec.agent.clone(), frame.model.clone());
                    }
                    row.kind = Kind::Message;
                    row.depth = run.len();
                    row.agent.clone_from(&start.spec.agent);
                    row.name = if run.is_empty() { "message".to_owned() } else { "called".to_owned() };
                    row.text = digest(&start.input);
                    let model = models.get(&start.spec.agent).cloned().unwrap_or_default();
                    runs.insert(run, RunState { agent: start.spec.agent, model, since: at, tools: HashMap::new() });
                }
                // The row of the reply shows what it cost.
                LogEntry::InputReceived { input: RunInput::Charged { interrupted, .. }, .. } => {
                    if interrupted {
                        bill.add(None);
                    }
                    continue;
                }
                LogEntry::InputReceived { run, input } => {
                    row.depth = run.len();
                    let state = runs.entry(run).or_default();
                    row.agent.clone_from(&state.agent);
                    since = input_row(&mut row, state, input, at, prices, &mut bill, &mut timeline.usage);
                }
                other => session_row(&mut row, &other),
            }
            row.start = since.saturating_sub(timeline.start_ms);
            row.took = at.saturating_sub(since);
            timeline.rows.push(row);
        }
        timeline.cost = bill.total().map(|cost| cost.to_string());
        Ok(timeline)
    }

    /// Returns how long the session took, at least a millisecond.
    pub(super) fn span(&self) -> u64 {
        self.end_ms.saturating_sub(self.start_ms).max(1)
    }
}

/// Fills in the row of an input of a run, and returns when what it reports started.
fn input_row(
    row: &mut Row,
    state: &mut RunState,
    input: RunInput,
    at: u64,
    prices: &Prices,
    bill: &mut Bill,
    total: &mut Usage,
) -> u64 {
    let mut since = at;
    match input {
        RunInput::ModelReplied { reply, .. } => {
            row.kind = Kind::Model;
            row.name.clone_from(&state.agent);
            row.model.clone_from(&state.model);
            let calls = || reply.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>().join(", ");
            row.text = if reply.text.is_empty() { format!("→ {}", calls()) } else { digest(&reply.text) };
            row.tokens = figures::tokens(&reply.usage);
            let cost = figures::cost(prices, &state.model, reply.usage);
            row.cost = cost.map(|cost| cost.to_string()).unwrap_or_default();
            bill.add(cost);
            *total += reply.usage;
            state.tools.extend(reply.calls.iter().map(|call| (call.id.clone(), call.tool.clone())));
            since = state.since;
        }
        RunInput::ModelFailed { failure, .. } => {
            row.kind = Kind::Model;
            row.name.clone_from(&state.agent);
            row.model.clone_from(&state.model);
            row.text = digest(&failure.message);
            row.failed = true;
            since = state.since;
        }
        RunInput::ReplyInterrupted { text } => {
            row.kind = Kind::Model;
            row.name = "interrupted".to_owned();
            row.text = digest(&text);
            row.failed = true;
        }
        RunInput::CallStarted { call_id, .. } => {
            row.kind = Kind::Start;
            row.name = state.tools.get(&call_id).cloned().unwrap_or(call_id);
            row.text = "starts".to_owned();
        }
        RunInput::CallFinished { call_id, outcome, duration_ms, .. } => {
            row.kind = Kind::Tool;
            row.name = state.tools.get(&call_id).cloned().unwrap_or(call_id);
            row.text = digest(&outcome.text());
            row.failed = !matches!(outcome, ToolOutcome::Value { .. });
            since = at.saturating_sub(duration_ms);
        }
        RunInput::CallApproved { call_id, .. } => {
            row.kind = Kind::Decision;
            row.name = state.tools.get(&call_id).cloned().unwrap_or(call_id);
            row.text = "approved".to_owned();
        }
        RunInput::CallRefused { call_id, reason, .. } => {
            row.kind = Kind::Decision;
            row.name = state.tools.get(&call_id).cloned().unwrap_or(call_id);
            row.text = format!("refused: {}", digest(&reason));
        }
        RunInput::FellBack { to, because, .. } => {
            row.kind = Kind::Model;
            row.name = "another model".to_owned();
            row.model.clone_from(&to);
            row.text = digest(&because);
            row.failed = true;
            since = state.since;
            state.model = to;
        }
        RunInput::Compacted { compaction, usage, .. } => {
            row.kind = Kind::Model;
            row.name = "compacted".to_owned();
            if let patter_core::message::conversation::Message::Compacted { summary, kept_from, .. } = &compaction {
                row.text = match kept_from {
                    0 => "results of tools are shortened".to_owned(),
                    count => format!("{count} messages are no longer sent: {}", digest(summary)),
                };
            }
            if usage != Usage::default() {
                row.model.clone_from(&state.model);
                row.tokens = figures::tokens(&usage);
                let cost = figures::cost(prices, &state.model, usage);
                row.cost = cost.map(|cost| cost.to_string()).unwrap_or_default();
                bill.add(cost);
                *total += usage;
                since = state.since;
            }
        }
        RunInput::ContextExceeded { message, .. } => {
            row.kind = Kind::Model;
            row.name = "too long".to_owned();
            row.text = digest(&message);
            since = state.since;
        }
        RunInput::LimitReached { failure, .. } => {
            row.kind = Kind::Run;
            row.name = "limit reached".to_owned();
            row.text = digest(&failure.message);
            row.failed = true;
        }
        other => {
            row.kind = Kind::Run;
            row.name = match other {
                RunInput::Cancelled { .. } => "cancelled",
                RunInput::StepsPlanned { .. } => "steps planned",
                RunInput::Resumed { .. } => "resumed",
                RunInput::LimitsChanged { .. } => "limits changed",
                _ => "time passed",
            }
            .to_owned();
        }
    }
    // The next reply is to a request that was sent at the earliest now.
    state.since = at;
    since
}

fn session_row(row: &mut Row, entry: &LogEntry) {
    let (name, text) = match entry {
        LogEntry::Opened { selection } => ("opened", selection.agent.clone().unwrap_or_default()),
        LogEntry::Forked { from, messages } => ("forked", format!("{} messages of {from}", messages.len())),
        LogEntry::Requested { .. } => ("requested", String::new()),
        LogEntry::Rewound { messages } => ("undone", format!("{messages} messages are left")),
        LogEntry::Redacted { .. } => ("redacted", "the contents were removed".to_owned()),
        LogEntry::RunRestored { .. } => ("restored", String::new()),
        _ => ("streamed", String::new()),
    };
    row.name = name.to_owned();
    row.text = text;
}

/// Returns the first line of a text, as far as a row can show it.
fn digest(text: &str) -> String {
    let start: String = text.chars().take(MAX_DIGEST * 2).collect();
    patter::text::truncate(&start.split_whitespace().collect::<Vec<_>>().join(" "), MAX_DIGEST)
}

/// Returns the state of a session up to an entry, which is included.
pub(super) fn log_until(entries: &[String], number: usize) -> Result<Log, LogError> {
    Log::read(entries.iter().take(number.saturating_add(1)))
}
