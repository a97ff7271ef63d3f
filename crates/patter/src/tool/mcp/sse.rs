//! The HTTP transport of MCP before sessions (2024-11-05): a stream of server-sent events, and an endpoint for messages that
//! its first event names.

use super::body::{events, read_body};
use super::failures::{TransportError, TransportFailures};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError};
use sse_stream::Sse;

/// The largest part of the response to a message that is read, so that its connection can be reused.
const MAX_IGNORED_BYTES: usize = 64 * 1024;

/// A connection over a stream of server-sent events.
pub(super) struct SseTransport {
    client: reqwest::Client,
    /// The URL for messages.
    endpoint: Url,
    headers: HeaderMap,
    events: BoxStream<'static, Result<Sse, SseError>>,
    failures: TransportFailures,
}

impl SseTransport {
    /// Opens the stream, and waits for the endpoint for messages.
    pub(super) async fn open(
        client: &reqwest::Client,
        url: &Url,
        headers: HeaderMap,
        failures: &TransportFailures,
    ) -> Result<Self, TransportError> {
        let request = client.get(url.clone()).headers(headers.clone()).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        let response = request.send().await.map_err(|error| StreamableHttpError::Client(failures.record(error)))?;
        let status = response.status();
        failures.record_status(status.as_u16());
        if !status.is_success() {
            return Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()));
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !content_type.is_some_and(|actual| actual.starts_with(EVENT_STREAM_MIME_TYPE)) {
            return Err(StreamableHttpError::UnexpectedContentType(content_type.map(str::to_owned)));
        }
        let mut events = events(response, None, None, failures);
        let endpoint = loop {
            let event = events.next().await.ok_or(StreamableHttpError::UnexpectedEndOfStream)??;
            if event.event.as_deref() == Some("endpoint") {
                break url.join(event.data.unwrap_or_default().trim()).ok();
            }
        };
        // The headers, maybe secrets, are only for the server that was configured.
        let endpoint = endpoint.filter(|endpoint| endpoint.origin() == url.origin()).ok_or_else(|| {
            StreamableHttpError::UnexpectedServerResponse("the endpoint for messages is on another server".into())
        })?;
        Ok(Self { client: client.clone(), endpoint, headers, events, failures: failures.clone() })
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = TransportError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let request = self.client.post(self.endpoint.clone()).headers(self.headers.clone());
        let failures = self.failures.clone();
        async move {
            let request = request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(serde_json::to_vec(&message)?);
            let response = request.send().await;
            let mut response = response.map_err(|error| StreamableHttpError::Client(failures.record(error)))?;
            let status = response.status();
            failures.record_status(status.as_u16());
            if !status.is_success() {
                return Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()));
            }
            // The response to the message is an event.
            let _ = read_body(&mut response, MAX_IGNORED_BYTES).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = match self.events.next().await? {
                Ok(event) => event,
                Err(error) => {
                    tracing::debug!(%error, "the stream of an MCP server ended");
                    return None;
                }
            };
            if !matches!(event.event.as_deref(), None | Some("" | "message")) {
                continue;
            }
            match serde_json::from_str(event.data.as_deref().unwrap_or_default()) {
                Ok(message) => return Some(message),
                Err(error) => tracing::debug!(%error, "ignoring an event that is not a message"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.events = futures_util::stream::empty().boxed();
        Ok(())
    }
}
