//! What the headers of requests say about turns.

use crate::guard::text_header;
use crate::host::{Follower, Host, Lifetime, RequestKey, WhenBusy, background_session};
use crate::settings::SystemMessages;
use crate::token::Access;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use patter::drive::now_ms;
use patter::store::SessionId;
use patter_core::run::ClientAdditions;
use patter_core::serve::ApiError;
use patter_core::session::TraceParent;
use std::sync::Arc;

/// Names the session of a request or a response.
pub(super) const SESSION: HeaderName = HeaderName::from_static("x-patter-session");
const IGNORED: HeaderName = HeaderName::from_static("x-patter-ignored");
const ON_DISCONNECT: HeaderName = HeaderName::from_static("x-patter-on-disconnect");
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

/// Returns whether a turn continues without its client, if the request says so.
pub(super) fn lifetime(headers: &HeaderMap) -> Result<Option<Lifetime>, ApiError> {
    match text_header(headers, &ON_DISCONNECT) {
        None => Ok(None),
        Some("cancel") => Ok(Some(Lifetime::Attached)),
        Some("continue") => Ok(Some(Lifetime::Detached)),
        Some(_) => Err(ApiError::invalid(ON_DISCONNECT.as_str(), "must be `cancel` or `continue`")),
    }
}

/// Returns the span of the client that sent a request. One that is not valid does not count, as its specification says.
pub(super) fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    text_header(headers, &TRACE_PARENT).and_then(|text| text.parse().ok())
}

/// Parses the id of a session that a part of a request names.
pub(super) fn parse_session_id(id: &str, param: &str) -> Result<SessionId, ApiError> {
    SessionId::parse(id).map_err(|error| ApiError::invalid(param, format!("{error}; {}", error.hint())))
}

/// Returns how a message to a session that is in use is handled.
pub(super) fn when_busy(text: Option<&str>) -> Result<WhenBusy, ApiError> {
    match text {
        None | Some("reject") => Ok(WhenBusy::Reject),
        Some("enqueue") => Ok(WhenBusy::Enqueue),
        Some(_) => Err(ApiError::invalid("when_busy", "must be `reject` or `enqueue`")),
    }
}

/// Applies what the server does with the system messages of clients.
pub(super) fn apply_system_messages(host: &Host, client: &mut ClientAdditions, param: &str) -> Result<(), ApiError> {
    match host.settings.system_messages {
        SystemMessages::Append => {}
        SystemMessages::Ignore => client.context.clear(),
        SystemMessages::Refuse if client.context.is_empty() => {}
        SystemMessages::Refuse => return Err(ApiError::invalid(param, "this server accepts no system messages")),
    }
    Ok(())
}

/// Adds headers about the session, and about the fields of the request that had no effect.
pub(super) fn add_headers(response: &mut Response, session: Option<&str>, ignored: &[String]) {
    let headers = response.headers_mut();
    if let Some(session) = session.and_then(|session| HeaderValue::from_str(session).ok()) {
        headers.insert(SESSION, session);
    }
    if let Ok(ignored) = HeaderValue::from_str(&ignored.join(", "))
        && !ignored.is_empty()
    {
        headers.insert(IGNORED, ignored);
    }
}

/// What identifies a request, so that sending it again does not run tools twice.
pub(super) struct Identity {
    key: RequestKey,
    /// Whether the request may have been sent before.
    is_repeated: bool,
    /// The session that it starts in the background, if the client chose a key.
    background: Option<SessionId>,
}

impl Identity {
    pub(super) fn new(access: &Access, route: &str, headers: &HeaderMap, body: &[u8]) -> Self {
        match text_header(headers, &IDEMPOTENCY_KEY) {
            Some(key) => Self {
                key: RequestKey::named(access.name(), route, key),
                is_repeated: true,
                background: background_session(access.name(), route, key),
            },
            None => {
                let count = text_header(headers, &RETRY_COUNT).and_then(|count| count.parse::<u32>().ok());
                let is_repeated = count.is_some_and(|count| count > 0);
                Self { key: RequestKey::new(access.name(), route, body), is_repeated, background: None }
            }
        }
    }

    /// Returns the turn of this request: that of the same one if it was sent before, or one that is started now.
    pub(super) async fn join_or_start(
        &self,
        host: &Arc<Host>,
        access: &Access,
        start: impl Future<Output = Result<Follower, ApiError>>,
    ) -> Result<Follower, ApiError> {
        if let Some(follower) = self.join(host, access).await? {
            return Ok(follower);
        }
        let follower = start.await?;
        host.recent.insert(self.key.clone(), Arc::clone(follower.turn()));
        Ok(follower)
    }

    /// Returns the turn of the same request if it was sent before, from this server's memory or its store.
    async fn join(&self, host: &Arc<Host>, access: &Access) -> Result<Option<Follower>, ApiError> {
        if !self.is_repeated {
            return Ok(None);
        }
        if let Some(turn) = host.recent.get(&self.key) {
            host.metrics.joined();
            return Ok(Some(turn.follow()));
        }
        let Some(id) = host.find_request(&self.key).await else { return Ok(None) };
        host.metrics.joined();
        host.rejoin(access, &id, 1).await.map(Some)
    }

    /// Returns what identifies the request in the queue, if the client chose a key.
    pub(super) fn queue_key(&self) -> Option<String> {
        self.background.as_ref().map(ToString::to_string)
    }

    /// Returns a new session for a turn in the background: with a key of the client, the same each time.
    pub(super) fn background_session(&self) -> SessionId {
        self.background.clone().unwrap_or_else(|| self.new_session())
    }

    /// Returns whether the request may have been sent before.
    pub(super) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Returns a new session, which is found by this request after a restart.
    pub(super) fn new_session(&self) -> SessionId {
        let id = SessionId::unique(now_ms());
        SessionId::parse(&format!("{id}-{}", self.key.as_str())).unwrap_or(id)
    }
}
