//! JSON Schemas of signatures: stable, in declared order.

use crate::types::keyword::{free_name, is_definitions, map_references, pointer, reference_to, references, unescaped};
use crate::types::signature::{Facets, Field, Presence, Records, Shape, Signature, Type};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// Returns the schema of the arguments: one object, all parameters in declared order.
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
    let mut writer = Writer::new(signature.parameters.iter().map(|parameter| &parameter.ty), records);
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
    let mut writer = Writer::new([ty], records);
    match writer.ty(ty) {
        Json::Object(schema) => writer.finish(schema),
        other => other,
    }
}

struct Writer<'r> {
    records: &'r Records,
    /// Record types that are used more than once, by themselves maybe: they are written once, and referred to.
    shared: HashSet<&'r str>,
    /// Those of them that are used, in order.
    used: Vec<&'r str>,
    /// Definitions of schemas that no other type can say, as they came with all they need, and as they go.
    moved: IndexMap<String, (Json, Json)>,
}

impl<'r> Writer<'r> {
    fn new(roots: impl IntoIterator<Item = &'r Type>, records: &'r Records) -> Self {
        Self { records, shared: shared(roots, records), used: Vec::new(), moved: IndexMap::new() }
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
        definitions.extend(self.moved.into_iter().map(|(name, (_, definition))| (name, definition)));
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
                return nullable(schema, ty);
            }
            Shape::Record(name) => {
                self.record(name, &mut schema);
                return nullable(schema, ty);
            }
            Shape::Schema(Json::Object(known)) => {
                schema.extend(self.embedded(known));
                return nullable(schema, ty);
            }
            Shape::Schema(other) if ty.facets == Facets::default() => return other.clone(),
            Shape::Schema(other) => {
                schema.insert("allOf".into(), json!([other]));
                return nullable(schema, ty);
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

    /// Returns a schema as it can stand inside of another. A reference counts from the root of the whole, so what it
    /// points to moves there, under a name that is free.
    fn embedded(&mut self, schema: &Map<String, Json>) -> Map<String, Json> {
        let whole = Json::Object(schema.clone());
        let mut found = Vec::new();
        references(&whole, &mut found);
        if found.is_empty() {
            return schema.clone();
        }
        let mut names: IndexMap<String, String> = IndexMap::new();
        let mut open: Vec<_> = found.into_iter().filter_map(pointer).collect();
        open.reverse();
        while let Some(target) = open.pop() {
            let Some(definition) = whole.pointer(&target).filter(|_| !names.contains_key(&target)) else { continue };
            let original = json!([closure(&whole, &target), target]);
            let wanted = match target.rsplit('/').next().unwrap_or_default() {
                "" => "Schema".to_owned(),
                token => unescaped(token),
            };
            let is_free = |name: &str| {
                !self.shared.contains(name) && self.moved.get(name).is_none_or(|(other, _)| *other == original)
            };
            let name = free_name(&wanted, is_free);
            self.moved.entry(name.clone()).or_insert((original, Json::Null));
            names.insert(target, name);
            let mut found = Vec::new();
            references(definition, &mut found);
            open.extend(found.into_iter().rev().filter_map(pointer));
        }
        for (target, name) in &names {
            if let (Some((_, place)), Some(definition)) = (self.moved.get_mut(name), whole.pointer(target)) {
                *place = renamed(definition, &names);
            }
        }
        match renamed(&whole, &names) {
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

/// Returns all that a reference needs: its target, and what that refers to in turn.
fn closure(whole: &Json, target: &str) -> Map<String, Json> {
    let mut needed = Map::new();
    let mut open = vec![target.to_owned()];
    while let Some(target) = open.pop() {
        let Some(definition) = whole.pointer(&target).filter(|_| !needed.contains_key(&target)) else { continue };
        needed.insert(target, definition.clone());
        let mut found = Vec::new();
        references(definition, &mut found);
        open.extend(found.into_iter().filter_map(pointer));
    }
    needed
}

/// Returns a schema that refers to definitions by their new names, without definitions of its own.
fn renamed(schema: &Json, names: &IndexMap<String, String>) -> Json {
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

/// Adds facets to what is not a plain type, and `null` beside it where that is allowed.
fn nullable(mut schema: Map<String, Json>, ty: &Type) -> Json {
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

/// Returns the record types that types mention more than once, directly or through one another. A record type that
/// contains itself is one of them, or contains one: the way into a circle and the way around it meet somewhere.
fn shared<'r>(roots: impl IntoIterator<Item = &'r Type>, records: &'r Records) -> HashSet<&'r str> {
    let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
    let mut open = Vec::new();
    roots.into_iter().for_each(|ty| mentions(ty, &mut open));
    while let Some(name) = open.pop() {
        if !seen.insert(name) {
            shared.insert(name);
        } else if let Some(record) = records.get(name) {
            record.fields.iter().for_each(|field| mentions(&field.ty, &mut open));
        }
    }
    shared
}

/// Collects the record types that a type mentions.
pub(crate) fn mentions<'t>(ty: &'t Type, into: &mut Vec<&'t str>) {
    match &ty.shape {
        Shape::Record(name) => into.push(name),
        Shape::Array(item) => mentions(item, into),
        Shape::Object(fields) => fields.iter().for_each(|field| mentions(&field.ty, into)),
        _ => {}
    }
}
