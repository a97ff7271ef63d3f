//! Events as server-sent events: those of a turn while it runs, and those of a session from its log.

use super::sessions::find_or_queued;
use super::stream::TurnStream;
use crate::guard::text_header;
use crate::host::{Host, TurnItem, api_error};
use crate::respond::{ErrorResponse, event_stream, keep_alive};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use patter::store::{SessionId, Store, StoreError};
use patter_core::event::Playback;
use patter_core::serve::native::turn_json;
use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How often the log is read again when nothing in this process says that it changed.
const POLL: Duration = Duration::from_secs(1);

/// The events of a turn, and how it ended.
pub(super) struct TurnEvents {
    pub(super) session: Option<String>,
}

impl TurnStream for TurnEvents {
    fn start(&mut self) -> Vec<Bytes> {
        Vec::new()
    }

    fn advance(&mut self, item: &TurnItem) -> Vec<Bytes> {
        vec![match item {
            TurnItem::Event(event) => message("event", None, event),
            TurnItem::End(Ok(end)) => message("end", None, &turn_json(self.session.as_deref(), end)),
            TurnItem::End(Err(error)) => message("error", None, &error.to_json()),
        }]
    }
}

/// Streams the events of a session from its log, and continues as the log grows. `Last-Event-ID` continues a stream.
pub(super) async fn session_events(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let after = match text_header(&headers, &LAST_EVENT) {
        None => None,
        Some(id) => Some(EventId::parse(id).ok_or_else(|| ApiError::invalid("Last-Event-ID", "is not an event"))?),
    };
    let session = find_or_queued(&host, &access, &id).await?;
    let store = host.require_store()?;
    let log = LogEvents {
        host,
        store,
        id: session,
        playback: Playback::default(),
        next: 0,
        after,
        waiting: VecDeque::new(),
        last_sent: Instant::now(),
    };
    Ok(event_stream(log.into_stream()).into_response())
}

/// The place of an event in the log of a session: the number of the entry, and that of the event of this entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EventId {
    entry: u64,
    event: usize,
}

impl EventId {
    fn parse(text: &str) -> Option<Self> {
        let (entry, event) = text.split_once('.')?;
        Some(Self { entry: entry.parse().ok()?, event: event.parse().ok()? })
    }
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.entry, self.event)
    }
}

/// The events of a log.
struct LogEvents {
    host: Arc<Host>,
    store: Arc<dyn Store>,
    id: SessionId,
    playback: Playback,
    /// The number of the next entry.
    next: u64,
    /// The last event that the client has.
    after: Option<EventId>,
    waiting: VecDeque<Bytes>,
    last_sent: Instant,
}

impl LogEvents {
    fn into_stream(self) -> impl Stream<Item = Bytes> + Send {
        futures_util::stream::unfold(Some(self), |log| async move {
            let mut log = log?;
            loop {
                if let Some(message) = log.waiting.pop_front() {
                    log.last_sent = Instant::now();
                    return Some((message, Some(log)));
                }
                let turn = log.host.active_turn(&log.id);
                let read = log.read().await;
                if let Err(error) = read {
                    return Some((message("error", None, &error.to_json()), None));
                }
                if !log.waiting.is_empty() {
                    continue;
                }
                if log.last_sent.elapsed() >= log.host.settings.limits.keep_alive {
                    log.last_sent = Instant::now();
                    return Some((keep_alive(), Some(log)));
                }
                if log.host.draining.is_cancelled() {
                    return None;
                }
                let pause = tokio::time::sleep(POLL);
                match turn {
                    Some(turn) => tokio::select! { () = turn.changed() => {}, () = pause => {} },
                    None => pause.await,
                }
            }
        })
    }

    async fn read(&mut self) -> Result<(), ApiError> {
        let stored = match self.store.read_from(&self.id, self.next).await {
            // It has not started.
            Err(StoreError::NotFound { .. }) if self.next == 0 => return Ok(()),
            stored => stored.map_err(|error| api_error(&error.into()))?,
        };
        let damaged = |error: String| ApiError::new(ApiErrorKind::Server, error);
        for entry in &stored.entries {
            let entry = serde_json::from_str(entry).map_err(|error| damaged(error.to_string()))?;
            let events = self.playback.play(entry).map_err(|error| damaged(error.to_string()))?;
            for (index, event) in events.iter().enumerate() {
                let id = EventId { entry: self.next, event: index };
                if self.after.is_none_or(|after| id > after) {
                    self.waiting.push_back(message("event", Some(id), event));
                }
            }
            self.next += 1;
        }
        Ok(())
    }
}

/// Returns a server-sent event.
fn message(name: &str, id: Option<EventId>, data: &impl Serialize) -> Bytes {
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n").into()
}
