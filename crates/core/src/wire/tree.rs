//! JSON that is only looked at: it borrows from the bytes, and hashes no keys.

use super::WireError;
use super::stream::read;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;
use std::borrow::Cow;
use std::fmt;

/// A JSON value. What is not there is [`Tree::Null`], so that one can look into what may be missing.
#[derive(Debug)]
pub(super) enum Tree<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'t, str>),
    List(Vec<Tree<'t>>),
    /// The entries in order. Of those with one key the last counts.
    Object(Vec<(Key<'t>, Tree<'t>)>),
}

#[derive(Debug, Deserialize)]
pub(super) struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

impl<'t> Tree<'t> {
    /// Reads what must be JSON.
    pub(super) fn read(bytes: &'t [u8]) -> Result<Self, WireError> {
        read(bytes)
    }

    /// Returns what an object has under a key.
    pub(super) fn get(&self, key: &str) -> &Tree<'t> {
        let found = match self {
            Tree::Object(entries) => entries.iter().rfind(|(name, _)| name.0 == key),
            _ => None,
        };
        found.map_or(&Tree::Null, |(_, value)| value)
    }

    /// Returns the text that it is, or nothing.
    pub(super) fn text(&self) -> &str {
        match self {
            Tree::Text(text) => text,
            _ => "",
        }
    }

    /// Returns the list that it is, or an empty one.
    pub(super) fn list(&self) -> &[Tree<'t>] {
        match self {
            Tree::List(list) => list,
            _ => &[],
        }
    }

    /// Returns the whole number that it is.
    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Tree::Number(number) => number.as_u64(),
            _ => None,
        }
    }

    /// Returns how many it says, or 0.
    pub(super) fn count(&self) -> u64 {
        self.whole().unwrap_or_default()
    }

    pub(super) fn is_object(&self) -> bool {
        matches!(self, Tree::Object(_))
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Tree::Null)
    }
}

impl<'t> Deserialize<'t> for Tree<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'t> Visitor<'t> for Reader {
    type Value = Tree<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Tree<'t>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree<'t>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree<'t>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree<'t>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree<'t>, E> {
        Ok(Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'t str) -> Result<Tree<'t>, E> {
        Ok(Tree::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree<'t>, E> {
        Ok(Tree::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Tree<'t>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'t>>(self, mut entries: A) -> Result<Tree<'t>, A::Error> {
        let mut object = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            object.push(entry);
        }
        Ok(Tree::Object(object))
    }
}

impl Serialize for Tree<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tree::Null => serializer.serialize_unit(),
            Tree::Bool(value) => serializer.serialize_bool(*value),
            Tree::Number(number) => number.serialize(serializer),
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::List(list) => serializer.collect_seq(list),
            Tree::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (&key.0, value))),
        }
    }
}
