//! Conversion of OpenAPI schemas to plain JSON Schemas, whose only references are to record types.
//!
//! Each object among the components becomes a record type. Other references are inlined, up to a depth and a size; anything
//! beyond is treated as `Any`, with a warning.

mod simple;
mod merge;

use super::document::{MAX_DESCRIPTION, text_property};
use super::warning::Warnings;
use crate::check::infinite_records;
use crate::types::keyword::{collect_references, free_name, pointer, reference_to, unescape_token};
use crate::types::signature::{Presence, Record, RecordNaming, Records, Signature, Type, is_type_name};
use indexmap::IndexMap;
use merge::MergedObject;
pub(super) use merge::is_set;
use serde_json::{Map, Value as Json, json};
use simple::schema_of;
use std::collections::HashSet;

/// The maximum nesting depth of schemas, including references.
const MAX_DEPTH: usize = 14;
/// The maximum number of schemas in one type.
const MAX_PARTS: usize = 2_000;
/// The maximum number of schemas nested in one that stays a JSON Schema.
const MAX_NESTED_PARTS: usize = 80;

/// The position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    /// A parameter or a field.
    Named,
    /// A result, or the items of an array.
    Anonymous,
    /// Inside a schema that no type can express, where record types are not available.
    Nested,
}

pub(super) struct Schemas<'d> {
    document: &'d Json,
    /// The names of record types by their pointers; `None` for other schemas.
    record_names: IndexMap<String, Option<String>>,
    used_names: HashSet<String>,
    parts: usize,
    nested_parts: usize,
}

/// The chain of references to the current schema, and its depth.
#[derive(Default)]
struct SchemaPath {
    targets: Vec<String>,
    depth: usize,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: &'d Json) -> Self {
        Self { document, record_names: IndexMap::new(), used_names: HashSet::new(), parts: 0, nested_parts: 0 }
    }

    /// Converts a schema to a plain one.
    pub(super) fn plain(&mut self, schema: &'d Json, position: SchemaPosition, warnings: &mut Warnings) -> Json {
        self.parts = 0;
        self.nested_parts = 0;
        self.convert(schema, position, &mut SchemaPath::default(), warnings)
    }

    /// Returns the properties of an object. `None` if the schema is more than an object.
    pub(super) fn properties(&self, schema: &'d Json, warnings: &mut Warnings) -> Option<MergedObject<'d>> {
        let merged = MergedObject::merge(self.document, schema, warnings)?;
        (!merged.is_nullable && !merged.properties.is_empty()).then_some(merged)
    }

    /// Reads a signature from plain schemas.
    pub(super) fn signature(input: Map<String, Json>, output: Json) -> Result<Signature, String> {
        let input = with_stubs(Json::Object(input));
        let output = with_stubs(output);
        let converted = Signature::from_schemas_naming(&input, Some(&output), RecordNaming::AllObjects);
        converted.map(|converted| converted.signature).map_err(|error| error.to_string())
    }

    /// Returns all record types in use, including those that other record types refer to.
    pub(super) fn records(&mut self, warnings: &mut Warnings) -> Records {
        let mut records = Records::default();
        let mut next = 0;
        while let Some((target, name)) =
            self.record_names.get_index(next).map(|(target, name)| (target.clone(), name.clone()))
        {
            next += 1;
            let (Some(name), Some(schema)) = (name, self.document.pointer(&target)) else { continue };
            warnings.location = format!("schema {}", unescape_token(target.rsplit('/').next().unwrap_or_default()));
            let Some(merged) = MergedObject::merge(self.document, schema, warnings) else { continue };
            self.parts = 0;
            self.nested_parts = 0;
            let mut path = SchemaPath { targets: vec![target], depth: 0 };
            let body = self.convert_object(&merged, SchemaPosition::Anonymous, &mut path, warnings);
            let fields = match Self::signature(body, json!({})) {
                Ok(signature) => signature.parameters,
                Err(error) => {
                    warnings.add(format!("treated as any object: {error}"));
                    Vec::new()
                }
            };
            records.insert(name, Record { description: merged.description, fields });
        }
        make_finite(records, warnings)
    }

    fn convert(
        &mut self,
        schema: &'d Json,
        position: SchemaPosition,
        path: &mut SchemaPath,
        warnings: &mut Warnings,
    ) -> Json {
        let Json::Object(map) = schema else { return json!({}) };
        self.parts += 1;
        self.nested_parts += usize::from(position == SchemaPosition::Nested);
        if path.depth >= MAX_DEPTH || self.parts > MAX_PARTS || self.nested_parts > MAX_NESTED_PARTS {
            warnings.add("a type is too large; parts of it are treated as `Any`");
            return json!({});
        }
        path.depth += 1;
        let is_nullable = simple::is_nullable(map);
        // What may be null is written out, instead of being named.
        let inner = if is_nullable && position == SchemaPosition::Named { SchemaPosition::Nested } else { position };
        let mut plain = self.convert_non_null(map, inner, path, warnings);
        if is_nullable {
            plain = simple::with_null(plain);
        }
        if let Some(description) = text_property(map, "description", MAX_DESCRIPTION) {
            plain.insert("description".to_owned(), description.into());
        }
        path.depth -= 1;
        Json::Object(plain)
    }

    fn convert_non_null(
        &mut self,
        map: &'d Map<String, Json>,
        position: SchemaPosition,
        path: &mut SchemaPath,
        warnings: &mut Warnings,
    ) -> Map<String, Json> {
        if let Some(reference) = map.get("$ref").and_then(Json::as_str) {
            return self.convert_reference(reference, position, path, warnings);
        }
        let schemas = |keyword: &str| map.get(keyword).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
        let is_object = map.contains_key("properties");
        if let ([one], false) = (schemas("allOf"), is_object) {
            return self.convert_map(one, position, path, warnings);
        }
        let options: Vec<_> =
            schemas("oneOf").iter().chain(schemas("anyOf")).filter(|option| !simple::is_null(option)).collect();
        match options.as_slice() {
            _ if is_object => {}
            [] => {}
            [one] => return self.convert_map(one, position, path, warnings),
            _ => {
                if let Some(allowed) = simple::combine_texts(&options) {
                    return allowed;
                }
                let options: Vec<_> =
                    options.iter().map(|option| self.convert(option, SchemaPosition::Nested, path, warnings)).collect();
                return schema_of([("anyOf", Json::Array(options))]);
            }
        }
        if let Some(merged) = MergedObject::merge_map(self.document, map, warnings) {
            return match simple::map_values(map).filter(|_| merged.properties.is_empty()) {
                Some(values) => {
                    let values = self.convert(values, SchemaPosition::Nested, path, warnings);
                    schema_of([("type", "object".into()), ("additionalProperties", values)])
                }
                None => self.convert_object(&merged, position, path, warnings),
            };
        }
        if let [_, ..] = schemas("allOf") {
            let all: Vec<_> =
                schemas("allOf").iter().map(|one| self.convert(one, SchemaPosition::Nested, path, warnings)).collect();
            return schema_of([("allOf", Json::Array(all))]);
        }
        let mut plain = simple::supported_keywords(map, warnings);
        if plain.get("type").is_some_and(|name| name == "array") {
            let position = if position == SchemaPosition::Nested { position } else { SchemaPosition::Anonymous };
            let items =
                map.get("items").map_or_else(|| json!({}), |items| self.convert(items, position, path, warnings));
            plain.insert("items".to_owned(), items);
        }
        plain
    }

    fn convert_map(
        &mut self,
        schema: &'d Json,
        position: SchemaPosition,
        path: &mut SchemaPath,
        warnings: &mut Warnings,
    ) -> Map<String, Json> {
        match self.convert(schema, position, path, warnings) {
            Json::Object(map) => map,
            _ => Map::new(),
        }
    }

    fn convert_object(
        &mut self,
        merged: &MergedObject<'d>,
        position: SchemaPosition,
        path: &mut SchemaPath,
        warnings: &mut Warnings,
    ) -> Map<String, Json> {
        let position = if position == SchemaPosition::Nested { position } else { SchemaPosition::Named };
        let mut properties = Map::new();
        for (name, schema) in &merged.properties {
            properties.insert((*name).to_owned(), self.convert(schema, position, path, warnings));
        }
        let mut object = schema_of([("type", "object".into()), ("properties", Json::Object(properties))]);
        let required: Vec<_> = merged.required().map(Json::from).collect();
        if !required.is_empty() {
            object.insert("required".to_owned(), Json::Array(required));
        }
        object
    }

    fn convert_reference(
        &mut self,
        reference: &str,
        position: SchemaPosition,
        path: &mut SchemaPath,
        warnings: &mut Warnings,
    ) -> Map<String, Json> {
        let found = pointer(reference).and_then(|target| Some((self.document.pointer(&target)?, target)));
        let Some((schema, target)) = found else {
            warnings.add(format!("`{reference}` is not in this document; treated as `Any`"));
            return Map::new();
        };
        match self.record_name(schema, &target) {
            Some(name) if position != SchemaPosition::Nested => {
                return schema_of([("$ref", reference_to(&name).into())]);
            }
            // Recursion cannot be expressed here.
            Some(_) if path.targets.contains(&target) => return schema_of([("type", "object".into())]),
            None if path.targets.contains(&target) => return Map::new(),
            _ => {}
        }
        path.targets.push(target);
        let plain = self.convert_map(schema, position, path, warnings);
        path.targets.pop();
        plain
    }

    /// Returns the name of a component's record type, if it is one.
    fn record_name(&mut self, schema: &'d Json, target: &str) -> Option<String> {
        if let Some(known) = self.record_names.get(target) {
            return known.clone();
        }
        let component = target.strip_prefix("/components/schemas/").filter(|name| !name.contains('/'));
        // Warnings about it are added when its fields are read.
        let is_record = schema.get("$ref").is_none() && self.properties(schema, &mut Warnings::default()).is_some();
        let name = component.filter(|_| is_record).map(|component| {
            let wanted = unescape_token(component);
            let wanted = if is_type_name(&wanted) { wanted } else { format!("{}Record", wanted.trim()) };
            free_name(&wanted, |name| !self.used_names.contains(name))
        });
        self.used_names.extend(name.clone());
        self.record_names.insert(target.to_owned(), name.clone());
        name
    }
}

/// Adds a stub for each record type that a schema refers to.
fn with_stubs(mut schema: Json) -> Json {
    let mut references_found = Vec::new();
    collect_references(&schema, &mut references_found);
    let names = references_found
        .into_iter()
        .filter_map(pointer)
        .filter_map(|target| Some(unescape_token(target.strip_prefix("/$defs/")?)));
    let stubs: Map<_, _> = names.map(|name| (name, json!({ "type": "object" }))).collect();
    if let (Json::Object(map), false) = (&mut schema, stubs.is_empty()) {
        map.insert("$defs".to_owned(), Json::Object(stubs));
    }
    schema
}

/// Makes fields optional in record types that no finite value could satisfy.
fn make_finite(mut records: Records, warnings: &mut Warnings) -> Records {
    loop {
        let endless = infinite_records(&records);
        if endless.is_empty() {
            return records;
        }
        let mut fixed = Records::default();
        for (name, record) in records.iter() {
            let mut record = record.clone();
            for field in record.fields.iter_mut().filter(|field| endless.contains(name) && field.ty.mentions_record()) {
                field.presence = Presence::Optional;
                let message = format!("`{}` is made optional, because no finite value could contain it", field.name);
                warnings.add_at(format!("schema {name}"), message);
            }
            fixed.insert(name, record);
        }
        records = fixed;
    }
}

/// Returns the record types that types refer to, directly or indirectly, in the order of `records`.
pub(super) fn referenced_records<'r>(
    types: impl Iterator<Item = &'r Type>,
    records: &'r Records,
) -> Vec<(&'r str, &'r Record)> {
    let mut open = Vec::new();
    types.for_each(|ty| crate::types::schema::collect_record_names(ty, &mut open));
    let mut used = HashSet::new();
    while let Some(name) = open.pop() {
        if used.insert(name)
            && let Some(record) = records.get(name)
        {
            record.fields.iter().for_each(|field| crate::types::schema::collect_record_names(&field.ty, &mut open));
        }
    }
    records.iter().filter(|(name, _)| used.contains(name)).collect()
}
