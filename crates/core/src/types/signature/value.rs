//! Gram values as JSON, and back.

use patter_gram::{Decimal, Integer, Value};
use serde_json::{Number, Value as Json};

/// Returns a gram value as JSON: symbols and tagged strings as text. Ranges and measurements have no JSON.
///
/// ```
/// use patter_core::{gram::Value, types::signature::json_of};
/// assert_eq!(json_of(&Value::from("x")), Some("x".into()));
/// assert_eq!(json_of(&Value::Symbol("high".into())), Some("high".into()));
/// ```
pub fn json_of(value: &Value) -> Option<Json> {
    Some(match value {
        Value::String(text) | Value::Symbol(text) | Value::Tagged { text, .. } => Json::from(text.as_str()),
        Value::Integer(integer) => Json::Number(integer_number(integer)?),
        Value::Decimal(decimal) => Json::Number(Number::from_f64(decimal.to_f64())?),
        Value::Boolean(boolean) => Json::from(*boolean),
        Value::Array(items) => Json::Array(items.iter().map(json_of).collect::<Option<_>>()?),
        Value::Map(entries) => {
            let entry = |(key, value): &(String, Value)| Some((key.clone(), json_of(value)?));
            Json::Object(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Value::Measurement { .. } | Value::Range { .. } => return None,
    })
}

/// Returns JSON as a gram value; `null` has none.
pub fn value_of(json: &Json) -> Option<Value> {
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
        Json::Array(items) => Value::Array(items.iter().map(value_of).collect::<Option<_>>()?),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| Some((key.clone(), value_of(value)?));
            Value::Map(entries.iter().map(entry).collect::<Option<_>>()?)
        }
    })
}

/// Returns an integer as a JSON number, if one holds it exactly.
pub(crate) fn integer_number(integer: &Integer) -> Option<Number> {
    let small = integer.to_i128()?;
    i64::try_from(small).map(Number::from).or_else(|_| u64::try_from(small).map(Number::from)).ok()
}
