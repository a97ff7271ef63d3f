//! JSON Schemas of signatures: stable, in declared order.

use crate::signature::{Facets, Field, Presence, Records, Shape, Signature, Type};
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// Returns the schema of the arguments: one object, all parameters in declared order.
///
/// ```
/// use patter_core::{schema::input_schema, signature::{Records, Signature}};
/// let signature = Signature::parse("(personName::Text)==>(age::Int {default:18})==>(::String)").unwrap();
/// assert_eq!(
///     input_schema(&signature, &Records::default()).to_string(),
///     r#"{"type":"object","properties":{"personName":{"type":"string"},"age":{"type":"integer","default":18}},"required":["personName"]}"#
/// );
/// ```
pub fn input_schema(signature: &Signature, records: &Records) -> Json {
    let mut writer = Writer::new(records);
    let mut schema = Map::new();
    writer.object(&signature.parameters, &mut schema);
    writer.finish(schema)
}

/// Returns the schema of the result.
///
/// ```
/// use patter_core::{schema::output_schema, signature::{Records, Signature}};
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
    let mut writer = Writer::new(records);
    match writer.ty(ty) {
        Json::Object(schema) => writer.finish(schema),
        other => other,
    }
}

struct Writer<'r> {
    records: &'r Records,
    /// Record types that contain themselves, which need a name in the schema.
    recursive: HashSet<&'r str>,
    /// Those of them that are used, in order.
    used: Vec<&'r str>,
}

impl<'r> Writer<'r> {
    fn new(records: &'r Records) -> Self {
        let recursive = records.iter().map(|(name, _)| name).filter(|name| contains_itself(name, records));
        Self { records, recursive: recursive.collect(), used: Vec::new() }
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
                schema.extend(known.clone());
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

    fn record(&mut self, name: &str, schema: &mut Map<String, Json>) {
        if let Some(name) = self.recursive.get(name).copied() {
            if !self.used.contains(&name) {
                self.used.push(name);
            }
            schema.insert("$ref".into(), format!("#/$defs/{}", pointer_token(name)).into());
        } else if let Some(record) = self.records.get(name) {
            self.record_object(record, schema);
        }
    }

    fn record_object(&mut self, record: &'r crate::signature::Record, schema: &mut Map<String, Json>) {
        self.object(&record.fields, schema);
        if let Some(description) = &record.description {
            schema.insert("description".into(), description.as_str().into());
        }
    }
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

/// Tells whether a record type is part of itself, directly or through others.
pub(crate) fn contains_itself(name: &str, records: &Records) -> bool {
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = vec![name];
    while let Some(next) = open.pop() {
        let Some(record) = records.get(next) else { continue };
        let mut mentioned = Vec::new();
        record.fields.iter().for_each(|field| mentions(&field.ty, &mut mentioned));
        for other in mentioned {
            if other == name {
                return true;
            }
            if seen.insert(other) {
                open.push(other);
            }
        }
    }
    false
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

/// Writes a name as part of a reference: a JSON pointer in a URI fragment.
fn pointer_token(name: &str) -> String {
    let mut token = String::new();
    for byte in name.replace('~', "~0").replace('/', "~1").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            token.push(char::from(byte));
        } else {
            token.push_str(&format!("%{byte:02X}"));
        }
    }
    token
}
