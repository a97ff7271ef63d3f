//! JSON Schemas of signatures, stable and in declared order.

use crate::types::keyword::{
    collect_references, free_name, is_definitions, map_references, pointer, reference_to, unescape_token,
};
use crate::types::signature::{Facets, Field, Presence, Records, Shape, Signature, Type};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// Returns the schema of the arguments: an object with the parameters in declared order.
///
/// ```
/// use patter_core::{types::schema::input_schema, types::signature::{Records, Signature}};
/// let signature = Signature::parse("(personName::Text)==>(age::Int {default:18})==>(::String)").unwrap();
/// assert_eq!(
///     input_schema(&signature, &Records::default()).to_string(),
///     r#"{"type":"object","properties":{"personName":{"type":"string"},"age":{"type":"integer","default":18}},"required":["personName"]}"#
/// );
/// ```
pub fn input_schema(signature: &Signature, records: &Records) -> Json {
    let mut writer = SchemaWriter::new(signature.parameters.iter().map(|parameter| &parameter.ty), records);
    let mut schema = Map::new();
    writer.object(&signature.parameters, &mut schema);
    writer.finish(schema)
}

/// Returns the schema of the result.
///
/// ```
/// use patter_core::{types::schema::output_schema, types::signature::{Records, Signature}};
/// let signature = Signature::parse("()==>(::Array {elementType: \"Text\"})").unwrap();
/// assert_eq!(
///     output_schema(&signature, &Records::default()).to_string(),
///     r#"{"type":"array","items":{"type":"string"}}"#
/// );
/// ```
pub fn output_schema(signature: &Signature, records: &Records) -> Json {
    type_schema(&signature.returns, records)
}

/// Returns the schema of a type.
pub fn type_schema(ty: &Type, records: &Records) -> Json {
    let mut writer = SchemaWriter::new([ty], records);
    match writer.ty(ty) {
        Json::Object(schema) => writer.finish(schema),
        other => other,
    }
}

struct SchemaWriter<'r> {
    records: &'r Records,
    /// Record types that are used more than once, possibly by themselves. They become definitions.
    shared: HashSet<&'r str>,
    /// The shared record types that the schema refers to, in order.
    used: Vec<&'r str>,
    /// Definitions carried over from embedded schemas, by their new names: the original with everything that it refers
    /// to, and the definition with updated references.
    carried: IndexMap<String, (Json, Json)>,
}

impl<'r> SchemaWriter<'r> {
    fn new(roots: impl IntoIterator<Item = &'r Type>, records: &'r Records) -> Self {
        Self { records, shared: shared_records(roots, records), used: Vec::new(), carried: IndexMap::new() }
    }

    /// Adds the definitions that the schema refers to.
    fn finish(mut self, mut schema: Map<String, Json>) -> Json {
        let mut definitions = Map::new();
        let mut next = 0;
        while let Some(name) = self.used.get(next).copied() {
            next += 1;
            if let Some(record) = self.records.get(name) {
                let mut definition = Map::new();
                self.record_object(record, &mut definition);
                definitions.insert(name.to_owned(), Json::Object(definition));
            }
        }
        definitions.extend(self.carried.into_iter().map(|(name, (_, definition))| (name, definition)));
        if !definitions.is_empty() {
            schema.insert("$defs".into(), Json::Object(definitions));
        }
        Json::Object(schema)
    }

    fn ty(&mut self, ty: &Type) -> Json {
        let mut schema = Map::new();
        match &ty.shape {
            Shape::Any => {}
            Shape::Text => put_type(&mut schema, "string", &ty.facets),
            Shape::Integer => put_type(&mut schema, "integer", &ty.facets),
            Shape::Number => put_type(&mut schema, "number", &ty.facets),
            Shape::Boolean => put_type(&mut schema, "boolean", &ty.facets),
            Shape::Array(item) => {
                put_type(&mut schema, "array", &ty.facets);
                put_facets(&mut schema, ty);
                schema.insert("items".into(), self.ty(item));
                return Json::Object(schema);
            }
            Shape::Object(fields) => {
                self.object(fields, &mut schema);
                return with_null(schema, ty);
            }
            Shape::Record(name) => {
                self.record(name, &mut schema);
                return with_null(schema, ty);
            }
            Shape::Schema(Json::Object(known)) => {
                schema.extend(self.embed(known));
                return with_null(schema, ty);
            }
            Shape::Schema(other) if ty.facets == Facets::default() => return other.clone(),
            Shape::Schema(other) => {
                schema.insert("allOf".into(), json!([other]));
                return with_null(schema, ty);
            }
        }
        put_facets(&mut schema, ty);
        Json::Object(schema)
    }

    fn object(&mut self, fields: &[Field], schema: &mut Map<String, Json>) {
        schema.insert("type".into(), "object".into());
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in fields {
            let mut property = self.ty(&field.ty);
            match &field.presence {
                Presence::Required => required.push(Json::from(field.name.as_str())),
                Presence::Optional => {}
                Presence::Default(default) => {
                    if let Json::Bool(_) = property {
                        property = json!({ "allOf": [property] });
                    }
                    if let Json::Object(property) = &mut property {
                        property.insert("default".into(), default.clone());
                    }
                }
            }
            properties.insert(field.name.clone(), property);
        }
        schema.insert("properties".into(), Json::Object(properties));
        if !required.is_empty() {
            schema.insert("required".into(), Json::Array(required));
        }
    }

    /// Prepares a schema for use inside another. References are resolved from the root of the whole schema, so their
    /// targets move there, under unused names.
    fn embed(&mut self, schema: &Map<String, Json>) -> Map<String, Json> {
        let whole = Json::Object(schema.clone());
        let mut found = Vec::new();
        collect_references(&whole, &mut found);
        if found.is_empty() {
            return schema.clone();
        }
        let mut names: IndexMap<String, String> = IndexMap::new();
        let mut open: Vec<_> = found.into_iter().filter_map(pointer).collect();
        open.reverse();
        while let Some(target) = open.pop() {
            let Some(definition) = whole.pointer(&target).filter(|_| !names.contains_key(&target)) else { continue };
            let original = json!([reachable_definitions(&whole, &target), target]);
            let wanted = match target.rsplit('/').next().unwrap_or_default() {
                "" => "Schema".to_owned(),
                token => unescape_token(token),
            };
            let is_free = |name: &str| {
                !self.shared.contains(name) && self.carried.get(name).is_none_or(|(other, _)| *other == original)
            };
            let name = free_name(&wanted, is_free);
            self.carried.entry(name.clone()).or_insert((original, Json::Null));
            names.insert(target, name);
            let mut found = Vec::new();
            collect_references(definition, &mut found);
            open.extend(found.into_iter().rev().filter_map(pointer));
        }
        for (target, name) in &names {
            if let (Some((_, carried)), Some(definition)) = (self.carried.get_mut(name), whole.pointer(target)) {
                *carried = rename_references(definition, &names);
            }
        }
        match rename_references(&whole, &names) {
            Json::Object(schema) => schema,
            _ => Map::new(),
        }
    }

    fn record(&mut self, name: &str, schema: &mut Map<String, Json>) {
        if let Some(name) = self.shared.get(name).copied() {
            if !self.used.contains(&name) {
                self.used.push(name);
            }
            schema.insert("$ref".into(), reference_to(name).into());
        } else if let Some(record) = self.records.get(name) {
            self.record_object(record, schema);
        }
    }

    fn record_object(&mut self, record: &'r crate::types::signature::Record, schema: &mut Map<String, Json>) {
        self.object(&record.fields, schema);
        if let Some(description) = &record.description {
            schema.insert("description".into(), description.as_str().into());
        }
    }
}

/// Returns the target of a reference and everything that it refers to in turn.
fn reachable_definitions(whole: &Json, target: &str) -> Map<String, Json> {
    let mut needed = Map::new();
    let mut open = vec![target.to_owned()];
    while let Some(target) = open.pop() {
        let Some(definition) = whole.pointer(&target).filter(|_| !needed.contains_key(&target)) else { continue };
        needed.insert(target, definition.clone());
        let mut found = Vec::new();
        collect_references(definition, &mut found);
        open.extend(found.into_iter().filter_map(pointer));
    }
    needed
}

/// Returns a schema that refers to definitions by their new names and has no definitions itself.
fn rename_references(schema: &Json, names: &IndexMap<String, String>) -> Json {
    let mut schema = map_references(schema, &mut |reference| {
        let name = pointer(reference).and_then(|target| names.get(&target));
        name.map_or_else(|| reference.to_owned(), |name| reference_to(name))
    });
    if let Json::Object(map) = &mut schema {
        map.retain(|keyword, _| !is_definitions(keyword));
    }
    schema
}

fn put_type(schema: &mut Map<String, Json>, name: &str, facets: &Facets) {
    let value = if facets.nullable { json!([name, "null"]) } else { name.into() };
    schema.insert("type".into(), value);
}

/// Adds the facets of a type without a `type` keyword, and an alternative for `null` if it is allowed.
fn with_null(mut schema: Map<String, Json>, ty: &Type) -> Json {
    put_facets(&mut schema, ty);
    if ty.facets.nullable { json!({ "anyOf": [schema, { "type": "null" }] }) } else { Json::Object(schema) }
}

fn put_facets(schema: &mut Map<String, Json>, ty: &Type) {
    let Facets { description, allowed, range, pattern, format, nullable } = &ty.facets;
    if let Some(description) = description {
        schema.insert("description".into(), description.as_str().into());
    }
    if let Some(allowed) = allowed {
        let mut values = allowed.clone();
        if *nullable {
            values.push(Json::Null);
        }
        schema.insert("enum".into(), Json::Array(values));
    }
    if let Some(bounds) = range {
        let (lower, upper) = match ty.shape {
            Shape::Text => ("minLength", "maxLength"),
            Shape::Array(_) => ("minItems", "maxItems"),
            _ => ("minimum", "maximum"),
        };
        for (key, bound) in [(lower, &bounds.lower), (upper, &bounds.upper)] {
            if let Some(bound) = bound {
                schema.insert(key.into(), Json::Number(bound.clone()));
            }
        }
    }
    if let Some(pattern) = pattern {
        schema.insert("pattern".into(), pattern.as_str().into());
    }
    if let Some(format) = format {
        schema.insert("format".into(), format.as_str().into());
    }
}

/// Returns the record types that are referred to more than once, directly or through each other. A recursive record type
/// is one of them or contains one, because the path into a cycle and the path around it share a record type.
fn shared_records<'r>(roots: impl IntoIterator<Item = &'r Type>, records: &'r Records) -> HashSet<&'r str> {
    let mut seen = HashSet::new();
    let mut shared = HashSet::new();
    let mut open = Vec::new();
    roots.into_iter().for_each(|ty| collect_record_names(ty, &mut open));
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            shared.insert(name);
        } else if let Some(record) = records.get(name) {
            record.fields.iter().for_each(|field| collect_record_names(&field.ty, &mut open));
        }
    }
    shared
}

/// Collects the names of the record types that a type refers to.
pub(crate) fn collect_record_names<'t>(ty: &'t Type, into: &mut Vec<&'t str>) {
    match &ty.shape {
        Shape::Record(name) => into.push(name),
        Shape::Array(item) => collect_record_names(item, into),
        Shape::Object(fields) => fields.iter().for_each(|field| collect_record_names(&field.ty, into)),
        _ => {}
    }
}
