//! Saving and loading runs.

use super::Run;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value as Json;
use thiserror::Error;

/// The version of the serialization format.
const VERSION: u64 = 1;
/// The maximum nesting depth of a value. `serde_json` reads at most 128 levels, and a saved run adds some of its own.
pub(super) const MAX_DEPTH: usize = 100;

/// An error loading a run.
#[derive(Debug, Error)]
pub enum RunLoadError {
    /// The run was saved in another version of the format.
    #[error("the run was saved in format version {found}; only version {VERSION} is supported")]
    Version {
        /// The version found in the text.
        found: String,
    },
    /// The text is not a saved run, or is damaged.
    #[error("not a saved run: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Run {
    /// Loads a run from the JSON that `serde` wrote.
    ///
    /// Deserializing does the same, but this checks the version first, wherever it is in the text, so that a run of
    /// another version is reported as such.
    ///
    /// ```
    /// use patter_core::run::Run;
    /// let error = Run::load(r#"{"version": 2, "spec": 7}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "the run was saved in format version 2; only version 1 is supported");
    /// ```
    pub fn load(text: &str) -> Result<Self, RunLoadError> {
        let json: Json = serde_json::from_str(text)?;
        match json.get("version") {
            Some(found) if found.as_u64() != Some(VERSION) => Err(RunLoadError::Version { found: found.to_string() }),
            _ => Ok(serde_json::from_value(json)?),
        }
    }
}

/// Returns whether a value is nested too deeply to be saved and loaded again.
pub(super) fn is_too_deep(value: &Json) -> bool {
    fn is_deeper(value: &Json, levels: usize) -> bool {
        match (value, levels.checked_sub(1)) {
            (Json::Array(_) | Json::Object(_), None) => true,
            (Json::Array(items), Some(levels)) => items.iter().any(|item| is_deeper(item, levels)),
            (Json::Object(fields), Some(levels)) => fields.values().any(|field| is_deeper(field, levels)),
            (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_), _) => false,
        }
    }
    is_deeper(value, MAX_DEPTH)
}

/// The format version as a field: always written, and rejected on reading if it differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FormatVersion;

impl Serialize for FormatVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(VERSION)
    }
}

impl<'de> Deserialize<'de> for FormatVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            VERSION => Ok(FormatVersion),
            found => Err(D::Error::custom(RunLoadError::Version { found: found.to_string() })),
        }
    }
}
