//! Reads the fields of a JSON request, and says which one is wrong; sets those of a response.

use crate::serve::{ApiError, ApiErrorKind};
use crate::text::nearest;
use serde_json::{Map, Value as Json};

/// Parses a body.
pub(in crate::serve) fn parse_body(body: &[u8]) -> Result<Json, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::new(ApiErrorKind::Invalid, format!("the body is not valid JSON: {error}")))
}

/// An object of a request, with the path that leads to it.
pub(in crate::serve) struct Fields<'j> {
    pub(in crate::serve) object: &'j Map<String, Json>,
    path: String,
}

impl<'j> Fields<'j> {
    pub(in crate::serve) fn new(value: &'j Json, path: impl Into<String>) -> Result<Self, ApiError> {
        let path = path.into();
        match value {
            Json::Object(object) => Ok(Self { object, path }),
            _ if path.is_empty() => Err(ApiError::new(ApiErrorKind::Invalid, "the body is not an object")),
            _ => Err(ApiError::invalid(path, "is not an object")),
        }
    }

    /// Refuses fields that do not exist: they are most likely misspelt.
    pub(in crate::serve) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        match self.object.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let near = nearest(name, known.iter().copied())
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                Err(self.wrong(name, format!("unknown field{near}")))
            }
        }
    }

    /// Returns the names of the fields that are not among these.
    pub(in crate::serve) fn others(&self, read: &[&str]) -> Vec<String> {
        self.object.keys().filter(|name| !read.contains(&name.as_str())).cloned().collect()
    }

    /// Returns the path of a field.
    pub(in crate::serve) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns a field unless it is missing or null.
    pub(in crate::serve) fn get(&self, name: &str) -> Option<&'j Json> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    pub(in crate::serve) fn text(&self, name: &str) -> Result<Option<&'j str>, ApiError> {
        let text = |value: &'j Json| value.as_str().ok_or_else(|| self.wrong(name, "is not a text"));
        self.get(name).map(text).transpose()
    }

    pub(in crate::serve) fn required_text(&self, name: &str) -> Result<&'j str, ApiError> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    pub(in crate::serve) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        let flag = |value: &'j Json| value.as_bool().ok_or_else(|| self.wrong(name, "is not true or false"));
        self.get(name).map(flag).transpose()
    }

    pub(in crate::serve) fn list(&self, name: &str) -> Result<Option<&'j [Json]>, ApiError> {
        let list =
            |value: &'j Json| value.as_array().map(Vec::as_slice).ok_or_else(|| self.wrong(name, "is not a list"));
        self.get(name).map(list).transpose()
    }

    pub(in crate::serve) fn object(&self, name: &str) -> Result<Option<Fields<'j>>, ApiError> {
        self.get(name).map(|value| Fields::new(value, self.path(name))).transpose()
    }

    pub(in crate::serve) fn wrong(&self, name: &str, message: impl Into<String>) -> ApiError {
        ApiError::invalid(self.path(name), message)
    }
}

/// Sets a member of an object.
pub(in crate::serve) fn set(object: &mut Json, name: &str, value: impl Into<Json>) {
    if let Json::Object(members) = object {
        members.insert(name.to_owned(), value.into());
    }
}
