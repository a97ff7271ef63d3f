//! Comparison of found values with expected ones.

use super::show::format_json;
use serde_json::{Number, Value as Json};
use std::fmt::Write;

/// Describes the first mismatch between a value and the expected one. Objects may have additional fields, but arrays no
/// additional items.
pub(super) fn find_mismatch(expected: &Json, found: &Json) -> Option<String> {
    let mut path = Vec::new();
    compare(expected, found, &mut path)
}

/// Returns whether two values are equal, comparing numbers by value: `1` equals `1.0`.
pub(super) fn is_equal(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => is_equal_number(one, other),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            let has = |(key, value): (&String, &Json)| other.get(key).is_some_and(|other| is_equal(value, other));
            one.len() == other.len() && one.iter().all(has)
        }
        _ => one == other,
    }
}

/// A segment of a path into a value.
enum Segment<'v> {
    Field(&'v str),
    Item(usize),
}

fn compare<'v>(expected: &'v Json, found: &'v Json, path: &mut Vec<Segment<'v>>) -> Option<String> {
    match (expected, found) {
        (Json::Object(expected), Json::Object(found)) => expected.iter().find_map(|(key, expected)| {
            path.push(Segment::Field(key));
            let mismatch = match found.get(key) {
                Some(found) => compare(expected, found, path),
                None => Some(format!("{} is missing", format_path(path))),
            };
            path.pop();
            mismatch
        }),
        (Json::Array(expected), Json::Array(found)) if expected.len() == found.len() => {
            expected.iter().zip(found).enumerate().find_map(|(index, (expected, found))| {
                path.push(Segment::Item(index));
                let mismatch = compare(expected, found, path);
                path.pop();
                mismatch
            })
        }
        (Json::Array(expected), Json::Array(found)) => {
            let items = if found.len() == 1 { "1 item".to_owned() } else { format!("{} items", found.len()) };
            Some(format!("{} has {items}, not {}", format_path(path), expected.len()))
        }
        _ if is_equal(expected, found) => None,
        _ => Some(format!("{} is {}, not {}", format_path(path), format_json(found), format_json(expected))),
    }
}

/// Formats a path into the arguments of a call: `filter.tags[0]`.
fn format_path(segments: &[Segment<'_>]) -> String {
    let mut path = String::new();
    for segment in segments {
        // Writing to a string cannot fail.
        let _ = match segment {
            Segment::Field(field) if path.is_empty() => write!(path, "{field}"),
            Segment::Field(field) => write!(path, ".{field}"),
            Segment::Item(index) => write!(path, "[{index}]"),
        };
    }
    if path.is_empty() { "the value".to_owned() } else { format!("`{path}`") }
}

fn is_equal_number(one: &Number, other: &Number) -> bool {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.as_f64() == other.as_f64(),
        _ => false,
    }
}

/// Returns a number as an integer, if it is one.
fn whole(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    exact.or_else(|| {
        let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e36)?;
        Some(float as i128)
    })
}
