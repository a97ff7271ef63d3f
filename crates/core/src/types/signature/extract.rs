//! Extraction of schemas from their document, with everything that they refer to.

use super::schema_error::SchemaError;
use super::{Facets, Shape, Type};
use crate::types::keyword::{free_name, is_definitions, map_subschemas, pointer, reference_to, unescape_token};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

/// The maximum number of schemas to copy from a document.
const MAX_COPIED: usize = 100_000;

/// Extracts schemas from a document.
pub(super) struct SchemaExtractor<'d> {
    document: &'d Json,
    copied: usize,
    /// The first error.
    pub(super) error: Option<SchemaError>,
}

impl<'d> SchemaExtractor<'d> {
    pub(super) fn new(document: &'d Json) -> Self {
        Self { document, copied: 0, error: None }
    }

    /// Returns a type for a schema. References are rewritten to point into the type's own definitions; the description
    /// becomes that of the type, and the default is dropped.
    pub(super) fn extract_type(&mut self, schema: &Json) -> Type {
        let mut names = IndexMap::new();
        let Json::Object(mut body) = self.copy(schema, &mut names) else {
            return Type::new(Shape::Schema(schema.clone()));
        };
        let description = match body.shift_remove("description") {
            Some(Json::String(text)) => Some(text),
            _ => None,
        };
        body.shift_remove("default");
        let facets = Facets { description, ..Facets::default() };
        if let (1, Some([Json::Bool(one)])) =
            (body.len(), body.get("allOf").and_then(Json::as_array).map(Vec::as_slice))
        {
            return Type { shape: Shape::Schema(Json::Bool(*one)), facets };
        }
        let mut definitions = Map::new();
        let mut next = 0;
        while let Some((target, name)) = names.get_index(next).map(|(target, name)| (target.clone(), name.clone())) {
            next += 1;
            if let Some(definition) = self.document.pointer(&target) {
                definitions.insert(name, self.copy(definition, &mut names));
            }
        }
        if !definitions.is_empty() {
            body.insert("$defs".to_owned(), Json::Object(definitions));
        }
        Type { shape: Shape::Schema(Json::Object(body)), facets }
    }

    /// Copies a schema, and assigns a definition name to each target of its references.
    fn copy(&mut self, schema: &Json, names: &mut IndexMap<String, String>) -> Json {
        self.copied += 1;
        if self.copied > MAX_COPIED {
            self.error.get_or_insert(SchemaError::TooLarge);
            return Json::Bool(true);
        }
        let Json::Object(map) = schema else { return schema.clone() };
        let kept = map.iter().filter(|(keyword, _)| !is_definitions(keyword) && !is_identity(keyword));
        let kept: Map<_, _> = kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
        let mut body = map_subschemas(&kept, &mut |_, child| self.copy(child, names));
        if let Some(Json::String(reference)) = body.get_mut("$ref") {
            match pointer(reference).filter(|target| self.document.pointer(target).is_some()) {
                Some(target) => *reference = reference_to(definition_name(target, names)),
                None => {
                    self.error.get_or_insert(SchemaError::Reference(reference.clone()));
                }
            }
        }
        Json::Object(body)
    }
}

/// Returns whether a keyword identifies a schema for kinds of references that are not supported.
fn is_identity(keyword: &str) -> bool {
    matches!(keyword, "$id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor")
}

/// Returns the definition name of a target, and assigns one if needed.
fn definition_name(target: String, names: &mut IndexMap<String, String>) -> &str {
    let wanted = match target.rsplit('/').next().unwrap_or_default() {
        "" => "Root".to_owned(),
        token => unescape_token(token),
    };
    let name = match names.get(&target) {
        Some(name) => name.clone(),
        None => free_name(&wanted, |name| !names.values().any(|other| other == name)),
    };
    names.entry(target).or_insert(name)
}
