//! What is asked of a host.

use patter::session::CallAnswer;
use patter::store::SessionId;
use patter_core::message::attachment::{AttachmentContents, UserInput};
use patter_core::message::conversation::Message;
use patter_core::provider::ModelRef;
use patter_core::run::ClientAdditions;
use patter_core::serve::Waiting;
use patter_core::session::{RunPath, TraceParent};

/// A turn to be started.
pub(crate) struct TurnRequest {
    pub(crate) agent: String,
    pub(crate) session: SessionChoice,
    /// The conversation before it, in a new session.
    pub(crate) history: Vec<Message>,
    pub(crate) client: Option<ClientAdditions>,
    pub(crate) input: UserInput,
    /// The contents of the attachments of the input and of the history.
    pub(crate) contents: AttachmentContents,
    pub(crate) choice: Choice,
    pub(crate) lifetime: Lifetime,
    pub(crate) when_busy: WhenBusy,
    /// The span of the client that the turn is a part of.
    pub(crate) parent: Option<TraceParent>,
    /// The URL that learns about the end of a turn in the background.
    pub(crate) webhook: Option<String>,
}

/// What a turn uses instead of what its agent declares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(crate) model: Option<ModelRef>,
    /// The name of the tools that replace others.
    pub(crate) variant: Option<String>,
}

/// The session of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// A new session that is not stored.
    Unsaved,
    /// A new session.
    New(SessionId),
    /// A session that may exist.
    Named(SessionId),
    /// A session whose last segment has this number.
    After(SessionId, u32),
}

/// Whether a turn needs a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It is cancelled when its clients are gone.
    Attached,
    /// It continues without a client.
    Detached,
}

/// How a message to a session that is in use is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WhenBusy {
    /// It is refused.
    #[default]
    Reject,
    /// It waits for its turn.
    Enqueue,
}

/// An answer to a call that waits.
pub(crate) struct Answer {
    pub(crate) run: RunPath,
    pub(crate) call_id: String,
    /// The hash of the call that the answer is about, if it is an approval.
    pub(crate) hash: Option<String>,
    pub(crate) answer: CallAnswer,
}

impl Answer {
    /// Returns an answer to a call, and to no other one.
    pub(crate) fn to(call: &Waiting, answer: CallAnswer) -> Self {
        Self { run: call.run.clone(), call_id: call.call_id.clone(), hash: Some(call.hash.clone()), answer }
    }
}
