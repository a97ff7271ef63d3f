//! Responses: JSON, errors and streams.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::Value as Json;
use std::convert::Infallible;

/// Tells SDKs of OpenAI whether to send the request again.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Tells proxies not to hold back pieces of a stream.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// An error response.
pub(crate) struct ErrorResponse {
    error: ApiError,
    /// Whether something may have happened that must not happen again.
    has_run: bool,
}

impl From<ApiError> for ErrorResponse {
    fn from(error: ApiError) -> Self {
        Self { error, has_run: false }
    }
}

impl ErrorResponse {
    /// Returns the error of a turn that ran: the request must not be sent again.
    pub(crate) fn after_run(error: ApiError) -> Self {
        Self { error, has_run: true }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let body = self.error.to_json();
        self.respond(&body)
    }
}

/// An error response in the form of Open Responses.
pub(crate) struct OpenErrorResponse(pub(crate) ErrorResponse);

impl<T: Into<ErrorResponse>> From<T> for OpenErrorResponse {
    fn from(error: T) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for OpenErrorResponse {
    fn into_response(self) -> Response {
        let body = self.0.error.to_open_responses_json();
        self.0.respond(&body)
    }
}

impl ErrorResponse {
    fn respond(&self, body: &Json) -> Response {
        let mut response = json(body);
        *response.status_mut() = StatusCode::from_u16(self.error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        match self.error.kind {
            _ if self.has_run => drop(headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"))),
            // Sending it again does not help.
            ApiErrorKind::Busy => {
                headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            ApiErrorKind::TooMany | ApiErrorKind::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            ApiErrorKind::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

/// Returns a JSON document.
pub(crate) fn json(document: &Json) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, document.to_string()).into_response()
}

/// Returns a stream of server-sent events.
pub(crate) fn event_stream(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let body = Body::from_stream(futures_util::StreamExt::map(events, Ok::<_, Infallible>));
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (BUFFERING, "no")];
    (headers, body).into_response()
}

/// Returns a server-sent event. The data must be one line, as JSON is.
pub(crate) fn data(text: &str) -> Bytes {
    format!("data: {text}\n\n").into()
}

/// Returns a comment, which clients skip.
pub(crate) fn keep_alive() -> Bytes {
    Bytes::from_static(b": keep-alive\n\n")
}

/// Adds the headers that all responses have.
pub(crate) fn add_common_headers(headers: &mut HeaderMap) {
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
