//! Objects merged with the members of their `allOf`.

use super::simple::is_nullable;
use crate::openapi::document::{MAX_DESCRIPTION, text_property};
use crate::openapi::warning::Warnings;
use crate::types::keyword::{is_annotation, pointer};
use indexmap::{IndexMap, IndexSet};
use serde_json::{Map, Value as Json};
use std::collections::HashSet;

/// The maximum nesting depth of `allOf`, including references.
const MAX_DEPTH: usize = 32;
/// The supported keywords of an object. Further constraints are left to the server.
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

/// The properties of an object, including those of `allOf`.
#[derive(Default)]
pub(in crate::openapi) struct MergedObject<'d> {
    pub(in crate::openapi) properties: IndexMap<&'d str, &'d Json>,
    pub(in crate::openapi) description: Option<String>,
    required: IndexSet<&'d str>,
    pub(super) is_nullable: bool,
}

impl<'d> MergedObject<'d> {
    /// Merges an object or a reference to one. Returns `None` if it is more than a set of properties.
    pub(super) fn merge(document: &'d Json, schema: &'d Json, warnings: &mut Warnings) -> Option<Self> {
        let mut merged = Self::default();
        merged.add(&mut MergeWalk::new(document), schema, warnings)?;
        Some(merged)
    }

    pub(super) fn merge_map(document: &'d Json, map: &'d Map<String, Json>, warnings: &mut Warnings) -> Option<Self> {
        let mut merged = Self::default();
        merged.add_map(&mut MergeWalk::new(document), map, warnings)?;
        Some(merged)
    }

    /// Iterates over the required properties, except those that only requests or only responses have.
    pub(in crate::openapi) fn required(&self) -> impl Iterator<Item = &'d str> {
        let is_one_sided = |name: &&str| {
            let schema = self.properties.get(*name);
            schema.is_some_and(|schema| is_set(schema, "readOnly") || is_set(schema, "writeOnly"))
        };
        self.required.iter().copied().filter(move |name| !is_one_sided(name))
    }

    fn add(&mut self, walk: &mut MergeWalk<'d>, schema: &'d Json, warnings: &mut Warnings) -> Option<()> {
        let map = schema.as_object()?;
        let Some(reference) = map.get("$ref").and_then(Json::as_str) else {
            return self.add_map(walk, map, warnings);
        };
        let target = pointer(reference)?;
        let next = walk.document.pointer(&target)?;
        if walk.path.contains(&target) {
            warnings.add(format!("`allOf` refers to itself through `{reference}`; ignored"));
            return Some(());
        }
        // Each target is added once, which also bounds the work if paths multiply.
        if !walk.seen.insert(target.clone()) {
            return Some(());
        }
        walk.path.push(target);
        let added = self.add(walk, next, warnings);
        walk.path.pop();
        added
    }

    fn add_map(&mut self, walk: &mut MergeWalk<'d>, map: &'d Map<String, Json>, warnings: &mut Warnings) -> Option<()> {
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
        for keyword in map.keys().filter(|keyword| !OBJECT.contains(&keyword.as_str()) && !is_annotation(keyword)) {
            match keyword.as_str() {
                "oneOf" | "anyOf" if !has_properties => return None,
                "enum" | "const" | "$ref" => return None,
                "nullable" => {}
                other => warnings.add(format!("`{other}` of an object is not supported; left out")),
            }
        }
        if walk.depth >= MAX_DEPTH {
            warnings.add("`allOf` is nested too deeply; the rest is left out");
            return Some(());
        }
        walk.depth += 1;
        for member in map.get("allOf").and_then(Json::as_array).into_iter().flatten() {
            self.add(walk, member, warnings)?;
        }
        walk.depth -= 1;
        self.is_nullable = is_nullable(map);
        self.description = text_property(map, "description", MAX_DESCRIPTION).or(self.description.take());
        let properties = map.get("properties").and_then(Json::as_object);
        self.properties.extend(properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema)));
        let required = map.get("required").and_then(Json::as_array);
        self.required.extend(required.into_iter().flatten().filter_map(Json::as_str));
        Some(())
    }
}

/// The state of a merge.
struct MergeWalk<'d> {
    document: &'d Json,
    /// The chain of references to the current schema.
    path: Vec<String>,
    /// All references followed so far.
    seen: HashSet<String>,
    depth: usize,
}

impl<'d> MergeWalk<'d> {
    fn new(document: &'d Json) -> Self {
        Self { document, path: Vec::new(), seen: HashSet::new(), depth: 0 }
    }
}

/// Returns whether a flag of a schema is set.
pub(in crate::openapi) fn is_set(schema: &Json, flag: &str) -> bool {
    schema.get(flag) == Some(&Json::Bool(true))
}
