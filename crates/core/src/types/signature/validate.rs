//! Whether a value is of a type.

use super::compiled::CompiledType;
use super::{Bounds, Facets, Field, Presence, Records, Shape, Signature, Type};
use crate::text::with_article;
use serde_json::{Map, Number, Value as Json};
use std::cmp::Ordering;
use std::fmt;

/// A place where a value is not what its type says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// The way to the place, from the outside in.
    pub path: Vec<Step>,
    /// What the type says.
    pub expected: String,
    /// What there is.
    pub found: String,
}

/// A step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// To a named part.
    Key(String),
    /// To an item, counted from 0.
    Index(usize),
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            f.write_str("`")?;
            for (index, step) in self.path.iter().enumerate() {
                match step {
                    Step::Key(key) if index == 0 => f.write_str(key)?,
                    Step::Key(key) => write!(f, ".{key}")?,
                    Step::Index(at) => write!(f, "[{at}]")?,
                }
            }
            f.write_str("`: ")?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for Mismatch {}

impl Signature {
    /// Checks the arguments of a call, and puts in the defaults of what was left out.
    ///
    /// ```
    /// use patter_core::types::signature::{Records, Signature};
    /// use serde_json::json;
    /// let signature = Signature::parse("(name::Text)==>(age::Int {default: 18})==>(::Text)").unwrap();
    /// let records = Records::default();
    /// assert_eq!(signature.arguments(json!({"name": "Ada"}), &records), Ok(json!({"name": "Ada", "age": 18})));
    /// let mismatches = signature.arguments(json!({"age": "old"}), &records).unwrap_err();
    /// assert_eq!(mismatches[0].to_string(), "`name`: expected a Text, found nothing");
    /// assert_eq!(mismatches[1].to_string(), "`age`: expected an Int, found \"old\"");
    /// ```
    pub fn arguments(&self, mut arguments: Json, records: &Records) -> Result<Json, Vec<Mismatch>> {
        if let Json::Object(object) = &mut arguments {
            inject(&self.parameters, object, records);
        }
        check_arguments(&self.parameters, &arguments, records, &CompiledType::default())?;
        Ok(arguments)
    }
}

/// Checks arguments that have their defaults.
pub(super) fn check_arguments(
    parameters: &[Field],
    arguments: &Json,
    records: &Records,
    compiled: &CompiledType,
) -> Result<(), Vec<Mismatch>> {
    let mut check = Check { records, compiled, path: Vec::new(), mismatches: Vec::new() };
    match arguments {
        Json::Object(object) => check.fields(parameters, object),
        other => check.mismatch("an object with the arguments".to_owned(), other),
    }
    check.outcome()
}

/// Checks a value, with what was compiled before.
pub(super) fn check_value(
    ty: &Type,
    value: &Json,
    records: &Records,
    compiled: &CompiledType,
) -> Result<(), Vec<Mismatch>> {
    let mut check = Check { records, compiled, path: Vec::new(), mismatches: Vec::new() };
    check.value(ty, value);
    check.outcome()
}

impl Type {
    /// Checks a value, and tells all that is wrong with it.
    pub fn check(&self, value: &Json, records: &Records) -> Result<(), Vec<Mismatch>> {
        check_value(self, value, records, &CompiledType::default())
    }

    /// Tells whether a value has the shape of the type, whatever narrows it, and whatever is inside.
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

    /// Tells whether a record type is part of the type.
    pub(crate) fn mentions_record(&self) -> bool {
        match &self.shape {
            Shape::Record(_) => true,
            Shape::Array(item) => item.mentions_record(),
            Shape::Object(fields) => fields.iter().any(|field| field.ty.mentions_record()),
            _ => false,
        }
    }
}

/// Puts defaults in, also inside of objects that are there, and writes whole numbers as such. Returns how many defaults.
pub(super) fn inject(fields: &[Field], object: &mut Map<String, Json>, records: &Records) -> usize {
    let mut count = 0;
    for field in fields {
        if let (Presence::Default(default), false) = (&field.presence, object.contains_key(&field.name)) {
            object.insert(field.name.clone(), default.clone());
            count += 1;
        }
        if let Some(value) = object.get_mut(&field.name) {
            count += inject_inside(&field.ty, value, records);
        }
    }
    count
}

fn inject_inside(ty: &Type, value: &mut Json, records: &Records) -> usize {
    match (&ty.shape, value) {
        (Shape::Integer, Json::Number(number)) => {
            if let Some(whole) = whole(number) {
                *number = whole;
            }
            0
        }
        // A value that must be one of a list is one as it came, or not at all.
        _ if ty.facets.allowed.is_some() => 0,
        (Shape::Object(fields), Json::Object(object)) => inject(fields, object, records),
        (Shape::Record(name), Json::Object(object)) => {
            records.get(name).map_or(0, |record| inject(&record.fields, object, records))
        }
        (Shape::Array(item), Json::Array(items)) => {
            items.iter_mut().map(|value| inject_inside(item, value, records)).sum()
        }
        _ => 0,
    }
}

struct Check<'c> {
    records: &'c Records,
    compiled: &'c CompiledType,
    path: Vec<At<'c>>,
    mismatches: Vec<Mismatch>,
}

/// A step that is only written out where something is wrong.
enum At<'c> {
    Key(&'c str),
    Index(usize),
}

impl<'c> Check<'c> {
    fn outcome(self) -> Result<(), Vec<Mismatch>> {
        if self.mismatches.is_empty() { Ok(()) } else { Err(self.mismatches) }
    }

    fn mismatch(&mut self, expected: String, found: &Json) {
        self.mismatches.push(Mismatch { path: self.steps(), expected, found: shown(found) });
    }

    fn steps(&self) -> Vec<Step> {
        let step = |at: &At<'_>| match at {
            At::Key(key) => Step::Key((*key).to_owned()),
            At::Index(index) => Step::Index(*index),
        };
        self.path.iter().map(step).collect()
    }

    fn value(&mut self, ty: &'c Type, value: &Json) {
        if ty.facets.nullable && value.is_null() {
            return;
        }
        if let Shape::Schema(schema) = &ty.shape {
            // A schema that came from elsewhere may be broken; then it allows nothing.
            if let Err(error) = self.compiled.validate(schema, value) {
                return self.mismatch(format!("what the schema allows ({error})"), value);
            }
        } else if !ty.allows_shallow(value) {
            return self.mismatch(with_article(&ty.to_string()), value);
        }
        self.facets(&ty.facets, value);
        match (&ty.shape, value) {
            (Shape::Array(item), Json::Array(items)) => {
                for (index, value) in items.iter().enumerate() {
                    self.path.push(At::Index(index));
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
            self.path.push(At::Key(&field.name));
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

    fn facets(&mut self, facets: &Facets, value: &Json) {
        if let Some(allowed) = &facets.allowed
            && !allowed.iter().any(|allowed| same(allowed, value))
        {
            let list: Vec<_> = allowed.iter().map(ToString::to_string).collect();
            self.mismatch(format!("one of {}", list.join(", ")), value);
        }
        if let Some(bounds) = &facets.range {
            self.range(bounds, value);
        }
        if let (Some(pattern), Json::String(_)) = (&facets.pattern, value)
            && !self.compiled.matches(pattern, value)
        {
            self.mismatch(format!("a Text that matches `{pattern}`"), value);
        }
    }

    fn range(&mut self, bounds: &Bounds, value: &Json) {
        let (size, what) = match value {
            Json::Number(number) => (number.clone(), "a number"),
            Json::String(text) => (text.chars().count().into(), "a Text with a length"),
            Json::Array(items) => (items.len().into(), "an Array with a number of items"),
            _ => return,
        };
        let below = bounds.lower.as_ref().is_some_and(|lower| compare(&size, lower) == Some(Ordering::Less));
        let above = bounds.upper.as_ref().is_some_and(|upper| compare(&size, upper) == Some(Ordering::Greater));
        if below || above {
            let range = match (&bounds.lower, &bounds.upper) {
                (Some(lower), Some(upper)) => format!("from {lower} to {upper}"),
                (Some(lower), None) => format!("from {lower}"),
                (None, Some(upper)) => format!("up to {upper}"),
                (None, None) => return,
            };
            self.mismatch(format!("{what} {range}"), value);
        }
    }
}

/// Tells whether two values are equal as JSON Schema has it: numbers by what they are worth.
pub(crate) fn same(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => compare(left, right) == Some(Ordering::Equal),
        (Json::Array(left), Json::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Json::Object(left), Json::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// Compares two numbers by what they are worth, exactly: a float holds no whole number beyond 2⁵³ for sure.
pub(crate) fn compare(left: &Number, right: &Number) -> Option<Ordering> {
    match (left.as_i128(), right.as_i128()) {
        (Some(left), Some(right)) => Some(left.cmp(&right)),
        (Some(left), None) => compare_mixed(left, right.as_f64()?),
        (None, Some(right)) => compare_mixed(right, left.as_f64()?).map(Ordering::reverse),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn compare_mixed(whole: i128, float: f64) -> Option<Ordering> {
    // Beyond the range of 64 bits the cast saturates, which keeps the order.
    let floor = float.floor();
    let order = whole.cmp(&(floor as i128));
    Some(if order == Ordering::Equal && floor < float { Ordering::Less } else { order })
}

/// Tells whether a value is a whole number; `1.0` is one.
fn is_integer(value: &Json) -> bool {
    match value {
        Json::Number(number) => number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|f| f.fract() == 0.0),
        _ => false,
    }
}

/// Writes a float that is a whole number as one: tools take `1`, and models write `1.0`.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    // Beyond the range of 64 bits there is no such number, also after the cast.
    Number::from_i128(float as i128)
}

/// Shows a value in a message, shortened where it is long.
fn shown(value: &Json) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
