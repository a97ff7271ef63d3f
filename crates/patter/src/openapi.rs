//! OpenAPI documents on disk: JSON or YAML, by content.

pub use patter_core::openapi::{Imported, OpenApiError, Options, Warning, toolbox};

use serde_json::Value as Json;
use thiserror::Error;

/// How large a document may be. The largest that are published have a fifth of it.
const LARGEST: usize = 64 * 1024 * 1024;
/// How many nodes aliases may add to a document, so that a short one cannot grow for ever.
const MOST_REPLAYED: usize = 1_000_000;

/// Why bytes are no document.
///
/// ```
/// let error = patter::openapi::read(b"{\"openapi\": 3").unwrap_err();
/// assert!(error.to_string().starts_with("this is neither JSON nor YAML: "), "{error}");
/// ```
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is too much.
    #[error("a document may have at most {} MiB", LARGEST / 1024 / 1024)]
    TooLarge,
    /// They are not text.
    #[error("this is not UTF-8 text")]
    NotText,
    /// The text is neither JSON nor YAML.
    #[error("this is neither JSON nor YAML: {0}")]
    Malformed(String),
}

/// Reads a document from JSON or YAML.
///
/// ```
/// let document = patter::openapi::read(b"openapi: 3.1.0\npaths: {}\n").unwrap();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert_eq!(patter::openapi::read(br#"{"openapi": "3.1.0", "paths": {}}"#).unwrap(), document);
/// ```
pub fn read(bytes: &[u8]) -> Result<Json, ReadError> {
    if bytes.len() > LARGEST {
        return Err(ReadError::TooLarge);
    }
    let text = str::from_utf8(bytes).map_err(|_| ReadError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // What begins like JSON may still be YAML, whose messages are then the better ones.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(document) = serde_json::from_str(text)
    {
        return Ok(document);
    }
    let mut options = serde_saphyr::Options::default();
    options.strict_booleans = true;
    options.with_snippet = false;
    options.alias_limits.max_total_replayed_events = MOST_REPLAYED;
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.to_string();
        ReadError::Malformed(message.lines().next().unwrap_or_default().to_owned())
    })
}
