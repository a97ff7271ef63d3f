//! The HTTP transport of MCP: one endpoint, and sessions.

use super::body::{MAX_RESPONSE_BYTES, events, read_body, too_large};
use super::failures::{MAX_MESSAGE_BYTES, TransportError, TransportFailures};
use super::listener::ServerListener;
use super::reconnect::EventStreams;
use crate::http::{HttpError, SystemResolver, tls};
use crate::trace::TRACEPARENT;
use futures_util::stream::BoxStream;
use patter_core::text::truncate;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest part of an error response that is read.
const MAX_ERROR_BYTES: usize = 64 * 1024;
/// The number of characters that are shown of a response that is not a message.
const MAX_EXCERPT_CHARS: usize = 200;

/// Creates a client for MCP servers. It does not follow redirects, which would pass the headers, maybe secrets, to
/// another server. `SSL_CERT_FILE` is a file with additional certificates to trust.
pub fn http_client() -> Result<reqwest::Client, HttpError> {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config(std::env::var("SSL_CERT_FILE").ok().as_deref())?)
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(SystemResolver)
        .connect_timeout(CONNECT_TIMEOUT);
    builder.build().map_err(|error| HttpError::Setup(format!("cannot set up the HTTP client: {error}")))
}

/// A client that limits responses, and recognises the response of a restarted server that does not know the session.
///
/// Servers should respond with status 404, for which the transport starts a new session and repeats the request. Many
/// respond with an error instead, often without the id of the request, so that the caller would wait for ever.
#[derive(Clone)]
pub(super) struct SessionClient {
    pub(super) client: reqwest::Client,
    pub(super) listener: ServerListener,
    pub(super) failures: TransportFailures,
    pub(super) streams: EventStreams,
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl SessionClient {
    /// Sends a request with the headers of the transport.
    async fn send(
        &self,
        mut builder: RequestBuilder,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<Response, TransportError> {
        if let Some(token) = auth {
            builder = builder.bearer_auth(token);
        }
        if let Some(session) = session {
            builder = builder.header(HEADER_SESSION_ID, &*session);
        }
        let response = builder.headers(headers.into_iter().collect()).send().await;
        let response = response.map_err(|error| StreamableHttpError::Client(self.failures.record(error)))?;
        let status = response.status();
        self.failures.record_status(status.as_u16());
        let challenge = header(&response, WWW_AUTHENTICATE);
        match (status, challenge) {
            (StatusCode::UNAUTHORIZED, Some(challenge)) => {
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
            }
            _ => Ok(response),
        }
    }

    /// Reads the response to a message.
    async fn read(
        &self,
        mut response: Response,
        is_in_session: bool,
        request: Option<RequestId>,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && is_in_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let content_type = header(&response, CONTENT_TYPE);
        let has_type = |expected: &str| content_type.as_deref().is_some_and(|actual| actual.starts_with(expected));
        if !status.is_success() {
            return self.read_error(response, has_type(JSON_MIME_TYPE)).await;
        }
        let session = header(&response, HeaderName::from_static("mcp-session-id"));
        if has_type(EVENT_STREAM_MIME_TYPE) {
            let events = events(response, Some(MAX_RESPONSE_BYTES), request, &self.failures);
            return Ok(StreamableHttpPostResponse::Sse(self.streams.pace(events), session));
        }
        // Some servers respond to a notification with an empty body or with text.
        if !has_type(JSON_MIME_TYPE) {
            return match request {
                None => Ok(StreamableHttpPostResponse::Accepted),
                Some(_) => Err(StreamableHttpError::UnexpectedContentType(content_type)),
            };
        }
        let body = read_body(&mut response, MAX_MESSAGE_BYTES).await;
        let (body, is_complete) = body.map_err(|error| StreamableHttpError::Client(self.failures.record(error)))?;
        if !is_complete {
            self.failures.set_too_large();
            return Ok(StreamableHttpPostResponse::Json(too_large(request), session));
        }
        match (serde_json::from_slice(&body), request) {
            (Ok(message), _) => Ok(StreamableHttpPostResponse::Json(message, session)),
            (Err(_), None) => Ok(StreamableHttpPostResponse::Accepted),
            (Err(error), Some(_)) => {
                let message = format!("not a message: {error}: {}", excerpt(&body));
                Err(StreamableHttpError::UnexpectedServerResponse(message.into()))
            }
        }
    }

    /// Reads the response to a message that the server rejected. It may contain an error for the caller.
    async fn read_error(
        &self,
        mut response: Response,
        is_json: bool,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let status = response.status();
        let is_overloaded = status == StatusCode::TOO_MANY_REQUESTS;
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let (body, _) = read_body(&mut response, MAX_ERROR_BYTES).await.unwrap_or_default();
        if is_json
            && !is_overloaded
            && !is_denied
            && let Ok(message @ JsonRpcMessage::Error(_)) = serde_json::from_slice::<ServerJsonRpcMessage>(&body)
        {
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        if is_overloaded || status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), header(&response, RETRY_AFTER)).into());
        }
        Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {}", excerpt(&body)).into()))
    }
}

impl StreamableHttpClient for SessionClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let is_in_session = session.is_some();
        if is_in_session && is_call(&message) {
            self.streams.wait_for_answer().await;
        }
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let builder = self.client.post(&*uri).header(CONTENT_TYPE, JSON_MIME_TYPE);
        let builder = builder.header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"));
        // The span of a call is also a header, for servers that look for it where other requests have it.
        let builder = match traceparent(&message) {
            Some(parent) => builder.header(TRACEPARENT, parent),
            None => builder,
        };
        let builder = builder.body(serde_json::to_vec(&message)?);
        let response = self.send(builder, session, auth, headers).await?;
        match (self.read(response, is_in_session, request.clone()).await?, request) {
            (StreamableHttpPostResponse::Json(JsonRpcMessage::Error(answer), session), Some(request)) => {
                if is_in_session && is_about_session(&answer) {
                    // A restarted server may have different tools.
                    self.listener.set_stale();
                    return Err(StreamableHttpError::SessionExpired);
                }
                let answer = ServerJsonRpcMessage::error(answer.error, answer.id.or(Some(request)));
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            (response, _) => Ok(response),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), TransportError> {
        let response = self.send(self.client.delete(&*uri), Some(session), auth, headers).await?;
        match response.status() {
            status if status.is_success() => Ok(()),
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            status => Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into())),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        if !self.streams.may_open() {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let mut builder = self.client.get(&*uri).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(last_event) = last_event {
            builder = builder.header(HEADER_LAST_EVENT_ID, last_event);
        }
        let response = self.send(builder, session, auth, headers).await;
        self.streams.note_answer();
        let response = response?;
        let status = response.status();
        let content_type = header(&response, CONTENT_TYPE);
        if status == StatusCode::METHOD_NOT_ALLOWED {
            Err(StreamableHttpError::ServerDoesNotSupportSse)
        } else if !status.is_success() {
            Err(HttpStatusError::new(status.as_u16(), header(&response, RETRY_AFTER)).into())
        } else if !content_type.as_deref().is_some_and(|actual| actual.starts_with(EVENT_STREAM_MIME_TYPE)) {
            Err(StreamableHttpError::UnexpectedContentType(content_type))
        } else {
            Ok(self.streams.pace(events(response, None, None, &self.failures)))
        }
    }
}

/// Returns a header, if it is present and text.
fn header(response: &Response, name: HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// Returns the start of a body that is not a message.
fn excerpt(body: &[u8]) -> String {
    truncate(&String::from_utf8_lossy(body), MAX_EXCERPT_CHARS)
}

/// Returns whether an error says that the session is unknown: by a code in the range for servers, and by the word.
fn is_about_session(answer: &JsonRpcError) -> bool {
    (-32099..=-32000).contains(&answer.error.code.0) && answer.error.message.to_lowercase().contains("session")
}

/// Returns whether a message calls a tool, during which the server may ask questions.
fn is_call(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Request(request) if matches!(request.request, ClientRequest::CallToolRequest(_)))
}

/// Returns the reference to a span that a request has.
fn traceparent(message: &ClientJsonRpcMessage) -> Option<String> {
    match message {
        JsonRpcMessage::Request(request) => request.request.get_meta().get_traceparent().map(str::to_owned),
        _ => None,
    }
}
