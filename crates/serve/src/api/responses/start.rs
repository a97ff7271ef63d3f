//! Starts the turn of a request, or continues the run that waits for its answers.

use super::super::request::{Identity, lifetime, parse_session_id, trace_parent, when_busy};
use super::super::sessions::find;
use super::{CreateQuery, missing};
use crate::host::{Answer, Choice, Follower, Host, Lifetime, SessionChoice, TurnRequest, api_error, read_segment};
use crate::token::{Access, Scope};
use axum::http::HeaderMap;
use patter::session::CallAnswer;
use patter::store::{SessionId, read_attachments};
use patter_core::message::attachment::AttachmentContents;
use patter_core::message::conversation::{Conversation, Message, ToolOutcome};
use patter_core::serve::chat::split_call_id;
use patter_core::serve::responses::{
    ClientAnswer, PreviousState, ResponseId, ResponsesInput, ResponsesRequest, approval_id,
};
use patter_core::serve::{ApiError, ApiErrorKind, Segment, TurnOutcome, Waiting};
use serde_json::Value as Json;
use std::sync::Arc;

/// Starts the turn of a request.
pub(super) async fn start(
    host: &Arc<Host>,
    access: &Access,
    identity: &Identity,
    request: &ResponsesRequest,
    headers: &HeaderMap,
    query: &CreateQuery,
) -> Result<Follower, ApiError> {
    let lifetime = match lifetime(headers)? {
        Some(lifetime) => lifetime,
        None if request.background => Lifetime::Detached,
        None => Lifetime::Attached,
    };
    if request.background {
        host.require_store()?;
    }
    let input = match &request.input {
        ResponsesInput::Text(input) => input.clone(),
        ResponsesInput::Answers(answers) => return answer(host, access, identity, request, answers, lifetime).await,
    };
    let mut contents = request.contents.clone();
    let (session, history) = match &request.previous {
        PreviousState::None => (new_session(identity, request), request.history.clone()),
        PreviousState::Conversation(id) => conversation(host, access, request, id).await?,
        PreviousState::Response(id) => match previous(host, access, identity, request, id, &input.text).await? {
            Continued::With(session, history) => (session, history),
            Continued::Copy { session, history, attached } => {
                contents.extend(&attached);
                (session, history)
            }
            Continued::Already(follower) => return Ok(follower),
        },
    };
    let client = &request.client;
    if !client.tools.is_empty() && (host.store.is_none() || session == SessionChoice::Unsaved) {
        return Err(ApiError::invalid("tools", "a run can wait for results only if the response is stored"));
    }
    let has_client = !client.tools.is_empty() || !client.context.is_empty();
    let client = has_client.then(|| client.clone());
    let when_busy = when_busy(query.when_busy.as_deref())?;
    let agent = request.model.clone();
    let parent = trace_parent(headers);
    host.start(
        access,
        TurnRequest {
            agent,
            session,
            history,
            client,
            input,
            contents,
            choice: Choice::default(),
            lifetime,
            when_busy,
            parent,
            webhook: None,
        },
    )
    .await
}

fn new_session(identity: &Identity, request: &ResponsesRequest) -> SessionChoice {
    if request.store { SessionChoice::New(identity.new_session()) } else { SessionChoice::Unsaved }
}

/// Returns the session of a conversation, which may be new.
async fn conversation(
    host: &Arc<Host>,
    access: &Access,
    request: &ResponsesRequest,
    id: &str,
) -> Result<(SessionChoice, Vec<Message>), ApiError> {
    if !request.store {
        return Err(ApiError::invalid("store", "what is said in a conversation is stored"));
    }
    let id = parse_session_id(id, "conversation")?;
    match host.find_session(access, &id).await? {
        Some(_) if !request.history.is_empty() => {
            Err(ApiError::invalid("input", "the conversation has its own history: send only the new message"))
        }
        Some(_) | None => Ok((SessionChoice::Named(id), request.history.clone())),
    }
}

/// How a response is continued.
enum Continued {
    With(SessionChoice, Vec<Message>),
    /// In another session, with what was said before and the contents of its attachments.
    Copy {
        session: SessionChoice,
        history: Vec<Message>,
        attached: AttachmentContents,
    },
    /// A request that was sent before has done so.
    Already(Follower),
}

/// Returns the session that continues a response: its own if it is the last one there, and otherwise a new one.
async fn previous(
    host: &Arc<Host>,
    access: &Access,
    identity: &Identity,
    request: &ResponsesRequest,
    id: &ResponseId,
    input: &str,
) -> Result<Continued, ApiError> {
    let param = "previous_response_id";
    let (session, segment) = read(host, access, id, Some(param)).await?;
    let Some(end) = &segment.end else {
        return Err(ApiError::new(ApiErrorKind::Busy, format!("the response `{id}` is not complete yet")));
    };
    if let TurnOutcome::Waiting(calls) = &end.outcome {
        let message = match segment.is_last {
            true => format!("the response `{id}` waits for answers: {}", names(id.session.as_str(), calls.iter())),
            false => format!("the response `{id}` was continued with answers to its calls"),
        };
        return Err(ApiError::invalid(param, message));
    }
    if identity.is_repeated() && !segment.is_last {
        let next = ResponseId::new(id.session.clone(), id.number + 1);
        let (_, next_segment) = read(host, access, &next, Some(param)).await?;
        if next_segment.input == input {
            return host.rejoin(access, &session, next.number).await.map(Continued::Already);
        }
    }
    if segment.is_last && request.history.is_empty() && request.store {
        return Ok(Continued::With(SessionChoice::After(session, id.number), Vec::new()));
    }
    let before = Conversation::from(segment.conversation);
    let attached = read_attachments(&*host.require_store()?, &session, Some(&before)).await;
    let attached = attached.map_err(|error| api_error(&error.into()))?;
    let history = before.iter().chain(&request.history).cloned().collect();
    Ok(Continued::Copy { session: new_session(identity, request), history, attached })
}

/// Reads the segment of a response.
pub(super) async fn read(
    host: &Host,
    access: &Access,
    id: &ResponseId,
    param: Option<&str>,
) -> Result<(SessionId, Segment), ApiError> {
    let missing = || missing(&id.to_string(), param);
    let session = SessionId::parse(&id.session).map_err(|_| missing())?;
    let store = host.store.as_ref().ok_or_else(missing)?;
    let stored = store.read(&session).await.map_err(|error| api_error(&error.into()));
    let stored = stored.map_err(|error| if error.kind == ApiErrorKind::NotFound { missing() } else { error })?;
    if stored.summary.is_experiment() || !access.may_reach(&stored.summary.agent) {
        return Err(missing());
    }
    let segment = read_segment(&stored.entries, id.number)?.ok_or_else(missing)?;
    Ok((session, segment))
}

/// Answers all calls that a run waits for, and continues it.
async fn answer(
    host: &Arc<Host>,
    access: &Access,
    identity: &Identity,
    request: &ResponsesRequest,
    answers: &[ClientAnswer],
    lifetime: Lifetime,
) -> Result<Follower, ApiError> {
    let wrong = |message: String| ApiError::invalid("input", message);
    if answers.iter().any(|answer| matches!(answer, ClientAnswer::Approval { .. })) {
        access.require(Scope::Approve)?;
    }
    let named: Vec<_> = answers.iter().map(session_of).collect::<Option<_>>().unwrap_or_default();
    let Some(session) = named.first().filter(|first| named.iter().all(|other| other == *first)) else {
        return Err(wrong("the answers are not for calls of one response".to_owned()));
    };
    let continued = match &request.previous {
        PreviousState::None => session,
        PreviousState::Response(id) => &id.session.as_str(),
        PreviousState::Conversation(id) => &id.as_str(),
    };
    if continued != session {
        return Err(wrong("the answers are for another conversation".to_owned()));
    }
    let (summary, log) = find(host, access, session).await?;
    let calls = Waiting::all(&log);
    let is_wanted = |answer: &ClientAnswer| calls.iter().any(|call| is_for(session, answer, call));
    if identity.is_repeated() && !answers.iter().any(is_wanted) {
        // The run has the answers already.
        let number = host.active_turn(&summary.id).map_or(log.segments(), |turn| turn.about.number);
        return host.rejoin(access, &summary.id, number).await;
    }
    let agent = log.open_run().map(|run| run.spec().agent.as_str()).unwrap_or_default();
    if !calls.is_empty() && agent != request.model {
        return Err(ApiError::invalid("model", format!("the run that waits is one of `{agent}`")));
    }
    let mut given = Vec::with_capacity(answers.len());
    for answer in answers {
        let call = calls.iter().find(|call| is_for(session, answer, call));
        let call = call.ok_or_else(|| wrong(format!("no call waits for the answer `{}`", id_of(answer))))?;
        given.push(Answer::to(call, decision(answer)));
    }
    let is_open = |call: &&Waiting| !answers.iter().any(|answer| is_for(session, answer, call));
    let open = names(session, calls.iter().filter(is_open));
    if !open.is_empty() {
        return Err(wrong(format!("answers are missing: {open}")));
    }
    host.answer(access, &summary.id, given, lifetime).await
}

/// Returns the session that an answer is for.
fn session_of(answer: &ClientAnswer) -> Option<&str> {
    match answer {
        ClientAnswer::Result(result) => split_call_id(&result.id).map(|(session, _)| session),
        ClientAnswer::Approval { id, .. } => {
            id.strip_prefix("mcpr_").and_then(|id| id.split_once('_')).map(|(session, _)| session)
        }
    }
}

fn id_of(answer: &ClientAnswer) -> &str {
    match answer {
        ClientAnswer::Result(result) => &result.id,
        ClientAnswer::Approval { id, .. } => id,
    }
}

fn is_for(session: &str, answer: &ClientAnswer, call: &Waiting) -> bool {
    let is_approval = matches!(answer, ClientAnswer::Approval { .. });
    is_approval == call.because.is_some() && name(session, call) == id_of(answer)
}

/// Returns the id of a call that waits, as clients know it.
fn name(session: &str, call: &Waiting) -> String {
    match call.because {
        Some(_) => approval_id(session, call),
        None => patter_core::serve::chat::call_id(Some(session), &call.call_id),
    }
}

fn names<'c>(session: &str, calls: impl Iterator<Item = &'c Waiting>) -> String {
    calls.map(|call| format!("`{}`", name(session, call))).collect::<Vec<_>>().join(", ")
}

fn decision(answer: &ClientAnswer) -> CallAnswer {
    match answer {
        ClientAnswer::Result(result) => {
            CallAnswer::Result(ToolOutcome::Value { value: Json::String(result.text.clone()) })
        }
        ClientAnswer::Approval { approve: true, .. } => CallAnswer::Approve,
        ClientAnswer::Approval { reason, .. } => CallAnswer::Refuse(reason.clone()),
    }
}
