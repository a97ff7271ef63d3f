//! What a tool of an MCP server answers, as a value.

use super::settings::Settings;
use super::trouble::{LONGEST_MESSAGE, cut};
use crate::tool::Failure;
use crate::tool::secrets::Secrets;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value as Json, json};

/// How large an answer may be, in bytes of text.
const LARGEST: usize = 1024 * 1024;
/// How much text of a resource is passed on.
const LONGEST_RESOURCE: usize = 64 * 1024;

/// What a tool says of its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// They have a schema.
    Structured,
    /// They may be anything.
    Free,
}

/// Returns the value of an answer: the structured content where a schema promises it; else the text, or the one part
/// there is, or a list of the parts. What is no text is described and not passed on.
pub(super) fn value(settings: &Settings, result: CallToolResult, output: Output) -> Result<Json, Failure> {
    let (server, secrets) = (&settings.name, &settings.secrets);
    let CallToolResult { content, structured_content, is_error, .. } = result;
    if is_error == Some(true) {
        let texts: Vec<_> = content.iter().filter_map(|part| part.as_text()).map(|part| part.text.as_str()).collect();
        let text = texts.join("\n");
        let told = match (text.trim(), structured_content) {
            ("", Some(structured)) => structured.to_string(),
            ("", None) => format!("the MCP server `{server}` reports an error and does not say which"),
            (text, _) => text.to_owned(),
        };
        // A secret that is cut through would not be found any more.
        return Err(Failure::new(cut(&secrets.redact(&told), LONGEST_MESSAGE)));
    }
    let value = match (output, structured_content) {
        (Output::Structured, Some(structured)) => structured,
        (Output::Structured, None) => match content.as_slice() {
            // Servers from before there was structured content write it as text.
            [ContentBlock::Text(part)] if let Ok(structured) = serde_json::from_str(&part.text) => structured,
            _ => {
                let told =
                    format!("the MCP server `{server}` answered without the structured content that it promised");
                return Err(Failure::new(told));
            }
        },
        (Output::Free, structured) => match (content.as_slice(), structured) {
            ([], Some(structured)) => structured,
            ([], None) => Json::String(String::new()),
            ([ContentBlock::Text(part)], _) => Json::String(part.text.clone()),
            ([part], _) => described(part, secrets),
            (parts, _) => parts.iter().map(|part| described(part, secrets)).collect(),
        },
    };
    if size(&value) > LARGEST {
        return Err(Failure::new(format!("the MCP server `{server}` answered with more than {LARGEST} bytes")));
    }
    Ok(secrets.redact_json(value))
}

/// Returns how many bytes of text a value has, more or less.
fn size(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) => 8,
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(size).sum(),
        Json::Object(entries) => entries.iter().map(|(key, value)| key.len() + size(value)).sum(),
    }
}

/// The failure of a tool that asks back.
pub(super) fn wants_input(server: &str) -> Failure {
    Failure::new(format!("the MCP server `{server}` asks for input that nobody can give it here"))
}

/// Describes a part of an answer.
fn described(part: &ContentBlock, secrets: &Secrets) -> Json {
    match part {
        ContentBlock::Text(text) => json!({"type": "text", "text": text.text}),
        ContentBlock::Image(image) => media("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => media("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                let text = secrets.redact(text);
                let shown = cut(&text, LONGEST_RESOURCE);
                let cut_from = (shown != text).then_some(text.len());
                json!({"type": "resource", "uri": uri, "mimeType": mime_type, "text": shown, "cutFromBytes": cut_from})
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                json!({"type": "resource", "uri": uri, "mimeType": mime_type, "bytes": decoded_length(blob)})
            }
            _ => json!({"type": "resource"}),
        },
        ContentBlock::ResourceLink(link) => {
            let description = link.description.as_deref().map(|text| cut(&secrets.redact(text), LONGEST_MESSAGE));
            json!({
                "type": "resourceLink", "uri": link.uri, "name": link.name, "description": description,
                "mimeType": link.mime_type, "bytes": link.size,
            })
        }
        _ => json!({"type": "unknown"}),
    }
}

fn media(sort: &str, mime_type: &str, data: &str) -> Json {
    json!({"type": sort, "mimeType": mime_type, "bytes": decoded_length(data)})
}

/// Returns how many bytes a Base64 text stands for.
fn decoded_length(text: &str) -> usize {
    text.trim_end_matches('=').len() * 3 / 4
}
