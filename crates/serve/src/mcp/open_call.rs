//! Calls of tools that are under way, and those that wait for the client.
//!
//! In the stateless protocol, a call that asks a question returns with it, and is sent again with the answer. In between, the
//! tool waits here, for a limited time. The state that the client sends back says which call it continues; it is signed, and
//! valid once, for the same call by the same client.

use super::question::{Asked, CallEvent, ForwardingRespondent, PATIENCE};
use crate::host::Host;
use patter::tool::{
    CallError, CallHost, CallRequest, CancellationToken, Executor, SharedState, ToolEvent, ToolEventKind,
};
use patter_core::serve::ApiError;
use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::DropGuard;

/// How many calls may wait for the client.
const MAX_WAITING: usize = 1000;
/// How many reports of progress may wait to be sent. More of them are dropped.
const MAX_EVENTS: usize = 64;

/// A call that is under way. It is cancelled when this is dropped.
pub(super) struct RunningCall {
    pub(super) events: mpsc::Receiver<CallEvent>,
    pub(super) end: oneshot::Receiver<Result<Json, CallError>>,
    _cancellation: DropGuard,
}

impl RunningCall {
    /// Starts a call.
    pub(super) fn start(
        host: &Host,
        executor: Executor,
        state: SharedState,
        mut request: CallRequest,
    ) -> Result<Self, ApiError> {
        let (sender, events) = mpsc::channel(MAX_EVENTS);
        let (end_sender, end) = oneshot::channel();
        let cancellation = CancellationToken::new();
        request.cancellation = cancellation.clone();
        let state = state.with(CallHost(Arc::new(ForwardingRespondent(sender.clone()))));
        let executor = executor.with_state(state).with_listener(move |event: &ToolEvent<'_>| {
            let (fraction, message) = match &event.kind {
                ToolEventKind::Progress(progress) => (progress.fraction, progress.message.clone()),
                kind => match kind.hook_message() {
                    Some(message) => (None, message),
                    None => return,
                },
            };
            let _ = sender.try_send(CallEvent::Progress { fraction, message });
        });
        host.spawn_work(async move {
            let _ = end_sender.send(executor.call(request).await);
        })?;
        Ok(Self { events, end, _cancellation: cancellation.drop_guard() })
    }
}

/// What waits for the client.
pub(super) enum WaitingCall {
    /// A call that was not made yet, because it needs an approval.
    Approval,
    /// A call under way, with the questions that are not answered.
    Questions(Box<RunningCall>, Vec<(String, Asked)>),
}

/// The calls that wait for the client.
pub(super) struct WaitingCalls {
    /// Signs what clients send back; `None` if the system provides no random numbers.
    codec: Option<RequestStateCodec>,
    waiting: Mutex<HashMap<String, WaitingCall>>,
}

impl WaitingCalls {
    pub(super) fn new() -> Self {
        let codec = random().and_then(|key| RequestStateCodec::try_new(key).ok());
        Self { codec, waiting: Mutex::default() }
    }

    /// Lets a call wait, and returns the state that the client sends back. `binding` says which call of which client it is.
    pub(super) fn add(self: &Arc<Self>, host: &Host, call: WaitingCall, binding: &str) -> Result<String, ErrorData> {
        let (Some(codec), Some(id)) = (&self.codec, random()) else {
            return Err(ErrorData::internal_error("the system provides no random numbers", None));
        };
        let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_WAITING {
            return Err(ErrorData::internal_error("too many calls wait for an answer", None));
        }
        waiting.insert(id.clone(), call);
        drop(waiting);
        let options = SealOptions::new().associated_data(binding.as_bytes()).ttl(PATIENCE);
        let state = codec.seal_with(id.as_bytes(), &options);
        let calls = Arc::clone(self);
        let draining = host.draining.clone();
        tokio::spawn(async move {
            draining.run_until_cancelled(tokio::time::sleep(PATIENCE)).await;
            calls.waiting().remove(&id);
        });
        Ok(state)
    }

    /// Returns the call that a state is about, which no longer waits then.
    pub(super) fn take(&self, state: &str, binding: &str) -> Result<WaitingCall, ErrorData> {
        let opened = self.codec.as_ref().and_then(|codec| codec.open_with(state, binding.as_bytes()).ok());
        let id = opened.and_then(|id| String::from_utf8(id).ok());
        let Some(id) = id else {
            let message = "`requestState` is not valid for this call, or has expired";
            return Err(ErrorData::invalid_params(message, None));
        };
        let call = self.waiting().remove(&id);
        call.ok_or_else(|| ErrorData::invalid_params("the call does not wait any more: call the tool again", None))
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, WaitingCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns bytes that nobody can guess.
fn random() -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}
