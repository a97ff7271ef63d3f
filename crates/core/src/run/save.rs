//! Runs as text.

use super::Run;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value as Json;
use thiserror::Error;

/// The version of the form in which runs are written.
const VERSION: u64 = 1;
/// How deep a value may nest. JSON text is read only 128 levels deep, and a saved run adds some of its own.
pub(super) const DEEPEST: usize = 100;

/// Why a text is no run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// It was written by another version of Patter.
    #[error("the run is saved in version {found}, and only version {VERSION} can be read")]
    Version {
        /// The version, as it stands there.
        found: String,
    },
    /// It is something else, or damaged.
    #[error("this is not a saved run: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Run {
    /// Reads a run from the JSON text that `serde` writes.
    ///
    /// Deserializing does the same; here the version is looked at before all else, wherever it stands, so that a run
    /// of another version is told as such.
    ///
    /// ```
    /// use patter_core::run::Run;
    /// let error = Run::load(r#"{"version": 2, "spec": 7}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "the run is saved in version 2, and only version 1 can be read");
    /// ```
    pub fn load(text: &str) -> Result<Self, LoadError> {
        let json: Json = serde_json::from_str(text)?;
        match json.get("version") {
            Some(found) if found.as_u64() != Some(VERSION) => Err(LoadError::Version { found: found.to_string() }),
            _ => Ok(serde_json::from_value(json)?),
        }
    }
}

/// Tells whether a value nests too deep to be saved and loaded again.
pub(super) fn is_too_deep(value: &Json) -> bool {
    fn is_deeper(value: &Json, levels: usize) -> bool {
        match (value, levels.checked_sub(1)) {
            (Json::Array(_) | Json::Object(_), None) => true,
            (Json::Array(items), Some(levels)) => items.iter().any(|item| is_deeper(item, levels)),
            (Json::Object(fields), Some(levels)) => fields.values().any(|field| is_deeper(field, levels)),
            (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_), _) => false,
        }
    }
    is_deeper(value, DEEPEST)
}

/// The version of this form: written always, and read only as itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(VERSION)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            VERSION => Ok(Version),
            found => Err(D::Error::custom(LoadError::Version { found: found.to_string() })),
        }
    }
}
