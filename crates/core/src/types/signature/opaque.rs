//! Schemas that stay schemas: cut out of their document, with all that they refer to.

use super::from_schema::SchemaError;
use super::{Facets, Shape, Type};
use crate::types::keyword::{free_name, is_definitions, map_children, pointer, reference_to, unescaped};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

/// How many schemas are carried along, over all.
const MOST_CARRIED: usize = 100_000;

/// Cuts schemas out of a document.
pub(super) struct Opaque<'d> {
    document: &'d Json,
    carried: usize,
    /// What went wrong first.
    pub(super) error: Option<SchemaError>,
}

impl<'d> Opaque<'d> {
    pub(super) fn new(document: &'d Json) -> Self {
        Self { document, carried: 0, error: None }
    }

    /// Returns a schema as a type. Its references point into itself; its description is the type's, its default nobody's.
    pub(super) fn ty(&mut self, schema: &Json) -> Type {
        let mut names = IndexMap::new();
        let Json::Object(mut body) = self.cut(schema, &mut names) else {
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
                definitions.insert(name, self.cut(definition, &mut names));
            }
        }
        if !definitions.is_empty() {
            body.insert("$defs".to_owned(), Json::Object(definitions));
        }
        Type { shape: Shape::Schema(Json::Object(body)), facets }
    }

    /// Copies a schema, and gives each thing that it refers to a name among definitions.
    fn cut(&mut self, schema: &Json, names: &mut IndexMap<String, String>) -> Json {
        self.carried += 1;
        if self.carried > MOST_CARRIED {
            self.error.get_or_insert(SchemaError::TooLarge);
            return Json::Bool(true);
        }
        let Json::Object(map) = schema else { return schema.clone() };
        let kept = map.iter().filter(|(keyword, _)| !is_definitions(keyword) && !is_identity(keyword));
        let kept: Map<_, _> = kept.map(|(keyword, value)| (keyword.clone(), value.clone())).collect();
        let mut body = map_children(&kept, &mut |_, child| self.cut(child, names));
        if let Some(Json::String(reference)) = body.get_mut("$ref") {
            match pointer(reference).filter(|target| self.document.pointer(target).is_some()) {
                Some(target) => *reference = reference_to(name_of(target, names)),
                None => {
                    self.error.get_or_insert(SchemaError::Reference(reference.clone()));
                }
            }
        }
        Json::Object(body)
    }
}

/// Tells whether a keyword names a schema for references that are not followed here.
fn is_identity(keyword: &str) -> bool {
    matches!(keyword, "$id" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor")
}

/// Returns the name that a definition has, or gets.
fn name_of(target: String, names: &mut IndexMap<String, String>) -> &str {
    let wanted = match target.rsplit('/').next().unwrap_or_default() {
        "" => "Root".to_owned(),
        token => unescaped(token),
    };
    let name = match names.get(&target) {
        Some(name) => name.clone(),
        None => free_name(&wanted, |name| !names.values().any(|other| other == name)),
    };
    names.entry(target).or_insert(name)
}
