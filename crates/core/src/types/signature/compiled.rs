//! Validation that is prepared once, for tools that are called often.

use super::validate::{check_arguments, check_value, inject};
use super::{Field, Mismatch, Shape, Type};
use crate::types::definition::Definition;
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Checks the arguments and the results of a tool, with its patterns and schemas compiled once.
///
/// ```
/// use patter_core::{types::definition::Definition, types::signature::Validator};
/// use serde_json::json;
/// let tool = Definition::new("zip", "Finds a town", "(code::Text {pattern: '^[0-9]{4}$'})==>(::Text)").unwrap();
/// let validator = Validator::new(tool.into());
/// assert!(validator.arguments(&json!({"code": "3011"})).is_ok());
/// assert!(validator.arguments(&json!({"code": "Bern"})).is_err());
/// assert!(validator.result(&json!("Bern")).is_ok());
/// ```
#[derive(Debug)]
pub struct Validator {
    definition: Arc<Definition>,
    compiled: CompiledType,
}

impl Validator {
    /// Prepares the validation of a tool.
    pub fn new(definition: Arc<Definition>) -> Self {
        let mut compiled = CompiledType::default();
        compiled.add_fields(&definition.signature.parameters);
        compiled.add(&definition.signature.returns);
        for (_, record) in definition.records.iter() {
            compiled.add_fields(&record.fields);
        }
        Self { definition, compiled }
    }

    /// Returns the tool.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Puts in the defaults of what was left out, and writes whole numbers as such where an `Int` is meant: `1.0` is `1`.
    /// Returns how many defaults.
    pub fn inject(&self, arguments: &mut Map<String, Json>) -> usize {
        inject(&self.definition.signature.parameters, arguments, &self.definition.records)
    }

    /// Checks arguments that have their defaults.
    pub fn arguments(&self, arguments: &Json) -> Result<(), Vec<Mismatch>> {
        let Definition { signature, records, .. } = &*self.definition;
        check_arguments(&signature.parameters, arguments, records, &self.compiled)
    }

    /// Checks a result.
    pub fn result(&self, result: &Json) -> Result<(), Vec<Mismatch>> {
        let Definition { signature, records, .. } = &*self.definition;
        check_value(&signature.returns, result, records, &self.compiled)
    }
}

/// Patterns and schemas that were compiled before, by where they stand in memory: the definition that they stand in is
/// held, and does not change. What is not among them is compiled when it is needed.
#[derive(Debug, Default)]
pub(super) struct CompiledType {
    by_place: HashMap<usize, Result<jsonschema::Validator, String>>,
}

impl CompiledType {
    fn add_fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.add(&field.ty);
        }
    }

    fn add(&mut self, ty: &Type) {
        if let Some(pattern) = &ty.facets.pattern {
            self.by_place.insert(place(pattern), compile(&json!({ "pattern": pattern })));
        }
        match &ty.shape {
            Shape::Schema(schema) => {
                self.by_place.insert(place(schema), compile(schema));
            }
            Shape::Array(item) => self.add(item),
            Shape::Object(fields) => self.add_fields(fields),
            Shape::Any | Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean | Shape::Record(_) => {}
        }
    }

    /// Tells what is wrong with a value, by a schema. A schema that came from elsewhere may be broken; then it allows
    /// nothing.
    pub(super) fn validate(&self, schema: &Json, value: &Json) -> Result<(), String> {
        self.with(place(schema), || compile(schema), |schema| schema.validate(value).map_err(|error| error.to_string()))
    }

    /// Tells whether a text matches a pattern somewhere. Patterns are those of JSON Schema, so `\d` is `[0-9]`.
    pub(super) fn matches(&self, pattern: &String, text: &Json) -> bool {
        let matches = |schema: &jsonschema::Validator| if schema.is_valid(text) { Ok(()) } else { Err(String::new()) };
        self.with(place(pattern), || compile(&json!({ "pattern": pattern })), matches).is_ok()
    }

    fn with(
        &self,
        place: usize,
        compile: impl FnOnce() -> Result<jsonschema::Validator, String>,
        check: impl FnOnce(&jsonschema::Validator) -> Result<(), String>,
    ) -> Result<(), String> {
        let fresh;
        let validator = match self.by_place.get(&place) {
            Some(validator) => validator,
            None => {
                fresh = compile();
                &fresh
            }
        };
        check(validator.as_ref().map_err(Clone::clone)?)
    }
}

fn compile(schema: &Json) -> Result<jsonschema::Validator, String> {
    jsonschema::validator_for(schema).map_err(|error| error.to_string())
}

fn place<T>(value: &T) -> usize {
    std::ptr::from_ref(value).addr()
}
