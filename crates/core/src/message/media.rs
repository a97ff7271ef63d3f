//! Images in the results of tools.
//!
//! A result, or an element of a result that is a list, is an image if it is an object such as
//! `{"type": "image", "mimeType": "image/png", "data": "…"}`. Wires that support images pass them on to the model; the others,
//! and people, get a description.

use serde_json::{Value as Json, json};
use std::borrow::Cow;

/// The types of images that all providers with images accept.
const MIME_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An image in the result of a tool.
///
/// ```
/// use patter_core::message::media::Image;
/// use serde_json::json;
/// let value = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
/// let image = Image::read(&value).unwrap();
/// assert_eq!((image.mime_type, image.size()), ("image/png", 8));
/// assert!(Image::read(&json!({"type": "image", "mimeType": "image/tiff", "data": "AAAA"})).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'v> {
    /// The type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub mime_type: &'v str,
    /// The image in Base64.
    pub data: &'v str,
}

impl<'v> Image<'v> {
    /// Reads a value that is an image.
    pub fn read(value: &'v Json) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Json::as_str);
        let mime_type = text("mimeType").filter(|mime_type| MIME_TYPES.contains(mime_type))?;
        let data = text("data").filter(|data| is_base64(data))?;
        (text("type") == Some("image")).then_some(Self { mime_type, data })
    }

    /// Returns the size of the image in bytes.
    pub fn size(&self) -> usize {
        self.data.trim_end_matches('=').len() * 3 / 4
    }

    /// Returns the URL that contains the image.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.mime_type, self.data)
    }
}

/// Returns the images of a result: itself, or the elements of a list.
pub fn images(value: &Json) -> Vec<Image<'_>> {
    match value {
        Json::Array(items) => items.iter().filter_map(Image::read).collect(),
        value => Image::read(value).into_iter().collect(),
    }
}

/// Returns a result with descriptions instead of images. Each can have a note for models that do not receive the image.
///
/// ```
/// use patter_core::message::media::without_data;
/// use serde_json::json;
/// let value = json!(["a cat", {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="}]);
/// let described = without_data(&value, None);
/// assert_eq!(*described, json!(["a cat", {"type": "image", "mimeType": "image/png", "bytes": 8}]));
/// ```
pub fn without_data<'v>(value: &'v Json, note: Option<&str>) -> Cow<'v, Json> {
    if images(value).is_empty() {
        return Cow::Borrowed(value);
    }
    let describe = |value: &Json| {
        let Some(image) = Image::read(value) else { return value.clone() };
        let mut described = json!({"type": "image", "mimeType": image.mime_type, "bytes": image.size()});
        if let (Some(object), Some(note)) = (described.as_object_mut(), note) {
            object.insert("note".to_owned(), note.into());
        }
        described
    };
    Cow::Owned(match value {
        Json::Array(items) => items.iter().map(describe).collect(),
        value => describe(value),
    })
}

fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_symbol = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !data.is_empty() && text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_symbol)
}
