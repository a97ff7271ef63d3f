//! Sessions: conversations that outlive a program, as a log that only grows.
//!
//! A log has all that runs were told, in order, and so makes the conversation again, and the run that was under way when
//! the program ended. It is text: each [`Entry`] is one JSON document. Where it is kept is not known here.

pub mod replay;

use crate::message::conversation::{Message, Usage};
use crate::message::request::{Delta, Frame};
use crate::run::{Beginning, Run, RunInput, RunOutcome};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

/// Which run of a turn something is about: the calls that lead to it, none for the run of the person.
pub type RunPath = Vec<String>;

/// An entry of the log of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// The session is opened, for the first time or with something else than before.
    Opened {
        /// With what.
        source: Source,
    },
    /// The session begins with messages of another.
    Forked {
        /// The other session.
        from: String,
        /// Its messages, up to where it was forked.
        messages: Vec<Message>,
    },
    /// A run begins.
    Began {
        /// Which.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// What its model is given; nothing if that is the same as when the agent last ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Arc<Frame>>,
        /// The hash of what its tools are bound to.
        bindings: String,
        /// How it begins.
        beginning: Beginning,
    },
    /// A reply came in these pieces. Only recordings have this.
    Streamed {
        /// To which run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The pieces.
        pieces: Vec<Delta>,
    },
    /// A call told how far it is. Only recordings have this.
    Progressed {
        /// Of which run.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The call.
        call_id: String,
        /// The part that is done, from 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f64>,
        /// What is going on.
        message: String,
    },
    /// A run goes on that was begun before. Only recordings have this: they may begin here.
    Restored {
        /// Which.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// What its model is given from here on, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frame: Option<Arc<Frame>>,
        /// The hash of what its tools are bound to from here on.
        #[serde(default)]
        bindings: String,
        /// The run, as it was.
        saved: Box<Run>,
    },
    /// A run received an input.
    #[serde(alias = "told")]
    Input {
        /// Which.
        #[serde(default, skip_serializing_if = "RunPath::is_empty")]
        run: RunPath,
        /// The input.
        #[serde(alias = "told")]
        input: RunInput,
    },
    /// The end of the conversation was taken back.
    Rewound {
        /// How many messages are left.
        messages: usize,
    },
}

/// Which agent a session is held with, as it was named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The files, that of the agent first.
    pub files: Vec<String>,
    /// The agent, where it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The model, where it is not the one that the agent names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What the log of a session amounts to.
///
/// ```
/// use patter_core::run::{Run, RunSpec, RunInput};
/// use patter_core::session::{Entry, Log};
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 0).unwrap();
/// let began = Entry::Began { run: vec![], frame: None, bindings: String::new(), beginning: run.beginning() };
/// let mut log = Log::default();
/// log.apply(began).unwrap();
/// assert_eq!(log.run(), Some(&run));
///
/// log.apply(Entry::Input { run: vec![], input: RunInput::Cancelled { at: 5 } }).unwrap();
/// assert_eq!(log.run(), None);
/// assert_eq!(log.conversation().len(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Log {
    /// That before the run that is open or ended last, which has it while there is one.
    conversation: Vec<Message>,
    run: Option<Run>,
    last: Option<Run>,
    inner: HashMap<RunPath, Run>,
    frames: HashMap<String, Arc<Frame>>,
    source: Option<Source>,
    turns: Vec<Turn>,
    usage: Usage,
    entries: usize,
}

/// A run of a session that ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Turn {
    /// The agent.
    pub agent: String,
    /// The model.
    pub model: String,
    /// The place of its first message in the conversation.
    pub begin: usize,
    /// When it began.
    pub at: u64,
    /// How long it took.
    pub elapsed_ms: u64,
    /// How often the model was called.
    pub model_calls: u32,
    /// What it cost.
    pub usage: Usage,
    /// How it ended.
    pub outcome: RunOutcome,
}

/// Why an entry cannot follow those before it.
#[derive(Debug, Error)]
#[error("entry {number} of the log cannot stand where it stands: {message}")]
pub struct LogError {
    /// Which entry, counted from 1.
    pub number: usize,
    /// What is wrong.
    pub message: String,
}

impl Log {
    /// Reads a log: JSON documents, in order.
    pub fn read<T: AsRef<str>>(entries: impl IntoIterator<Item = T>) -> Result<Self, LogError> {
        let mut log = Self::default();
        for text in entries {
            let entry = serde_json::from_str(text.as_ref()).map_err(|error| log.wrong(&error))?;
            log.apply(entry)?;
        }
        Ok(log)
    }

    /// Adds an entry.
    pub fn apply(&mut self, entry: Entry) -> Result<(), LogError> {
        match entry {
            Entry::Opened { source } => self.source = Some(source),
            Entry::Forked { messages, .. } => {
                if !self.conversation().is_empty() {
                    return Err(self.wrong("there are messages before it"));
                }
                (self.conversation, self.last) = (messages, None);
            }
            Entry::Began { run, frame, beginning, .. } => {
                if let Some(frame) = frame {
                    self.frames.insert(beginning.spec.agent.clone(), frame);
                }
                if run.is_empty() {
                    self.begin(beginning)?;
                } else {
                    let begun = Run::begin(beginning, Vec::new()).map_err(|error| self.wrong(&error))?;
                    self.inner.insert(run, begun);
                }
            }
            Entry::Streamed { .. } | Entry::Progressed { .. } => {}
            Entry::Restored { run, frame, saved, .. } => {
                if let Some(frame) = frame {
                    self.frames.insert(saved.spec().agent.clone(), frame);
                }
                if run.is_empty() {
                    (self.run, self.last) = (Some(*saved), None);
                } else {
                    self.inner.insert(run, *saved);
                }
            }
            Entry::Input { run: path, input } => {
                let run = if path.is_empty() { self.run.as_mut() } else { self.inner.get_mut(&path) };
                let Some(run) = run else { return Err(self.wrong("there is no such run")) };
                if let Err(error) = run.apply(input) {
                    return Err(self.wrong(&error));
                }
                if path.is_empty() {
                    self.end();
                }
            }
            Entry::Rewound { messages } => {
                if self.run.is_some() || messages > self.conversation().len() {
                    return Err(self.wrong("there is nothing to take back"));
                }
                self.settle();
                self.conversation.truncate(messages);
                self.turns.retain(|turn| turn.begin < messages);
            }
        }
        self.entries += 1;
        Ok(())
    }

    /// Returns the conversation, that of the open run included.
    pub fn conversation(&self) -> &[Message] {
        self.run.as_ref().or(self.last.as_ref()).map_or(&self.conversation, Run::conversation)
    }

    /// Returns the run that has not ended, if there is one.
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// Returns the run that ended last, unless some of its conversation was taken back, or another began.
    pub fn last(&self) -> Option<&Run> {
        self.last.as_ref()
    }

    /// Returns a run of an agent that the open run called, or that another of those did.
    pub fn inner(&self, path: &[String]) -> Option<&Run> {
        self.inner.get(path)
    }

    /// Returns what the model of an agent was given when it last ran.
    pub fn frame(&self, agent: &str) -> Option<&Arc<Frame>> {
        self.frames.get(agent)
    }

    /// Returns what it was opened with last.
    pub fn source(&self) -> Option<&Source> {
        self.source.as_ref()
    }

    /// Returns the runs that ended.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Returns what all runs cost, those whose messages were taken back included.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns how many entries the log has.
    pub fn entries(&self) -> usize {
        self.entries
    }

    fn begin(&mut self, beginning: Beginning) -> Result<(), LogError> {
        if self.run.is_some() {
            return Err(self.wrong("the run before has not ended"));
        }
        self.settle();
        let run = Run::begin(beginning, std::mem::take(&mut self.conversation));
        self.run = Some(run.map_err(|error| self.wrong(&error))?);
        self.inner.clear();
        // Its limits may allow nothing at all.
        self.end();
        Ok(())
    }

    /// Takes leave of the run if it has ended.
    fn end(&mut self) {
        let Some(outcome) = self.run.as_ref().and_then(Run::outcome).cloned() else { return };
        let Some(run) = self.run.take() else { return };
        self.inner.clear();
        let Beginning { spec, at, .. } = run.beginning();
        self.usage += run.usage();
        self.turns.push(Turn {
            model: self.frames.get(&spec.agent).map_or_else(String::new, |frame| frame.model.clone()),
            agent: spec.agent,
            begin: run.conversation().len() - run.added().len(),
            at,
            elapsed_ms: run.elapsed_ms(),
            model_calls: run.model_calls(),
            usage: run.usage(),
            outcome,
        });
        self.last = Some(run);
    }

    /// Takes the conversation from the run that ended last.
    fn settle(&mut self) {
        if let Some(run) = self.last.take() {
            self.conversation = run.into_conversation();
        }
    }

    fn wrong(&self, error: &(impl ToString + ?Sized)) -> LogError {
        LogError { number: self.entries + 1, message: error.to_string() }
    }
}
