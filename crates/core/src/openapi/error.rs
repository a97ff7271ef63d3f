//! Why a document makes no toolbox.

use super::Warning;
use thiserror::Error;

/// Why a document makes no toolbox.
///
/// ```
/// use patter_core::openapi::{Options, toolbox};
/// let error = toolbox(&serde_json::json!({ "swagger": "2.0" }), &Options::default()).unwrap_err();
/// assert_eq!(error.to_string(), "this is a Swagger 2.0 document, and only OpenAPI 3 can be read");
/// assert!(error.hint().unwrap().starts_with("convert it"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OpenApiError {
    /// It is something else.
    #[error("this is not an OpenAPI document: it has no `openapi` with a version")]
    NotOpenApi,
    /// It is of the time before OpenAPI.
    #[error("this is a Swagger {0} document, and only OpenAPI 3 can be read")]
    Swagger(String),
    /// It is of a version that nobody here knows.
    #[error("OpenAPI {0} cannot be read")]
    Version(String),
    /// The name cannot be that of a toolbox.
    #[error("`{0}` cannot be the name of a toolbox")]
    Name(String),
    /// It does not say where the operations are.
    #[error("the document does not say at which address its operations are")]
    NoServer,
    /// The address is not a whole one.
    #[error("the address `{0}` is not a whole one")]
    RelativeServer(String),
    /// The address has holes that nothing fills.
    #[error("the address `{0}` has holes that nothing fills")]
    OpenServer(String),
    /// There are no operations.
    #[error("the document has no operations")]
    NoOperations,
    /// No operation is asked for.
    #[error("none of the {count} operations is asked for")]
    NothingMatches {
        /// Some that there are.
        known: Vec<String>,
        /// How many there are.
        count: usize,
    },
    /// No operation can be a tool.
    #[error("none of the operations can be a tool")]
    NothingLeft {
        /// Why not.
        warnings: Vec<Warning>,
    },
}

impl OpenApiError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            OpenApiError::NotOpenApi => "name the document itself, not a page that shows it".to_owned(),
            OpenApiError::Swagger(_) => "convert it to OpenAPI 3 first, with swagger2openapi for example".to_owned(),
            OpenApiError::Version(_) => "3.0 and 3.1 can be read".to_owned(),
            OpenApiError::Name(_) => {
                "a name has at most 32 ASCII letters, digits, `_` and `-`, starts with a letter and has no `__`"
                    .to_owned()
            }
            OpenApiError::NoServer | OpenApiError::RelativeServer(_) | OpenApiError::OpenServer(_) => {
                "say the address: `--server https://api.example.com/v1`".to_owned()
            }
            OpenApiError::NothingMatches { known, count } => {
                let more = if *count > known.len() { ", …" } else { "" };
                format!("the operations are {}{more}", known.join(", "))
            }
            OpenApiError::NoOperations | OpenApiError::NothingLeft { .. } => return None,
        })
    }
}
