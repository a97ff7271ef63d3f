//! Results and failures from responses.

use super::encode::excerpt;
use super::request::{RequestBuilder, is_json};
use crate::http::{HttpError, HttpResponse, StatusCode, decode};
use crate::tool::ToolFailure;
use crate::tool::html::page_text;
use crate::tool::kept::{self, MAX_KEPT_BYTES};
use patter_core::declare::http::{HttpResult, HttpSpec};
use patter_core::types::signature::{Shape, Type};
use patter_core::wire::retry_advice;
use serde_json::Value as Json;
use std::time::{Duration, SystemTime};

/// The number of bytes that are read of an error page.
const MAX_ERROR_BYTES: usize = 8 * 1024;
/// The number of characters that are shown of a body.
const EXCERPT_CHARS: usize = 300;

/// The failure of an attempt.
pub(super) struct AttemptError {
    /// The failure to return if there is no retry.
    pub(super) failure: ToolFailure,
    /// The reason why a retry may succeed, if it may.
    pub(super) retry_reason: Option<String>,
    /// The pause that the server asks for.
    pub(super) retry_after: Option<Duration>,
}

impl From<ToolFailure> for AttemptError {
    fn from(failure: ToolFailure) -> Self {
        Self { failure, retry_reason: None, retry_after: None }
    }
}

impl From<HttpError> for AttemptError {
    fn from(error: HttpError) -> Self {
        let retry_reason = error.is_transient().then(|| error.to_string());
        let failure = http_failure(&error);
        Self { failure, retry_reason, retry_after: None }
    }
}

/// Returns the failure of a request without a response: the message for the model, the cause for the operator.
pub(crate) fn http_failure(error: &HttpError) -> ToolFailure {
    let failure = ToolFailure::new(match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    });
    match error.cause() {
        Some(cause) => failure.with_detail(cause),
        None => failure,
    }
}

/// Reads the result of a tool from a response.
pub(super) async fn read_result(
    response: HttpResponse,
    spec: &HttpSpec,
    returns: &Type,
    builder: &RequestBuilder<'_>,
) -> Result<Json, AttemptError> {
    let status = response.status();
    let message = spec.error_message(status.as_u16());
    if spec.result == HttpResult::Status && message.is_none() {
        return Ok(Json::from(status.as_u16()));
    }
    if !status.is_success() || message.is_some() {
        let message = message.map(|template| builder.render(template));
        return Err(status_error(response, message, builder).await);
    }
    let content_type = response.header("content-type").unwrap_or_default().to_owned();
    let body = response.read(spec.max_bytes.max(MAX_KEPT_BYTES)).await?;
    let is_text = returns.shape == Shape::Text;
    if body.len() > spec.max_bytes {
        // Secrets are redacted before the text is cut, since a part of one is not recognised.
        let text = builder.variables.redactor.redact(&decode(&body, &content_type));
        let is_any = returns.shape == Shape::Any && !is_json(&content_type);
        return match &spec.result {
            HttpResult::Text => Ok(kept::cut(text, spec.max_bytes).into()),
            HttpResult::Body if is_text || is_any => Ok(kept::cut(text, spec.max_bytes).into()),
            HttpResult::Body | HttpResult::Status | HttpResult::Pointer(_) => {
                Err(kept::too_large(&text, spec.max_bytes).into())
            }
        };
    }
    match &spec.result {
        HttpResult::Status => Ok(Json::from(status.as_u16())),
        HttpResult::Text => Ok(Json::String(decode(&body, &content_type))),
        HttpResult::Body if body.is_empty() => Ok(if is_text { Json::from("") } else { Json::Null }),
        HttpResult::Body if is_json(&content_type) => match parse_json(&body, builder)? {
            // A tool that returns text returns JSON as text.
            value if is_text && !value.is_string() => Ok(Json::String(decode(&body, &content_type))),
            value => Ok(value),
        },
        HttpResult::Body if is_text || returns.shape == Shape::Any => Ok(Json::String(decode(&body, &content_type))),
        HttpResult::Body => Ok(parse_json(&body, builder)?),
        HttpResult::Pointer(pointer) => match parse_json(&body, builder)?.pointer_mut(pointer) {
            Some(value) => Ok(value.take()),
            None => {
                let failure = ToolFailure::new(format!("the response has no value at `{pointer}`"));
                Err(failure.with_detail(body_excerpt(&body, builder)).into())
            }
        },
    }
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
}

/// Returns the error for a status that is not a success.
async fn status_error(
    mut response: HttpResponse,
    message: Option<String>,
    builder: &RequestBuilder<'_>,
) -> AttemptError {
    let redactor = &builder.variables.redactor;
    let status = response.status();
    let retry_after = retry_advice(|name| response.header(name), SystemTime::now()).delay;
    let content_type = response.header("content-type").unwrap_or_default().to_owned();
    // The start of an incomplete body is still useful.
    let (mut body, is_complete) = response.read_some(MAX_ERROR_BYTES).await.unwrap_or_default();
    if !is_complete {
        // The end may be the start of a secret, which would not be recognised.
        body.truncate(body.len().saturating_sub(redactor.longest()));
    }
    let mut text = decode(&body, &content_type);
    if content_type.starts_with("text/html") {
        text = page_text(&text, usize::from(u16::MAX)).0;
    }
    let summary = format!("the server responded with {status}");
    let default = match excerpt(&redactor.redact(&text), EXCERPT_CHARS) {
        excerpt if excerpt.is_empty() => summary.clone(),
        excerpt => format!("{summary}: {excerpt}"),
    };
    let failure = match message {
        Some(message) => ToolFailure::new(message).with_detail(default),
        None => ToolFailure::new(default),
    };
    AttemptError { failure, retry_reason: is_transient(status).then_some(summary), retry_after }
}

fn parse_json(body: &[u8], builder: &RequestBuilder<'_>) -> Result<Json, ToolFailure> {
    serde_json::from_slice(body).map_err(|error| {
        ToolFailure::new(format!("the response is not valid JSON: {error}")).with_detail(body_excerpt(body, builder))
    })
}

/// Returns the start of a body. Secrets are redacted before it is truncated, since a part of one is not recognised.
fn body_excerpt(body: &[u8], builder: &RequestBuilder<'_>) -> String {
    excerpt(&builder.variables.redactor.redact(&String::from_utf8_lossy(body)), EXCERPT_CHARS)
}
