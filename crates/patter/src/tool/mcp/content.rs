//! Results of MCP tools as values.

use super::error::MAX_MESSAGE_CHARS;
use super::settings::ServerSettings;
use crate::tool::ToolFailure;
use crate::tool::redact::Redactor;
use patter_core::message::media::{self, Image};
use patter_core::text::truncate;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value as Json, json};

/// The size limit of a result, in bytes of text.
const MAX_BYTES: usize = 1024 * 1024;
/// The size limit of the images of a result, in bytes as Base64. Larger images are described.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;
/// The number of characters that are passed on of a resource.
const MAX_RESOURCE_CHARS: usize = 64 * 1024;

/// The form of a tool's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputForm {
    /// They match a schema.
    Structured,
    /// They may be anything.
    Free,
}

/// Returns the value of a result: the structured content if there is a schema for it, else the text, the only part or a
/// list of the parts. Parts that are neither text nor an image are described instead of passed on.
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
    limited(settings, value)
}

/// Returns a value without secrets, unless it is too large. Images that are too large are only described.
pub(super) fn limited(settings: &ServerSettings, mut value: Json) -> Result<Json, ToolFailure> {
    let images: usize = media::images(&value).iter().map(|image| image.data.len()).sum();
    if images > MAX_IMAGE_BYTES {
        value = media::without_data(&value).into_owned();
    }
    if text_size(&media::without_data(&value)) > MAX_BYTES {
        let server = &settings.name;
        return Err(ToolFailure::new(format!("the MCP server `{server}` responded with more than {MAX_BYTES} bytes")));
    }
    Ok(settings.redactor.redact_json(value))
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

/// Returns a resource that is an image, or describes another one.
pub(super) fn describe_resource(resource: &ResourceContents, redactor: &Redactor) -> Json {
    match resource {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            let text = redactor.redact(text);
            let shown = truncate(&text, MAX_RESOURCE_CHARS);
            let cut_from = (shown != text).then_some(text.len());
            json!({"type": "resource", "uri": uri, "mimeType": mime_type, "text": shown, "cutFromBytes": cut_from})
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let image = image_or_description(mime_type.as_deref().unwrap_or_default(), blob);
            if Image::read(&image).is_some() {
                return image;
            }
            json!({"type": "resource", "uri": uri, "mimeType": mime_type, "bytes": decoded_length(blob)})
        }
        _ => json!({"type": "resource"}),
    }
}

/// Returns an image that models can see, or a description of it.
fn image_or_description(mime_type: &str, data: &str) -> Json {
    let image = json!({"type": "image", "mimeType": mime_type, "data": data});
    match Image::read(&image) {
        Some(_) => image,
        None => describe_media("image", mime_type, data),
    }
}

fn describe_media(kind: &str, mime_type: &str, data: &str) -> Json {
    json!({"type": kind, "mimeType": mime_type, "bytes": decoded_length(data)})
}

/// Returns the number of bytes that a Base64 text encodes.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
