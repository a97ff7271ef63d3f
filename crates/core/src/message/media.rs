//! Images and documents in the results of tools.
//!
//! A result, an element of a result that is a list, or a field of a result that is an object, is an image if it is an object
//! such as `{"type": "image", "mimeType": "image/png", "data": "…"}`, and a document if it is one such as
//! `{"type": "document", "mimeType": "application/pdf", "data": "…"}`. Wires that support them pass them on to the model; the
//! others, and people, get a description.

use super::media_type::MediaKind;
use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// An image or a document in the result of a tool.
///
/// ```
/// use patter_core::message::media::Media;
/// use serde_json::json;
/// let value = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
/// let image = Media::read(&value).unwrap();
/// assert_eq!((image.mime_type, image.size()), ("image/png", 8));
/// assert!(Media::read(&json!({"type": "image", "mimeType": "image/tiff", "data": "AAAA"})).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Media<'v> {
    /// Whether it is an image or a document.
    pub kind: MediaKind,
    /// The type: `image/png`, `image/jpeg`, `image/gif`, `image/webp` or `application/pdf`.
    pub mime_type: &'v str,
    /// The content in Base64.
    pub data: &'v str,
}

impl<'v> Media<'v> {
    /// Reads a value that is an image or a document.
    pub fn read(value: &'v Json) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Json::as_str);
        let mime_type = text("mimeType")?;
        let kind = MediaKind::of_type(mime_type)?;
        let data = text("data").filter(|data| is_base64(data))?;
        (text("type") == Some(type_name(kind)?)).then_some(Self { kind, mime_type, data })
    }

    /// Returns the value that [`Media::read`] reads.
    pub fn to_json(&self) -> Json {
        json!({"type": type_name(self.kind), "mimeType": self.mime_type, "data": self.data})
    }

    /// Returns the size of the content in bytes.
    pub fn size(&self) -> usize {
        self.data.trim_end_matches('=').len() * 3 / 4
    }

    /// Returns the URL that contains the content.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.mime_type, self.data)
    }
}

/// Returns the images and documents of a result: itself, the elements of a list, or the fields of an object.
pub fn media(value: &Json) -> Vec<Media<'_>> {
    match value {
        Json::Array(items) => items.iter().filter_map(Media::read).collect(),
        Json::Object(fields) => match Media::read(value) {
            Some(media) => vec![media],
            None => fields.values().filter_map(Media::read).collect(),
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    }
}

/// Returns a result with descriptions instead of images and documents. Each can have a note for models that do not receive it.
///
/// ```
/// use patter_core::message::media::without_data;
/// use serde_json::json;
/// let value = json!(["a cat", {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]);
/// let described = without_data(&value, None);
/// assert_eq!(*described, json!(["a cat", {"type": "image", "mimeType": "image/png", "bytes": 8}]));
/// ```
pub fn without_data<'v>(value: &'v Json, note: Option<&str>) -> Cow<'v, Json> {
    if media(value).is_empty() {
        return Cow::Borrowed(value);
    }
    let describe = |value: &Json| {
        let Some(media) = Media::read(value) else { return value.clone() };
        let mut described = json!({"type": type_name(media.kind), "mimeType": media.mime_type, "bytes": media.size()});
        if let (Some(object), Some(note)) = (described.as_object_mut(), note) {
            object.insert("note".to_owned(), note.into());
        }
        described
    };
    Cow::Owned(match value {
        Json::Array(items) => items.iter().map(describe).collect(),
        Json::Object(fields) if Media::read(value).is_none() => {
            Json::Object(fields.iter().map(|(name, value)| (name.clone(), describe(value))).collect())
        }
        value => describe(value),
    })
}

/// Returns the name of a kind in results. Text needs no wrapping.
const fn type_name(kind: MediaKind) -> Option<&'static str> {
    match kind {
        MediaKind::Image => Some("image"),
        MediaKind::Document => Some("document"),
        MediaKind::Text => None,
    }
}

fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !data.is_empty() && text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_symbol)
}
