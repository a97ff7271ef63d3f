//! What was said, as JSON in the form that the conventions prescribe.

use crate::message::attachment::{Attachment, MediaKind};
use crate::message::conversation::{Message, ToolCall, ToolOutcome};
use crate::message::request::{Reply, RequestTemplate};
use crate::text::truncate;
use serde_json::{Value as Json, json};

/// The number of characters that spans contain of a text.
const MAX_TEXT_CHARS: usize = 16 * 1024;
/// The size in bytes up to which spans contain messages, the latest first.
const MAX_BYTES: usize = 256 * 1024;

/// Whether spans contain what was said: instructions, messages, arguments and results of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageContent {
    /// They do not.
    #[default]
    Omitted,
    /// They do.
    Included,
}

/// Returns messages as JSON. If they are too large, the first ones are left out.
pub(super) fn messages<'m>(messages: impl DoubleEndedIterator<Item = &'m Message>) -> String {
    let mut size = 0;
    let mut texts = Vec::new();
    for message in messages.rev() {
        let text = message_json(message).to_string();
        size += text.len();
        if size > MAX_BYTES && !texts.is_empty() {
            break;
        }
        texts.push(text);
    }
    texts.reverse();
    format!("[{}]", texts.join(","))
}

/// Returns a reply as a list of one message.
pub(super) fn reply(reply: &Reply, finish: &str) -> String {
    let parts = assistant_parts(&reply.text, &reply.calls);
    json!([{"role": "assistant", "parts": parts, "finish_reason": finish}]).to_string()
}

/// Returns an answer as a list of one message.
pub(super) fn answer(content: &str, finish: &str) -> String {
    json!([{"role": "assistant", "parts": [text_part(content)], "finish_reason": finish}]).to_string()
}

/// Returns an instruction as a list of one part.
pub(super) fn instruction(instruction: &str) -> String {
    json!([text_part(instruction)]).to_string()
}

/// Returns the tools that a model may call.
pub(super) fn tool_definitions(template: &RequestTemplate) -> String {
    let tools = template.tools.iter().map(|tool| {
        json!({"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema})
    });
    Json::Array(tools.collect()).to_string()
}

/// Returns the arguments of a call, as the model wrote them.
pub(super) fn arguments(arguments: &str) -> String {
    truncate(arguments, MAX_TEXT_CHARS)
}

/// Returns the outcome of a call as text. Images are described, not contained.
pub(super) fn outcome(outcome: &ToolOutcome) -> String {
    truncate(&outcome.text(), MAX_TEXT_CHARS)
}

fn message_json(message: &Message) -> Json {
    match message {
        Message::User { text, attachments } => {
            let parts: Vec<_> = attachments.iter().map(attachment_part).chain([text_part(text)]).collect();
            json!({"role": "user", "parts": parts})
        }
        Message::Compacted { summary, .. } => json!({"role": "user", "parts": [text_part(summary)]}),
        Message::Assistant { text, calls, .. } => json!({"role": "assistant", "parts": assistant_parts(text, calls)}),
        Message::Tool { call_id, outcome: result, .. } => {
            let part = json!({"type": "tool_call_response", "id": call_id, "response": outcome(result)});
            json!({"role": "tool", "parts": [part]})
        }
    }
}

fn assistant_parts(text: &str, calls: &[ToolCall]) -> Vec<Json> {
    let text = (!text.is_empty()).then(|| text_part(text));
    let calls = calls.iter().map(|call| {
        let arguments = match call.arguments.len() <= MAX_TEXT_CHARS {
            true => call.parse_arguments().unwrap_or_else(|_| call.arguments.as_str().into()),
            false => arguments(&call.arguments).into(),
        };
        json!({"type": "tool_call", "id": call.id, "name": call.tool, "arguments": arguments})
    });
    text.into_iter().chain(calls).collect()
}

/// Returns an attachment, of which traces have no content.
fn attachment_part(attachment: &Attachment) -> Json {
    let modality = match attachment.kind() {
        Some(MediaKind::Image) => "image",
        Some(MediaKind::Document | MediaKind::Text) | None => "document",
    };
    let Attachment { name, media_type, sha256, .. } = attachment;
    json!({"type": "file", "modality": modality, "mime_type": media_type, "file_id": sha256, "name": name})
}

fn text_part(text: &str) -> Json {
    json!({"type": "text", "content": truncate(text, MAX_TEXT_CHARS)})
}
