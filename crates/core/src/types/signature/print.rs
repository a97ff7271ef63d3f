//! Formatting of signatures and types.

use super::{Bounds, Facets, Field, Presence, Record, Shape, Signature, Type, value::json_to_value};
use patter_gram::{Integer, Number as GramNumber, Value, quote_name};
use serde_json::{Number, Value as Json};
use std::fmt;

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.parameters.is_empty() {
            f.write_str("()==>")?;
        }
        for parameter in &self.parameters {
            write!(f, "{parameter}==>")?;
        }
        write_node(f, "", &self.returns, &Presence::Required)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_node(f, &quote_name(&self.name), &self.ty, &self.presence)
    }
}

/// Formats the type for people, such as `Array of Text`, without facets.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.facets.nullable {
            f.write_str("Maybe ")?;
        }
        match &self.shape {
            Shape::Array(item) => write!(f, "Array of {item}"),
            shape => f.write_str(label(shape)),
        }
    }
}

impl Bounds {
    /// Describes the range for people, as it applies to a shape: `from 1 to 10`, `of length 1 to 10`, `with at most 3
    /// items`.
    pub(crate) fn describe(&self, shape: &Shape) -> String {
        let range = match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => format!("{lower} to {upper}"),
            (Some(lower), None) => format!("at least {lower}"),
            (None, Some(upper)) => format!("at most {upper}"),
            (None, None) => "any size".to_owned(),
        };
        match shape {
            Shape::Text => format!("of length {range}"),
            Shape::Array(_) => format!("with {range} items"),
            _ if self.lower.is_some() && self.upper.is_some() => format!("from {range}"),
            _ => format!("of {range}"),
        }
    }
}

impl Record {
    /// Formats the record type as a declaration.
    ///
    /// ```
    /// use patter_core::{gram::parse, types::signature::{Record, Records}};
    /// let text = "[Address:Object | (city::Text), (zip::Text { optional: true })]";
    /// let (tree, _) = parse(text);
    /// let record = Record::read(tree.patterns().next().unwrap(), &Records::default()).unwrap();
    /// assert_eq!(record.declaration("Address"), text);
    /// ```
    pub fn declaration(&self, name: &str) -> String {
        let fields: Vec<_> = self.fields.iter().map(Field::to_string).collect();
        let description = self.description.as_deref().map(|text| Value::Map(vec![("description".into(), text.into())]));
        let description = description.map_or_else(String::new, |map| format!(" {map}"));
        let fields = if fields.is_empty() { String::new() } else { format!(" | {}", fields.join(", ")) };
        format!("[{}:Object{description}{fields}]", quote_name(name))
    }
}

/// Writes a parameter, a field or a result as a node.
fn write_node(f: &mut fmt::Formatter<'_>, name: &str, ty: &Type, presence: &Presence) -> fmt::Result {
    let is_named = !name.is_empty();
    let mut entries = facet_entries(ty);
    if is_named {
        entries.extend(nullable_entry(ty));
    }
    match presence {
        Presence::Required => {}
        Presence::Optional => entries.push(("optional".into(), Value::Boolean(true))),
        Presence::Default(default) => entries.extend(json_to_value(default).map(|value| ("default".into(), value))),
    }
    let type_name = if is_named { label(&ty.shape).to_owned() } else { type_name(ty) };
    write!(f, "({name}::{}", quote_name(&type_name))?;
    if !entries.is_empty() {
        write!(f, " {}", Value::Map(entries))?;
    }
    f.write_str(")")
}

/// Returns the label of the type of an element or a result, with `Maybe` if it allows `null`.
fn type_name(ty: &Type) -> String {
    let name = label(&ty.shape);
    if ty.facets.nullable { format!("Maybe {name}") } else { name.to_owned() }
}

fn label(shape: &Shape) -> &str {
    match shape {
        Shape::Any | Shape::Schema(_) => "Any",
        Shape::Text => "Text",
        Shape::Integer => "Int",
        Shape::Number => "Double",
        Shape::Boolean => "Bool",
        Shape::Array(_) => "Array",
        Shape::Object(_) => "Object",
        Shape::Record(name) => name,
    }
}

/// Returns the properties of a type that its label does not express.
fn facet_entries(ty: &Type) -> Vec<(String, Value)> {
    let mut entries = Vec::new();
    let mut put = |key: &str, value: Value| entries.push((key.to_owned(), value));
    match &ty.shape {
        Shape::Object(fields) => put("fields", Value::Array(fields.iter().map(field_map).collect())),
        Shape::Array(item) => match &item.shape {
            Shape::Object(fields) if item.facets == Facets::default() => {
                put("elementType", "Object".into());
                put("fields", Value::Array(fields.iter().map(field_map).collect()));
            }
            Shape::Array(_) | Shape::Object(_) | Shape::Schema(_) => put("elementType", type_map(item)),
            _ if facet_entries(item).is_empty() => put("elementType", Value::String(type_name(item))),
            _ => put("elementType", type_map(item)),
        },
        Shape::Schema(schema) => put("schema", Value::Tagged { tag: "json".into(), text: schema.to_string() }),
        _ => {}
    }
    let Facets { description, allowed, range, pattern, format, nullable: _ } = &ty.facets;
    if let Some(description) = description {
        put("description", description.as_str().into());
    }
    if let Some(allowed) = allowed {
        put("enum", Value::Array(allowed.iter().filter_map(json_to_value).collect()));
    }
    if let Some(bounds) = range {
        put("range", range_value(bounds));
    }
    if let Some(pattern) = pattern {
        put("pattern", pattern.as_str().into());
    }
    if let Some(format) = format {
        put("format", format.as_str().into());
    }
    entries
}

fn field_map(field: &Field) -> Value {
    let mut entries =
        vec![("name".to_owned(), field.name.as_str().into()), ("type".to_owned(), label(&field.ty.shape).into())];
    match &field.presence {
        Presence::Required => {}
        Presence::Optional => entries.push(("optional".into(), Value::Boolean(true))),
        Presence::Default(default) => entries.extend(json_to_value(default).map(|value| ("default".into(), value))),
    }
    entries.extend(facet_entries(&field.ty));
    entries.extend(nullable_entry(&field.ty));
    Value::Map(entries)
}

/// Returns the property that says that a parameter or field may be null. `Maybe` says there that it may be missing.
fn nullable_entry(ty: &Type) -> Option<(String, Value)> {
    ty.facets.nullable.then(|| ("nullable".to_owned(), Value::Boolean(true)))
}

/// Returns a type that needs more than a label, as a map.
fn type_map(ty: &Type) -> Value {
    let mut entries = vec![("type".to_owned(), Value::String(type_name(ty)))];
    entries.extend(facet_entries(ty));
    Value::Map(entries)
}

fn range_value(bounds: &Bounds) -> Value {
    let number = |number: &Number| match json_to_value(&Json::Number(number.clone())) {
        Some(Value::Integer(integer)) => GramNumber::Integer(integer),
        Some(Value::Decimal(decimal)) => GramNumber::Decimal(decimal),
        _ => GramNumber::Integer(Integer::from(0)),
    };
    Value::Range { lower: bounds.lower.as_ref().map(number), upper: bounds.upper.as_ref().map(number) }
}
