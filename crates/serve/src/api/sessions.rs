//! Sessions: listing, reading, forking, deleting; messages, answers and the end of runs.

use super::events::TurnEvents;
use super::request::{Identity, lifetime, parse_session_id, trace_parent, when_busy};
use super::stream::stream_turn;
use crate::guard::read_body;
use crate::host::{Answer, Choice, Follower, Host, Lifetime, SessionChoice, TurnRequest, api_error};
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use crate::webhook::parse_url;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use patter::drive::now_ms;
use patter::session::{CallAnswer, Log, SessionError};
use patter::store::{NewSession, SessionId, SessionState, SessionSummary, read_attachments};
use patter_core::message::attachment::{AttachmentContents, UserInput};
use patter_core::message::conversation::ToolOutcome;
use patter_core::serve::native::{AnswerRequest, Decision, ForkRequest, MessageRequest, log_json, turn_json};
use patter_core::serve::{ApiError, ApiErrorKind, Waiting};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// How many sessions are listed at most.
const MAX_LISTED: usize = 1000;

/// The query of a list.
#[derive(Debug, Deserialize)]
pub(super) struct ListQuery {
    state: Option<String>,
    limit: Option<usize>,
}

/// The query of a message.
#[derive(Debug, Deserialize)]
pub(super) struct MessageQuery {
    when_busy: Option<String>,
    /// Whether the response is the end of the turn.
    #[serde(default)]
    wait: bool,
    /// Whether any worker performs the turn, when there is time.
    #[serde(default)]
    background: bool,
}

/// Lists sessions, newest first.
pub(super) async fn list(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Query(query): Query<ListQuery>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let state = match query.state.as_deref() {
        None => None,
        Some("idle") => Some(SessionState::Idle),
        Some("running") => Some(SessionState::Running),
        Some("waiting") => Some(SessionState::Waiting),
        Some(_) => return Err(ApiError::invalid("state", "must be `idle`, `running` or `waiting`").into()),
    };
    let limit = query.limit.unwrap_or(100).min(MAX_LISTED);
    let sessions = host.require_store()?.list_in_state(state, limit).await;
    let sessions = sessions.map_err(|error| api_error(&error.into()))?;
    let shown = sessions.iter().filter(|session| !session.is_experiment() && access.may_reach(&session.agent));
    Ok(json(&json!({"sessions": shown.map(|session| summary_json(&host, session)).collect::<Vec<_>>()})))
}

/// Returns a session with its conversation.
pub(super) async fn read(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let session = parse_session_id(&id, "session")?;
    let work = host.work_of(&access, &session).await?;
    let found = find(&host, &access, &id).await;
    let Ok((summary, log)) = found else {
        // Its first message waits for a worker.
        let Some(first) = work.first() else { return Err(found.err().map_or_else(not_here, Into::into)) };
        return Ok(json(&json!({"id": session, "agent": first.agent, "state": first.state, "work": work})));
    };
    let session = with(summary_json(&host, &summary), log_json(&log));
    Ok(json(&if work.is_empty() { session } else { with(session, json!({ "work": work })) }))
}

fn not_here() -> ErrorResponse {
    ApiError::new(ApiErrorKind::NotFound, "there is no such session").into()
}

/// Deletes a session.
pub(super) async fn delete(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Admin)?;
    let id = find_id(&host, &access, &id).await?;
    host.require_store()?.remove(&id).await.map_err(|error| api_error(&error.into()))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Creates a session that starts with messages of another.
pub(super) async fn fork(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let request = ForkRequest::parse(&read_body(&host, body).await?)?;
    let (summary, log) = find(&host, &access, &id).await?;
    let new = match &request.session {
        Some(id) => parse_session_id(id, "session")?,
        None => SessionId::unique(now_ms()),
    };
    if log.redacted_at().is_some() {
        return Err(api_error(&SessionError::Redacted(summary.id)).into());
    }
    let count = log.conversation().len();
    let messages = request.messages.unwrap_or(count);
    if messages > count {
        let message = format!("the conversation has {count} messages");
        return Err(ApiError::invalid("messages", message).into());
    }
    let entries = log.fork(summary.id.as_str(), messages).iter().map(|entry| json!(entry).to_string()).collect();
    let session = NewSession::new(new.clone(), &summary.agent, &summary.title).forked_from(summary.id.clone());
    let store = host.require_store()?;
    let forked = log.conversation().range(0..messages).cloned().collect();
    let contents = read_attachments(&*store, &summary.id, Some(&forked)).await;
    let session = session.with_attachments(contents.map_err(|error| api_error(&error.into()))?);
    let session = session.with_entries(entries, SessionState::Idle);
    store.create(session, now_ms()).await.map_err(|error| api_error(&error.into()))?;
    let mut response = json(&json!({"id": new, "agent": summary.agent, "forked_from": summary.id}));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Starts a session with a message.
pub(super) async fn create(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Query(query): Query<MessageQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let body = read_body(&host, body).await?;
    let request = MessageRequest::parse(&body)?;
    let agent = request.agent.ok_or_else(|| ApiError::invalid("agent", "is missing"))?;
    host.compile_for(&access, &agent)?;
    let identity = Identity::new(&access, "sessions", &headers, &body);
    let session = match &request.session {
        Some(id) => SessionChoice::New(parse_session_id(id, "session")?),
        None if query.background => SessionChoice::New(identity.background_session()),
        None => SessionChoice::New(identity.new_session()),
    };
    let webhook = webhook(&host, request.webhook, &query)?;
    let turn = turn(agent, session, (request.message, request.contents), &headers, &query)?;
    accept(&host, &access, &identity, TurnRequest { webhook, ..turn }, &headers, &query).await
}

/// Continues a session with a message.
pub(super) async fn message(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<MessageQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let body = read_body(&host, body).await?;
    let request = MessageRequest::parse(&body)?;
    let summary = find_summary(&host, &access, &id).await?;
    let agent = request.agent.unwrap_or(summary.agent);
    host.compile_for(&access, &agent)?;
    let identity = Identity::new(&access, &format!("sessions/{id}"), &headers, &body);
    let session = SessionChoice::Named(summary.id);
    let webhook = webhook(&host, request.webhook, &query)?;
    let turn = turn(agent, session, (request.message, request.contents), &headers, &query)?;
    accept(&host, &access, &identity, TurnRequest { webhook, ..turn }, &headers, &query).await
}

/// Answers a call that waits: approves or refuses it, or reports the result of a tool that the client executes.
pub(super) async fn answer(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<MessageQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let request = AnswerRequest::parse(&read_body(&host, body).await?)?;
    let answer = match request.decision {
        Decision::Approve => CallAnswer::Approve,
        Decision::Refuse(reason) => CallAnswer::Refuse(reason),
        Decision::Result(value) => CallAnswer::Result(ToolOutcome::Value { value }),
    };
    access.require(if matches!(answer, CallAnswer::Result(_)) { Scope::Run } else { Scope::Approve })?;
    let id = find_id(&host, &access, &id).await?;
    let answers = vec![Answer { run: request.run, call_id: request.call_id, hash: request.hash, answer }];
    let follower = host.answer(&access, &id, answers, detached_by_default(&headers)?).await?;
    respond(&host, follower, &headers, &query).await
}

/// Resumes the unfinished run of a session.
pub(super) async fn resume(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<MessageQuery>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let id = find_id(&host, &access, &id).await?;
    let follower = host.resume(&access, &id, detached_by_default(&headers)?).await?;
    respond(&host, follower, &headers, &query).await
}

/// Cancels the run of a session.
pub(super) async fn cancel(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let id = find_or_queued(&host, &access, &id).await?;
    host.cancel(&access, &id).await?;
    Ok(json(&json!({"session": id, "status": "cancelled"})))
}

/// Removes the last message of a session and everything after it.
pub(super) async fn undo(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let id = find_id(&host, &access, &id).await?;
    let message = host.undo(&access, &id).await?;
    Ok(json(&json!({"session": id, "message": message})))
}

/// Lists the calls of all sessions that wait for approval, and the questions that wait for a person.
pub(super) async fn approvals(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let Some(store) = &host.store else { return Ok(json(&json!({"approvals": [], "questions": []}))) };
    let listed = store.list_in_state(Some(SessionState::Waiting), MAX_LISTED).await;
    let expiry_ms = patter::text::milliseconds(host.settings.approval_expiry);
    let mut approvals = Vec::new();
    let mut questions = Vec::new();
    for summary in listed.map_err(|error| api_error(&error.into()))? {
        if !access.may_reach(&summary.agent) {
            continue;
        }
        let Ok(stored) = store.read(&summary.id).await else { continue };
        let Ok(log) = Log::read(&stored.entries) else { continue };
        for call in Waiting::all(&log) {
            if call.question.is_some() {
                questions.push(with(json!(call), json!({"session": summary.id})));
            } else if call.because.is_some() {
                let expires_ms = summary.changed_ms.saturating_add(expiry_ms);
                approvals.push(with(json!(call), json!({"session": summary.id, "expires_ms": expires_ms})));
            }
        }
    }
    Ok(json(&json!({ "approvals": approvals, "questions": questions })))
}

/// Starts a turn, or leaves it to whichever server has time for it.
async fn accept(
    host: &Arc<Host>,
    access: &Access,
    identity: &Identity,
    turn: TurnRequest,
    headers: &HeaderMap,
    query: &MessageQuery,
) -> Result<Response, ErrorResponse> {
    if query.background {
        return enqueue(host, access, identity, turn).await;
    }
    let start = async {
        host.require_store()?;
        host.start(access, turn).await
    };
    let follower = identity.join_or_start(host, access, start).await?;
    respond(host, follower, headers, query).await
}

fn turn(
    agent: String,
    session: SessionChoice,
    (input, contents): (UserInput, AttachmentContents),
    headers: &HeaderMap,
    query: &MessageQuery,
) -> Result<TurnRequest, ApiError> {
    Ok(TurnRequest {
        agent,
        session,
        history: Vec::new(),
        client: None,
        input,
        contents,
        choice: Choice::default(),
        lifetime: detached_by_default(headers)?,
        when_busy: when_busy(query.when_busy.as_deref())?,
        parent: trace_parent(headers),
        webhook: None,
    })
}

/// Checks that the end of a turn can be reported to the URL of a request.
fn webhook(host: &Host, url: Option<String>, query: &MessageQuery) -> Result<Option<String>, ApiError> {
    const URL: &str = "webhook.url";
    let Some(url) = url else { return Ok(None) };
    if !query.background {
        return Err(ApiError::invalid("webhook", "is only for turns in the background: add `?background=true`"));
    }
    if host.settings.webhooks.is_none() {
        let message = "this server has no webhook secret; its operator can name one in patter.toml, under `[serve]`";
        return Err(ApiError::invalid("webhook", message));
    }
    parse_url(&url).map_err(|reason| ApiError::invalid(URL, reason))?;
    Ok(Some(url))
}

/// Leaves a turn to whichever worker has time for it.
async fn enqueue(
    host: &Arc<Host>,
    access: &Access,
    identity: &Identity,
    turn: TurnRequest,
) -> Result<Response, ErrorResponse> {
    let session = host.enqueue(access, identity.queue_key(), &turn).await?;
    let mut response = json(&json!({"session": session, "status": "queued"}));
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Returns whether a turn continues without its client: it does, unless the client wants it otherwise.
fn detached_by_default(headers: &HeaderMap) -> Result<Lifetime, ApiError> {
    lifetime(headers).map(|lifetime| lifetime.unwrap_or(Lifetime::Detached))
}

/// Responds as the client wants it: with a stream of events, with the end of the turn, or at once.
async fn respond(
    host: &Host,
    mut follower: Follower,
    headers: &HeaderMap,
    query: &MessageQuery,
) -> Result<Response, ErrorResponse> {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let session = follower.turn().session.as_ref().map(ToString::to_string);
    if accepts.contains("text/event-stream") {
        return Ok(stream_turn(host, follower, TurnEvents { session }).await?);
    }
    if query.wait {
        let (_, end) = follower.collect().await;
        let end = end.map_err(ErrorResponse::after_run)?;
        return Ok(json(&turn_json(session.as_deref(), &end)));
    }
    // What keeps the turn from starting is reported here; everything else is in the log.
    follower.first().await?;
    let mut response = json(&json!({"session": session, "status": "running"}));
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

/// Reads a session that the sender may see, with its log.
pub(super) async fn find(host: &Host, access: &Access, id: &str) -> Result<(SessionSummary, Log), ApiError> {
    let summary = find_summary(host, access, id).await?;
    host.read_session(&summary.id).await
}

/// Returns the metadata of a session that the sender may see.
pub(super) async fn find_summary(host: &Host, access: &Access, id: &str) -> Result<SessionSummary, ApiError> {
    host.require_store()?;
    let id = parse_session_id(id, "session")?;
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("there is no session `{id}`"));
    host.find_session(access, &id).await?.ok_or_else(missing)
}

/// Returns the id of a session that the sender may see, also if its first message waits for a worker.
pub(super) async fn find_or_queued(host: &Host, access: &Access, id: &str) -> Result<SessionId, ApiError> {
    let missing = match find_id(host, access, id).await {
        Ok(id) => return Ok(id),
        Err(error) => error,
    };
    let id = parse_session_id(id, "session")?;
    if host.work_of(access, &id).await?.is_empty() { Err(missing) } else { Ok(id) }
}

async fn find_id(host: &Host, access: &Access, id: &str) -> Result<SessionId, ApiError> {
    find_summary(host, access, id).await.map(|summary| summary.id)
}

/// Returns the metadata of a session. A run that is unfinished without being under way here was interrupted, or another
/// process has it.
fn summary_json(host: &Host, summary: &SessionSummary) -> Json {
    with(json!(summary), json!({"active": host.active_turn(&summary.id).is_some()}))
}

/// Adds the members of an object to another.
fn with(mut object: Json, more: Json) -> Json {
    if let (Some(members), Json::Object(more)) = (object.as_object_mut(), more) {
        members.extend(more);
    }
    object
}
