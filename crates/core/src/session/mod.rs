//! Sessions: conversations that outlive a program, as append-only logs.
//!
//! A log records every input of every run, in order. Replaying it restores the conversation and the run that was in
//! progress when the program ended. Each [`LogEntry`] is one JSON document; where logs are stored is up to the caller.

pub mod replay;
mod media;
mod pattern;
mod read;
mod redact;
mod trace_parent;
mod waiting;

pub use pattern::session_pattern;
pub use redact::redacted_entries;
pub use trace_parent::{SpanId, TraceId, TraceParent, TraceParentError};
pub use waiting::{WaitingCall, WaitingFor};

use crate::message::conversation::{Conversation, Message, Usage};
use crate::message::request::{Delta, RequestTemplate};
use crate::run::{Run, RunInput, RunOutcome, RunStart};
use read::parse_entry;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use thiserror::Error;

/// The path to a run within a turn: the ids of the calls that lead to it, empty for the top-level run.
pub type RunPath = Vec<String>;

/// An entry of a session log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum LogEntry {
    /// The session was opened, for the first time or with a different selection.
    Opened {
        /// The selected agent.
        #[serde(rename = "source")]
        selection: AgentSelection,
    },
    /// The session starts with messages of another session.
    Forked {
        /// The id of the other session.
        from: String,
        /// Its messages, up to the fork.
        messages: Vec<Message>,
    },
    /// Somebody asked for the next run, and may ask again without knowing whether it started.
    Requested {
        /// What identifies the request.
        key: String,
    },
    /// A run started.
    #[serde(rename = "began")]
    RunStarted {
        /// The path of the run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The frame of the model; `None` if unchanged since the agent last ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Arc<RequestTemplate>>,
        /// The hash of the tool bindings.
        bindings: String,
        /// The parameters of the run.
        #[serde(rename = "beginning")]
        start: RunStart,
        /// The span of another program that started the run, so that a resumed run continues the same trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        traceparent: Option<TraceParent>,
    },
    /// A reply was streamed in pieces. Only in recordings.
    #[serde(rename = "streamed")]
    ReplyStreamed {
        /// The path of the run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The pieces.
        pieces: Vec<Delta>,
    },
    /// A call reported progress. Only in recordings.
    #[serde(rename = "progressed")]
    CallProgressed {
        /// The path of the run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The call.
        call_id: String,
        /// The completed fraction, from 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
        /// The current activity.
        message: String,
    },
    /// A run that started earlier continues. Only in recordings, which may start here.
    #[serde(rename = "restored")]
    RunRestored {
        /// The path of the run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The frame of the model from here on, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Arc<RequestTemplate>>,
        /// The hash of the tool bindings from here on.
        #[serde(default)]
        bindings: String,
        /// The state of the run at this point.
        #[serde(rename = "saved")]
        snapshot: Box<Run>,
    },
    /// A run received an input.
    #[serde(rename = "input", alias = "told")]
    InputReceived {
        /// The path of the run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The input.
        #[serde(alias = "told")]
        input: RunInput,
    },
    /// The conversation was truncated.
    Rewound {
        /// The number of messages left.
        messages: usize,
    },
    /// The contents of all entries before this one were removed. The session cannot be continued.
    Redacted {
        /// The time in milliseconds.
        at: u64,
    },
}

/// The agent of a session, as the user selected it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSelection {
    /// The files, the agent's own first.
    pub files: Vec<String>,
    /// The agent, if it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model, if it overrides the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the tools that replace others, if somebody chose some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// The state of a session, computed from its log entries.
///
/// ```
/// use patter_core::run::{Run, RunInput, RunSpec};
/// use patter_core::session::{Log, LogEntry};
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 0).unwrap();
/// let start = run.to_start();
/// let started = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None };
/// let mut log = Log::default();
/// log.apply(started).unwrap();
/// assert_eq!(log.open_run(), Some(&run));
///
/// log.apply(LogEntry::InputReceived { run: vec![], input: RunInput::Cancelled { at: 5 } }).unwrap();
/// assert_eq!(log.open_run(), None);
/// assert_eq!(log.conversation().len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// The conversation before the open or last run. Taken by that run while there is one.
    conversation: Conversation,
    open_run: Option<Run>,
    last_run: Option<Run>,
    child_runs: HashMap<RunPath, Run>,
    frames: HashMap<String, Arc<RequestTemplate>>,
    selection: Option<AgentSelection>,
    /// The requests for runs, in order.
    requests: Vec<String>,
    turns: Vec<Turn>,
    usage: Usage,
    entries: usize,
    runs: u64,
    segments: u32,
    is_suspended: bool,
    /// When the contents were removed.
    redacted_at: Option<u64>,
}

/// A finished run of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: String,
    /// The index of its first message in the conversation.
    pub begin: usize,
    /// The start time in milliseconds.
    pub at: u64,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// The number of model calls.
    pub model_calls: u32,
    /// The tokens used.
    pub usage: Usage,
    /// How long calls took in milliseconds, by call id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub durations_ms: BTreeMap<String, u64>,
    /// The outcome.
    pub outcome: RunOutcome,
}

/// An error in a session log: an entry that cannot follow the ones before it.
#[derive(Debug, Error)]
#[error("log entry {number} is invalid: {message}")]
pub struct LogError {
    /// The number of the entry, starting at 1.
    pub number: usize,
    /// What is wrong.
    pub message: String,
}

impl Log {
    /// Reads a log from its entries: JSON documents, in order.
    pub fn read<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, LogError> {
        let mut log = Self::default();
        for text in entries {
            let entry = parse_entry(text.as_ref()).map_err(|error| log.error(&error))?;
            log.apply(entry)?;
        }
        Ok(log)
    }

    /// Applies the next entry.
    pub fn apply(&mut self, entry: LogEntry) -> Result<(), LogError> {
        self.count_segment(&entry);
        match entry {
            LogEntry::Opened { selection } => self.selection = Some(selection),
            LogEntry::Forked { messages, .. } => {
                if !self.conversation().is_empty() {
                    return Err(self.error("a fork must precede all messages"));
                }
                self.conversation = messages.into();
                self.last_run = None;
            }
            LogEntry::Requested { key } => self.requests.push(key),
            LogEntry::RunStarted { run, frame, start, .. } => {
                if let Some(frame) = frame {
                    self.frames.insert(start.spec.agent.clone(), frame);
                }
                if run.is_empty() {
                    self.start_run(start)?;
                } else {
                    let before = self.continued_conversation(&run, start.continues.as_ref());
                    let started = Run::from_start(start, before).map_err(|error| self.error(&error))?;
                    self.child_runs.insert(run, started);
                }
            }
            LogEntry::ReplyStreamed { .. } | LogEntry::CallProgressed { .. } => {}
            LogEntry::RunRestored { run, frame, snapshot, .. } => {
                if let Some(frame) = frame {
                    self.frames.insert(snapshot.spec().agent.clone(), frame);
                }
                if run.is_empty() {
                    self.open_run = Some(*snapshot);
                    self.last_run = None;
                    self.close_run();
                } else {
                    self.child_runs.insert(run, *snapshot);
                }
            }
            LogEntry::InputReceived { run: path, input } => {
                let run = if path.is_empty() { self.open_run.as_mut() } else { self.child_runs.get_mut(&path) };
                let Some(run) = run else { return Err(self.error("unknown run")) };
                if let Err(error) = run.apply(input) {
                    return Err(self.error(&error));
                }
                if path.is_empty() {
                    self.close_run();
                }
            }
            LogEntry::Rewound { messages } => {
                if self.open_run.is_some() {
                    return Err(self.error("cannot rewind while a run is in progress"));
                }
                if messages > self.conversation().len() {
                    return Err(self.error("cannot rewind to more messages than there are"));
                }
                self.reclaim_conversation();
                self.conversation.truncate(messages);
                self.turns.retain(|turn| turn.begin < messages);
            }
            LogEntry::Redacted { at } => self.redacted_at = Some(at),
        }
        self.entries += 1;
        self.is_suspended = self.is_suspended || self.is_waiting();
        Ok(())
    }

    /// Returns the first entries of a session that starts with the first messages of this one.
    pub fn fork(&self, from: &str, messages: usize) -> Vec<LogEntry> {
        let messages = self.conversation().range(0..messages).cloned().collect();
        let opened = self.selection.clone().map(|selection| LogEntry::Opened { selection });
        opened.into_iter().chain([LogEntry::Forked { from: from.to_owned(), messages }]).collect()
    }

    /// Returns the conversation, including that of the open run.
    pub fn conversation(&self) -> &Conversation {
        self.open_run.as_ref().or(self.last_run.as_ref()).map_or(&self.conversation, Run::conversation)
    }

    /// Returns the run that has not ended, if there is one.
    pub fn open_run(&self) -> Option<&Run> {
        self.open_run.as_ref()
    }

    /// Returns the run that ended last, unless the session was rewound or another run started since.
    pub fn last_run(&self) -> Option<&Run> {
        self.last_run.as_ref()
    }

    /// Returns the run of an agent called by the open run, directly or indirectly.
    pub fn child_run(&self, path: &[String]) -> Option<&Run> {
        self.child_runs.get(path)
    }

    /// Returns the conversation that the run of a called agent continues: that of another call of the same run.
    fn continued_conversation(&self, path: &[String], continues: Option<&String>) -> Conversation {
        let Some((continues, (_, above))) = continues.zip(path.split_last()) else { return Conversation::default() };
        let before: RunPath = above.iter().chain([continues]).cloned().collect();
        self.child_runs.get(&before).map_or_else(Conversation::default, |run| run.conversation().clone())
    }

    /// Returns the frame of an agent's model when it last ran.
    pub fn frame(&self, agent: &str) -> Option<&Arc<RequestTemplate>> {
        self.frames.get(agent)
    }

    /// Returns the selection that the session was last opened with.
    pub fn selection(&self) -> Option<&AgentSelection> {
        self.selection.as_ref()
    }

    /// Returns whether a run was started for a request.
    pub fn has_request(&self, key: &str) -> bool {
        self.requests.iter().any(|known| known == key)
    }

    /// Returns the last request for a run that somebody may repeat.
    pub fn last_request(&self) -> Option<&str> {
        self.requests.last().map(String::as_str)
    }

    /// Returns the finished runs.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Returns the tokens used by all runs, including those that were rewound.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the number of runs that a user started, including those that were rewound.
    pub fn run_count(&self) -> u64 {
        self.runs
    }

    /// Returns the number of entries.
    pub fn entry_count(&self) -> usize {
        self.entries
    }

    fn start_run(&mut self, start: RunStart) -> Result<(), LogError> {
        if self.open_run.is_some() {
            return Err(self.error("the previous run has not ended"));
        }
        self.reclaim_conversation();
        let run = Run::from_start(start, std::mem::take(&mut self.conversation));
        self.open_run = Some(run.map_err(|error| self.error(&error))?);
        self.runs += 1;
        self.child_runs.clear();
        // A run whose limits allow no model call ends right away.
        self.close_run();
        Ok(())
    }

    /// Adds the open run to the turns if it has ended.
    fn close_run(&mut self) {
        let Some(outcome) = self.open_run.as_ref().and_then(Run::outcome).cloned() else { return };
        let Some(run) = self.open_run.take() else { return };
        self.child_runs.clear();
        let RunStart { spec, at, .. } = run.to_start();
        self.usage += run.usage();
        self.turns.push(Turn {
            model: run
                .fallback()
                .map(str::to_owned)
                .unwrap_or_else(|| self.frames.get(&spec.agent).map_or_else(String::new, |frame| frame.model.clone())),
            agent: spec.agent,
            begin: run.conversation().len() - run.new_messages().len(),
            at,
            elapsed_ms: run.elapsed_ms(),
            model_calls: run.model_calls(),
            usage: run.usage(),
            durations_ms: run.durations_ms().clone(),
            outcome,
        });
        self.last_run = Some(run);
    }

    /// Takes the conversation back from the run that ended last.
    fn reclaim_conversation(&mut self) {
        if let Some(run) = self.last_run.take() {
            self.conversation = run.into_conversation();
        }
    }

    fn error(&self, error: &(impl ToString + ?Sized)) -> LogError {
        LogError { number: self.entries + 1, message: error.to_string() }
    }
}
