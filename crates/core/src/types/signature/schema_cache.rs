//! Compiled patterns and schemas, and indexed lists of values.

use super::validate::json_eq;
use super::value_index::ValueIndex;
use super::{Field, Shape, Type};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// The length of a list up to which it is searched instead of indexed.
const MAX_SEARCHED: usize = 16;

/// Compiled patterns and schemas of types, and their lists of allowed values, by address: the owner of the cache must keep
/// the types alive and unchanged. What is not in the cache is compiled on demand.
#[derive(Debug, Default)]
pub(crate) struct SchemaCache {
    by_address: HashMap<usize, Result<jsonschema::Validator, String>>,
    /// Lists that are too long to search.
    lists: HashMap<usize, ValueIndex>,
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
        if let Some(allowed) = ty.facets.allowed.as_ref().filter(|allowed| allowed.len() > MAX_SEARCHED) {
            self.lists.insert(address(allowed), ValueIndex::new(allowed));
        }
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

    /// Returns whether a list contains a value.
    pub(super) fn lists(&self, allowed: &Vec<Json>, value: &Json) -> bool {
        match self.lists.get(&address(allowed)) {
            Some(index) => index.contains(allowed, value),
            None => allowed.iter().any(|allowed| json_eq(allowed, value)),
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
