//! Errors that clients receive.

use serde_json::{Value as Json, json};
use std::fmt;

/// An error as clients of the OpenAI protocols read it.
///
/// ```
/// use patter_core::serve::{ApiError, ApiErrorKind};
/// let error = ApiError::invalid("messages", "there are no messages");
/// assert_eq!(error.status(), 400);
/// assert_eq!(error.to_json()["error"]["param"], "messages");
/// assert_eq!(ApiErrorKind::Busy.status(), 409);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError {
    /// The kind.
    pub kind: ApiErrorKind,
    /// The part of the request that is wrong, if it is one.
    pub param: Option<String>,
    /// What is wrong.
    pub message: String,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
    /// The request is wrong.
    Invalid,
    /// There is no valid token.
    Unauthorized,
    /// The token does not permit the request.
    Forbidden,
    /// There is no such agent.
    UnknownModel,
    /// There is no such thing.
    NotFound,
    /// The session is in use, or not in a state for the request.
    Busy,
    /// The request is too large.
    TooLarge,
    /// The body is not JSON.
    UnsupportedType,
    /// There are too many requests.
    TooMany,
    /// The model or its provider failed.
    Model,
    /// The run reached a limit or failed otherwise.
    Run,
    /// Something is wrong here.
    Server,
    /// The server is about to stop, or cannot reach its store.
    Unavailable,
}

impl ApiError {
    /// Returns an error of a kind.
    pub fn new(kind: ApiErrorKind, message: impl Into<String>) -> Self {
        Self { kind, param: None, message: message.into() }
    }

    /// Returns an error about a part of the request.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: ApiErrorKind::Invalid, param: Some(param.into()), message: message.into() }
    }

    /// Returns the HTTP status.
    pub const fn status(&self) -> u16 {
        self.kind.status()
    }

    /// Returns the body of the response.
    pub fn to_json(&self) -> Json {
        self.to_json_with(self.kind.type_name())
    }

    /// Returns the body of the response, in the form of Open Responses.
    pub fn to_open_responses_json(&self) -> Json {
        self.to_json_with(self.kind.open_responses_type())
    }

    fn to_json_with(&self, type_name: &str) -> Json {
        json!({"error": {
            "message": self.message,
            "type": type_name,
            "param": self.param,
            "code": self.kind.code(),
        }})
    }
}

impl ApiErrorKind {
    /// Returns the HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::UnknownModel | Self::NotFound => 404,
            Self::Busy => 409,
            Self::TooLarge => 413,
            Self::UnsupportedType => 415,
            Self::TooMany => 429,
            Self::Run | Self::Server => 500,
            Self::Model => 502,
            Self::Unavailable => 503,
        }
    }

    /// Returns the type as the OpenAI protocols name it.
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::Invalid
            | Self::UnknownModel
            | Self::NotFound
            | Self::Busy
            | Self::TooLarge
            | Self::UnsupportedType => "invalid_request_error",
            Self::Unauthorized => "authentication_error",
            Self::Forbidden => "permission_error",
            Self::TooMany => "rate_limit_error",
            Self::Model | Self::Run | Self::Server | Self::Unavailable => "server_error",
        }
    }

    /// Returns the type as Open Responses names it.
    pub const fn open_responses_type(self) -> &'static str {
        match self {
            Self::Invalid
            | Self::Unauthorized
            | Self::Forbidden
            | Self::Busy
            | Self::TooLarge
            | Self::UnsupportedType => "invalid_request",
            Self::UnknownModel | Self::NotFound => "not_found",
            Self::TooMany => "too_many_requests",
            Self::Model => "model_error",
            Self::Run | Self::Server | Self::Unavailable => "server_error",
        }
    }

    /// Returns the stable code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Invalid => "invalid_request",
            Self::Unauthorized => "invalid_token",
            Self::Forbidden => "forbidden",
            Self::UnknownModel => "model_not_found",
            Self::NotFound => "not_found",
            Self::Busy => "session_busy",
            Self::TooLarge => "request_too_large",
            Self::UnsupportedType => "unsupported_media_type",
            Self::TooMany => "too_many_requests",
            Self::Model => "model_error",
            Self::Run => "run_failed",
            Self::Server => "internal_error",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.param {
            Some(param) => write!(f, "`{param}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for ApiError {}
