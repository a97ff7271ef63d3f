//! AG-UI, for web pages.

use super::request::{add_headers, apply_system_messages, lifetime, parse_session_id, trace_parent};
use super::stream::{TurnStream, stream_turn};
use crate::guard::read_body;
use crate::host::{
    Answer, Choice, Follower, Host, Lifetime, RequestKey, SessionChoice, TurnItem, TurnRequest, WhenBusy,
};
use crate::respond::{ErrorResponse, data};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use jiff::Timestamp;
use patter::session::CallAnswer;
use patter::store::SessionId;
use patter_core::provider::ModelRefError;
use patter_core::serve::ag_ui::{
    AgUiInput, AgUiMeta, AgUiRequest, AgUiStream, InterruptAnswer, ToolResult, call_id, interrupt_id,
};
use patter_core::serve::{ApiError, Waiting};
use std::sync::Arc;

/// Runs an agent, or continues the run that waits for the answers of a page.
pub(super) async fn run(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(agent): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let body = read_body(&host, body).await?;
    let mut request = AgUiRequest::parse(&body)?;
    let compiled = host.compile_for(&access, &agent)?;
    apply_system_messages(&host, &mut request.client, "messages")?;
    // A run has an id of its own, so the same request again is about the same run.
    let key = RequestKey::new(access.name(), &agent, &body);
    let (follower, refused) = match host.recent.get(&key) {
        Some(turn) => {
            host.metrics.joined();
            (turn.follow(), Vec::new())
        }
        None => {
            let (follower, refused) = start(&host, &access, &agent, &request, &headers).await?;
            host.recent.insert(key, Arc::clone(follower.turn()));
            (follower, refused)
        }
    };
    let session = follower.turn().session.as_ref().map(ToString::to_string);
    let expires_at = Timestamp::now().checked_add(host.settings.approval_expiry);
    let meta = AgUiMeta {
        thread: request.thread,
        run: request.run,
        parent_run: request.parent_run,
        is_stored: session.is_some(),
        expires_at: expires_at.ok().map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
    };
    let stream = AgUiStream::new(meta).with_structured_answer(compiled.returns().is_some());
    let stream = stream.with_refused(refused);
    let mut response = stream_turn(&host, follower, stream).await?;
    add_headers(&mut response, session.as_deref(), &request.ignored);
    Ok(response)
}

impl TurnStream for AgUiStream {
    fn start(&mut self) -> Vec<Bytes> {
        AgUiStream::start(self).iter().map(|event| data(event)).collect()
    }

    fn advance(&mut self, item: &TurnItem) -> Vec<Bytes> {
        let events = match item {
            TurnItem::Event(event) => self.event(event),
            TurnItem::End(Ok(end)) => self.end(end),
            TurnItem::End(Err(error)) => self.fail(error),
        };
        events.iter().map(|event| data(event)).collect()
    }
}

/// Calls that a page refused, with its reasons.
type Refused = Vec<(Waiting, String)>;

/// Starts the turn of a request.
async fn start(
    host: &Arc<Host>,
    access: &Access,
    agent: &str,
    request: &AgUiRequest,
    headers: &HeaderMap,
) -> Result<(Follower, Refused), ApiError> {
    let lifetime = lifetime(headers)?.unwrap_or(Lifetime::Attached);
    let thread = parse_session_id(&request.thread, "threadId")?;
    let input = match &request.input {
        AgUiInput::Text(input) => input.clone(),
        AgUiInput::Answers { interrupts, results } => {
            if !interrupts.is_empty() {
                access.require(Scope::Approve)?;
            }
            let (answers, refused) = answers(host, access, agent, &thread, interrupts, results).await?;
            return Ok((host.answer(access, &thread, answers, lifetime).await?, refused));
        }
    };
    let client = &request.client;
    if !client.tools.is_empty() && host.store.is_none() {
        return Err(ApiError::invalid("tools", "a run can wait for results only if sessions are stored"));
    }
    // A session has its own history.
    let history = match host.find_session(access, &thread).await? {
        Some(_) => Vec::new(),
        None => request.history()?,
    };
    let session = if host.store.is_some() { SessionChoice::Named(thread) } else { SessionChoice::Unsaved };
    let has_client = !client.tools.is_empty() || !client.context.is_empty();
    let turn = TurnRequest {
        agent: agent.to_owned(),
        session,
        history,
        client: has_client.then(|| client.clone()),
        input,
        contents: request.contents.clone(),
        choice: choice(access, request)?,
        lifetime,
        when_busy: WhenBusy::Reject,
        parent: trace_parent(headers),
        webhook: None,
    };
    Ok((host.start(access, turn).await?, Vec::new()))
}

/// Returns what a page chose. Models differ in what they cost and tools in what they do, so only those may choose who may do
/// everything.
fn choice(access: &Access, request: &AgUiRequest) -> Result<Choice, ApiError> {
    if request.model.is_some() || request.variant.is_some() {
        access.require(Scope::Admin)?;
    }
    let invalid = |error: ModelRefError| ApiError::invalid("forwardedProps.model", error.to_string());
    let model = request.model.as_deref().map(|model| model.parse().map_err(invalid)).transpose()?;
    Ok(Choice { model, variant: request.variant.clone() })
}

/// Returns the answers to the calls that wait in a session.
async fn answers(
    host: &Host,
    access: &Access,
    agent: &str,
    thread: &SessionId,
    interrupts: &[InterruptAnswer],
    results: &[ToolResult],
) -> Result<(Vec<Answer>, Refused), ApiError> {
    if host.find_session(access, thread).await?.is_none() {
        return Err(ApiError::invalid("threadId", format!("there is no session `{thread}`")));
    }
    let (_, log) = host.read_session(thread).await?;
    if let Some(run) = log.open_run().filter(|run| run.spec().agent != agent) {
        return Err(ApiError::invalid("threadId", format!("the run that waits is one of `{}`", run.spec().agent)));
    }
    let waiting = Waiting::all(&log);
    let mut answers = Vec::with_capacity(interrupts.len() + results.len());
    let mut refused = Vec::new();
    for interrupt in interrupts {
        let call = waiting.iter().find(|call| call.because.is_some() && interrupt_id(call) == interrupt.id);
        let missing = || ApiError::invalid("resume", format!("no call waits for the answer to `{}`", interrupt.id));
        let call = call.ok_or_else(missing)?;
        answers.push(Answer::to(
            call,
            match &interrupt.decision {
                Ok(()) => CallAnswer::Approve,
                Err(reason) => {
                    refused.push((call.clone(), reason.clone()));
                    CallAnswer::Refuse(reason.clone())
                }
            },
        ));
    }
    // The last messages may have results of the agent's own tools too, which the session has.
    let is_result = |call: &&Waiting, id: &str| call.because.is_none() && call_id(&call.run, &call.call_id) == id;
    for result in results {
        let call = waiting.iter().find(|call| is_result(call, &result.id));
        answers.extend(call.map(|call| Answer::to(call, CallAnswer::Result(result.outcome.clone()))));
    }
    if answers.is_empty() {
        return Err(ApiError::invalid("messages", "no run waits for these results"));
    }
    Ok((answers, refused))
}
