//! What was said before.

use super::Conversation;
use crate::ui::style::{ACCENT, DIM};
use crate::ui::{self, columns};
use patter::message::attachment::readable;
use patter::message::conversation::{self, Message};
use std::fmt::Write;
use std::io;

/// How many exchanges are shown when a conversation continues.
const SHOWN_EXCHANGES: usize = 3;
/// The maximum length of a text that is shown again, in characters.
const MAX_TEXT: usize = 2000;

impl Conversation {
    /// Shows the end of the conversation that continues.
    pub(super) fn show_past(&self) -> io::Result<()> {
        let conversation = self.open.session.conversation();
        let is_user = |message: &Message| matches!(message, Message::User { .. });
        let asked: Vec<_> =
            conversation.iter().enumerate().filter(|(_, one)| is_user(one)).map(|(index, _)| index).collect();
        let first = asked.iter().rev().nth(SHOWN_EXCHANGES - 1).copied().unwrap_or(0);
        if let Some(earlier) = ui::nonzero(first, "earlier message") {
            self.note(&format!("{earlier} (/messages lists them)"))?;
        }
        for message in conversation.since(first) {
            match message {
                Message::User { text, attachments } => {
                    let text = readable(&shortened(text), attachments);
                    self.screen.note(&format!("{DIM}›{DIM:#} {}", indented(&text)))?;
                }
                Message::Assistant { text, calls, .. } => {
                    if !text.is_empty() {
                        self.screen.say(&shortened(text))?;
                    }
                    for call in calls {
                        let arguments =
                            ui::one_line(&call.arguments, columns().saturating_sub(ui::width(&call.tool) + 4));
                        let tool = &call.tool;
                        self.screen.note(&format!("{DIM}→{DIM:#} {ACCENT}{tool}{ACCENT:#} {DIM}{arguments}{DIM:#}"))?;
                    }
                }
                Message::Tool { .. } | Message::Compacted { .. } => {}
            }
        }
        Ok(())
    }
}

/// Returns a text without its end, if it is long.
fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text).trim_end()),
        None => text.to_owned(),
    }
}

/// Indents the lines of a text after the first.
fn indented(text: &str) -> String {
    text.replace('\n', "\n  ")
}

/// Returns a line for each message.
pub(super) fn list_messages(conversation: &conversation::Conversation) -> String {
    let width = columns().saturating_sub(18);
    let mut out = String::new();
    for (index, message) in conversation.iter().enumerate() {
        let (who, text) = match message {
            Message::User { text, attachments } => ("you", readable(text, attachments)),
            Message::Assistant { text, calls, .. } => {
                let calls: Vec<_> = calls.iter().map(|call| format!("→ {}", call.tool)).collect();
                ("agent", format!("{text} {}", calls.join(" ")))
            }
            Message::Compacted { summary, kept_from, .. } => {
                ("note", format!("the first {kept_from} messages are no longer sent: {summary}"))
            }
            Message::Tool { tool, outcome, .. } => ("tool", format!("{tool}: {}", outcome.text())),
        };
        let _ = writeln!(out, "{DIM}{:>4}{DIM:#}  {who:<5}  {}", index + 1, ui::one_line(&text, width));
    }
    if out.is_empty() { "no messages yet\n".to_owned() } else { out }
}
