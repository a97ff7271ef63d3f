//! OpenAPI documents on disk: JSON or YAML, by content.

pub use patter_core::openapi::{ImportOptions, ImportedToolbox, OpenApiError, Warning, import};

use serde_json::Value as Json;
use thiserror::Error;

/// The size limit of a document, in bytes. The largest published ones have a fifth of it.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The number of nodes that aliases may add to a document, so that a short one cannot expand without limit.
const MAX_ALIAS_NODES: usize = 1_000_000;

/// The number of values in a YAML document. The largest published ones have a tenth of it.
const MAX_NODES: usize = 5_000_000;

/// An error for bytes that are not a document.
///
/// ```
/// let error = patter::openapi::read(b"{\"openapi\": 3").unwrap_err();
/// assert!(error.to_string().starts_with("the document is neither JSON nor YAML: "), "{error}");
/// ```
#[derive(Debug, Error)]
pub enum ReadError {
    /// The document is too large.
    #[error("the document is larger than {} MiB", MAX_BYTES / 1024 / 1024)]
    TooLarge,
    /// The bytes are not text.
    #[error("the document is not UTF-8 text")]
    NotText,
    /// The text is neither JSON nor YAML.
    #[error("the document is neither JSON nor YAML: {0}")]
    Malformed(String),
}

/// Parses a document from JSON or YAML.
///
/// ```
/// let document = patter::openapi::read(b"openapi: 3.1.0\npaths: {}\n").unwrap();
/// assert_eq!(document["openapi"], "3.1.0");
/// assert_eq!(patter::openapi::read(br#"{"openapi": "3.1.0", "paths": {}}"#).unwrap(), document);
/// ```
pub fn read(bytes: &[u8]) -> Result<Json, ReadError> {
    if bytes.len() > MAX_BYTES {
        return Err(ReadError::TooLarge);
    }
    let text = str::from_utf8(bytes).map_err(|_| ReadError::NotText)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // Text that begins like JSON may be YAML, whose error messages are then the better ones.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(document) = serde_json::from_str(text)
    {
        return Ok(document);
    }
    let mut options = serde_saphyr::Options::default();
    options.strict_booleans = true;
    options.with_snippet = false;
    options.alias_limits.max_total_replayed_events = MAX_ALIAS_NODES;
    if let Some(budget) = &mut options.budget {
        // Documents are larger than the files of settings that the defaults are made for.
        budget.max_nodes = MAX_NODES;
        budget.max_events = 2 * MAX_NODES;
    }
    // Descriptions copied from elsewhere contain control characters, which YAML does not allow.
    let is_control = |c: char| ('\u{80}'..='\u{9f}').contains(&c) && c != '\u{85}';
    let text = if text.contains(is_control) { &text.replace(is_control, " ") } else { text };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let message = error.to_string();
        ReadError::Malformed(message.lines().next().unwrap_or_default().to_owned())
    })
}
