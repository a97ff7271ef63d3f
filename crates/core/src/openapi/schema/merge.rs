//! Objects, with all that `allOf` adds to them.

use super::super::Notes;
use super::super::document::text_of;
use super::LONGEST_DESCRIPTION;
use super::simple::is_nullable;
use crate::types::keyword::{is_silent, pointer};
use indexmap::{IndexMap, IndexSet};
use serde_json::{Map, Value as Json};
use std::collections::HashSet;

/// How deep `allOf` may nest, references included.
const DEEPEST: usize = 32;
/// What an object may say beside its properties. What narrows it further is left to the server.
const OBJECT: &[&str] = &[
    "type",
    "properties",
    "required",
    "allOf",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "discriminator",
    "xml",
    "externalDocs",
    "unevaluatedProperties",
];

/// The properties of an object, its own and those that `allOf` adds.
#[derive(Default)]
pub(in super::super) struct Merged<'d> {
    pub(in super::super) properties: IndexMap<&'d str, &'d Json>,
    pub(in super::super) description: Option<String>,
    required: IndexSet<&'d str>,
    pub(super) is_nullable: bool,
}

impl<'d> Merged<'d> {
    /// Merges an object, or what a reference to one points to; `None` where it is more than properties.
    pub(super) fn of(document: &'d Json, schema: &'d Json, notes: &mut Notes) -> Option<Self> {
        let mut merged = Self::default();
        merged.add(&mut Walk::new(document), schema, notes)?;
        Some(merged)
    }

    pub(super) fn of_map(document: &'d Json, map: &'d Map<String, Json>, notes: &mut Notes) -> Option<Self> {
        let mut merged = Self::default();
        merged.add_map(&mut Walk::new(document), map, notes)?;
        Some(merged)
    }

    /// Iterates over what must be there. What only one side of the exchange has cannot be required of both.
    pub(in super::super) fn required(&self) -> impl Iterator<Item = &'d str> {
        let is_one_sided = |name: &&str| {
            let schema = self.properties.get(*name);
            schema.is_some_and(|schema| is_set(schema, "readOnly") || is_set(schema, "writeOnly"))
        };
        self.required.iter().copied().filter(move |name| !is_one_sided(name))
    }

    fn add(&mut self, walk: &mut Walk<'d>, schema: &'d Json, notes: &mut Notes) -> Option<()> {
        let map = schema.as_object()?;
        let Some(reference) = map.get("$ref").and_then(Json::as_str) else {
            return self.add_map(walk, map, notes);
        };
        let target = pointer(reference)?;
        let next = walk.document.pointer(&target)?;
        if walk.way.contains(&target) {
            notes.add(format!("`allOf` goes in a circle by `{reference}`, which adds nothing"));
            return Some(());
        }
        // What was added before adds nothing again, and ways that multiply end.
        if !walk.seen.insert(target.clone()) {
            return Some(());
        }
        walk.way.push(target);
        let added = self.add(walk, next, notes);
        walk.way.pop();
        added
    }

    fn add_map(&mut self, walk: &mut Walk<'d>, map: &'d Map<String, Json>, notes: &mut Notes) -> Option<()> {
        let is_object = match map.get("type") {
            None => {
                ["properties", "allOf", "required", "additionalProperties"].iter().any(|key| map.contains_key(*key))
            }
            Some(Json::String(name)) => name == "object",
            Some(Json::Array(names)) => names.iter().all(|name| name == "object" || name == "null"),
            Some(_) => false,
        };
        if !is_object {
            return None;
        }
        let has_properties = map.get("properties").is_some_and(Json::is_object);
        for keyword in map.keys().filter(|keyword| !OBJECT.contains(&keyword.as_str()) && !is_silent(keyword)) {
            match keyword.as_str() {
                "oneOf" | "anyOf" if !has_properties => return None,
                "enum" | "const" | "$ref" => return None,
                "nullable" => {}
                other => notes.add(format!("`{other}` of an object is left out of its type")),
            }
        }
        if walk.depth >= DEEPEST {
            notes.add("`allOf` nests too deep, and what is beyond is left out");
            return Some(());
        }
        walk.depth += 1;
        for member in map.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            self.add(walk, member, notes)?;
        }
        walk.depth -= 1;
        self.is_nullable = is_nullable(map);
        self.description = text_of(map, "description", LONGEST_DESCRIPTION).or(self.description.take());
        let properties = map.get("properties").and_then(Json::as_object);
        self.properties.extend(properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)));
        let required = map.get("required").and_then(Json::as_array);
        self.required.extend(required.into_iter().flatten().filter_map(Json::as_str));
        Some(())
    }
}

/// Where a merge is.
struct Walk<'d> {
    document: &'d Json,
    /// The references on the way here.
    way: Vec<String>,
    /// All references that were followed.
    seen: HashSet<String>,
    depth: usize,
}

impl<'d> Walk<'d> {
    fn new(document: &'d Json) -> Self {
        Self { document, way: Vec::new(), seen: HashSet::new(), depth: 0 }
    }
}

/// Tells whether a flag of a schema is set.
pub(in super::super) fn is_set(schema: &Json, flag: &str) -> bool {
    schema.get(flag) == Some(&Json::Bool(true))
}
