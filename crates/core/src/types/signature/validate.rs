//! Validation of values.

use super::schema_cache::SchemaCache;
use super::{Bounds, Facets, Field, Presence, Records, Shape, Signature, Type};
use crate::text::with_article;
use serde_json::{Map, Number, Value as Json};
use std::cmp::Ordering;
use std::fmt;

/// A part of a value that does not match its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The path to the part, from the outside in.
    pub path: Vec<PathStep>,
    /// A description of the expected value.
    pub expected: String,
    /// The value found, possibly shortened.
    pub found: String,
}

/// A step on the path into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathStep {
    /// To the field with this name.
    Key(String),
    /// To the item with this index, from 0.
    Index(usize),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            f.write_str("`")?;
            for (index, step) in self.path.iter().enumerate() {
                match step {
                    PathStep::Key(key) if index == 0 => f.write_str(key)?,
                    PathStep::Key(key) => write!(f, ".{key}")?,
                    PathStep::Index(at) => write!(f, "[{at}]")?,
                }
            }
            f.write_str("`: ")?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for Mismatch {}

impl Signature {
    /// Checks the arguments of a call, and returns them with the defaults of omitted arguments filled in.
    ///
    /// ```
    /// use patter_core::types::signature::{Records, Signature};
    /// use serde_json::json;
    /// let signature = Signature::parse("(name::Text)==>(age::Int {default: 18})==>(::Text)").unwrap();
    /// let records = Records::default();
    /// assert_eq!(signature.validate_arguments(json!({"name": "Ada"}), &records), Ok(json!({"name": "Ada", "age": 18})));
    /// let mismatches = signature.validate_arguments(json!({"age": "old"}), &records).unwrap_err();
    /// assert_eq!(mismatches[0].to_string(), "`name`: expected a Text, found nothing");
    /// assert_eq!(mismatches[1].to_string(), "`age`: expected an Int, found \"old\"");
    /// ```
    pub fn validate_arguments(&self, mut arguments: Json, records: &Records) -> Result<Json, Vec<Mismatch>> {
        if let Json::Object(object) = &mut arguments {
            fill_defaults(&self.parameters, object, records);
        }
        check_arguments(&self.parameters, &arguments, records, &SchemaCache::default())?;
        Ok(arguments)
    }
}

/// Checks arguments whose defaults have been filled in.
pub(crate) fn check_arguments(
    parameters: &[Field],
    arguments: &Json,
    records: &Records,
    cache: &SchemaCache,
) -> Result<(), Vec<Mismatch>> {
    let mut check = ValueCheck { records, cache, path: Vec::new(), mismatches: Vec::new() };
    match arguments {
        Json::Object(object) => check.fields(parameters, object),
        other => check.mismatch("an object with the arguments".to_owned(), other),
    }
    check.finish()
}

/// Checks a value, with compiled patterns and schemas.
pub(crate) fn check_value(
    ty: &Type,
    value: &Json,
    records: &Records,
    cache: &SchemaCache,
) -> Result<(), Vec<Mismatch>> {
    let mut check = ValueCheck { records, cache, path: Vec::new(), mismatches: Vec::new() };
    check.value(ty, value);
    check.finish()
}

impl Type {
    /// Checks a value, and returns all mismatches.
    pub fn check(&self, value: &Json, records: &Records) -> Result<(), Vec<Mismatch>> {
        check_value(self, value, records, &SchemaCache::default())
    }

    /// Returns whether a value has the shape of the type, ignoring facets and contents.
    pub(crate) fn allows_shallow(&self, value: &Json) -> bool {
        match &self.shape {
            Shape::Any => true,
            Shape::Text => value.is_string(),
            Shape::Integer => is_integer(value),
            Shape::Number => value.is_number(),
            Shape::Boolean => value.is_boolean(),
            Shape::Array(_) => value.is_array(),
            Shape::Object(_) | Shape::Record(_) => value.is_object(),
            Shape::Schema(schema) => jsonschema::validator_for(schema).is_ok_and(|schema| schema.is_valid(value)),
        }
    }

    /// Returns whether the type refers to a record type.
    pub(crate) fn mentions_record(&self) -> bool {
        match &self.shape {
            Shape::Record(_) => true,
            Shape::Array(item) => item.mentions_record(),
            Shape::Object(fields) => fields.iter().any(|field| field.ty.mentions_record()),
            _ => false,
        }
    }
}

/// Fills in defaults, also inside nested objects, and converts whole floats to integers. Returns the number of defaults
/// filled in.
pub(crate) fn fill_defaults(fields: &[Field], object: &mut Map<String, Json>, records: &Records) -> usize {
    let mut count = 0;
    for field in fields {
        if let (Presence::Default(default), false) = (&field.presence, object.contains_key(&field.name)) {
            object.insert(field.name.clone(), default.clone());
            count += 1;
        }
        if let Some(value) = object.get_mut(&field.name) {
            count += fill_defaults_inside(&field.ty, value, records);
        }
    }
    count
}

fn fill_defaults_inside(ty: &Type, value: &mut Json, records: &Records) -> usize {
    match (&ty.shape, value) {
        (Shape::Integer, Json::Number(number)) => {
            if let Some(integer) = to_integer(number) {
                *number = integer;
            }
            0
        }
        // A listed value must match as it is, so it is not changed.
        _ if ty.facets.allowed.is_some() => 0,
        (Shape::Object(fields), Json::Object(object)) => fill_defaults(fields, object, records),
        (Shape::Record(name), Json::Object(object)) => {
            records.get(name).map_or(0, |record| fill_defaults(&record.fields, object, records))
        }
        (Shape::Array(item), Json::Array(items)) => {
            items.iter_mut().map(|value| fill_defaults_inside(item, value, records)).sum()
        }
        _ => 0,
    }
}

struct ValueCheck<'c> {
    records: &'c Records,
    cache: &'c SchemaCache,
    path: Vec<BorrowedStep<'c>>,
    mismatches: Vec<Mismatch>,
}

/// A step on a path that is copied only if there is a mismatch.
enum BorrowedStep<'c> {
    Key(&'c str),
    Index(usize),
}

impl<'c> ValueCheck<'c> {
    fn finish(self) -> Result<(), Vec<Mismatch>> {
        if self.mismatches.is_empty() { Ok(()) } else { Err(self.mismatches) }
    }

    fn mismatch(&mut self, expected: String, found: &Json) {
        self.mismatches.push(Mismatch { path: self.steps(), expected, found: shorten(found) });
    }

    fn steps(&self) -> Vec<PathStep> {
        let step = |step: &BorrowedStep<'_>| match step {
            BorrowedStep::Key(key) => PathStep::Key((*key).to_owned()),
            BorrowedStep::Index(index) => PathStep::Index(*index),
        };
        self.path.iter().map(step).collect()
    }

    fn value(&mut self, ty: &'c Type, value: &Json) {
        if ty.facets.nullable && value.is_null() {
            return;
        }
        if let Shape::Schema(schema) = &ty.shape {
            // A schema from outside may be invalid; then it allows no value.
            if let Err(error) = self.cache.validate(schema, value) {
                return self.mismatch(format!("a value that matches the schema ({error})"), value);
            }
        } else if !ty.allows_shallow(value) {
            return self.mismatch(with_article(&ty.to_string()), value);
        }
        self.facets(ty, value);
        match (&ty.shape, value) {
            (Shape::Array(item), Json::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    self.path.push(BorrowedStep::Index(index));
                    self.value(item, value);
                    self.path.pop();
                }
            }
            (Shape::Object(fields), Json::Object(object)) => self.fields(fields, object),
            (Shape::Record(name), Json::Object(object)) => match self.records.get(name) {
                Some(record) => self.fields(&record.fields, object),
                None => self.mismatch(format!("the record type {name}, which is not declared"), value),
            },
            _ => {}
        }
    }

    fn fields(&mut self, fields: &'c [Field], object: &Map<String, Json>) {
        for field in fields {
            self.path.push(BorrowedStep::Key(&field.name));
            match object.get(&field.name) {
                Some(value) => self.value(&field.ty, value),
                None if field.presence == Presence::Required => self.mismatches.push(Mismatch {
                    path: self.steps(),
                    expected: with_article(&field.ty.to_string()),
                    found: "nothing".to_owned(),
                }),
                None => {}
            }
            self.path.pop();
        }
    }

    fn facets(&mut self, ty: &Type, value: &Json) {
        let Facets { allowed, range, pattern, description: _, format: _, nullable: _ } = &ty.facets;
        if let Some(allowed) = allowed
            && !self.cache.lists(allowed, value)
        {
            let list: Vec<_> = allowed.iter().map(ToString::to_string).collect();
            self.mismatch(format!("one of {}", list.join(", ")), value);
        }
        if let Some(bounds) = range {
            self.range(bounds, &ty.shape, value);
        }
        if let (Some(pattern), Json::String(_)) = (pattern, value)
            && !self.cache.matches(pattern, value)
        {
            self.mismatch(format!("a Text that matches `{pattern}`"), value);
        }
    }

    fn range(&mut self, bounds: &Bounds, shape: &Shape, value: &Json) {
        let (size, noun) = match value {
            Json::Number(number) => (number.clone(), "a number"),
            Json::String(text) => (text.chars().count().into(), "a Text"),
            Json::Array(items) => (items.len().into(), "an Array"),
            _ => return,
        };
        let below = bounds.lower.as_ref().is_some_and(|lower| compare_numbers(&size, lower) == Some(Ordering::Less));
        let above = bounds.upper.as_ref().is_some_and(|upper| compare_numbers(&size, upper) == Some(Ordering::Greater));
        if below || above {
            self.mismatch(format!("{noun} {}", bounds.describe(shape)), value);
        }
    }
}

/// Returns whether two values are equal in the sense of JSON Schema, where `1` equals `1.0`.
pub(crate) fn json_eq(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => compare_numbers(left, right) == Some(Ordering::Equal),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| json_eq(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| json_eq(left, right)))
        }
        _ => left == right,
    }
}

/// Compares two numbers exactly. Converting both to floats would lose precision beyond 2⁵³.
pub(crate) fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => compare_mixed(left, right.as_f64()?),
        (None, Some(right)) => compare_mixed(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn compare_mixed(integer: i128, float: f64) -> Option<Ordering> {
    // Outside the range of the integer the cast saturates, which preserves the order.
    let floor = float.floor();
    let order = integer.cmp(&(floor as i128));
    Some(if order == Ordering::Equal && floor < float { Ordering::Less } else { order })
}

/// Returns whether a value is a whole number, such as `1` or `1.0`.
fn is_integer(value: &Json) -> bool {
    match value {
        Json::Number(number) => number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|f| f.fract() == 0.0),
        _ => false,
    }
}

/// Converts a whole float to an integer, because tools expect `1` and models may send `1.0`.
fn to_integer(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    // `None` beyond 64 bits, even if the cast saturates.
    Number::from_i128(float as i128)
}

/// Formats a value for a message, shortened if it is long.
fn shorten(value: &Json) -> String {
    const MAX_CHARS: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
