//! Schemas of tools as they are sent to providers.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A JSON Schema. Copies share it and its text, which is written once, although every request contains it.
///
/// ```
/// use patter_core::message::request::SharedSchema;
/// let schema = SharedSchema::from(serde_json::json!({ "type": "object" }));
/// assert_eq!(schema.text(), r#"{"type":"object"}"#);
/// assert_eq!(schema["type"], "object");
/// ```
#[derive(Clone)]
pub struct SharedSchema {
    inner: Arc<Inner>,
}

struct Inner {
    json: Json,
    text: OnceLock<String>,
}

impl SharedSchema {
    /// Returns the schema as compact JSON.
    pub fn text(&self) -> &str {
        self.inner.text.get_or_init(|| self.inner.json.to_string())
    }
}

impl Deref for SharedSchema {
    type Target = Json;

    fn deref(&self) -> &Json {
        &self.inner.json
    }
}

impl From<Json> for SharedSchema {
    fn from(json: Json) -> Self {
        Self { inner: Arc::new(Inner { json, text: OnceLock::new() }) }
    }
}

impl PartialEq for SharedSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || **self == **other
    }
}

impl fmt::Debug for SharedSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for SharedSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SharedSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self::from)
    }
}
