//! The request to a model, rebuilt from the log.

use patter_core::message::attachment::AttachmentContents;
use patter_core::message::request::{OfferedTool, Request, RequestTemplate};
use patter_core::name::WireName;
use patter_core::provider::ModelRef;
use patter_core::run::Run;
use patter_core::session::Log;
use patter_core::wire::Streaming;
use serde_json::{Value as Json, json};

/// How many characters of an attachment are shown.
const SHOWN: usize = 40;

/// Returns the run whose request can be rebuilt.
pub(super) fn requesting_run<'l>(log: &'l Log, path: &[String]) -> Option<&'l Run> {
    if path.is_empty() { log.open_run() } else { log.child_run(path) }
}

/// Rebuilds the request that a run sends next: in the protocol of the provider, or as Patter has it if there is none.
/// Attachments are shortened.
pub(super) fn rebuilt_request(log: &Log, run: &Run, contents: &AttachmentContents) -> Option<Json> {
    let frame = log.frame(&run.spec().agent)?;
    let mut sent = encoded(frame, run, contents);
    if let Some(sent) = &mut sent {
        shorten_attachments(sent);
    }
    Some(sent.unwrap_or_else(|| {
        let messages: Vec<_> = run.conversation().iter().collect();
        json!({"model": frame.model, "instruction": frame.instruction, "tools": frame.tools, "messages": messages})
    }))
}

fn encoded(frame: &RequestTemplate, run: &Run, contents: &AttachmentContents) -> Option<Json> {
    let model: ModelRef = frame.model.parse().ok()?;
    let wire = model.provider.endpoint()?.default_wire()?;
    let tools: Option<Vec<_>> = frame
        .tools
        .iter()
        .map(|tool| {
            Some(OfferedTool {
                name: WireName::from_full_name(&tool.name).ok()?,
                description: tool.description.clone(),
                schema: tool.schema.clone(),
                strict_schema: tool.is_strict.then(|| tool.schema.clone()),
            })
        })
        .collect();
    let request = Request {
        model: &model,
        instruction: &frame.instruction,
        messages: run.conversation(),
        contents,
        tools: &tools?,
        settings: &frame.settings,
        returns: frame.returns.as_ref(),
    };
    serde_json::from_slice(&wire.encode(&request, Streaming::Off)).ok()
}

/// Shortens the contents of attachments: a page with millions of characters in Base64 helps nobody.
fn shorten_attachments(value: &mut Json) {
    match value {
        Json::String(text) => {
            if let Some(short) = shortened(text) {
                *text = short;
            }
        }
        Json::Array(values) => values.iter_mut().for_each(shorten_attachments),
        Json::Object(fields) => fields.values_mut().for_each(shorten_attachments),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Returns a text without most of its Base64, if it consists of that, perhaps after the start of a `data:` address.
fn shortened(text: &str) -> Option<String> {
    let start = text.find(";base64,").filter(|_| text.starts_with("data:")).map_or(0, |at| at + ";base64,".len());
    let (head, content) = text.split_at_checked(start)?;
    let is_base64 = content.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte));
    if !is_base64 || content.len() < 10 * SHOWN {
        return None;
    }
    let shown = content.get(..SHOWN)?;
    Some(format!("{head}{shown}… ({} characters of Base64)", content.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_base64_is_shortened() {
        let content = "QUJD".repeat(200);
        let prose = "A sentence that is long. ".repeat(40);
        let mut request = json!({"image": format!("data:image/png;base64,{content}"), "data": [content], "text": prose, "key": "QUJD"});
        shorten_attachments(&mut request);
        let short = format!("{}… (800 characters of Base64)", "QUJD".repeat(10));
        assert_eq!(
            request,
            json!({"image": format!("data:image/png;base64,{short}"), "data": [short], "text": prose, "key": "QUJD"})
        );
    }
}
