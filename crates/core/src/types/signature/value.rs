//! Conversion between gram values and JSON.

use patter_gram::{Decimal, Integer, Value};
use serde_json::{Number, Value as Json};

/// Converts a gram value to JSON. Symbols and tagged strings become strings; ranges and measurements have no equivalent.
///
/// ```
/// use patter_core::{gram::Value, types::signature::value_to_json};
/// assert_eq!(value_to_json(&Value::from("x")), Some("x".into()));
/// assert_eq!(value_to_json(&Value::Symbol("high".into())), Some("high".into()));
/// ```
pub fn value_to_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::String(text) | Value::Symbol(text) | Value::Tagged { text, .. } => Json::from(text.as_str()),
        Value::Integer(integer) => Json::Number(integer_number(integer)?),
        Value::Decimal(decimal) => Json::Number(Number::from_f64(decimal.to_f64())?),
        Value::Boolean(boolean) => Json::from(*boolean),
        Value::Array(items) => Json::Array(items.iter().map(value_to_json).collect::<Option<_>>()?),
        Value::Map(entries) => {
            let entry = |(key, value): &(String, Value)| Some((key.clone(), value_to_json(value)?));
            Json::Object(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Value::Measurement { .. } | Value::Range { .. } => return None,
    })
}

/// Converts JSON to a gram value. `null` has no equivalent.
pub fn json_to_value(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(boolean) => Value::Boolean(*boolean),
        Json::String(text) => Value::String(text.clone()),
        Json::Number(number) => match Integer::parse(&number.to_string()) {
            Some(integer) => Value::Integer(integer),
            None => {
                let text = number.as_f64()?.to_string();
                Value::Decimal(Decimal::parse(&if text.contains('.') { text } else { format!("{text}.0") })?)
            }
        },
        Json::Array(items) => Value::Array(items.iter().map(json_to_value).collect::<Option<_>>()?),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| Some((key.clone(), json_to_value(value)?));
            Value::Map(entries.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

/// Converts an integer to a JSON number, if that is exact.
pub(crate) fn integer_number(integer: &Integer) -> Option<Number> {
    let small = integer.to_i128()?;
    i64::try_from(small).map(Number::from).or_else(|_| u64::try_from(small).map(Number::from)).ok()
}
