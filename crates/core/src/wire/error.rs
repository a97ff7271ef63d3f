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
];

/// The reason why there is no reply.
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
            WireError::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            WireError::Reply { kind: Some(kind), .. } => TRANSIENT.contains(&kind.as_str()),
            WireError::Reply { kind: None, .. } | WireError::Truncated => true,
            WireError::Malformed { .. } | WireError::Unexpected { .. } => false,
        }
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
        json.get("error").filter(|error| !error.is_null())?;
        let (kind, message) = error_details(json)?;
        Some(WireError::Reply { kind, message })
    }
}

/// Returns the kind and the message of an error in any of the formats that providers and proxies use.
pub(super) fn error_details(json: &Json) -> Option<(Option<String>, String)> {
    let json = json.get(0).unwrap_or(json);
    let error = match json.get("error").filter(|error| !error.is_null()) {
        Some(Json::String(message)) => return Some((None, sanitize(message))),
        Some(error) => error,
        None => json,
    };
    let kind = ["code", "status", "type"].into_iter().find_map(|key| error.get(key)?.as_str());
    let message = ["message", "detail"].into_iter().find_map(|key| error.get(key)?.as_str());
    if kind.is_none() && message.is_none() {
        return None;
    }
    Some((kind.map(sanitize), sanitize(message.unwrap_or_default())))
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
