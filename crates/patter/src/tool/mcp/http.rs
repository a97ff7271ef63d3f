//! HTTP, for MCP servers that are reached by their address.

use super::connection::Listener;
use crate::http::{HttpError, tls};
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// How long it may take until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);

/// Returns a client that trusts whom [`crate::http`] trusts, and follows no redirects: they would carry the headers,
/// which may be secret, to somewhere else. `SSL_CERT_FILE` names a file with more certificates to trust.
pub fn http_client() -> Result<reqwest::Client, HttpError> {
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls::config(std::env::var("SSL_CERT_FILE").ok().as_deref())?)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT);
    builder.build().map_err(|error| HttpError::Setup(format!("HTTP cannot be set up: {error}")))
}

/// A client that knows how servers say that they were started anew and know nothing of a session.
///
/// They should do so with the status 404, and then the transport begins a new session and sends the request again.
/// Many do so with an error, often one that does not say which request it answers, for which a caller would wait in
/// vain.
#[derive(Clone)]
pub(super) struct Sessions {
    pub(super) client: reqwest::Client,
    pub(super) listener: Listener,
    pub(super) refusal: Refusal,
}

/// The status by which a server refused access, once it did.
#[derive(Clone, Default)]
pub(super) struct Refusal(Arc<AtomicU16>);

impl Refusal {
    pub(super) fn status(&self) -> Option<u16> {
        Some(self.0.load(Ordering::Relaxed)).filter(|status| *status != 0)
    }

    fn note(&self, error: &Failed) {
        let status = match error {
            StreamableHttpError::AuthRequired(_) => 401,
            StreamableHttpError::InsufficientScope(_) => 403,
            StreamableHttpError::Client(error) => error.status().map_or(0, |status| status.as_u16()),
            StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => 401,
            StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 403") => 403,
            _ => 0,
        };
        if matches!(status, 401 | 403) {
            self.0.store(status, Ordering::Relaxed);
        }
    }
}

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for Sessions {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let is_in_session = session.is_some();
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let response = self.client.post_message(uri, message, session, auth, headers).await;
        let response = response.inspect_err(|error| self.refusal.note(error))?;
        match (request, response) {
            (Some(request), StreamableHttpPostResponse::Json(JsonRpcMessage::Error(answer), session)) => {
                if is_in_session && is_about_session(&answer) {
                    // Another server may have other tools.
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
    ) -> Result<(), Failed> {
        self.client.delete_session(uri, session, auth, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.client.get_stream(uri, session, last_event, auth, headers).await
    }
}

/// Tells whether a server says that it does not know the session: by a number from the range that is its own to
/// choose from, and the word.
fn is_about_session(answer: &JsonRpcError) -> bool {
    (-32099..=-32000).contains(&answer.error.code.0) && answer.error.message.to_lowercase().contains("session")
}
