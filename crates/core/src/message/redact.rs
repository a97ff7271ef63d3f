//! Messages without their contents: who said something, which tools were called and what ended how stays.

use super::attachment::Attachment;
use super::conversation::{Message, ToolCall, ToolOutcome};
use super::request::Reply;

/// What stands in place of a content that was removed.
pub const REDACTED: &str = "[redacted]";
/// The same for arguments, which are an object.
const REDACTED_ARGUMENTS: &str = r#"{"redacted":true}"#;
/// The same for the hash of a file.
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Replaces a text that is not empty.
///
/// ```
/// use patter_core::message::redact::redact_text;
/// let mut text = "Ada".to_owned();
/// redact_text(&mut text);
/// assert_eq!(text, "[redacted]");
/// ```
pub fn redact_text(text: &mut String) {
    if !text.is_empty() {
        REDACTED.clone_into(text);
    }
}

/// Replaces the names of files and their hashes. Their types and sizes stay.
pub fn redact_attachments(attachments: &mut [Attachment]) {
    for attachment in attachments {
        redact_text(&mut attachment.name);
        NO_HASH.clone_into(&mut attachment.sha256);
    }
}

impl ToolCall {
    /// Replaces the arguments. Those that are not valid JSON stay so.
    pub fn redact(&mut self) {
        let is_valid = self.parse_arguments().is_ok();
        if is_valid { REDACTED_ARGUMENTS } else { REDACTED }.clone_into(&mut self.arguments);
    }
}

impl ToolOutcome {
    /// Replaces the result, or the message.
    pub fn redact(&mut self) {
        match self {
            ToolOutcome::Value { value } => *value = REDACTED.into(),
            ToolOutcome::Error { message } | ToolOutcome::Denied { message } => redact_text(message),
            ToolOutcome::Cancelled => {}
        }
    }
}

impl Message {
    /// Replaces everything that somebody said or a tool returned.
    ///
    /// ```
    /// use patter_core::message::conversation::Message;
    /// let mut message = Message::user("I am Ada");
    /// message.redact();
    /// assert_eq!(message, Message::user("[redacted]"));
    /// ```
    pub fn redact(&mut self) {
        match self {
            Message::User { text, attachments } => {
                redact_text(text);
                redact_attachments(attachments);
            }
            Message::Assistant { text, calls, opaque } => {
                redact_text(text);
                calls.iter_mut().for_each(ToolCall::redact);
                *opaque = None;
            }
            Message::Tool { outcome, .. } => outcome.redact(),
            Message::Compacted { summary, .. } => redact_text(summary),
        }
    }
}

impl Reply {
    /// Replaces the text, the arguments of calls and the reasoning. The tokens stay.
    pub fn redact(&mut self) {
        redact_text(&mut self.text);
        redact_text(&mut self.thought);
        self.calls.iter_mut().for_each(ToolCall::redact);
        self.opaque = None;
    }
}
