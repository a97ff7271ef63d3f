//! Errors of logins.

use crate::http::HttpError;
use patter_core::text::truncate;
use thiserror::Error;

/// The number of characters that are shown of a foreign text.
const MAX_FOREIGN_CHARS: usize = 200;

/// The error of a login. It contains no token, code or client secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct LoginError {
    message: String,
    hint: Option<String>,
}

impl LoginError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn from_http(what: &str, error: &HttpError) -> Self {
        Self { message: format!("{what}: {error}"), hint: error.hint() }
    }

    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// Returns a text of a foreign server on one line, without control characters and not too long.
pub(super) fn foreign(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    truncate(line.trim(), MAX_FOREIGN_CHARS)
}
