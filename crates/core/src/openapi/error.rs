//! Errors of an import.

use super::warning::Warning;
use thiserror::Error;

/// An error importing a document.
///
/// ```
/// use patter_core::openapi::{ImportOptions, import};
/// let error = import(&serde_json::json!({ "swagger": "1.2" }), &ImportOptions::default()).unwrap_err();
/// assert_eq!(error.to_string(), "Swagger 1.2 is not supported");
/// assert_eq!(error.hint().as_deref(), Some("supported versions: 2.0, 3.0 and 3.1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenApiError {
    /// The document is not an OpenAPI document.
    #[error("not an OpenAPI document: the version `openapi` is missing")]
    NotOpenApi,
    /// The document is older than version 2.0.
    #[error("Swagger {0} is not supported")]
    Swagger(String),
    /// The version is not supported.
    #[error("OpenAPI {0} is not supported")]
    UnsupportedVersion(String),
    /// The name is not a valid name of a toolbox.
    #[error("invalid toolbox name `{0}`")]
    InvalidName(String),
    /// The document does not name a server.
    #[error("the document does not name a server")]
    NoServer,
    /// The address of the server is relative.
    #[error("the server address `{0}` is not absolute")]
    RelativeServer(String),
    /// The address of the server has placeholders without a value.
    #[error("the server address `{0}` has placeholders without a value")]
    UnresolvedServer(String),
    /// There are no operations.
    #[error("the document has no operations")]
    NoOperations,
    /// No operation is selected.
    #[error("none of the {count} operations is selected")]
    NoMatch {
        /// Some of the operations.
        known: Vec<String>,
        /// The number of operations.
        count: usize,
    },
    /// No operation can be converted.
    #[error("none of the operations can be converted to a tool")]
    NoTools {
        /// The reasons.
        warnings: Vec<Warning>,
    },
}

impl OpenApiError {
    /// Returns how to fix it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            OpenApiError::NotOpenApi => "pass the document itself, not a page that displays it".to_owned(),
            OpenApiError::Swagger(_) | OpenApiError::UnsupportedVersion(_) => {
                "supported versions: 2.0, 3.0 and 3.1".to_owned()
            }
            OpenApiError::InvalidName(_) => {
                "use at most 32 ASCII letters, digits, `_` and `-`, starting with a letter and without `__`".to_owned()
            }
            OpenApiError::RelativeServer(path) if path.starts_with('/') => {
                format!("it is relative to where the document is published: `--server https://api.example.com{path}`")
            }
            OpenApiError::NoServer | OpenApiError::RelativeServer(_) | OpenApiError::UnresolvedServer(_) => {
                "pass the server address: `--server https://api.example.com/v1`".to_owned()
            }
            OpenApiError::NoMatch { known, count } => {
                let more = if *count > known.len() { ", …" } else { "" };
                format!("available operations: {}{more}", known.join(", "))
            }
            OpenApiError::NoOperations | OpenApiError::NoTools { .. } => return None,
        })
    }
}
