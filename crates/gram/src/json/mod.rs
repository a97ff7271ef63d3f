//! The JSON form of a tree, written and read.
//!
//! It represents the meaning of a text, without comments, layout or quoting. `docs/gram.md` documents it.

mod read;

pub use read::{JsonError, from_json};

use crate::pattern::labels;
use crate::{Annotation, Arrow, Decimal, Integer, Kind, Number, Pattern, PatternKind, Property, Syntax, Tree, Value};
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

/// Returns the JSON form of a tree. Malformed parts are left out.
///
/// ```
/// let (tree, _) = patter_gram::parse("(a:Person {name: 'Ada', born: date`1815-12-10`})-->(b)");
/// let json = patter_gram::to_json(&tree);
/// assert_eq!(json["patterns"][0]["nodes"][0]["properties"]["name"], "Ada");
/// assert_eq!(patter_gram::from_json(&json).unwrap(), tree);
/// ```
pub fn to_json(tree: &Tree) -> Json {
    let mut file = Map::new();
    if let Some(record) = tree.record() {
        file.insert("record".into(), properties_to_json(record.properties()));
    }
    file.insert("patterns".into(), tree.patterns().map(pattern_to_json).collect());
    Json::Object(file)
}

fn pattern_to_json(pattern: Pattern<'_>) -> Json {
    let mut object = Map::new();
    let kind = match pattern.kind() {
        PatternKind::Node => "node",
        PatternKind::Path => "path",
        PatternKind::Bracket => "bracket",
        PatternKind::Reference => "reference",
    };
    object.insert("kind".into(), kind.into());
    let annotations: Vec<_> = pattern.annotations().map(annotation_to_json).collect();
    if !annotations.is_empty() {
        object.insert("annotations".into(), annotations.into());
    }
    if let Some(identifier) = pattern.identifier() {
        object.insert("id".into(), id_to_json(identifier));
    }
    subject_to_json(pattern.syntax(), &mut object);
    let inner: Vec<_> = pattern.elements().map(pattern_to_json).collect();
    if pattern.kind() == PatternKind::Path {
        object.insert("nodes".into(), inner.into());
        object.insert("arrows".into(), pattern.arrows().map(arrow_to_json).collect());
    } else if !inner.is_empty() {
        object.insert("elements".into(), inner.into());
    }
    Json::Object(object)
}

fn arrow_to_json(arrow: Arrow<'_>) -> Json {
    let mut object = Map::new();
    object.insert("arrow".into(), arrow.glyph().into());
    if let Some(identifier) = arrow.syntax().child(Kind::Identifier) {
        object.insert("id".into(), id_to_json(identifier));
    }
    subject_to_json(arrow.syntax(), &mut object);
    Json::Object(object)
}

fn annotation_to_json(annotation: Annotation<'_>) -> Json {
    let mut object = Map::new();
    if let Some(key) = annotation.key() {
        object.insert("key".into(), key.into());
    }
    if let Some(value) = annotation.value().and_then(Value::read) {
        object.insert("value".into(), value_to_json(&value));
    }
    if let Some(identifier) = annotation.syntax().child(Kind::Identifier) {
        object.insert("id".into(), id_to_json(identifier));
    }
    subject_to_json(annotation.syntax(), &mut object);
    Json::Object(object)
}

fn subject_to_json(syntax: Syntax<'_>, object: &mut Map<String, Json>) {
    let labels: Vec<Json> = labels(syntax).map(Into::into).collect();
    if !labels.is_empty() {
        object.insert("labels".into(), labels.into());
    }
    if let Some(record) = syntax.child(Kind::Record) {
        object.insert("properties".into(), properties_to_json(record.properties()));
    }
}

fn id_to_json(identifier: Syntax<'_>) -> Json {
    if identifier.text().starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && let Some(integer) = Integer::parse(identifier.text())
    {
        return integer_to_json(&integer);
    }
    identifier.unquoted().into()
}

fn properties_to_json<'t>(properties: impl Iterator<Item = Property<'t>>) -> Json {
    let read = |property: Property<'t>| Some((property.key().into_owned(), Value::read(property.value()?)?));
    let entries: Vec<_> = properties.filter_map(read).collect();
    let mut seen = HashSet::new();
    if entries.iter().all(|(key, _)| seen.insert(key)) {
        entries.iter().map(|(key, value)| (key.clone(), value_to_json(value))).collect()
    } else {
        entries.iter().flat_map(|(key, value)| [key.as_str().into(), value_to_json(value)]).collect()
    }
}

/// Returns the JSON form of a value.
fn value_to_json(value: &Value) -> Json {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Tagged { tag, text } => json!({ "$tag": tag, "$text": text }),
        Value::Integer(integer) => integer_to_json(integer),
        Value::Decimal(decimal) => decimal_to_json(decimal),
        Value::Measurement { .. } => json!({ "$measurement": value.to_string() }),
        Value::Range { lower, upper } => {
            let bound = |bound: &Option<Number>| bound.as_ref().map_or(Json::Null, number_to_json);
            json!({ "$range": [bound(lower), bound(upper)] })
        }
        Value::Boolean(boolean) => (*boolean).into(),
        Value::Symbol(symbol) => json!({ "$symbol": symbol }),
        Value::Array(items) => items.iter().map(value_to_json).collect(),
        Value::Map(entries) => {
            let mut seen = HashSet::new();
            if entries.iter().all(|(key, _)| !key.starts_with('$') && seen.insert(key)) {
                entries.iter().map(|(key, value)| (key.clone(), value_to_json(value))).collect()
            } else {
                let flat = entries.iter().flat_map(|(key, value)| [key.as_str().into(), value_to_json(value)]);
                json!({ "$map": flat.collect::<Vec<Json>>() })
            }
        }
    }
}

fn number_to_json(number: &Number) -> Json {
    match number {
        Number::Integer(integer) => integer_to_json(integer),
        Number::Decimal(decimal) => decimal_to_json(decimal),
        Number::Measurement { .. } => json!({ "$measurement": number.to_string() }),
    }
}

/// Returns a number if every JSON parser reads it exactly, otherwise text.
fn integer_to_json(integer: &Integer) -> Json {
    const LARGEST: i64 = (1 << 53) - 1;
    match integer.to_i64() {
        Some(small) if (-LARGEST..=LARGEST).contains(&small) => small.into(),
        _ => json!({ "$integer": integer.to_string() }),
    }
}

/// Returns a number if it survives as a floating-point number, otherwise text.
fn decimal_to_json(decimal: &Decimal) -> Json {
    let float = decimal.to_f64();
    if Decimal::from_f64(float).as_ref() == Some(decimal) {
        return float.into();
    }
    json!({ "$decimal": decimal.as_str() })
}
