//! Compiled patterns and schemas.

use super::{Field, Shape, Type};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// Compiled patterns and schemas of types, by their address: the owner of the cache must keep the types alive and
/// unchanged. Patterns and schemas that are not in the cache are compiled on demand.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache {
    by_address: HashMap<usize, Result<jsonschema::Validator, String>>,
}

impl SchemaCache {
    /// Compiles the patterns and schemas of some fields.
    pub(crate) fn add_fields(&mut self, fields: &[Field]) {
        for field in fields {
            self.add(&field.ty);
        }
    }

    /// Compiles the patterns and schemas of a type.
    pub(crate) fn add(&mut self, ty: &Type) {
        if let Some(pattern) = &ty.facets.pattern {
            self.by_address.insert(address(pattern), compile(&json!({ "pattern": pattern })));
        }
        match &ty.shape {
            Shape::Schema(schema) => {
                self.by_address.insert(address(schema), compile(schema));
            }
            Shape::Array(item) => self.add(item),
            Shape::Object(fields) => self.add_fields(fields),
            Shape::Any | Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean | Shape::Record(_) => {}
        }
    }

    /// Validates a value against a schema. A schema from outside may be invalid; then it allows no value.
    pub(super) fn validate(&self, schema: &Json, value: &Json) -> Result<(), String> {
        let check = |schema: &jsonschema::Validator| schema.validate(value).map_err(|error| error.to_string());
        self.with(address(schema), || compile(schema), check)
    }

    /// Returns whether some part of a text matches a pattern. Patterns are those of JSON Schema, so `\d` is `[0-9]`.
    pub(super) fn matches(&self, pattern: &String, text: &Json) -> bool {
        let check = |schema: &jsonschema::Validator| if schema.is_valid(text) { Ok(()) } else { Err(String::new()) };
        self.with(address(pattern), || compile(&json!({ "pattern": pattern })), check).is_ok()
    }

    fn with(
        &self,
        address: usize,
        compile: impl FnOnce() -> Result<jsonschema::Validator, String>,
        check: impl FnOnce(&jsonschema::Validator) -> Result<(), String>,
    ) -> Result<(), String> {
        let fresh;
        let validator = match self.by_address.get(&address) {
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

fn address<T>(value: &T) -> usize {
    std::ptr::from_ref(value).addr()
}
