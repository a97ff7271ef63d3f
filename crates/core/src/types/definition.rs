//! What a tool is, apart from how it works.

use crate::types::compatible::Contract;
use crate::types::schema::{input_schema, output_schema};
use crate::types::signature::{Records, Signature, SignatureError};
use patter_gram::{Value, quote_name};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use thiserror::Error;

/// What a tool is: its own name, what it does, and what it takes and gives.
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
    /// What it does, for people and models.
    pub description: String,
    /// What it takes and gives.
    pub signature: Signature,
    /// The record types that the signature may name.
    pub records: Arc<Records>,
}

/// Why a declaration defines no tool.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DefinitionError {
    /// There is no name.
    #[error("the tool has no name")]
    Unnamed,
    /// There is no description.
    #[error("the tool `{0}` has no description")]
    Undescribed(String),
    /// The signature is none.
    #[error("the signature of `{name}` is wrong: {error}")]
    Signature {
        /// The tool.
        name: String,
        /// What is wrong.
        error: SignatureError,
    },
}

impl Definition {
    /// Defines a tool whose signature is written as text and names no record types.
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

    /// Returns it as something to compare.
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

    /// Returns a hash of the two schemas, in hexadecimal: equal if and only if the tool takes and gives the same.
    pub fn schema_hash(&self) -> String {
        let schemas = json!({"input": self.input_schema(), "output": self.output_schema()});
        hash(schemas.to_string().as_bytes())
    }
}

/// Writes the declaration, as gram. The record types that it names are declared apart.
impl std::fmt::Display for Definition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let properties = Value::Map(vec![("description".to_owned(), self.description.as_str().into())]);
        write!(f, "[{}:Tool {properties} | {}]", quote_name(&self.name), self.signature)
    }
}

/// Returns the SHA-256 of some bytes, in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
