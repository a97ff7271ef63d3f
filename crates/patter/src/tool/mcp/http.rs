//! The HTTP transport of MCP.

use super::listener::ServerListener;
use crate::http::{ConnectionProblem, HttpError, SystemResolver, tls};
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

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

/// A client that recognises the response of a restarted server that does not know the session.
///
/// Servers should respond with status 404, for which the transport starts a new session and repeats the request. Many
/// respond with an error instead, often without the id of the request, so that the caller would wait for ever.
#[derive(Clone)]
pub(super) struct SessionClient {
    pub(super) client: reqwest::Client,
    pub(super) listener: ServerListener,
    pub(super) failures: TransportFailures,
}

/// Why requests failed. The library that makes them passes on only texts.
#[derive(Clone, Default)]
pub(super) struct TransportFailures(Arc<Mutex<LastFailure>>);

#[derive(Default)]
struct LastFailure {
    /// The status with which the server denied access.
    status: Option<u16>,
    problem: Option<ConnectionProblem>,
}

impl TransportFailures {
    /// Returns the status with which the server denied access, once it did.
    pub(super) fn refusal(&self) -> Option<u16> {
        self.last().status
    }

    /// Returns why the last connection failed, once.
    pub(super) fn take_problem(&self) -> Option<ConnectionProblem> {
        self.last().problem.take()
    }

    /// Notes an error, and removes the URL from it, which may contain secrets.
    fn record(&self, error: TransportError) -> TransportError {
        let status = match &error {
            StreamableHttpError::AuthRequired(_) => Some(401),
            StreamableHttpError::InsufficientScope(_) => Some(403),
            StreamableHttpError::Client(error) => error.status().map(|status| status.as_u16()),
            StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => Some(401),
            StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 403") => Some(403),
            _ => None,
        };
        let mut last = self.last();
        last.status = status.filter(|status| matches!(status, 401 | 403)).or(last.status);
        match error {
            StreamableHttpError::Client(error) => {
                last.problem = ConnectionProblem::find(&error);
                StreamableHttpError::Client(error.without_url())
            }
            error => error,
        }
    }

    fn last(&self) -> MutexGuard<'_, LastFailure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type TransportError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

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
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let response = self.client.post_message(uri, message, session, auth, headers).await;
        let response = response.map_err(|error| self.failures.record(error))?;
        match (request, response) {
            (Some(request), StreamableHttpPostResponse::Json(JsonRpcMessage::Error(answer), session)) => {
                if is_in_session && is_about_session(&answer) {
                    // A restarted server may have different tools.
                    self.listener.set_stale();
                    return Err(StreamableHttpError::SessionExpired);
                }
                let answer = ServerJsonRpcMessage::error(answer.error, answer.id.or(Some(request)));
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            (_, response) => Ok(response),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), TransportError> {
        self.client.delete_session(uri, session, auth, headers).await.map_err(|error| self.failures.record(error))
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        let stream = self.client.get_stream(uri, session, last_event, auth, headers).await;
        stream.map_err(|error| self.failures.record(error))
    }
}

/// Returns whether an error says that the session is unknown: by a code in the range for servers, and by the word.
fn is_about_session(answer: &JsonRpcError) -> bool {
    (-32099..=-32000).contains(&answer.error.code.0) && answer.error.message.to_lowercase().contains("session")
}
