//! What the user says: blocks of content to a text and attachments.

use crate::message::attachment::{AttachmentContents, UserInput};
use crate::serve::ApiError;
use crate::serve::attachment::{FileSource, attach, checked};
use crate::serve::read::Fields;
use serde_json::Value as Json;

/// Reads a prompt. A resource is named where it is mentioned. What is embedded of it follows the text, or is an attachment if
/// it is not text.
///
/// ```
/// use patter_core::serve::acp::read_prompt;
/// use serde_json::json;
/// let file = json!({"type": "resource", "resource": {"uri": "file:///work/a.txt", "text": "one\ntwo"}});
/// let blocks = [json!({"type": "text", "text": "Sum up "}), file, json!({"type": "text", "text": ", please"})];
/// let text = "Sum up [a.txt](file:///work/a.txt), please\n\n[a.txt](file:///work/a.txt):\n```\none\ntwo\n```";
/// assert_eq!(read_prompt(&blocks).unwrap().0.text, text);
/// let image = json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="});
/// assert_eq!(read_prompt(&[image]).unwrap().0.attachments[0].media_type, "image/png");
/// let audio = json!({"type": "audio", "mimeType": "audio/wav", "data": ""});
/// assert_eq!(read_prompt(&[audio]).unwrap_err().to_string(), "`prompt[0]`: content of the type `audio` is not supported");
/// ```
pub fn read_prompt(blocks: &[Json]) -> Result<(UserInput, AttachmentContents), ApiError> {
    let mut contents = AttachmentContents::default();
    let mut attachments = Vec::new();
    let mut text = String::new();
    let mut embedded = String::new();
    for (index, block) in blocks.iter().enumerate() {
        let path = format!("prompt[{index}]");
        let fields = Fields::new(block, path.as_str())?;
        match fields.required_text("type")? {
            "text" => text += fields.required_text("text")?,
            "resource_link" => {
                let uri = fields.required_text("uri")?;
                text += &link(fields.text("name")?.unwrap_or_else(|| file_name(uri)), uri);
            }
            "resource" => {
                let missing = || fields.wrong("resource", "is missing");
                let resource = fields.object("resource")?.ok_or_else(missing)?;
                let uri = resource.required_text("uri")?;
                let link = link(file_name(uri), uri);
                text += &link;
                match (resource.text("text")?, resource.text("blob")?) {
                    (Some(content), _) => embedded += &format!("\n\n{link}:\n{}", fenced(content)),
                    (None, Some(data)) => {
                        let source = FileSource::Base64 { field: "resource.blob", data };
                        match attach(&fields, &source, Some(file_name(uri)), &mut contents) {
                            Ok(attachment) => attachments.push(attachment),
                            // Editors embed whatever is mentioned.
                            Err(error) => embedded += &format!("\n\n{link} is not included: {}", error.message),
                        }
                    }
                    (None, None) => embedded += &format!("\n\n{link} is not included"),
                }
            }
            "image" => {
                let source = FileSource::Base64 { field: "data", data: fields.required_text("data")? };
                let name = fields.text("uri")?.map_or("image", file_name);
                attachments.push(attach(&fields, &source, Some(name), &mut contents)?);
            }
            other => return Err(ApiError::invalid(path, format!("content of the type `{other}` is not supported"))),
        }
    }
    text += &embedded;
    let input = UserInput { text, attachments };
    if input.is_empty() {
        return Err(ApiError::invalid("prompt", "is empty"));
    }
    Ok((checked(input, || "prompt".to_owned())?, contents))
}

/// Returns a text as a block of code, whatever it contains.
pub(super) fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// Returns a line as code, whatever it contains.
pub(super) fn code_span(text: &str) -> String {
    let fence = "`".repeat(longest_run(text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

fn link(name: &str, uri: &str) -> String {
    format!("[{name}]({uri})")
}

/// Returns the last part of an address.
fn file_name(uri: &str) -> &str {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    path.trim_end_matches('/').rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(uri)
}
