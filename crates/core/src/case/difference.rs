//! Whether a value has what is expected, and if not, where they differ.

use super::show::brief;
use serde_json::{Number, Value as Json};
use std::fmt::Write;

/// Tells where a value lacks what is expected, if it does: objects may have more fields, arrays may not have more items.
pub(super) fn lacking(expected: &Json, found: &Json) -> Option<String> {
    let mut at = Vec::new();
    compare(expected, found, &mut at)
}

/// Tells whether two values are the same, numbers by what they are and not by how they are written.
pub(super) fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => same_number(one, other),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            let has = |(key, value): (&String, &Json)| other.get(key).is_some_and(|other| same(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// A step on the way into a value.
enum Step<'v> {
    Field(&'v str),
    Item(usize),
}

fn compare<'v>(expected: &'v Json, found: &'v Json, at: &mut Vec<Step<'v>>) -> Option<String> {
    match (expected, found) {
        (Json::Object(expected), Json::Object(found)) => expected.iter().find_map(|(key, expected)| {
            at.push(Step::Field(key));
            let lacks = match found.get(key) {
                Some(found) => compare(expected, found, at),
                None => Some(format!("{} is missing", name(at))),
            };
            at.pop();
            lacks
        }),
        (Json::Array(expected), Json::Array(found)) if expected.len() == found.len() => {
            expected.iter().zip(found).enumerate().find_map(|(index, (expected, found))| {
                at.push(Step::Item(index));
                let lacks = compare(expected, found, at);
                at.pop();
                lacks
            })
        }
        (Json::Array(expected), Json::Array(found)) => {
            let items = if found.len() == 1 { "1 item".to_owned() } else { format!("{} items", found.len()) };
            Some(format!("{} has {items}, not {}", name(at), expected.len()))
        }
        _ if same(expected, found) => None,
        _ => Some(format!("{} is {}, not {}", name(at), brief(found), brief(expected))),
    }
}

/// Names a place in the arguments of a call: `filter.tags[0]`.
fn name(at: &[Step<'_>]) -> String {
    let mut way = String::new();
    for step in at {
        // Writing to a string cannot fail.
        let _ = match step {
            Step::Field(field) if way.is_empty() => write!(way, "{field}"),
            Step::Field(field) => write!(way, ".{field}"),
            Step::Item(index) => write!(way, "[{index}]"),
        };
    }
    if way.is_empty() { "the whole".to_owned() } else { format!("`{way}`") }
}

fn same_number(one: &Number, other: &Number) -> bool {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.as_f64() == other.as_f64(),
        _ => false,
    }
}

/// Returns a number as a whole one, if it is.
fn whole(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    exact.or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e36)?;
        Some(float as i128)
    })
}
