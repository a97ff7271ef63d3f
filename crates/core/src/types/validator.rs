//! Validation of calls, prepared once per tool.

use crate::types::definition::Definition;
use crate::types::schema::collect_record_names;
use crate::types::signature::{Mismatch, Record, SchemaCache, check_arguments, check_value, fill_defaults};
use serde_json::{Map, Value as Json};
use std::collections::HashSet;
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

/// Returns the record types that a tool refers to, directly or indirectly. A toolbox may have thousands of others.
fn referenced_records(definition: &Definition) -> Vec<&Record> {
    let mut open = Vec::new();
    definition.signature.parameters.iter().for_each(|parameter| collect_record_names(&parameter.ty, &mut open));
    collect_record_names(&definition.signature.returns, &mut open);
    let mut seen = HashSet::new();
    let mut records = Vec::new();
    while let Some(name) = open.pop() {
        if seen.insert(name)
            && let Some(record) = definition.records.get(name)
        {
            record.fields.iter().for_each(|field| collect_record_names(&field.ty, &mut open));
            records.push(record);
        }
    }
    records
}

impl Validator {
    /// Compiles the patterns and schemas of a tool.
    pub fn new(definition: Arc<Definition>) -> Self {
        let mut cache = SchemaCache::default();
        cache.add_fields(&definition.signature.parameters);
        cache.add(&definition.signature.returns);
        for record in referenced_records(&definition) {
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
