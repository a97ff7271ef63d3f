//! Definitions of tools, without their implementation.

use crate::types::compatibility::Contract;
use crate::types::schema::{input_schema, output_schema};
use crate::types::signature::{Records, Signature, SignatureError};
use patter_gram::{Value, quote_name};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use thiserror::Error;

/// The definition of a tool: its name, description and signature.
///
/// ```
/// use patter_core::types::definition::Definition;
/// let greet = Definition::new("sayHello", "Greets", "(name::Text)==>(::Text)").unwrap();
/// assert_eq!(greet.input_schema()["required"][0], "name");
/// assert_eq!(greet.to_string(), "[sayHello:Tool { description: \"Greets\" } | (name::Text)==>(::Text)]");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The name within its toolbox.
    pub name: String,
    /// What the tool does, for people and models.
    pub description: String,
    /// The parameters and the result.
    pub signature: Signature,
    /// The record types that the signature may refer to.
    pub records: Arc<Records>,
}

/// An error in the definition of a tool.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DefinitionError {
    /// The name is missing.
    #[error("the tool has no name")]
    Unnamed,
    /// The description is missing.
    #[error("the tool `{0}` has no description")]
    Undescribed(String),
    /// The signature is invalid.
    #[error("tool `{name}`: {error}")]
    Signature {
        /// The name of the tool.
        name: String,
        /// The error in the signature.
        error: SignatureError,
    },
}

impl Definition {
    /// Defines a tool from the text of its signature, which refers to no record types.
    pub fn new(name: &str, description: &str, signature: &str) -> Result<Self, DefinitionError> {
        let failed = |error| DefinitionError::Signature { name: name.to_owned(), error };
        let signature = Signature::parse(signature).map_err(failed)?;
        Ok(Self {
            name: name.to_owned(),
            description: description.to_owned(),
            signature,
            records: Arc::new(Records::default()),
        })
    }

    /// Returns the contract of the tool, for comparison with another.
    pub fn contract(&self) -> Contract<'_> {
        let Self { name, description, signature, records } = self;
        Contract { name, description, signature, records }
    }

    /// Returns the schema of the arguments.
    pub fn input_schema(&self) -> Json {
        input_schema(&self.signature, &self.records)
    }

    /// Returns the schema of the result.
    pub fn output_schema(&self) -> Json {
        output_schema(&self.signature, &self.records)
    }

    /// Returns a hash of both schemas, in hexadecimal. Tools with the same schemas have the same hash.
    pub fn schema_hash(&self) -> String {
        let schemas = json!({"input": self.input_schema(), "output": self.output_schema()});
        hash(schemas.to_string().as_bytes())
    }
}

/// Formats the definition as a declaration in gram. Record types are not included.
impl std::fmt::Display for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let properties = Value::Map(vec![("description".to_owned(), self.description.as_str().into())]);
        write!(f, "[{}:Tool {properties} | {}]", quote_name(&self.name), self.signature)
    }
}

/// Returns the SHA-256 hash of bytes, in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
