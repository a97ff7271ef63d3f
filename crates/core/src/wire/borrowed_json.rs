//! JSON that borrows from the parsed bytes, for reading a few values of a large reply cheaply.

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use std::borrow::Cow;
use std::fmt;

/// The largest integer up to which floats represent all of them.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A JSON value. Missing values are [`BorrowedJson::Null`], so that lookups can be chained.
#[derive(Debug)]
pub(super) enum BorrowedJson<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'t, str>),
    List(Vec<BorrowedJson<'t>>),
    /// The entries in order. If a key occurs several times, the last entry wins.
    Object(Vec<(Key<'t>, BorrowedJson<'t>)>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'t> BorrowedJson<'t> {
    /// Returns the value of an object under a key.
    pub(super) fn get(&self, key: &str) -> &BorrowedJson<'t> {
        let found = match self {
            BorrowedJson::Object(entries) => entries.iter().rfind(|(name, _)| name.0 == key),
            _ => None,
        };
        found.map_or(&BorrowedJson::Null, |(_, value)| value)
    }

    /// Returns the string, or an empty one if this is not a string.
    pub(super) fn text(&self) -> &str {
        match self {
            BorrowedJson::Text(text) => text,
            _ => "",
        }
    }

    /// Returns the list, or an empty one if this is not a list.
    pub(super) fn list(&self) -> &[BorrowedJson<'t>] {
        match self {
            BorrowedJson::List(list) => list,
            _ => &[],
        }
    }

    /// Returns the number, if this is a non-negative integer, even if it is written as `1.0`.
    pub(super) fn integer(&self) -> Option<u64> {
        match self {
            BorrowedJson::Number(number) => number.as_u64().or_else(|| {
                let float = number.as_f64()?;
                (float.fract() == 0.0 && (0.0..=MAX_EXACT).contains(&float)).then_some(float as u64)
            }),
            _ => None,
        }
    }

    /// Returns the number, or 0 if this is not a non-negative integer.
    pub(super) fn count(&self) -> u64 {
        self.integer().unwrap_or_default()
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, BorrowedJson::Object(_))
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, BorrowedJson::Null)
    }
}

impl<'t> Deserialize<'t> for BorrowedJson<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'t> Visitor<'t> for JsonVisitor {
    type Value = BorrowedJson<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<BorrowedJson<'t>, E> {
        Ok(BorrowedJson::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<BorrowedJson<'t>, E> {
        Ok(BorrowedJson::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<BorrowedJson<'t>, E> {
        Ok(BorrowedJson::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<BorrowedJson<'t>, E> {
        Ok(BorrowedJson::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<BorrowedJson<'t>, E> {
        Ok(Number::from_f64(value).map_or(BorrowedJson::Null, BorrowedJson::Number))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'t str) -> Result<BorrowedJson<'t>, E> {
        Ok(BorrowedJson::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<BorrowedJson<'t>, E> {
        Ok(BorrowedJson::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<BorrowedJson<'t>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(BorrowedJson::List(list))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut entries: A) -> Result<BorrowedJson<'t>, A::Error> {
        // The objects of replies have about this many fields.
        let mut object = Vec::with_capacity(8);
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(BorrowedJson::Object(object))
    }
}

impl Serialize for BorrowedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            BorrowedJson::Null => serializer.serialize_unit(),
            BorrowedJson::Bool(value) => serializer.serialize_bool(*value),
            BorrowedJson::Number(number) => number.serialize(serializer),
            BorrowedJson::Text(text) => serializer.serialize_str(text),
            BorrowedJson::List(list) => serializer.collect_seq(list),
            BorrowedJson::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (&key.0, value))),
        }
    }
}
