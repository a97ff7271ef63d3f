//! Chat completions.

use super::request::{
    Identity, SESSION, add_headers, apply_system_messages, lifetime, parse_session_id, trace_parent, when_busy,
};
use super::stream::{TurnStream, stream_turn};
use crate::guard::{read_body, text_header};
use crate::host::{Answer, Choice, Follower, Host, Lifetime, SessionChoice, TurnItem, TurnRequest, unknown_agent};
use crate::respond::{ErrorResponse, data, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use patter::drive::now_ms;
use patter::session::CallAnswer;
use patter::store::SessionId;
use patter_core::message::conversation::ToolOutcome;
use patter_core::serve::ApiError;
use patter_core::serve::chat::{
    ChatInput, ChatMeta, ChatRequest, ChatStream, ClientResult, completion, model, model_list, split_call_id,
};
use serde::Deserialize;
use serde_json::Value as Json;
use std::sync::Arc;

const EVENTS: HeaderName = HeaderName::from_static("x-patter-events");

/// The query of a request.
#[derive(Debug, Deserialize)]
pub(super) struct ChatQuery {
    #[serde(default)]
    when_busy: Option<String>,
}

/// Lists the agents.
pub(super) async fn models(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let agents = host.agents();
    let reachable = agents.iter().filter(|(name, _)| access.may_reach(name));
    Ok(json(&model_list(reachable.map(|(name, created)| (name.as_str(), *created)))))
}

/// Returns one agent.
pub(super) async fn read_model(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let agents = host.agents();
    let known = agents.iter().find(|(known, _)| *known == name && access.may_reach(known));
    let (name, created) = known.ok_or_else(|| unknown_agent(&name))?;
    Ok(json(&model(name, *created)))
}

/// Runs an agent, and returns its answer at once or as a stream.
pub(super) async fn complete(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Query(query): Query<ChatQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Run)?;
    let body = read_body(&host, body).await?;
    let mut request = ChatRequest::parse(&body)?;
    let compiled = host.compile_for(&access, &request.model)?;
    request.check_answer(compiled.returns())?;
    apply_system_messages(&host, &mut request.client, "messages")?;
    let identity = Identity::new(&access, "chat", &headers, &body);
    let start = start(&host, &access, &identity, &request, &headers, &query);
    let mut follower = identity.join_or_start(&host, &access, start).await?;
    let created = now_ms() / 1000;
    let session = follower.turn().session.as_ref().map(ToString::to_string);
    let id = format!("chatcmpl-{}", session.clone().unwrap_or_else(|| SessionId::unique(now_ms()).to_string()));
    let meta = ChatMeta { id, created, model: request.model.clone(), session };
    let mut response = if request.stream {
        let stream = ChatStream::new(meta.clone())
            .with_usage(request.include_usage)
            .with_structured_answer(compiled.returns().is_some())
            .with_events(text_header(&headers, &EVENTS).is_some())
            .with_thoughts(true);
        stream_turn(&host, follower, stream).await?
    } else {
        let (texts, end) = follower.collect().await;
        let end = end.map_err(ErrorResponse::after_run)?;
        if let Some(error) = end.error() {
            return Err(ErrorResponse::after_run(error));
        }
        json(&completion(&meta, &texts, &end))
    };
    add_headers(&mut response, meta.session.as_deref(), &request.ignored);
    Ok(response)
}

/// Starts the turn of a request, or resumes the one that waits for the results that it has.
async fn start(
    host: &Arc<Host>,
    access: &Access,
    identity: &Identity,
    request: &ChatRequest,
    headers: &HeaderMap,
    query: &ChatQuery,
) -> Result<Follower, ApiError> {
    let lifetime = lifetime(headers)?.unwrap_or(Lifetime::Attached);
    let input = match &request.input {
        ChatInput::Text(input) => input.clone(),
        ChatInput::Results(results) => {
            let (session, answers) = answers(results)?;
            return host.answer(access, &session, answers, lifetime).await;
        }
    };
    let when_busy = when_busy(query.when_busy.as_deref())?;
    let named = text_header(headers, &SESSION).or(request.session.as_deref());
    let session = match named {
        Some(id) => {
            host.require_store()?;
            SessionChoice::Named(parse_session_id(id, "session")?)
        }
        None if request.store => SessionChoice::New(identity.new_session()),
        None => SessionChoice::Unsaved,
    };
    // A session has its own history.
    let history = if named.is_some() { Vec::new() } else { request.history.clone() };
    let has_client = !request.client.tools.is_empty() || !request.client.context.is_empty();
    if !request.client.tools.is_empty() && (host.store.is_none() || session == SessionChoice::Unsaved) {
        let message = "a run can wait for results only if its session is stored";
        return Err(ApiError::invalid("tools", message));
    }
    let client = has_client.then(|| request.client.clone());
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
            contents: request.contents.clone(),
            choice: Choice::default(),
            lifetime,
            when_busy,
            parent,
            webhook: None,
        },
    )
    .await
}

/// Returns the session that waits for results, with the answers for it.
fn answers(results: &[ClientResult]) -> Result<(SessionId, Vec<Answer>), ApiError> {
    let wrong = || ApiError::invalid("messages", "no run waits for these results");
    let mut session = None;
    let mut answers = Vec::with_capacity(results.len());
    for result in results {
        let (id, call_id) = split_call_id(&result.id).ok_or_else(wrong)?;
        let id = SessionId::parse(id).map_err(|_| wrong())?;
        if session.get_or_insert_with(|| id.clone()) != &id {
            return Err(ApiError::invalid("messages", "the results are for different runs"));
        }
        let outcome = ToolOutcome::Value { value: Json::String(result.text.clone()) };
        let answer = CallAnswer::Result(outcome);
        answers.push(Answer { run: Vec::new(), call_id: call_id.to_owned(), hash: None, answer });
    }
    Ok((session.ok_or_else(wrong)?, answers))
}

impl TurnStream for ChatStream {
    fn start(&mut self) -> Vec<Bytes> {
        vec![data(&ChatStream::start(self))]
    }

    fn advance(&mut self, item: &TurnItem) -> Vec<Bytes> {
        let chunks = match item {
            TurnItem::Event(event) => self.event(event),
            TurnItem::End(Ok(end)) => self.end(end),
            TurnItem::End(Err(error)) => vec![ChatStream::error(error)],
        };
        chunks.iter().map(|chunk| data(chunk)).collect()
    }
}
