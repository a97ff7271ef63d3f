//! Errors of providers, and replies that cannot be decoded.

use crate::text::truncate;
use serde_json::Value as Json;
use thiserror::Error;

/// The longest message of a provider, in characters.
const MAX_MESSAGE_CHARS: usize = 2000;

/// The number of bytes that are shown of a body that is not a reply.
pub(super) const EXCERPT_BYTES: usize = 512;

/// The kinds of errors in replies that a retry may resolve.
const TRANSIENT: &[&str] = &[
    "overloaded_error",
    "api_error",
    "rate_limit_error",
    "timeout_error",
    "server_error",
    "rate_limit_exceeded",
    "UNAVAILABLE",
    "INTERNAL",
    "RESOURCE_EXHAUSTED",
    "DEADLINE_EXCEEDED",
    "error",
    "insufficient_system_resource",
    "network_error",
    "unavailable_error",
    "Internal Server Error",
    "Service Unavailable",
];

/// The kinds of errors of requests that have too many tokens.
const TOO_LONG_KINDS: [&str; 4] =
    ["context_length_exceeded", "exceed_context_size_error", "context_window_exceeded", "request_too_large"];

/// What providers say about requests that have too many tokens, in lower case.
const TOO_LONG_MESSAGES: [&str; 10] = [
    "maximum context length",
    "context length exceeded",
    "exceeds the context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "too many tokens",
    "reduce the length of the messages",
];

/// How deep messages are searched for: some contain others as JSON in text.
const MAX_MESSAGE_DEPTH: usize = 6;

/// An error that a provider reports, or a reply that cannot be decoded.
///
/// ```
/// use patter_core::wire::WireError;
/// let body = br#"{"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}}"#;
/// let error = WireError::from_status(429, body);
/// assert_eq!(error.to_string(), "the provider answered 429 `rate_limit_exceeded`: Slow down");
/// assert!(error.is_transient());
/// assert!(!WireError::from_status(401, b"").is_transient());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// The provider answered with a status that is not a success.
    #[error("the provider answered {status}{}", describe(.kind.as_deref(), .message))]
    Status {
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        kind: Option<String>,
        /// The provider's message, truncated if it is long.
        message: String,
    },
    /// The provider reported an error in the reply, possibly after a part of the answer.
    #[error("the provider reported an error{}", describe(.kind.as_deref(), .message))]
    Reply {
        /// The provider's name for the error.
        kind: Option<String>,
        /// The provider's message, truncated if it is long.
        message: String,
    },
    /// The reply does not have the documented format.
    #[error("malformed reply: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// The body is not a reply of a model, but for example a web page.
    #[error("not a model reply: {excerpt}")]
    Unexpected {
        /// The start of the body.
        excerpt: String,
    },
    /// The reply ended before it was complete.
    #[error("the reply ended before it was complete")]
    Truncated,
}

impl WireError {
    /// Parses the body of a response with an error status, whatever its format.
    pub fn from_status(status: u16, body: &[u8]) -> Self {
        let json = serde_json::from_slice(body).ok();
        let (kind, message) = json.as_ref().and_then(error_details).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(body);
            (None, sanitize(&text))
        });
        WireError::Status { status, kind, message }
    }

    /// Returns whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            // Exhausted credit is reported as 429 too, but waiting does not help.
            WireError::Status { kind: Some(kind), .. } if kind == "insufficient_quota" => false,
            WireError::Status { status, .. } => is_transient_status(*status),
            WireError::Reply { kind: Some(kind), .. } => {
                TRANSIENT.contains(&kind.as_str()) || kind.parse().is_ok_and(is_transient_status)
            }
            WireError::Reply { kind: None, .. } | WireError::Truncated => true,
            WireError::Malformed { .. } | WireError::Unexpected { .. } => false,
        }
    }

    /// Returns whether the provider cannot serve the request now, although nothing is wrong with it: another provider may.
    pub fn is_outage(&self) -> bool {
        match self {
            WireError::Status { status, .. } if *status == 429 => true,
            error => error.is_transient(),
        }
    }

    /// Returns whether the provider refused the request because it has too many tokens.
    ///
    /// ```
    /// use patter_core::wire::WireError;
    /// let is_too_long = |body: &str| WireError::from_status(400, body.as_bytes()).is_too_long();
    /// assert!(is_too_long(r#"{"error": {"message": "Too long", "code": "context_length_exceeded"}}"#));
    /// assert!(is_too_long(r#"{"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}"#));
    /// assert!(!is_too_long(r#"{"error": {"message": "max_tokens is too large"}}"#));
    /// ```
    pub fn is_too_long(&self) -> bool {
        let (kind, message) = match self {
            WireError::Status { status: 413, .. } => return true,
            WireError::Status { status: 400 | 422 | 500, kind, message } | WireError::Reply { kind, message } => {
                (kind.as_deref().unwrap_or_default(), message.to_lowercase())
            }
            _ => return false,
        };
        TOO_LONG_KINDS.contains(&kind) || TOO_LONG_MESSAGES.iter().any(|part| message.contains(part))
    }

    pub(super) fn malformed(message: impl AsRef<str>) -> Self {
        WireError::Malformed { message: sanitize(message.as_ref()) }
    }

    pub(super) fn unexpected(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body.get(..EXCERPT_BYTES).unwrap_or(body));
        let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        WireError::Unexpected { excerpt: words.collect::<Vec<_>>().join(" ") }
    }

    /// Returns the error that a reply contains instead of an answer.
    pub(super) fn from_reply(json: &Json) -> Option<Self> {
        let is_error = json.get("object").and_then(Json::as_str) == Some("error");
        if json.get("error").is_none_or(Json::is_null) && !is_error {
            return None;
        }
        Self::from_body(json)
    }

    /// Returns the error that a body describes, if it does.
    pub(super) fn from_body(json: &Json) -> Option<Self> {
        let (kind, message) = error_details(json)?;
        // A status that is reported after the headers is the only name that the error has.
        let code = || {
            let code = json.get("error").unwrap_or(json).get("code")?.as_u64()?;
            Some(code.to_string())
        };
        Some(WireError::Reply { kind: kind.or_else(code), message })
    }

    /// Returns the error in a field of a stream that is only for errors.
    pub(super) fn from_field(value: &[u8]) -> Self {
        let json = serde_json::from_slice(value).ok();
        json.as_ref()
            .and_then(Self::from_body)
            .unwrap_or_else(|| WireError::Reply { kind: None, message: sanitize(&String::from_utf8_lossy(value)) })
    }

    /// Returns an error with the provider's name for it.
    pub(super) fn reported(kind: &str, message: &str) -> Self {
        WireError::Reply { kind: Some(sanitize(kind)), message: sanitize(message) }
    }
}

const fn is_transient_status(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// Returns the kind and the message of an error in any of the formats that providers and proxies use.
pub(super) fn error_details(json: &Json) -> Option<(Option<String>, String)> {
    let json = json.get(0).unwrap_or(json);
    let error = match json.get("error").filter(|error| !error.is_null()) {
        Some(Json::String(message)) => return Some((None, sanitize(&message_text(message, 0)))),
        Some(error) => error,
        None => json,
    };
    let kind = ["code", "status", "type"].into_iter().find_map(|key| error.get(key)?.as_str());
    let message = message(error, 0);
    if kind.is_none() && message.is_none() {
        return None;
    }
    let mut message = message.unwrap_or_default();
    if let Some(cause) = upstream_message(error).filter(|cause| *cause != message) {
        message = if message.is_empty() { cause } else { format!("{message}: {cause}") };
    }
    Some((kind.map(sanitize), sanitize(&message)))
}

/// Returns what a proxy such as OpenRouter says about the error of the provider behind it.
fn upstream_message(error: &Json) -> Option<String> {
    let metadata = error.get("metadata")?;
    let raw = metadata.get("raw").and_then(|raw| describe_json(raw, 0))?;
    Some(match metadata.get("provider_name").and_then(Json::as_str) {
        Some(name) => format!("{raw} ({name})"),
        None => raw,
    })
}

/// Returns the message of an object, under any of its names.
fn message(json: &Json, depth: usize) -> Option<String> {
    ["message", "detail", "msg", "error", "reason"]
        .into_iter()
        .find_map(|key| json.get(key).and_then(|value| describe_json(value, depth)))
}

/// Describes what may be a message, a list of problems with their places, or an error inside of an error.
fn describe_json(json: &Json, depth: usize) -> Option<String> {
    match json {
        _ if depth > MAX_MESSAGE_DEPTH => None,
        Json::String(text) if text.trim().is_empty() => None,
        Json::String(text) => Some(message_text(text, depth)),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().filter_map(|item| describe_json(item, depth + 1)).collect();
            (!items.is_empty()).then(|| items.join("; "))
        }
        Json::Object(map) => {
            let Some(message) = message(json, depth + 1) else {
                return (!map.is_empty()).then(|| json.to_string());
            };
            let place = map.get("loc").and_then(Json::as_array).into_iter().flatten();
            let place: Vec<String> =
                place.map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned)).collect();
            Some(if place.is_empty() { message } else { format!("`{}`: {message}", place.join(".")) })
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => None,
    }
}

/// Returns a text, or what it describes if it is JSON.
fn message_text(text: &str, depth: usize) -> String {
    let is_json = text.trim_start().starts_with(['{', '[']);
    let json: Option<Json> = if is_json { serde_json::from_str(text).ok() } else { None };
    json.and_then(|json| describe_json(&json, depth + 1)).unwrap_or_else(|| text.to_owned())
}

/// Truncates a text, and removes control characters that would affect a terminal.
fn sanitize(text: &str) -> String {
    let text: String = text.trim().chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    truncate(&text, MAX_MESSAGE_CHARS)
}

fn describe(kind: Option<&str>, message: &str) -> String {
    let kind = kind.map(|kind| format!(" `{kind}`")).unwrap_or_default();
    if message.is_empty() { kind } else { format!("{kind}: {message}") }
}
