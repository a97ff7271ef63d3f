//! The HTTP transport with tokens.

use super::super::failures::TransportError;
use super::super::http::SessionClient;
use super::credentials::{Credentials, Denial};
use futures_util::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// A client that sends the user's token with each request, if there is one.
#[derive(Clone)]
pub(in super::super) struct AuthorizedClient {
    pub(in super::super) client: SessionClient,
    /// Nothing if requests have an authorization of their own.
    pub(in super::super) credentials: Option<Arc<Credentials>>,
}

type Headers = HashMap<HeaderName, HeaderValue>;

impl AuthorizedClient {
    /// Sends a request. If the server rejects the token, it is renewed, and the request is sent once more.
    async fn send<T, F, Fut>(&self, token: Option<String>, request: F) -> Result<T, TransportError>
    where
        F: Fn(Option<String>) -> Fut,
        Fut: Future<Output = Result<T, TransportError>>,
    {
        let (Some(credentials), None) = (&self.credentials, &token) else { return request(token).await };
        let failed = |error| {
            let message = format!("{error}");
            credentials.deny(Denial::Failed(error));
            StreamableHttpError::Io(io::Error::other(message))
        };
        let token = credentials.token().await.map_err(failed)?;
        let mut result = request(token.clone()).await;
        if let (Err(StreamableHttpError::AuthRequired(_)), Some(token)) = (&result, &token)
            && let Some(new) = credentials.renew(token).await.map_err(failed)?
            && new != *token
        {
            result = request(Some(new)).await;
        }
        match &result {
            Err(StreamableHttpError::AuthRequired(_)) => {
                credentials.deny(if token.is_some() { Denial::Rejected } else { Denial::LoggedOut });
            }
            Err(StreamableHttpError::InsufficientScope(error)) => {
                if let Some(denial) = Denial::from_forbidden(&error.www_authenticate_header) {
                    credentials.deny(denial);
                }
            }
            _ => {}
        }
        result
    }
}

impl StreamableHttpClient for AuthorizedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let post =
            |auth| self.client.post_message(uri.clone(), message.clone(), session.clone(), auth, headers.clone());
        self.send(auth, post).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<(), TransportError> {
        let delete = |auth| self.client.delete_session(uri.clone(), session.clone(), auth, headers.clone());
        self.send(auth, delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        auth: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        let get =
            |auth| self.client.get_stream(uri.clone(), session.clone(), last_event.clone(), auth, headers.clone());
        self.send(auth, get).await
    }
}
