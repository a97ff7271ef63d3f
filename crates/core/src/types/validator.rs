//! Validation of calls, prepared once per tool.

use crate::types::definition::Definition;
use crate::types::signature::{Mismatch, SchemaCache, check_arguments, check_value, fill_defaults};
use serde_json::{Map, Value as Json};
use std::sync::Arc;

/// Checks the arguments and results of a tool, with its patterns and schemas compiled once.
///
/// ```
/// use patter_core::{types::definition::Definition, types::validator::Validator};
/// use serde_json::json;
/// let tool = Definition::new("zip", "Finds a town", "(code::Text {pattern: '^[0-9]{4}$'})==>(::Text)").unwrap();
/// let validator = Validator::new(tool.into());
/// assert!(validator.check_arguments(&json!({"code": "3011"})).is_ok());
/// assert!(validator.check_arguments(&json!({"code": "Bern"})).is_err());
/// assert!(validator.check_result(&json!("Bern")).is_ok());
/// ```
#[derive(Debug)]
pub struct Validator {
    definition: Arc<Definition>,
    cache: SchemaCache,
}

impl Validator {
    /// Compiles the patterns and schemas of a tool.
    pub fn new(definition: Arc<Definition>) -> Self {
        let mut cache = SchemaCache::default();
        cache.add_fields(&definition.signature.parameters);
        cache.add(&definition.signature.returns);
        for (_, record) in definition.records.iter() {
            cache.add_fields(&record.fields);
        }
        Self { definition, cache }
    }

    /// Returns the definition of the tool.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Fills in the defaults of omitted arguments, and converts whole floats such as `1.0` to integers where an `Int` is
    /// expected. Returns the number of defaults filled in.
    pub fn fill_defaults(&self, arguments: &mut Map<String, Json>) -> usize {
        fill_defaults(&self.definition.signature.parameters, arguments, &self.definition.records)
    }

    /// Checks arguments whose defaults have been filled in.
    pub fn check_arguments(&self, arguments: &Json) -> Result<(), Vec<Mismatch>> {
        let Definition { signature, records, .. } = &*self.definition;
        check_arguments(&signature.parameters, arguments, records, &self.cache)
    }

    /// Checks a result.
    pub fn check_result(&self, result: &Json) -> Result<(), Vec<Mismatch>> {
        let Definition { signature, records, .. } = &*self.definition;
        check_value(&signature.returns, result, records, &self.cache)
    }
}
