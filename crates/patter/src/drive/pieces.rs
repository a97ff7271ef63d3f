//! The pieces of a reply on their way to the listener and the recording.

use super::clock::{milliseconds, now_ms};
use super::driver::{Driver, StreamedReplies};
use super::listener::emit;
use crate::model::DeltaReceiver;
use patter_core::event::{EventLog, RunEventKind};
use patter_core::message::request::Delta;
use patter_core::run::{CallDelay, CallTiming};
use patter_core::session::{LogEntry, RunPath};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Receives the pieces of one reply. Pieces that nobody sees before the reply is complete are held back.
pub(super) struct ReplyPieces<'d> {
    pub(super) driver: &'d Driver,
    pub(super) event_log: &'d EventLog,
    pub(super) agent: &'d str,
    pub(super) depth: u32,
    pub(super) path: &'d RunPath,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The text that the listener received.
    shown: String,
    /// Pieces for the recording.
    held_back: Vec<Delta>,
    timing: CallTiming,
}

impl<'d> ReplyPieces<'d> {
    pub(super) fn new(
        driver: &'d Driver,
        event_log: &'d EventLog,
        agent: &'d str,
        depth: u32,
        path: &'d RunPath,
    ) -> Self {
        Self { driver, event_log, agent, depth, path, started: Instant::now(), state: Mutex::default() }
    }

    /// Returns whether anybody wants the pieces.
    pub(super) fn is_wanted(&self) -> bool {
        self.driver.listener.is_some() || self.is_recording()
    }

    /// Returns whether the reply can be requested again, because nobody saw a part of it.
    pub(super) fn can_repeat(&self) -> bool {
        !self.is_streamed() || self.state().timing.first_piece_ms.is_none()
    }

    /// Ends the reply: records what was held back, and returns the text that the listener received, and how long it took.
    pub(super) fn end(self) -> (String, CallTiming) {
        let State { shown, held_back, timing } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(journal) = self.driver.journal.as_ref().filter(|_| !held_back.is_empty()) {
            journal.record(&LogEntry::ReplyStreamed { run: self.path.clone(), pieces: held_back });
        }
        (shown, timing)
    }

    /// Returns whether the listener receives the pieces as they arrive.
    fn is_streamed(&self) -> bool {
        match self.driver.streamed {
            StreamedReplies::All => true,
            StreamedReplies::Outermost => self.depth == 0,
            StreamedReplies::None => false,
        }
    }

    fn is_recording(&self) -> bool {
        self.driver.journal.as_ref().is_some_and(|journal| journal.is_recording())
    }

    fn emit(&self, event: Option<RunEventKind>) {
        if let (Some(listener), Some(event)) = (&self.driver.listener, event) {
            emit(listener, self.agent, self.path, event);
        }
    }

    /// Notes when the first piece arrived, and delays.
    fn time(&self, delta: &Delta) {
        let mut state = self.state();
        match delta {
            Delta::Waiting { seconds, because } => {
                let delay = CallDelay { at: now_ms(), seconds: *seconds, because: because.clone() };
                state.timing.delays.push(delay);
            }
            Delta::Text { .. } | Delta::Thought { .. } | Delta::Call { .. } | Delta::Arguments { .. } => {
                state.timing.first_piece_ms.get_or_insert_with(|| milliseconds(self.started.elapsed()));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeltaReceiver for ReplyPieces<'_> {
    fn receive(&self, delta: Delta) {
        let is_recording = self.is_recording();
        self.time(&delta);
        if !self.is_streamed() {
            if let Delta::Waiting { .. } = &delta {
                self.emit(self.event_log.piece(delta.clone()));
            }
            if is_recording {
                self.state().held_back.push(delta);
            }
            return;
        }
        if let (Some(journal), true) = (&self.driver.journal, is_recording) {
            journal.record(&LogEntry::ReplyStreamed { run: self.path.clone(), pieces: vec![delta.clone()] });
        }
        if let (Delta::Text { text }, true) = (&delta, self.driver.listener.is_some()) {
            self.state().shown.push_str(text);
        }
        self.emit(self.event_log.piece(delta));
    }

    fn retract(&self) -> bool {
        let is_possible = !self.is_streamed();
        if is_possible {
            // Delays are not part of the reply.
            let mut state = self.state();
            state.timing.first_piece_ms = None;
            state.held_back.retain(|delta| matches!(delta, Delta::Waiting { .. }));
        }
        is_possible
    }
}
