//! Images and documents in the results of tools.
//!
//! A result, an element of a result that is a list, or a field of a result that is an object, is an image if it is an object
//! such as `{"type": "image", "mimeType": "image/png", "data": "…"}`, and a document if it is one such as
//! `{"type": "document", "mimeType": "application/pdf", "data": "…"}`. Wires that support them pass them on to the model; the
//! others, and people, get a description. In the log of a session, a hash stands for the content, which is stored beside it.

use super::attachment::{Attachment, AttachmentContents};
use super::media_type::MediaKind;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

    /// Returns the value that stands for it, without the content.
    fn describe(&self) -> Json {
        json!({"type": type_name(self.kind), "mimeType": self.mime_type, "bytes": self.size()})
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
    let mut described = value.clone();
    for place in places(&mut described) {
        let Some(media) = Media::read(place) else { continue };
        let mut description = media.describe();
        if let (Some(object), Some(note)) = (description.as_object_mut(), note) {
            object.insert("note".to_owned(), note.into());
        }
        *place = description;
    }
    Cow::Owned(described)
}

/// Replaces the contents of images and documents by their hashes, and adds them to others. Returns whether there were any.
///
/// ```
/// use patter_core::message::attachment::AttachmentContents;
/// use patter_core::message::media::{detach, reattach, stored};
/// use serde_json::json;
/// let value = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
/// let mut contents = AttachmentContents::default();
/// let mut detached = value.clone();
/// assert!(detach(&mut detached, &mut contents));
/// assert_eq!(detached["bytes"], 8);
/// assert_eq!(stored(&detached)[0].sha256, detached["sha256"]);
/// reattach(&mut detached, &contents);
/// assert_eq!(detached, value);
/// ```
pub fn detach(value: &mut Json, contents: &mut AttachmentContents) -> bool {
    let mut has_detached = false;
    for place in places(value) {
        let Some(media) = Media::read(place) else { continue };
        // What Base64 does not give back as it was stays where it is.
        let Some(content) = STANDARD.decode(media.data).ok().filter(|content| STANDARD.encode(content) == media.data)
        else {
            continue;
        };
        let mut description = media.describe();
        if let Some(object) = description.as_object_mut() {
            object.insert("sha256".to_owned(), contents.add(content).into());
        }
        *place = description;
        has_detached = true;
    }
    has_detached
}

/// Puts the contents of images and documents back, as far as they are known.
pub fn reattach(value: &mut Json, contents: &AttachmentContents) {
    for place in places(value) {
        let Some(attachment) = read_stored(place) else { continue };
        let Some((kind, content)) = attachment.kind().zip(contents.get(&attachment)) else { continue };
        let data = STANDARD.encode(content);
        *place = Media { kind, mime_type: &attachment.media_type, data: &data }.to_json();
    }
}

/// Returns the images and documents of a result for which hashes stand.
pub fn stored(value: &Json) -> Vec<Attachment> {
    match value {
        Json::Array(items) => items.iter().filter_map(read_stored).collect(),
        Json::Object(fields) => match read_stored(value) {
            Some(attachment) => vec![attachment],
            None => fields.values().filter_map(read_stored).collect(),
        },
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    }
}

/// Reads a value that stands for an image or a document.
fn read_stored(value: &Json) -> Option<Attachment> {
    let text = |key: &str| value.get(key).and_then(Json::as_str);
    let media_type = text("mimeType")?;
    let name = type_name(MediaKind::of_type(media_type)?)?;
    let attachment = || {
        Some(Attachment {
            name: name.to_owned(),
            media_type: media_type.to_owned(),
            bytes: value.get("bytes")?.as_u64()?,
            sha256: text("sha256")?.to_owned(),
        })
    };
    (text("type") == Some(name)).then(attachment)?
}

/// Returns the places in a result where an image or a document can be.
fn places(value: &mut Json) -> Vec<&mut Json> {
    if Media::read(value).is_some() || read_stored(value).is_some() {
        return vec![value];
    }
    match value {
        Json::Array(items) => items.iter_mut().collect(),
        Json::Object(fields) => fields.values_mut().collect(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    }
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
