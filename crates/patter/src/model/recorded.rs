//! A model that answers from a recording.

use super::{Model, ModelError, Sink};
use crate::session::{Entry, Log, LogError, Recording, RunPath};
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::conversation::Message;
use patter_core::message::request::{Delta, Frame, Reply, Request};
use patter_core::provider::Provider;
use patter_core::run::{Failure, FailureKind, RunInput};
use patter_core::session::replay::differences;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whether requests must be those that were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checking {
    /// They must: each gets the reply that the same request got, and any other is an error.
    Strict,
    /// They need not: replies come in the recorded order, so that a changed tool or prompt can be tried with them.
    Lenient,
}

/// A model that answers from a recording, each recorded reply once, in the recorded pieces and without waiting.
///
/// ```
/// use patter::model::{Checking, RecordedModel};
/// use patter::session::Recording;
/// let recording = Recording::parse("{\"patter_recording\": 1}\n").unwrap();
/// let model = RecordedModel::new(recording, Checking::Strict).unwrap();
/// assert_eq!(model.left(), 0);
/// ```
#[derive(Debug)]
pub struct RecordedModel {
    checking: Checking,
    count: usize,
    left: Mutex<Vec<Exchange>>,
}

/// What was asked, and what came of it.
#[derive(Debug)]
struct Exchange {
    frame: Option<Arc<Frame>>,
    messages: Vec<Message>,
    pieces: Vec<Delta>,
    answer: Result<Reply, Failure>,
}

impl RecordedModel {
    /// Returns a model that answers from a recording.
    pub fn new(recording: Recording, checking: Checking) -> Result<Self, LogError> {
        let (mut log, mut exchanges) = (Log::default(), Vec::new());
        let mut streamed: HashMap<RunPath, Vec<Delta>> = HashMap::new();
        for entry in recording.entries {
            if let Entry::Streamed { run, pieces } = &entry {
                streamed.entry(run.clone()).or_default().extend(pieces.iter().cloned());
            }
            if let Entry::Input { run: path, input } = &entry {
                let run = if path.is_empty() { log.run() } else { log.inner(path) };
                let answer = match input {
                    RunInput::Reply { reply, .. } => Some(Ok(reply.clone())),
                    RunInput::ModelFailed { failure, .. } => Some(Err(failure.clone())),
                    _ => None,
                };
                if let Some((run, answer)) = run.zip(answer) {
                    let frame = log.frame(&run.spec().agent).cloned();
                    let pieces = streamed.remove(path).unwrap_or_default();
                    exchanges.push(Exchange { frame, messages: run.conversation().to_vec(), pieces, answer });
                }
            }
            log.apply(entry)?;
        }
        Ok(Self { checking, count: exchanges.len(), left: Mutex::new(exchanges) })
    }

    /// Returns how many replies nobody asked for yet.
    pub fn left(&self) -> usize {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn next(&self, request: &Request<'_>) -> Result<Exchange, ModelError> {
        let wrong = |message: String| ModelError::Api { status: None, message };
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = request.frame();
        let is_same = |exchange: &Exchange| {
            exchange.messages == request.messages && exchange.frame.as_ref().is_none_or(|other| **other == frame)
        };
        let place = match self.checking {
            Checking::Lenient => 0,
            Checking::Strict => left.iter().position(is_same).unwrap_or(usize::MAX),
        };
        if place < left.len() {
            return Ok(left.remove(place));
        }
        let Some(next) = left.first() else {
            return Err(wrong(format!("the recording has {} replies, and this is another request", self.count)));
        };
        let found = next.frame.as_ref().map(|then| differences(then, &frame)).unwrap_or_default();
        let what = found.first().map_or_else(|| "the conversation is another".to_owned(), ToString::to_string);
        Err(wrong(format!("the recording has no reply to this request: {what}")))
    }
}

impl Model for RecordedModel {
    fn provider(&self) -> Provider {
        Provider::SCRIPTED
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a Sink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            if cancellation.is_cancelled() {
                return Err(ModelError::Cancelled);
            }
            let Exchange { pieces, answer, .. } = self.next(request)?;
            if let Some(sink) = sink {
                pieces.into_iter().for_each(sink);
            }
            answer.map_err(|Failure { kind, message }| match kind {
                FailureKind::Configuration => ModelError::Configuration { message, hint: None },
                _ => ModelError::Api { status: None, message },
            })
        })
    }
}
