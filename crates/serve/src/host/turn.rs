//! A turn, and those who follow it.

use patter::store::SessionId;
use patter::tool::CancellationToken;
use patter_core::event::{RunEvent, RunEventKind};
use patter_core::run::ClientAdditions;
use patter_core::serve::{ApiError, TurnEnd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The largest number of bytes that the events of a turn may take.
const MAX_BYTES: usize = 64 << 20;

/// A turn: its events so far, and its end. Any number of clients may follow it, each at its own speed and from the start.
pub(crate) struct Turn {
    pub(crate) session: Option<SessionId>,
    pub(crate) about: TurnDetails,
    pub(crate) cancellation: CancellationToken,
    state: Mutex<State>,
    /// Changes with each event.
    version: watch::Sender<u64>,
    followers: AtomicUsize,
    /// How long the turn continues without a client; `None` if it needs none.
    grace: Option<Duration>,
}

/// What a turn is about.
#[derive(Debug, Clone, Default)]
pub(crate) struct TurnDetails {
    /// The number of its segment in the session.
    pub(crate) number: u32,
    pub(crate) agent: String,
    pub(crate) client: Option<ClientAdditions>,
    pub(crate) created_ms: u64,
}

#[derive(Default)]
struct State {
    /// The events. A text that follows a text of the same run is added to it.
    events: Vec<RunEvent>,
    bytes: usize,
    end: Option<Result<TurnEnd, ApiError>>,
}

/// The next thing that a client learns about a turn.
#[derive(Debug)]
pub(crate) enum TurnItem {
    Event(RunEvent),
    End(Result<TurnEnd, ApiError>),
}

impl Turn {
    pub(crate) fn new(
        session: Option<SessionId>,
        about: TurnDetails,
        cancellation: CancellationToken,
        grace: Option<Duration>,
    ) -> Self {
        let version = watch::channel(0).0;
        Self { session, about, cancellation, state: Mutex::default(), version, followers: AtomicUsize::new(0), grace }
    }

    /// Adds an event.
    pub(crate) fn push(&self, event: &RunEvent) {
        let mut state = self.state();
        state.bytes += size(event);
        if state.bytes > MAX_BYTES {
            drop(state);
            tracing::warn!("a turn produced more than {MAX_BYTES} bytes, and was stopped");
            return self.cancellation.cancel();
        }
        let merged = match (state.events.last_mut(), &event.kind) {
            (Some(RunEvent { run, kind: RunEventKind::Text { text: before }, .. }), RunEventKind::Text { text })
                if *run == event.run =>
            {
                before.push_str(text);
                true
            }
            _ => false,
        };
        if !merged {
            state.events.push(event.clone());
        }
        drop(state);
        self.version.send_modify(|version| *version += 1);
    }

    /// Ends the turn.
    pub(crate) fn end(&self, end: Result<TurnEnd, ApiError>) {
        self.state().end.get_or_insert(end);
        self.version.send_modify(|version| *version += 1);
    }

    /// Returns whether the turn continues without a client.
    pub(crate) fn is_detached(&self) -> bool {
        self.grace.is_none()
    }

    /// Returns the end, if the turn has ended.
    pub(crate) fn ending(&self) -> Option<Result<TurnEnd, ApiError>> {
        self.state().end.clone()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        let mut version = self.version.subscribe();
        while self.state().end.is_none() && version.changed().await.is_ok() {}
    }

    /// Waits for the next event or the end.
    pub(crate) async fn changed(&self) {
        let _ = self.version.subscribe().changed().await;
    }

    /// Returns a follower that learns everything from the start.
    pub(crate) fn follow(self: &Arc<Self>) -> Follower {
        self.followers.fetch_add(1, Ordering::AcqRel);
        Follower { turn: Arc::clone(self), version: self.version.subscribe(), index: 0, offset: 0, is_ended: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client that follows a turn. Once all of them are gone, the turn is cancelled after a while, unless it needs none.
pub(crate) struct Follower {
    turn: Arc<Turn>,
    version: watch::Receiver<u64>,
    /// The next event.
    index: usize,
    /// How much of its text was returned.
    offset: usize,
    is_ended: bool,
}

impl Follower {
    pub(crate) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// Waits until the turn has started. Fails if it could not.
    pub(crate) async fn first(&mut self) -> Result<(), ApiError> {
        loop {
            self.version.mark_unchanged();
            {
                let state = self.turn.state();
                match (&state.end, state.events.is_empty()) {
                    (Some(Err(error)), true) => return Err(error.clone()),
                    (None, true) => {}
                    _ => return Ok(()),
                }
            }
            if self.version.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// Returns what is there of the turn, without waiting.
    pub(crate) fn available(&mut self) -> Vec<TurnItem> {
        std::iter::from_fn(|| if self.is_ended { None } else { self.take() }).collect()
    }

    /// Returns the next item, or `None` after the end.
    pub(crate) async fn next(&mut self) -> Option<TurnItem> {
        loop {
            if self.is_ended {
                return None;
            }
            self.version.mark_unchanged();
            if let Some(item) = self.take() {
                return Some(item);
            }
            // The sender lives as long as the turn, which this follower keeps alive.
            self.version.changed().await.ok()?;
        }
    }

    fn take(&mut self) -> Option<TurnItem> {
        let turn = Arc::clone(&self.turn);
        let state = turn.state();
        while let Some(event) = state.events.get(self.index) {
            let is_last = self.index + 1 == state.events.len();
            let RunEventKind::Text { text } = &event.kind else {
                self.index += 1;
                return Some(TurnItem::Event(event.clone()));
            };
            let new = text.get(self.offset..).unwrap_or_default().to_owned();
            if !new.is_empty() {
                self.offset = text.len();
                let kind = RunEventKind::Text { text: new };
                return Some(TurnItem::Event(RunEvent::new(&event.agent, &event.run, kind)));
            }
            if is_last {
                break;
            }
            self.index += 1;
            self.offset = 0;
        }
        let end = state.end.clone()?;
        self.is_ended = true;
        Some(TurnItem::End(end))
    }

    /// Waits for the end, and returns the texts of the outermost run, reply by reply.
    pub(crate) async fn collect(&mut self) -> (Vec<String>, Result<TurnEnd, ApiError>) {
        let mut texts: Vec<String> = Vec::new();
        let mut is_new_reply = true;
        while let Some(item) = self.next().await {
            match item {
                TurnItem::End(end) => return (texts, end),
                TurnItem::Event(event) if event.run.is_empty() => match event.kind {
                    RunEventKind::ModelCalled { .. } => is_new_reply = true,
                    RunEventKind::Text { text } => match texts.last_mut() {
                        Some(last) if !is_new_reply => last.push_str(&text),
                        _ => {
                            texts.push(text);
                            is_new_reply = false;
                        }
                    },
                    _ => {}
                },
                TurnItem::Event(_) => {}
            }
        }
        (texts, Err(ApiError::new(patter_core::serve::ApiErrorKind::Server, "the turn ended without a result")))
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.turn.followers.fetch_sub(1, Ordering::AcqRel) > 1 || self.is_ended {
            return;
        }
        let Some(grace) = self.turn.grace else { return };
        let turn = Arc::clone(&self.turn);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return turn.cancellation.cancel() };
        runtime.spawn(async move {
            tokio::select! {
                () = turn.ended() => {}
                () = tokio::time::sleep(grace) => {
                    if turn.followers.load(Ordering::Acquire) == 0 {
                        tracing::debug!(session = ?turn.session, "cancelled: its client is gone");
                        turn.cancellation.cancel();
                    }
                }
            }
        });
    }
}

/// Returns about how many bytes an event takes.
fn size(event: &RunEvent) -> usize {
    const BASE: usize = 200;
    match &event.kind {
        RunEventKind::Text { text } | RunEventKind::Thought { text } => text.len(),
        RunEventKind::ToolFinished { outcome, .. } => BASE + outcome.text().len(),
        RunEventKind::ToolStarted { arguments, .. } | RunEventKind::Asked { arguments, .. } => {
            BASE + arguments.to_string().len()
        }
        _ => BASE,
    }
}
