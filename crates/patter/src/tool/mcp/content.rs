//! Results of MCP tools as values.

use super::error::MAX_MESSAGE_CHARS;
use super::settings::ServerSettings;
use crate::tool::redact::Redactor;
use crate::tool::{ToolFailure, kept};
use patter_core::message::media::{self, Media};
use patter_core::text::truncate;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value as Json, json};

/// The size from which a result is cut, in bytes of text.
const MAX_BYTES: usize = 1024 * 1024;
/// The size limit of the images and documents of a result, in bytes as Base64. Larger ones are described.
const MAX_MEDIA_BYTES: usize = 5 * 1024 * 1024;
/// The note about those that are larger.
const TOO_LARGE: &str = "not shown: the images and documents of the result are larger than 5 MiB";
/// The note about data that no model receives from tools.
const NOT_SHOWN: &str = "not shown: models receive only text, images and PDF documents from tools";
/// The size from which the text of a resource is cut.
const MAX_RESOURCE_BYTES: usize = 64 * 1024;

/// The form of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputForm {
    /// They match a schema.
    Structured,
    /// They may be anything.
    Free,
}

/// Returns the value of a result: the structured content if there is a schema for it, else the text, the only part or a
/// list of the parts. Parts that are neither text nor an image nor a
/// document are described instead of passed on.
pub(super) fn read_result(
    settings: &ServerSettings,
    result: CallToolResult,
    output: OutputForm,
) -> Result<Json, ToolFailure> {
    let server = &settings.name;
    let redactor = &settings.redactor;
    let CallToolResult { content, structured_content, is_error, .. } = result;
    if is_error == Some(true) {
        let texts: Vec<_> = content.iter().filter_map(|part| part.as_text()).map(|part| part.text.as_str()).collect();
        let text = texts.join("\n");
        let message = match (text.trim(), structured_content) {
            ("", Some(structured)) => structured.to_string(),
            ("", None) => format!("the MCP server `{server}` reported an error without a message"),
            (text, _) => text.to_owned(),
        };
        // Secrets are redacted before the text is truncated, since a part of one is not recognised.
        return Err(ToolFailure::new(truncate(&redactor.redact(&message), MAX_MESSAGE_CHARS)));
    }
    let value = match (output, structured_content) {
        (OutputForm::Structured, Some(structured)) => structured,
        (OutputForm::Structured, None) => match content.as_slice() {
            // Older servers send structured content as text.
            [ContentBlock::Text(part)] if let Ok(structured) = serde_json::from_str(&part.text) => structured,
            _ => {
                let message = format!("the MCP server `{server}` responded without the structured content it declares");
                return Err(ToolFailure::new(message));
            }
        },
        (OutputForm::Free, structured) => match (content.as_slice(), structured) {
            ([], Some(structured)) => structured,
            ([], None) => Json::String(String::new()),
            ([ContentBlock::Text(part)], _) => Json::String(part.text.clone()),
            ([part], _) => describe_content(part, redactor),
            (parts, _) => parts.iter().map(|part| describe_content(part, redactor)).collect(),
        },
    };
    limited(settings, value, output)
}

/// Returns a value without secrets. A text that is too large is cut, and kept whole; other values become such a text, unless
/// a schema describes them. Images and documents that are too large are only described.
pub(super) fn limited(settings: &ServerSettings, mut value: Json, output: OutputForm) -> Result<Json, ToolFailure> {
    let size: usize = media::media(&value).iter().map(|media| media.data.len()).sum();
    if size > MAX_MEDIA_BYTES {
        value = media::without_data(&value, Some(TOO_LARGE)).into_owned();
    }
    let value = settings.redactor.redact_json(value);
    let text = media::without_data(&value, None);
    if text_size(&text) <= MAX_BYTES {
        return Ok(value);
    }
    let text = match &*text {
        Json::String(text) => text.clone(),
        text => text.to_string(),
    };
    if output == OutputForm::Structured {
        return Err(kept::too_large(&text, MAX_BYTES));
    }
    let cut = Json::String(kept::cut(text, MAX_BYTES));
    let media = media::media(&value);
    if media.is_empty() {
        return Ok(cut);
    }
    Ok(std::iter::once(cut).chain(media.iter().map(Media::to_json)).collect())
}

/// Returns the approximate number of bytes of text in a value.
fn text_size(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 8,
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(text_size).sum(),
        Json::Object(entries) => entries.iter().map(|(key, value)| key.len() + text_size(value)).sum(),
    }
}

/// Returns the failure of a tool that asks for user input.
pub(super) fn input_required(server: &str) -> ToolFailure {
    ToolFailure::new(format!("the MCP server `{server}` asks for user input, which is not supported"))
}

/// Returns an image, or describes another part of a result.
pub(super) fn describe_content(part: &ContentBlock, redactor: &Redactor) -> Json {
    match part {
        ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
        ContentBlock::Image(image) => image_or_description(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => describe_media("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => describe_resource(&embedded.resource, redactor),
        ContentBlock::ResourceLink(link) => {
            let description =
                link.description.as_deref().map(|text| truncate(&redactor.redact(text), MAX_MESSAGE_CHARS));
            json!({
                "type": "resourceLink", "uri": link.uri, "name": link.name, "description": description,
                "mimeType": link.mime_type, "bytes": link.size,
            })
        }
        _ => json!({"type": "unknown"}),
    }
}

/// Returns a resource that is an image or a document, or describes another one.
pub(super) fn describe_resource(resource: &ResourceContents, redactor: &Redactor) -> Json {
    match resource {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            let text = kept::cut(redactor.redact(text), MAX_RESOURCE_BYTES);
            json!({"type": "resource", "uri": uri, "mimeType": mime_type, "text": text})
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let mime_type_text = mime_type.as_deref().unwrap_or_default();
            for kind in ["image", "document"] {
                let media = json!({"type": kind, "mimeType": mime_type_text, "data": blob});
                if Media::read(&media).is_some() {
                    return media;
                }
            }
            json!({
                "type": "resource", "uri": uri, "mimeType": mime_type, "bytes": decoded_length(blob), "note": NOT_SHOWN,
            })
        }
        _ => json!({"type": "resource"}),
    }
}

/// Returns an image that models can see, or a description of it.
fn image_or_description(mime_type: &str, data: &str) -> Json {
    let image = json!({"type": "image", "mimeType": mime_type, "data": data});
    match Media::read(&image) {
        Some(_) => image,
        None => describe_media("image", mime_type, data),
    }
}

fn describe_media(kind: &str, mime_type: &str, data: &str) -> Json {
    json!({"type": kind, "mimeType": mime_type, "bytes": decoded_length(data), "note": NOT_SHOWN})
}

/// Returns the number of bytes that a Base64 text encodes.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
