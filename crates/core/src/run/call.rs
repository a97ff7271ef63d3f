//! The steps of a run, and the calls they involve.

use super::RunOutcome;
use super::spec::CallTarget;
use crate::message::conversation::{Conversation, Message, ToolOutcome};
use crate::permission::{Decision, ExplainedDecision};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// The next thing to do in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<'r> {
    /// Call the model, then report [`Run::model_replied`](super::Run::model_replied) or
    /// [`Run::model_failed`](super::Run::model_failed).
    CallModel {
        /// The conversation so far.
        messages: &'r Conversation,
    },
    /// Compact the conversation, which is too long for the model, as [`Run::compaction_plan`](super::Run::compaction_plan)
    /// says; then report [`Run::compacted`](super::Run::compacted).
    Compact,
    /// Call tools, concurrently if possible. Report [`Run::call_started`](super::Run::call_started) before each call and
    /// [`Run::call_finished`](super::Run::call_finished) after it.
    CallTools {
        /// The calls, in order. After an interruption, a call that had started may already have been made:
        /// [`PendingCall::is_in_doubt`] says whether to ask before repeating it.
        calls: Vec<&'r PendingCall>,
    },
    /// Make the calls of a workflow that [`Run::planned_calls`](super::Run::planned_calls) returns known, with
    /// [`Run::steps_planned`](super::Run::steps_planned).
    Plan,
    /// Ask whether calls may be made, then [`Run::approve`](super::Run::approve) or [`Run::refuse`](super::Run::refuse)
    /// one or more of them. The step is returned again for the rest.
    AskApproval {
        /// The calls, in order.
        calls: Vec<ApprovalRequest<'r>>,
    },
    /// Nothing can be done here: wait until the client reports [`Run::call_finished`](super::Run::call_finished) for calls of
    /// its own tools.
    AwaitClient {
        /// The calls, in order.
        calls: Vec<&'r PendingCall>,
    },
    /// The run has ended.
    Done(&'r RunOutcome),
}

/// A call the model requested that has no result yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The id of the call, unique within the conversation.
    pub id: String,
    /// The tool, under the agent's name for it.
    pub tool: String,
    /// The arguments, not yet validated.
    pub arguments: Json,
    /// What executes the call.
    pub target: CallTarget,
    /// Whether the call was explicitly approved.
    pub approved: bool,
    /// Whether the call has been started.
    pub started: bool,
    /// The time until which a person has to answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The call whose conversation it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// A call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ApprovalRequest<'r> {
    /// The call.
    pub call: &'r PendingCall,
    /// Why it needs approval.
    pub because: &'r str,
}

/// A permission decision about a call, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// The reason, shown to users and to the model.
    pub because: String,
}

/// A call of the last reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Slot {
    /// It waits for approval.
    #[serde(rename = "asking")]
    AwaitingApproval { call: PendingCall, because: String },
    /// It may be made, or is in progress.
    Open(PendingCall),
    /// It has a result.
    Closed { id: String, tool: String, outcome: ToolOutcome },
}

impl PendingCall {
    /// Returns whether the call started and is not idempotent. If the run was interrupted since then, it is unknown
    /// whether the call took effect, and it must not be repeated without asking.
    pub fn is_in_doubt(&self) -> bool {
        self.started && !matches!(self.target, CallTarget::Tool { idempotent: true, .. })
    }
}

impl From<ExplainedDecision<'_>> for Ruling {
    fn from(verdict: ExplainedDecision<'_>) -> Self {
        Self { decision: verdict.decision, because: verdict.reason.to_string() }
    }
}

impl Slot {
    pub(super) fn id(&self) -> &str {
        match self {
            Slot::AwaitingApproval { call, .. } | Slot::Open(call) => &call.id,
            Slot::Closed { id, .. } => id,
        }
    }

    pub(super) fn open(&self) -> Option<&PendingCall> {
        match self {
            Slot::Open(call) => Some(call),
            Slot::AwaitingApproval { .. } | Slot::Closed { .. } => None,
        }
    }

    /// Returns the call if it is open and made here, not by the client.
    pub(super) fn own_call(&self) -> Option<&PendingCall> {
        self.open().filter(|call| !call.target.is_outside())
    }

    /// Returns the call if the client makes it, or a person answers it.
    pub(super) fn client_call(&self) -> Option<&PendingCall> {
        self.open().filter(|call| call.target.is_outside())
    }

    /// Returns the id and the result, if there is one.
    pub(super) fn outcome(&self) -> Option<(&str, &ToolOutcome)> {
        match self {
            Slot::Closed { id, outcome, .. } => Some((id, outcome)),
            Slot::AwaitingApproval { .. } | Slot::Open(_) => None,
        }
    }

    pub(super) fn approval_request(&self) -> Option<ApprovalRequest<'_>> {
        match self {
            Slot::AwaitingApproval { call, because } => Some(ApprovalRequest { call, because }),
            Slot::Open(_) | Slot::Closed { .. } => None,
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self, Slot::Closed { .. })
    }

    /// Records the result of the call, unless it already has one.
    pub(super) fn close(&mut self, outcome: ToolOutcome) {
        if let Slot::AwaitingApproval { call, .. } | Slot::Open(call) = self {
            let id = std::mem::take(&mut call.id);
            let tool = std::mem::take(&mut call.tool);
            *self = Slot::Closed { id, tool, outcome };
        }
    }

    /// Converts the slot to a result message. A call without a result counts as cancelled.
    pub(super) fn into_message(self) -> Message {
        match self {
            Slot::Closed { id, tool, outcome } => Message::Tool { call_id: id, tool, outcome },
            Slot::AwaitingApproval { call, .. } | Slot::Open(call) => {
                Message::Tool { call_id: call.id, tool: call.tool, outcome: ToolOutcome::Cancelled }
            }
        }
    }
}
