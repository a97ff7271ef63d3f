//! The start of a run and everything it receives afterwards, as serializable values.

use super::{ContextSpec, Limits, PendingCall, PlannedCall, Ruling, Run, RunError, RunFailure, RunSpec, StartError};
use crate::message::attachment::{Attachment, UserInput};
use crate::message::conversation::{Conversation, Message, ToolOutcome, Usage};
use crate::message::request::Reply;
use crate::permission::Decision;
use crate::provider::price::Bill;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;

/// The parameters of a run. Together with the conversation before it, they recreate the run as it started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    /// The agent's specification.
    pub spec: RunSpec,
    /// The nesting depth: 0 for a run started by a user.
    #[serde(default)]
    pub depth: u32,
    /// The input from the user or the calling agent.
    pub input: String,
    /// The call of the same run whose conversation this run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// The files of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The start time in milliseconds.
    pub at: u64,
}

/// An input to a run. Applying all inputs in order to a [`RunStart`] reproduces the run, which is how runs are saved
/// incrementally.
///
/// ```
/// use patter_core::message::conversation::Usage;
/// use patter_core::message::request::{FinishReason, Reply};
/// use patter_core::run::{CallTiming, Run, RunInput, RunSpec};
///
/// let mut run = Run::start(RunSpec::default(), Vec::new(), "Hello", 0).unwrap();
/// let reply = Reply { text: "Hi!".into(), calls: vec![], finish: FinishReason::Stop, usage: Usage::default(), opaque: None, thought: String::new() };
/// let input = RunInput::ModelReplied { reply, rulings: Vec::new(), timing: CallTiming::default(), at: 20 };
/// run.apply(input.clone()).unwrap();
///
/// let mut again = Run::from_start(run.to_start(), Vec::new()).unwrap();
/// let text = serde_json::to_string(&input).unwrap();
/// again.apply(serde_json::from_str(&text).unwrap()).unwrap();
/// assert_eq!(again, run);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum RunInput {
    /// The model replied: [`Run::model_replied`].
    #[serde(rename = "reply")]
    ModelReplied {
        /// The reply.
        reply: Reply,
        /// The rulings on its calls, in the order in which they were requested.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rulings: Vec<Ruling>,
        /// How the call of the model went.
        #[serde(default, skip_serializing_if = "CallTiming::is_empty")]
        timing: CallTiming,
        /// The time in milliseconds.
        at: u64,
    },
    /// A workflow makes calls: [`Run::steps_planned`].
    #[serde(rename = "planned")]
    StepsPlanned {
        /// The calls.
        calls: Vec<PlannedCall>,
        /// The rulings on them, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rulings: Vec<Ruling>,
        /// The time in milliseconds.
        at: u64,
    },
    /// A reply was interrupted after people saw a part of it: [`Run::reply_interrupted`].
    ReplyInterrupted {
        /// The text that was received.
        text: String,
    },
    /// The model call failed: [`Run::model_failed`].
    ModelFailed {
        /// The failure.
        failure: RunFailure,
        /// How the call of the model went.
        #[serde(default, skip_serializing_if = "CallTiming::is_empty")]
        timing: CallTiming,
        /// The time in milliseconds.
        at: u64,
    },
    /// A call is about to be made: [`Run::call_started`].
    #[serde(rename = "started")]
    CallStarted {
        /// The call.
        call_id: String,
        /// The time in milliseconds. Logs of earlier versions do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// A call finished: [`Run::call_finished`].
    #[serde(rename = "finished")]
    CallFinished {
        /// The call.
        call_id: String,
        /// Its outcome.
        outcome: ToolOutcome,
        /// Its duration in milliseconds.
        duration_ms: u64,
        /// The tokens it used, if it called an agent or the model of this one.
        #[serde(default, skip_serializing_if = "is_zero")]
        usage: Usage,
        /// How often it called the model of this agent.
        #[serde(default, skip_serializing_if = "is_none")]
        model_calls: u32,
        /// The time in milliseconds.
        at: u64,
    },
    /// A call was approved: [`Run::approve`].
    #[serde(rename = "approved")]
    CallApproved {
        /// The call.
        call_id: String,
        /// The time in milliseconds. Logs of earlier versions do not have it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    /// A call was refused: [`Run::refuse`].
    #[serde(rename = "refused")]
    CallRefused {
        /// The call.
        call_id: String,
        /// The reason, which the model reads.
        #[serde(rename = "why")]
        reason: String,
        /// The time in milliseconds.
        at: u64,
    },
    /// The run was cancelled: [`Run::cancel`].
    Cancelled {
        /// The time in milliseconds.
        at: u64,
    },
    /// Something was spent: [`Run::charge`]. What costs nothing is not an input.
    Charged {
        /// What was spent.
        spent: Bill,
        /// Whether a request was given up, so that nobody knows its cost.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    /// The model is not available, and another one is called from now on: [`Run::fall_back`].
    FellBack {
        /// The model that is not available.
        from: String,
        /// The model that is called instead.
        to: String,
        /// The reason.
        because: String,
        /// How long the conversation may be for that model; in logs of earlier versions `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextSpec>,
        /// How the call of the model went.
        #[serde(default, skip_serializing_if = "CallTiming::is_empty")]
        timing: CallTiming,
        /// The time in milliseconds.
        at: u64,
    },
    /// A limit was reached that the run shares with others: [`Run::fail`].
    LimitReached {
        /// The failure.
        failure: RunFailure,
        /// The time in milliseconds.
        at: u64,
    },
    /// The provider refused the request as too long: [`Run::context_exceeded`].
    ContextExceeded {
        /// The message of the provider.
        message: String,
        /// The time in milliseconds.
        at: u64,
    },
    /// The conversation was compacted: [`Run::compacted`].
    Compacted {
        /// The message that says what is no longer sent.
        compaction: Message,
        /// The tokens that the summary took.
        #[serde(default, skip_serializing_if = "is_zero")]
        usage: Usage,
        /// The time in milliseconds.
        at: u64,
    },
    /// Time passed: [`Run::tick`].
    #[serde(rename = "tick")]
    ClockTicked {
        /// The time in milliseconds.
        at: u64,
    },
    /// The limits of the run changed: [`Run::set_limits`].
    #[serde(rename = "limited")]
    LimitsChanged {
        /// The new limits.
        limits: Limits,
    },
    /// The run resumed after an interruption: [`Run::resume`].
    Resumed {
        /// The time in milliseconds.
        at: u64,
    },
}

/// How a call of the model went. It decides nothing, but traces show it.
///
/// ```
/// use patter_core::run::CallTiming;
/// assert!(CallTiming::default().is_empty());
/// assert!(!CallTiming { first_piece_ms: Some(180), ..CallTiming::default() }.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CallTiming {
    /// How long the first piece of the reply took, in milliseconds, if the reply was streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_piece_ms: Option<u64>,
    /// The delays before requests, such as before a retry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<CallDelay>,
}

/// A delay before a request to a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallDelay {
    /// The time in milliseconds.
    pub at: u64,
    /// The approximate length of the delay.
    pub seconds: f64,
    /// The reason.
    pub because: String,
}

impl CallTiming {
    /// Returns whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.first_piece_ms.is_none() && self.delays.is_empty()
    }
}

impl Run {
    /// Recreates a run as it started. [`Run::start`] does the same for a run that a user starts.
    pub fn from_start(start: RunStart, conversation: impl Into<Conversation>) -> Result<Self, StartError> {
        let RunStart { spec, depth, input: text, attachments, continues, at } = start;
        Ok(Self { depth, continues, ..Self::start(spec, conversation, UserInput { text, attachments }, at)? })
    }

    /// Returns the parameters the run was started with.
    pub fn to_start(&self) -> RunStart {
        let UserInput { text: input, attachments } = match self.new_messages().next() {
            Some(Message::User { text, attachments }) => {
                UserInput { text: text.clone(), attachments: attachments.clone() }
            }
            Some(Message::Assistant { .. } | Message::Tool { .. } | Message::Compacted { .. }) | None => {
                UserInput::default()
            }
        };
        let continues = self.continues.clone();
        RunStart { spec: self.spec.clone(), depth: self.depth, input, attachments, continues, at: self.clock.start }
    }

    /// Applies an input to the run.
    pub fn apply(&mut self, input: RunInput) -> Result<(), RunError> {
        match input {
            RunInput::ModelReplied { reply, rulings, at, .. } => {
                let rulings = RefCell::new(rulings.into_iter());
                let missing = || Ruling { decision: Decision::Deny, because: "no ruling was recorded".into() };
                self.model_replied(reply, at, &|_: &PendingCall| rulings.borrow_mut().next().unwrap_or_else(missing))
            }
            RunInput::StepsPlanned { calls, rulings, at } => {
                let rulings = RefCell::new(rulings.into_iter());
                let missing = || Ruling { decision: Decision::Deny, because: "no ruling was recorded".into() };
                self.steps_planned(calls, at, &|_: &PendingCall| rulings.borrow_mut().next().unwrap_or_else(missing))
            }
            RunInput::ReplyInterrupted { text } => self.reply_interrupted(text),
            RunInput::ModelFailed { failure, at, .. } => self.model_failed(failure, at),
            RunInput::CallStarted { call_id, .. } => self.call_started(&call_id),
            RunInput::CallFinished { call_id, outcome, duration_ms, usage, model_calls, at } => {
                // The usage is added first: finishing the last call may end the run by its token limit.
                self.open_call(&call_id)?;
                self.add_usage(usage);
                self.add_model_calls(model_calls);
                self.call_finished(&call_id, outcome, duration_ms, at)
            }
            RunInput::CallApproved { call_id, .. } => self.approve(&call_id),
            RunInput::CallRefused { call_id, reason, at } => self.refuse(&call_id, &reason, at),
            RunInput::Cancelled { at } => self.cancel(at),
            RunInput::Charged { spent, .. } => self.charge(spent),
            RunInput::FellBack { to, context, at, .. } => self.fall_back(to, context, at),
            RunInput::LimitReached { failure, at } => self.fail(failure, at),
            RunInput::ContextExceeded { message, at } => self.context_exceeded(&message, at),
            RunInput::Compacted { compaction, usage, at } => {
                self.compacted(compaction, at)?;
                self.add_usage(usage);
                Ok(())
            }
            RunInput::ClockTicked { at } => self.tick(at),
            RunInput::LimitsChanged { limits } => self.set_limits(limits),
            RunInput::Resumed { at } => self.resume(at),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(calls: &u32) -> bool {
    *calls == 0
}

fn is_zero(usage: &Usage) -> bool {
    *usage == Usage::default()
}
