//! What is made of a reply.

use super::encode::excerpt;
use super::request::{Filling, is_json};
use crate::http::{HttpError, HttpResponse, StatusCode, decode};
use crate::tool::Failure;
use crate::tool::readable::readable;
use patter_core::declare::http::{HttpResult, HttpSpec};
use patter_core::types::signature::{Shape, Type};
use serde_json::Value as Json;
use std::time::{Duration, SystemTime};

/// How much of a page that tells of an error is read.
const ERROR_BYTES: usize = 8 * 1024;
/// How much of it is shown.
const EXCERPT: usize = 300;

/// An attempt that failed.
pub(super) struct Trouble {
    /// How it failed.
    pub(super) failure: Failure,
    /// Why another attempt may do better, if one may.
    pub(super) passing: Option<String>,
    /// How long the server asks to wait.
    pub(super) wait: Option<Duration>,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { failure, passing: None, wait: None }
    }
}

impl From<HttpError> for Trouble {
    fn from(error: HttpError) -> Self {
        let passing = error.is_passing().then(|| error.to_string());
        let failure = match &error {
            HttpError::TooLarge(_) => http_failure(&error).with_detail("`maxBytes` of the tool sets the limit"),
            _ => http_failure(&error),
        };
        Self { failure, passing, wait: None }
    }
}

/// Tells of a request that got no reply: what went wrong to the model, what is behind it to the operator.
pub(crate) fn http_failure(error: &HttpError) -> Failure {
    let failure = Failure::new(match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    });
    match error.cause() {
        Some(cause) => failure.with_detail(cause),
        None => failure,
    }
}

/// Reads the result out of a reply.
pub(super) async fn outcome(
    response: HttpResponse,
    spec: &HttpSpec,
    returns: &Type,
    filling: &Filling<'_>,
) -> Result<Json, Trouble> {
    let status = response.status();
    let message = spec.error(status.as_u16());
    if spec.result == HttpResult::Status && message.is_none() {
        return Ok(Json::from(status.as_u16()));
    }
    if !status.is_success() || message.is_some() {
        let said = message.map(|template| filling.plain(template));
        return Err(refusal(response, said, filling).await);
    }
    let content_type = response.header("content-type").unwrap_or_default().to_owned();
    let body = response.read(spec.max_bytes).await?;
    let is_text = returns.shape == Shape::Text;
    match &spec.result {
        HttpResult::Status => Ok(Json::from(status.as_u16())),
        HttpResult::Text => Ok(Json::String(decode(&body, &content_type))),
        HttpResult::Body if body.is_empty() => Ok(if is_text { Json::from("") } else { Json::Null }),
        HttpResult::Body if is_json(&content_type) => match json(&body, filling)? {
            // A tool that returns text returns the text of whatever JSON there is.
            value if is_text && !value.is_string() => Ok(Json::String(decode(&body, &content_type))),
            value => Ok(value),
        },
        HttpResult::Body if is_text || returns.shape == Shape::Any => Ok(Json::String(decode(&body, &content_type))),
        HttpResult::Body => Ok(json(&body, filling)?),
        HttpResult::Pointer(pointer) => match json(&body, filling)?.pointer_mut(pointer) {
            Some(value) => Ok(value.take()),
            None => {
                let failure = Failure::new(format!("the reply has nothing at `{pointer}`"));
                Err(failure.with_detail(shown(&body, filling)).into())
            }
        },
    }
}

/// Tells why a status may pass, if it may.
fn passing(status: StatusCode) -> Option<String> {
    matches!(status.as_u16(), 429 | 502 | 503 | 504).then(|| format!("the server answered {status}"))
}

/// Tells of a status that is no success.
async fn refusal(mut response: HttpResponse, said: Option<String>, filling: &Filling<'_>) -> Trouble {
    let status = response.status();
    let wait = response.header("retry-after").and_then(|value| retry_after(value, SystemTime::now()));
    let content_type = response.header("content-type").unwrap_or_default().to_owned();
    // A body that breaks off still tells what it told.
    let (mut body, is_whole) = response.read_some(ERROR_BYTES).await.unwrap_or_default();
    if !is_whole {
        // The end may be the beginning of a secret, which would not be found.
        body.truncate(body.len().saturating_sub(filling.secrets.longest()));
    }
    let mut text = decode(&body, &content_type);
    if content_type.starts_with("text/html") {
        text = readable(&text, usize::from(u16::MAX)).0;
    }
    let text = filling.secrets.redact(text);
    let short = excerpt(&text, EXCERPT);
    let default = match short.is_empty() {
        true => format!("the server answered {status}"),
        false => format!("the server answered {status}: {short}"),
    };
    let failure = match said {
        Some(said) => Failure::new(said).with_detail(default),
        None => Failure::new(default),
    };
    Trouble { failure, passing: passing(status), wait }
}

fn json(body: &[u8], filling: &Filling<'_>) -> Result<Json, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::new(format!("the reply is no JSON: {error}")).with_detail(shown(body, filling)))
}

/// Shows the beginning of a body. Secrets are taken out before it is cut, since none is found in pieces.
fn shown(body: &[u8], filling: &Filling<'_>) -> String {
    excerpt(&filling.secrets.redact(String::from_utf8_lossy(body).into_owned()), EXCERPT)
}

/// Reads how long to wait: seconds, or a date.
fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?;
    Some(SystemTime::from(date.timestamp()).duration_since(now).unwrap_or_default())
}
