//! A model that replies from a recording.

use super::error::ModelError;
use super::interface::{DeltaSink, Model};
use crate::drive::summary_messages;
use crate::session::{Log, LogEntry, LogError, Recording, RunPath};
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::conversation::{Conversation, Message};
use patter_core::message::request::{Delta, FinishReason, Reply, Request, RequestTemplate};
use patter_core::provider::Provider;
use patter_core::run::{FailureKind, Run, RunFailure, RunInput};
use patter_core::session::replay::differences;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether requests must match the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayMode {
    /// Each request gets the reply to the same recorded request; a request that was not recorded is an error.
    Strict,
    /// Requests get the replies in the recorded order, to try a changed tool or prompt with them.
    Lenient,
}

/// A model that replies from a recording. Each recorded reply is used once, in its recorded pieces and without delays.
///
/// ```
/// use patter::model::{ReplayMode, ReplayModel};
/// use patter::session::Recording;
/// let recording = Recording::parse("{\"patter_recording\": 1}\n").unwrap();
/// let model = ReplayModel::new(recording, ReplayMode::Strict).unwrap();
/// assert_eq!(model.remaining(), 0);
/// ```
#[derive(Debug)]
pub struct ReplayModel {
    mode: ReplayMode,
    /// The number of recorded replies.
    count: usize,
    remaining: Mutex<Vec<Exchange>>,
}

/// A recorded request and its result.
#[derive(Debug)]
struct Exchange {
    template: Option<Arc<RequestTemplate>>,
    messages: Conversation,
    deltas: Vec<Delta>,
    result: Result<Reply, ModelError>,
}

impl ReplayModel {
    /// Returns a model that replies from a recording.
    pub fn new(recording: Recording, mode: ReplayMode) -> Result<Self, LogError> {
        let mut log = Log::default();
        let mut exchanges = Vec::new();
        let mut streamed: HashMap<RunPath, Vec<Delta>> = HashMap::new();
        for entry in recording.entries {
            if let LogEntry::ReplyStreamed { run, pieces } = &entry {
                streamed.entry(run.clone()).or_default().extend(pieces.iter().cloned());
            }
            if let LogEntry::InputReceived { run: path, input } = &entry {
                let run = if path.is_empty() { log.open_run() } else { log.child_run(path) };
                let result = match input {
                    RunInput::ModelReplied { reply, .. } => Some(Ok(reply.clone())),
                    RunInput::ModelFailed { failure, .. } => Some(Err(model_error(failure))),
                    RunInput::ContextExceeded { message, .. } => {
                        Some(Err(ModelError::TooLong { message: message.clone() }))
                    }
                    // The agent asks its next model again.
                    RunInput::FellBack { because, .. } => {
                        Some(Err(ModelError::Unavailable { message: because.clone() }))
                    }
                    _ => None,
                };
                if let Some((run, result)) = run.zip(result) {
                    // The log has only the template of the agent's own model.
                    let template = log.frame(&run.spec().agent).filter(|_| run.fallback().is_none()).cloned();
                    let deltas = streamed.remove(path).unwrap_or_default();
                    exchanges.push(Exchange { template, messages: run.sent_messages().into_owned(), deltas, result });
                }
                exchanges.extend(run.and_then(|run| summary(run, input)));
            }
            log.apply(entry)?;
        }
        Ok(Self { mode, count: exchanges.len(), remaining: Mutex::new(exchanges) })
    }

    /// Returns the number of replies that were not used yet.
    pub fn remaining(&self) -> usize {
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes the recorded reply to a request.
    fn take_exchange(&self, request: &Request<'_>) -> Result<Exchange, ModelError> {
        let mut remaining = self.remaining.lock().unwrap_or_else(PoisonError::into_inner);
        let template = request.template();
        let is_same = |exchange: &Exchange| {
            exchange.messages == *request.messages && exchange.template.as_ref().is_none_or(|other| **other == template)
        };
        let position = match self.mode {
            ReplayMode::Lenient => (!remaining.is_empty()).then_some(0),
            ReplayMode::Strict => remaining.iter().position(is_same),
        };
        if let Some(position) = position {
            return Ok(remaining.remove(position));
        }
        let message = match remaining.first() {
            None => format!("the recording has no replies left ({} in total)", self.count),
            Some(next) => {
                let found = next.template.as_ref().map(|then| differences(then, &template)).unwrap_or_default();
                let difference =
                    found.first().map_or_else(|| "the conversation differs".to_owned(), ToString::to_string);
                format!("the recording has no reply to this request: {difference}")
            }
        };
        Err(ModelError::Api { status: None, message })
    }
}

impl Model for ReplayModel {
    fn provider(&self) -> Provider {
        Provider::SCRIPTED
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a DeltaSink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            if cancellation.is_cancelled() {
                return Err(ModelError::Cancelled);
            }
            let Exchange { deltas, result, .. } = self.take_exchange(request)?;
            if let Some(sink) = sink {
                deltas.into_iter().for_each(|delta| sink.receive(delta));
            }
            result
        })
    }
}

/// Returns the exchange with which a part of a conversation was summarized, if there was one.
fn summary(run: &Run, input: &RunInput) -> Option<Exchange> {
    let RunInput::Compacted { compaction: Message::Compacted { summary, .. }, usage, .. } = input else { return None };
    let transcript = run.compaction_plan()?.transcript?;
    let text = summary.clone();
    let reply = Reply {
        text,
        calls: Vec::new(),
        finish: FinishReason::Stop,
        usage: *usage,
        opaque: None,
        thought: String::new(),
    };
    Some(Exchange { template: None, messages: summary_messages(&transcript), deltas: Vec::new(), result: Ok(reply) })
}

/// Returns the error that a recorded failure was.
fn model_error(RunFailure { kind, message }: &RunFailure) -> ModelError {
    let message = message.clone();
    match kind {
        FailureKind::Configuration => ModelError::Configuration { message, hint: None },
        _ => ModelError::Api { status: None, message },
    }
}
