//! Steps, and the calls that they are about.

use super::RunOutcome;
use super::spec::Target;
use crate::message::conversation::{self, Message};
use crate::permission::{Decision, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<'r> {
    /// The model is to be called. [`Run::reply`](super::Run::reply) tells what it said, or
    /// [`Run::model_failed`](super::Run::model_failed) why it did not.
    CallModel {
        /// The conversation so far.
        messages: &'r [Message],
    },
    /// Tools are to be called, all at once if that is possible. [`Run::started`](super::Run::started) tells that one
    /// begins, and [`Run::finished`](super::Run::finished) how it ended.
    CallTools {
        /// The calls, in order. Those that were started and are not under way, as the run was stopped, may have been
        /// made: [`PendingCall::in_doubt`] tells whether someone should be asked before they are made again.
        calls: Vec<&'r PendingCall>,
    },
    /// Someone is to be asked whether calls may be made. [`Run::approved`](super::Run::approved) and
    /// [`Run::refused`](super::Run::refused) tell what they say, for one call or more; the others are asked for again.
    AskApproval {
        /// The calls, in order.
        calls: Vec<Question<'r>>,
    },
    /// Nothing more is to be done.
    Done(&'r RunOutcome),
}

/// A call that the model asked for, and that has no result yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// Which call it is, unique within the conversation.
    pub id: String,
    /// The tool, by the name that the agent has for it.
    pub tool: String,
    /// The arguments; whether they are right is for the tool to say.
    pub arguments: Json,
    /// What serves it.
    pub target: Target,
    /// Whether someone approved it.
    pub approved: bool,
    /// Whether it began, once.
    pub started: bool,
}

/// A call that someone must approve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question<'r> {
    /// The call.
    pub call: &'r PendingCall,
    /// Why it must be approved.
    pub because: &'r str,
}

/// What is decided about a call, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// What becomes of it.
    pub decision: Decision,
    /// Why, for people and for the model.
    pub because: String,
}

/// A call of the last reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Slot {
    /// It may be made if someone approves.
    Asking { call: PendingCall, because: String },
    /// It may be made, and may be under way.
    Open(PendingCall),
    /// It has its result.
    Closed { id: String, tool: String, outcome: conversation::ToolOutcome },
}

impl PendingCall {
    /// Tells whether the call began, and must not be made twice unseen: if it is not under way, as the run was stopped
    /// meanwhile, nobody knows whether it was made.
    pub fn in_doubt(&self) -> bool {
        self.started && !matches!(self.target, Target::Tool { idempotent: true, .. })
    }
}

impl From<Verdict<'_>> for Ruling {
    fn from(verdict: Verdict<'_>) -> Self {
        Self { decision: verdict.decision, because: verdict.because.to_string() }
    }
}

impl Slot {
    pub(super) fn id(&self) -> &str {
        match self {
            Slot::Asking { call, .. } | Slot::Open(call) => &call.id,
            Slot::Closed { id, .. } => id,
        }
    }

    pub(super) fn open(&self) -> Option<&PendingCall> {
        match self {
            Slot::Open(call) => Some(call),
            Slot::Asking { .. } | Slot::Closed { .. } => None,
        }
    }

    pub(super) fn question(&self) -> Option<Question<'_>> {
        match self {
            Slot::Asking { call, because } => Some(Question { call, because }),
            Slot::Open(_) | Slot::Closed { .. } => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Slot::Closed { .. })
    }

    /// Gives the call its result, if it has none.
    pub(super) fn close(&mut self, outcome: conversation::ToolOutcome) {
        if let Slot::Asking { call, .. } | Slot::Open(call) = self {
            let (id, tool) = (std::mem::take(&mut call.id), std::mem::take(&mut call.tool));
            *self = Slot::Closed { id, tool, outcome };
        }
    }

    /// Returns the result as a message. A call without one was cancelled.
    pub(super) fn message(self) -> Message {
        match self {
            Slot::Closed { id, tool, outcome } => Message::Tool { call_id: id, tool, outcome },
            Slot::Asking { call, .. } | Slot::Open(call) => {
                Message::Tool { call_id: call.id, tool: call.tool, outcome: conversation::ToolOutcome::Cancelled }
            }
        }
    }
}
