//! Responses, in the form of Open Responses.

mod start;
mod stored;

pub(super) use stored::{cancel, compact, delete, read};

use super::request::{Identity, add_headers, apply_system_messages};
use super::stream::{TurnStream, stream_turn};
use crate::guard::read_body;
use crate::host::{Host, TurnItem};
use crate::respond::{ErrorResponse, OpenErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::drive::now_ms;
use patter::store::SessionId;
use patter_core::serve::responses::{PreviousState, ResponseId, ResponseMeta, ResponseStream, ResponsesRequest};
use patter_core::serve::{ApiError, ApiErrorKind, TurnEnd};
use serde::Deserialize;
use std::sync::Arc;

/// The query of a request.
#[derive(Debug, Deserialize)]
pub(super) struct CreateQuery {
    when_busy: Option<String>,
}

/// Runs an agent, and returns its response: at once, as a stream, or in the background.
pub(super) async fn create(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Query(query): Query<CreateQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, OpenErrorResponse> {
    access.require(Scope::Run)?;
    let body = read_body(&host, body).await?;
    let mut request = ResponsesRequest::parse(&body)?;
    let compiled = host.compile_for(&access, &request.model)?;
    request.check_answer(compiled.returns())?;
    apply_system_messages(&host, &mut request.client, "instructions")?;
    let identity = Identity::new(&access, "responses", &headers, &body);
    let start = start::start(&host, &access, &identity, &request, &headers, &query);
    let mut follower = identity.join_or_start(&host, &access, start).await?;
    let turn = Arc::clone(follower.turn());
    let session = turn.session.as_ref().map(ToString::to_string);
    let id = session.clone().unwrap_or_else(|| SessionId::unique(now_ms()).to_string());
    let id = ResponseId::new(id, turn.about.number);
    let previous = match &request.previous {
        PreviousState::Response(previous) => Some(previous.clone()),
        PreviousState::None | PreviousState::Conversation(_) => preceding(&id),
    };
    let meta = ResponseMeta {
        id,
        created_at: turn.about.created_ms / 1000,
        model: request.model.clone(),
        is_stored: session.is_some(),
        background: request.background,
        previous,
        client: turn.about.client.clone().unwrap_or_default(),
        format: ResponseMeta::format(request.format.as_ref(), &request.model, compiled.returns()),
        metadata: request.metadata.clone(),
    };
    let mut stream = ResponseStream::new(meta).with_structured_answer(compiled.returns().is_some());
    let mut response = if request.stream {
        stream_turn(&host, follower, stream).await?
    } else if request.background {
        // What keeps the run from starting is reported here; everything else is in the response.
        follower.first().await?;
        json(&stream.snapshot())
    } else {
        while let Some(item) = follower.next().await {
            if let TurnItem::End(end) = &item {
                let error = end.as_ref().map_or_else(|error| Some(error.clone()), TurnEnd::error);
                if let Some(error) = error {
                    return Err(ErrorResponse::after_run(error).into());
                }
            }
            stream.advance(&item);
        }
        json(&stream.snapshot())
    };
    add_headers(&mut response, session.as_deref(), &request.ignored);
    Ok(response)
}

/// Returns the response before one in its session.
fn preceding(id: &ResponseId) -> Option<ResponseId> {
    (id.number > 1).then(|| ResponseId::new(id.session.clone(), id.number - 1))
}

fn missing(id: &str, param: Option<&str>) -> ApiError {
    let message = format!("there is no response `{id}`");
    ApiError { kind: ApiErrorKind::NotFound, param: param.map(str::to_owned), message }
}

impl TurnStream for ResponseStream {
    fn start(&mut self) -> Vec<Bytes> {
        ResponseStream::start(self).into_iter().map(Bytes::from).collect()
    }

    fn advance(&mut self, item: &TurnItem) -> Vec<Bytes> {
        let events = match item {
            TurnItem::Event(event) => self.event(event),
            TurnItem::End(Ok(end)) => self.end(end, now_ms() / 1000),
            TurnItem::End(Err(error)) => self.fail(error),
        };
        events.into_iter().map(Bytes::from).collect()
    }
}
