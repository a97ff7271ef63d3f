//! What a run is told, as values.

use super::{Failure, Limits, PendingCall, Ruling, Run, RunError, RunSpec, StartError};
use crate::message::conversation::{Message, ToolOutcome, Usage};
use crate::message::request::Reply;
use crate::permission::Decision;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// How a run begins: with the conversation before it, this makes the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// What it knows of its agent.
    pub spec: RunSpec,
    /// How many agents called one another until this one.
    #[serde(default)]
    pub depth: u32,
    /// What a person, or another agent, said.
    pub input: String,
    /// When, in milliseconds.
    pub at: u64,
}

/// Something that a run is told. Its [`Beginning`] and all it was told, in order, make the run again: that is how runs
/// are kept, a little at a time.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::message::request::{Finish, Reply};
/// use patter_core::run::{Run, RunSpec, RunInput};
///
/// let mut run = Run::start(RunSpec::default(), Vec::new(), "Hello", 0).unwrap();
/// let reply = Reply { text: "Hi!".into(), calls: vec![], finish: Finish::Stop, usage: Usage::default(), opaque: None };
/// let input = RunInput::Reply { reply, rulings: Vec::new(), at: 20 };
/// run.apply(input.clone()).unwrap();
///
/// let mut again = Run::begin(run.beginning(), Vec::new()).unwrap();
/// let text = serde_json::to_string(&input).unwrap();
/// again.apply(serde_json::from_str(&text).unwrap()).unwrap();
/// assert_eq!(again, run);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum RunInput {
    /// What the model said: [`Run::reply`].
    Reply {
        /// It.
        reply: Reply,
        /// What was decided about its calls, in the order in which it was asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rulings: Vec<Ruling>,
        /// When.
        at: u64,
    },
    /// Why the model said nothing: [`Run::model_failed`].
    ModelFailed {
        /// It.
        failure: Failure,
        /// When.
        at: u64,
    },
    /// A call begins: [`Run::started`].
    Started {
        /// The call.
        call_id: String,
    },
    /// A call ended: [`Run::finished`].
    Finished {
        /// The call.
        call_id: String,
        /// What came of it.
        outcome: ToolOutcome,
        /// How long it took.
        duration_ms: u64,
        /// What it cost, where it was one of an agent.
        #[serde(default, skip_serializing_if = "is_nothing")]
        usage: Usage,
        /// When.
        at: u64,
    },
    /// Someone approved a call: [`Run::approved`].
    Approved {
        /// The call.
        call_id: String,
    },
    /// Someone refused a call: [`Run::refused`].
    Refused {
        /// The call.
        call_id: String,
        /// Why.
        why: String,
        /// When.
        at: u64,
    },
    /// The run is stopped: [`Run::cancel`].
    Cancelled {
        /// When.
        at: u64,
    },
    /// The time: [`Run::tick`].
    Tick {
        /// It.
        at: u64,
    },
    /// The run is held to other limits: [`Run::limited`].
    Limited {
        /// They.
        limits: Limits,
    },
    /// The run goes on after it lay still: [`Run::resumed`].
    Resumed {
        /// When.
        at: u64,
    },
}

impl Run {
    /// Makes a run that begins so. [`Run::start`] does the same for one that a person asked for.
    pub fn begin(beginning: Beginning, conversation: Vec<Message>) -> Result<Self, StartError> {
        let Beginning { spec, depth, input, at } = beginning;
        Ok(Self { depth, ..Self::start(spec, conversation, &input, at)? })
    }

    /// Returns how the run began.
    pub fn beginning(&self) -> Beginning {
        let input = match self.added().first() {
            Some(Message::User { text }) => text.clone(),
            Some(Message::Assistant { .. } | Message::Tool { .. }) | None => String::new(),
        };
        Beginning { spec: self.spec.clone(), depth: self.depth, input, at: self.clock.start }
    }

    /// Tells the run something.
    pub fn apply(&mut self, input: RunInput) -> Result<(), RunError> {
        match input {
            RunInput::Reply { reply, rulings, at } => {
                let rulings = RefCell::new(rulings.into_iter());
                let unknown = || Ruling { decision: Decision::Deny, because: "nothing was decided about it".into() };
                self.reply(reply, at, &|_: &PendingCall| rulings.borrow_mut().next().unwrap_or_else(unknown))
            }
            RunInput::ModelFailed { failure, at } => self.model_failed(failure, at),
            RunInput::Started { call_id } => self.started(&call_id),
            RunInput::Finished { call_id, outcome, duration_ms, usage, at } => {
                // Counted first: the end of the last call may be the end of the run, by its tokens.
                self.open_call(&call_id)?;
                self.add_usage(usage);
                self.finished(&call_id, outcome, duration_ms, at)
            }
            RunInput::Approved { call_id } => self.approved(&call_id),
            RunInput::Refused { call_id, why, at } => self.refused(&call_id, &why, at),
            RunInput::Cancelled { at } => self.cancel(at),
            RunInput::Tick { at } => self.tick(at),
            RunInput::Limited { limits } => self.limited(limits),
            RunInput::Resumed { at } => self.resumed(at),
        }
    }
}

fn is_nothing(usage: &Usage) -> bool {
    *usage == Usage::default()
}
