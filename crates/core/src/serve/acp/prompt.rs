//! What the user says: blocks of content to one text.

use crate::serve::ApiError;
use crate::serve::read::Fields;
use serde_json::Value as Json;

/// Returns the text of a prompt. A resource is named where it is mentioned, and what is embedded of it follows the text.
///
/// ```
/// use patter_core::serve::acp::prompt_text;
/// use serde_json::json;
/// let file = json!({"type": "resource", "resource": {"uri": "file:///work/a.txt", "text": "one\ntwo"}});
/// let blocks = [json!({"type": "text", "text": "Sum up "}), file, json!({"type": "text", "text": ", please"})];
/// let text = "Sum up [a.txt](file:///work/a.txt), please\n\n[a.txt](file:///work/a.txt):\n```\none\ntwo\n```";
/// assert_eq!(prompt_text(&blocks).unwrap(), text);
/// let image = json!({"type": "image", "mimeType": "image/png", "data": ""});
/// assert_eq!(prompt_text(&[image]).unwrap_err().to_string(), "`prompt[0]`: content of the type `image` is not supported");
/// ```
pub fn prompt_text(blocks: &[Json]) -> Result<String, ApiError> {
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
                embedded += &match resource.text("text")? {
                    Some(content) => format!("\n\n{link}:\n{}", fenced(content)),
                    None => format!("\n\n{link} is binary, and not included"),
                };
            }
            other => return Err(ApiError::invalid(path, format!("content of the type `{other}` is not supported"))),
        }
    }
    text += &embedded;
    if text.trim().is_empty() {
        return Err(ApiError::invalid("prompt", "is empty"));
    }
    Ok(text)
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
