//! Finding a value in a long list.

use super::validate::json_eq;
use serde_json::{Number, Value as Json};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The positions of values in a list by their hash, so that a value is not compared with all of them.
///
/// The list is passed to each method instead of borrowed, because types own theirs.
#[derive(Debug, Default)]
pub(crate) struct ValueIndex {
    positions: HashMap<u64, Vec<usize>>,
}

impl ValueIndex {
    pub(crate) fn new(values: &[Json]) -> Self {
        let mut index = Self::default();
        values.iter().enumerate().for_each(|(position, value)| index.add(position, value));
        index
    }

    /// Adds the value at a position.
    pub(crate) fn add(&mut self, position: usize, value: &Json) {
        self.positions.entry(hash_value(value)).or_default().push(position);
    }

    /// Returns the values that may equal a value: all that do, and seldom others.
    pub(crate) fn candidates<'v>(&self, values: &'v [Json], value: &Json) -> impl Iterator<Item = &'v Json> {
        let positions = self.positions.get(&hash_value(value)).map(Vec::as_slice).unwrap_or_default();
        positions.iter().filter_map(|position| values.get(*position))
    }

    /// Returns whether a value equals one of the list in the sense of JSON Schema.
    pub(crate) fn contains(&self, values: &[Json], value: &Json) -> bool {
        self.candidates(values, value).any(|candidate| json_eq(candidate, value))
    }
}

/// Returns a hash that is the same for values that are equal in the sense of JSON Schema.
fn hash_value(value: &Json) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(value).hash(&mut hasher);
    match value {
        Json::Null => {}
        Json::Bool(value) => value.hash(&mut hasher),
        Json::String(text) => text.hash(&mut hasher),
        Json::Number(number) => hash_number(number, &mut hasher),
        Json::Array(items) => items.iter().for_each(|item| hash_value(item).hash(&mut hasher)),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| {
                let mut hasher = DefaultHasher::new();
                (key, hash_value(value)).hash(&mut hasher);
                hasher.finish()
            };
            // The order of keys does not matter, nor does that of a sum.
            entries.iter().map(entry).fold(0, u64::wrapping_add).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Hashes whole numbers as integers, whether or not they are written as floats. Floats with the same integer may be beyond
/// its range, which is a collision and no more.
fn hash_number(number: &Number, hasher: &mut DefaultHasher) {
    match (number.as_i128(), number.as_f64()) {
        (Some(integer), _) => integer.hash(hasher),
        (None, Some(float)) if float.fract() == 0.0 => (float as i128).hash(hasher),
        (None, float) => float.map(f64::to_bits).hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_exactly_what_equals() {
        let values = [
            json!(null),
            json!(true),
            json!(0),
            json!(-0.0),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(-7),
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992_f64),
            json!(u64::MAX),
            json!(18_446_744_073_709_551_616_f64),
            json!(1e300),
            json!(1e301),
            json!("1"),
            json!(""),
            json!([]),
            json!([1, 2.0]),
            json!([1.0, 2]),
            json!([2, 1]),
            json!({}),
            json!({"a": 1, "b": [2.0]}),
            json!({"b": [2], "a": 1.0}),
            json!({"a": "b", "b": "a"}),
        ];
        for (position, value) in values.iter().enumerate() {
            for other in &values {
                let list = [json!("first"), value.clone(), json!("last")];
                let found = ValueIndex::new(&list).contains(&list, other);
                assert_eq!(found, json_eq(value, other), "{position}: {value} and {other}");
            }
        }
    }
}
