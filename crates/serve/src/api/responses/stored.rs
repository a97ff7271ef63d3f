//! Responses that exist: reading them, following them, cancelling and deleting them.

use super::super::stream::{TurnStream, stream_turn};
use super::start::read as read_stored;
use super::{missing, preceding};
use crate::guard::read_body;
use crate::host::{Host, Turn, api_error};
use crate::respond::{OpenErrorResponse, event_stream, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use patter::store::{SessionId, StoreError};
use patter_core::run::ClientAdditions;
use patter_core::serve::responses::{ResponseId, ResponseMeta, ResponseStream};
use patter_core::serve::{ApiError, ApiErrorKind, Segment};
use serde::Deserialize;
use serde_json::{Value as Json, json as object};
use std::sync::Arc;

/// The query of a response.
#[derive(Debug, Deserialize)]
pub(in crate::api) struct ReadQuery {
    /// Whether the response is a stream.
    #[serde(default)]
    stream: bool,
    /// The last event that the client has.
    starting_after: Option<u64>,
}

/// Returns a response as it is now, or its events after one that the client has.
pub(in crate::api) async fn read(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<ReadQuery>,
) -> Result<Response, OpenErrorResponse> {
    access.require(Scope::Read)?;
    let id = parse(&id)?;
    if let Some(turn) = active(&host, &access, &id) {
        let about = &turn.about;
        let stream = stream(&host, &id, &about.agent, about.client.clone(), about.created_ms, turn.is_detached());
        let mut follower = turn.follow();
        if query.stream {
            let stream = stream.starting_after(query.starting_after);
            return Ok(stream_turn(&host, follower, stream).await?);
        }
        let mut stream = stream;
        for item in follower.available() {
            stream.advance(&item);
        }
        return Ok(json(&stream.snapshot()));
    }
    let (session, segment) = read_stored(&host, &access, &id, None).await?;
    let stream = stream(&host, &id, &segment.agent, segment.client.clone(), segment.started_ms, false);
    let mut stream = stream.starting_after(query.starting_after);
    let events = play(&mut stream, &segment);
    if segment.end.is_none() && !is_running(&host, &session).await? {
        stream.interrupt();
    }
    if !query.stream {
        return Ok(json(&stream.snapshot()));
    }
    if segment.end.is_none() {
        let message = format!("the run of `{id}` is not under way in this process");
        return Err(ApiError::new(ApiErrorKind::Busy, message).into());
    }
    let events = events.into_iter().map(Bytes::from);
    Ok(event_stream(futures_util::stream::iter(events)).into_response())
}

/// Cancels a response, unless it is complete.
pub(in crate::api) async fn cancel(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, OpenErrorResponse> {
    access.require(Scope::Run)?;
    let id = parse(&id)?;
    let is_open = match active(&host, &access, &id) {
        Some(turn) => turn.session.clone(),
        None => {
            let (session, segment) = read_stored(&host, &access, &id, None).await?;
            let waits = segment
                .end
                .as_ref()
                .is_none_or(|end| end.client_calls().next().is_some() || end.approvals().next().is_some());
            (segment.is_last && waits).then_some(session)
        }
    };
    if let Some(session) = is_open {
        host.cancel(&access, &session).await?;
    }
    let (_, segment) = read_stored(&host, &access, &id, None).await?;
    let mut stream = stream(&host, &id, &segment.agent, segment.client.clone(), segment.started_ms, false);
    play(&mut stream, &segment);
    Ok(json(&stream.snapshot()))
}

/// Deletes the session of a response, if it is the only one there.
pub(in crate::api) async fn delete(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, OpenErrorResponse> {
    access.require(Scope::Admin)?;
    let id = parse(&id)?;
    let (session, segment) = read_stored(&host, &access, &id, None).await?;
    if id.number > 1 || !segment.is_last {
        let message = format!("`{id}` is part of a conversation; delete the session `{session}`");
        return Err(ApiError::new(ApiErrorKind::Busy, message).into());
    }
    host.require_store()?.remove(&session).await.map_err(|error| api_error(&error.into()))?;
    Ok(json(&object!({"id": id.to_string(), "object": "response", "deleted": true})))
}

/// Refuses to compact a conversation: agents see all of it.
pub(in crate::api) async fn compact(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    body: Body,
) -> Result<Response, OpenErrorResponse> {
    access.require(Scope::Run)?;
    let body = read_body(&host, body).await?;
    let request: Json = serde_json::from_slice(&body).unwrap_or_default();
    let error = match request.get("model") {
        None => ApiError::invalid("model", "is missing"),
        Some(_) => ApiError::new(ApiErrorKind::Invalid, "conversations cannot be compacted: agents see all of them"),
    };
    Err(error.into())
}

fn parse(id: &str) -> Result<ResponseId, ApiError> {
    ResponseId::parse(id).ok_or_else(|| missing(id, None))
}

/// Returns the turn of a response that is under way here.
fn active(host: &Host, access: &Access, id: &ResponseId) -> Option<Arc<Turn>> {
    let session = SessionId::parse(&id.session).ok()?;
    host.active_turn(&session).filter(|turn| turn.about.number == id.number && access.may_reach(&turn.about.agent))
}

/// Returns whether another process has the run of a session.
async fn is_running(host: &Host, session: &SessionId) -> Result<bool, ApiError> {
    match host.require_store()?.claim(session).await {
        Ok(_) => Ok(false),
        Err(StoreError::Busy { .. }) => Ok(true),
        Err(error) => Err(api_error(&error.into())),
    }
}

/// Returns a response without events.
fn stream(
    host: &Host,
    id: &ResponseId,
    agent: &str,
    client: Option<ClientAdditions>,
    created_ms: u64,
    background: bool,
) -> ResponseStream {
    let compiled = host.compile(agent).ok();
    let returns = compiled.as_ref().and_then(|compiled| compiled.returns());
    let meta = ResponseMeta {
        id: id.clone(),
        created_at: created_ms / 1000,
        model: agent.to_owned(),
        is_stored: true,
        background,
        previous: preceding(id),
        client: client.unwrap_or_default(),
        format: ResponseMeta::format(None, agent, returns),
        metadata: object!({}),
    };
    ResponseStream::new(meta).with_structured_answer(returns.is_some())
}

/// Adds all events of a segment to a response, and returns those of its stream.
fn play(stream: &mut ResponseStream, segment: &Segment) -> Vec<String> {
    let mut sent = stream.start();
    for event in &segment.events {
        sent.extend(stream.event(event));
    }
    if let Some(end) = &segment.end {
        sent.extend(stream.end(end, segment.started_ms.saturating_add(segment.elapsed_ms) / 1000));
    }
    sent
}
