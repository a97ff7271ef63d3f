//! Errors when reading JSON Schemas.

use thiserror::Error;

/// The maximum nesting of a schema: less than fits into JSON text, which leaves room for the definitions it carries.
pub(super) const MAX_SCHEMA_DEPTH: usize = 100;

/// An error when converting a JSON Schema to a signature.
///
/// ```
/// use patter_core::types::signature::{SchemaError, Signature};
/// let error = Signature::from_schemas(&serde_json::json!({ "type": "strng" }), None).unwrap_err();
/// assert!(matches!(error, SchemaError::Invalid(_)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SchemaError {
    /// It is not a JSON Schema.
    #[error("not a valid JSON Schema: {0}")]
    Invalid(String),
    /// It is nested too deeply.
    #[error("the schema is nested more than {MAX_SCHEMA_DEPTH} levels deep")]
    TooDeep,
    /// It becomes too large when its references are resolved.
    #[error("the schema is too large")]
    TooLarge,
    /// It contains a reference that is not a JSON pointer into the schema.
    #[error("the schema contains an unsupported reference: `{0}`")]
    Reference(String),
}
