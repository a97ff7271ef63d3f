//! What goes wrong between a request and its reply.

use serde_json::Value as Json;
use thiserror::Error;

/// How many characters of what a provider says are kept.
const MOST_CHARACTERS: usize = 2000;

/// How many bytes are looked at of what is no reply.
pub(super) const MOST_FOREIGN_BYTES: usize = 512;

/// Errors inside of a stream that may pass.
const PASSING: &[&str] = &[
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

/// Why there is no reply.
///
/// ```
/// use patter_core::wire::WireError;
/// let body = br#"{"error": {"message": "Slow down", "type": "requests", "code": "rate_limit_exceeded"}}"#;
/// let error = WireError::of_status(429, body);
/// assert_eq!(error.to_string(), "the provider answered 429 `rate_limit_exceeded`: Slow down");
/// assert!(error.is_passing());
/// assert!(!WireError::of_status(401, b"").is_passing());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// The provider refused the request, or failed.
    #[error("the provider answered {status}{}", details(.kind.as_deref(), .message))]
    Status {
        /// The status of HTTP.
        status: u16,
        /// What the provider calls the error.
        kind: Option<String>,
        /// What it says about it, not more than some lines.
        message: String,
    },
    /// The reply is not of the form that the provider documents.
    #[error("the reply cannot be read: {message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// What answered is no model.
    #[error("what came is no reply of a model: {beginning}")]
    Foreign {
        /// How it begins.
        beginning: String,
    },
    /// The reply ended before it was complete.
    #[error("the reply ended before it was complete")]
    Cut,
    /// The provider failed after it had begun to answer.
    #[error("the provider broke off{}", details(.kind.as_deref(), .message))]
    Stream {
        /// What the provider calls the error.
        kind: Option<String>,
        /// What it says about it, not more than some lines.
        message: String,
    },
}

impl WireError {
    /// Reads the reply to a request that the provider did not serve, whatever form it has.
    pub fn of_status(status: u16, body: &[u8]) -> Self {
        let json = serde_json::from_slice(body).ok();
        let (kind, message) = json.as_ref().and_then(problem).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(body);
            (None, bounded(&text))
        });
        WireError::Status { status, kind, message }
    }

    /// Tells whether another try may help.
    pub fn is_passing(&self) -> bool {
        match self {
            // An account without means says so with the status of haste, and no waiting helps.
            WireError::Status { kind: Some(kind), .. } if kind == "insufficient_quota" => false,
            WireError::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            WireError::Stream { kind: Some(kind), .. } => PASSING.contains(&kind.as_str()),
            WireError::Stream { kind: None, .. } | WireError::Cut => true,
            WireError::Malformed { .. } | WireError::Foreign { .. } => false,
        }
    }

    pub(super) fn malformed(message: impl Into<String>) -> Self {
        WireError::Malformed { message: bounded(&message.into()) }
    }

    pub(super) fn foreign(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body.get(..MOST_FOREIGN_BYTES).unwrap_or(body));
        let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
        let beginning = words.collect::<Vec<_>>().join(" ");
        WireError::Foreign { beginning }
    }

    /// Returns the error that a reply is in place of an answer, if it is one.
    pub(super) fn inside(json: &Json) -> Option<Self> {
        json.get("error").filter(|error| !error.is_null())?;
        let (kind, message) = problem(json)?;
        Some(WireError::Stream { kind, message })
    }
}

/// Reads what providers and those between say in place of an answer.
pub(super) fn problem(json: &Json) -> Option<(Option<String>, String)> {
    let json = json.get(0).unwrap_or(json);
    let error = match json.get("error").filter(|error| !error.is_null()) {
        Some(Json::String(message)) => return Some((None, bounded(message))),
        Some(error) => error,
        None => json,
    };
    let kind = ["code", "status", "type"].into_iter().find_map(|key| error.get(key)?.as_str());
    let message = ["message", "detail"].into_iter().find_map(|key| error.get(key)?.as_str());
    if kind.is_none() && message.is_none() {
        return None;
    }
    Some((kind.map(bounded), bounded(message.unwrap_or_default())))
}

/// Cuts a text to what people read, without what would move the cursor of a terminal.
fn bounded(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    let mut characters = text.trim().chars().map(shown);
    let mut kept: String = characters.by_ref().take(MOST_CHARACTERS).collect();
    if characters.next().is_some() {
        kept.push('…');
    }
    kept
}

fn details(kind: Option<&str>, message: &str) -> String {
    let kind = kind.map(|kind| format!(" `{kind}`")).unwrap_or_default();
    if message.is_empty() { kind } else { format!("{kind}: {message}") }
}
