//! What is sent of a conversation that has outgrown the window of its model.
//!
//! A conversation keeps all its messages. [`Message::Compacted`] says which of those before it are no longer sent, and what the
//! model reads instead. Calls and their results are never separated.

use super::attachment::{Attachment, MediaKind, readable};
use super::conversation::{Conversation, Message, ToolOutcome};
use crate::text::truncate;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;

/// How many bytes a token has, for estimates. Languages and tokenizers differ.
const BYTES_PER_TOKEN: u64 = 4;
/// What a message needs besides its text, in bytes.
const AROUND: u64 = 16;
/// What an image counts as, in bytes.
const IMAGE: u64 = 6400;
/// What a page of a document counts as, in bytes: its text, and often its image.
const PAGE: u64 = 8000;
/// The usual size of a page of a document.
const PAGE_SIZE: u64 = 100_000;
/// The number of pages up to which a document is counted: large ones have large images rather than many pages.
const MAX_PAGES: u64 = 40;
/// The length to which results are shortened first, in characters.
const SHORT_RESULT: usize = 2000;
/// The length to which results are shortened if that is not enough.
const SHORTEST_RESULT: usize = 200;
/// The length of a message in a transcript that is summarized, in characters.
const TRANSCRIPT_MESSAGE: usize = 4000;

/// What happens when a conversation outgrows the window of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextPolicy {
    /// Results of tools are shortened, and then the model summarizes the older messages.
    #[default]
    Compact,
    /// Results of tools are shortened, and then the older messages are left out.
    Trim,
    /// The run fails.
    Error,
}

/// What to do about a conversation that is too long.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionPlan {
    /// The index of the first message that is still sent.
    pub kept_from: usize,
    /// The length to which earlier results of tools are shortened, in characters.
    pub result_chars: Option<usize>,
    /// What the model reads of the messages that are left out now, to summarize it: their transcript.
    pub transcript: Option<String>,
    /// The summary of what was left out before.
    pub summary: String,
}

/// Returns the messages that are sent to a model: all of them, unless the conversation was compacted.
///
/// ```
/// use patter_core::message::context::sent_messages;
/// use patter_core::message::conversation::{Conversation, Message};
/// let compacted = Message::Compacted { summary: "They greeted.".into(), kept_from: 2, result_chars: None };
/// let messages = vec![Message::user("Hi"), Message::assistant("Hello", vec![]), Message::user("Bye"), compacted];
/// let conversation = Conversation::from(messages);
/// let sent = sent_messages(&conversation);
/// assert_eq!(sent.len(), 2);
/// assert!(matches!(sent.first(), Some(Message::User { text, .. }) if text.ends_with("They greeted.")));
/// assert_eq!(sent.last(), Some(&Message::user("Bye")));
/// ```
pub fn sent_messages(conversation: &Conversation) -> Cow<'_, Conversation> {
    let Some(last) = last_compaction(conversation) else { return Cow::Borrowed(conversation) };
    let mut kept = conversation.sent();
    let sent = match kept.take().filter(|sent| sent.is_from(&last, conversation)) {
        Some(sent) => kept.insert(sent.extended(conversation)),
        None => kept.insert(SentMessages::new(conversation, &last)),
    };
    Cow::Owned(sent.of(conversation))
}

/// What is sent of a compacted conversation. It is kept, so that only what is new is added for the next request.
pub(super) struct SentMessages {
    /// The index of the compaction.
    compaction: usize,
    /// How many messages of the conversation are considered.
    len: usize,
    /// Whether there is a message of the user among those that are not left out. If not, the last one is part of the note.
    has_user: bool,
    messages: Conversation,
}

impl SentMessages {
    fn new(conversation: &Conversation, last: &LastCompaction<'_>) -> Self {
        let kept = conversation.range(last.kept_from..last.index).filter(|message| !is_compaction(message));
        let kept = kept.map(|message| shortened(message, last.result_chars));
        let new = conversation.since(last.index + 1).cloned();
        let has_user = last.has_user(conversation);
        let note = (last.kept_from > 0).then(|| {
            // What the user wants now is not only part of a summary.
            let asked = if has_user { None } else { conversation.range(0..last.kept_from).rfind(is_user) };
            let attachments = asked.map_or(&[][..], Message::attachments).to_vec();
            Message::User { text: note(last.summary, asked), attachments }
        });
        let messages = note.into_iter().chain(kept).chain(new).collect();
        Self { compaction: last.index, len: conversation.len(), has_user, messages }
    }

    /// Returns whether these are the first messages that are sent of a conversation, or all and more.
    fn is_from(&self, last: &LastCompaction<'_>, conversation: &Conversation) -> bool {
        self.compaction == last.index && self.has_user == last.has_user(conversation)
    }

    /// Adds what is new.
    fn extended(mut self, conversation: &Conversation) -> Self {
        self.messages.extend(conversation.since(self.len).cloned());
        self.len = self.len.max(conversation.len());
        self
    }

    /// Returns those of a conversation, which may be shorter.
    fn of(&self, conversation: &Conversation) -> Conversation {
        let mut messages = self.messages.clone();
        messages.truncate(messages.len().saturating_sub(self.len - conversation.len()));
        messages
    }
}

/// Returns about how many tokens messages have.
pub fn estimate_tokens<'m>(messages: impl IntoIterator<Item = &'m Message>) -> u64 {
    estimate_text(messages.into_iter().map(message_bytes).sum())
}

/// Returns about how many tokens a conversation has. Messages that were counted before are not read again.
pub(crate) fn estimate_conversation(conversation: &Conversation) -> u64 {
    estimate_text(conversation.sum(message_bytes))
}

/// Returns about how many tokens a text of so many bytes has.
pub fn estimate_text(bytes: u64) -> u64 {
    bytes / BYTES_PER_TOKEN
}

/// Returns how many bytes a message has about, with what surrounds its text.
pub fn message_bytes(message: &Message) -> u64 {
    let bytes = match message {
        Message::User { text, attachments } => {
            return AROUND + text.len() as u64 + attachments.iter().map(attachment_bytes).sum::<u64>();
        }
        Message::Assistant { text, calls, opaque } => {
            let calls = calls.iter().map(|call| call.tool.len() + call.arguments.len());
            text.len() + calls.sum::<usize>() + opaque.as_ref().map_or(0, |opaque| json_bytes(&opaque.data))
        }
        Message::Tool { outcome, .. } => {
            let media =
                outcome.media().iter().map(|media| media_bytes(Some(media.kind), media.size() as u64)).sum::<u64>();
            return AROUND + media + outcome_bytes(outcome);
        }
        Message::Compacted { summary, .. } => summary.len(),
    };
    AROUND + bytes as u64
}

/// Returns what an attachment counts as, in bytes of text.
fn attachment_bytes(attachment: &Attachment) -> u64 {
    media_bytes(attachment.kind(), attachment.bytes)
}

fn media_bytes(kind: Option<MediaKind>, size: u64) -> u64 {
    match kind {
        Some(MediaKind::Image) => IMAGE,
        // The number of pages is only known to those who read the document.
        Some(MediaKind::Document) => (size / PAGE_SIZE).clamp(1, MAX_PAGES) * PAGE,
        Some(MediaKind::Text) => size,
        None => AROUND,
    }
}

fn outcome_bytes(outcome: &ToolOutcome) -> u64 {
    (match outcome {
        ToolOutcome::Value { value: Json::String(text) } => text.len(),
        ToolOutcome::Value { value } if outcome.media().is_empty() => json_bytes(value),
        outcome => outcome.text().len(),
    }) as u64
}

/// Returns about how many bytes a value has as JSON, without writing it.
fn json_bytes(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) => 5,
        Json::Number(_) => 8,
        Json::String(text) => text.len() + 2,
        Json::Array(items) => items.iter().map(|item| json_bytes(item) + 1).sum::<usize>() + 2,
        Json::Object(fields) => {
            fields.iter().map(|(name, value)| name.len() + json_bytes(value) + 4).sum::<usize>() + 2
        }
    }
}

/// Decides how a conversation is made to fit into a number of tokens. Results of tools are shortened before words are left out;
/// with `summarizes`, the model is to summarize those. Returns `None` if nothing can be left out.
pub fn plan_compaction(conversation: &Conversation, max_tokens: u64, summarizes: bool) -> Option<CompactionPlan> {
    let last = last_compaction(conversation);
    let summary = last.as_ref().map_or_else(String::new, |last| last.summary.to_owned());
    let kept_from = last.as_ref().map_or(0, |last| last.kept_from);
    let was_short = last.as_ref().and_then(|last| last.result_chars).unwrap_or(usize::MAX);
    let fits = |from: usize, bytes: u64| {
        let summary = if from > 0 { summary.len().max(SUMMARY_BYTES) as u64 } else { 0 };
        (bytes + summary) / BYTES_PER_TOKEN <= max_tokens
    };
    let fits_whole = |chars: usize| {
        let bytes = conversation.since(kept_from).map(|message| shortened_bytes(message, chars)).sum();
        fits(kept_from, bytes)
    };
    if was_short > SHORT_RESULT && fits_whole(SHORT_RESULT) {
        return Some(CompactionPlan { kept_from, result_chars: Some(SHORT_RESULT), transcript: None, summary });
    }
    // The earliest boundary from which on everything fits. Later ones fit, too, so this looks from the end.
    let find_first = |chars: usize| {
        let mut bytes = 0;
        let mut first = None;
        for (index, message) in (kept_from + 1..conversation.len()).zip(conversation.since(kept_from + 1)).rev() {
            bytes += shortened_bytes(message, chars);
            if is_boundary(message) {
                if !fits(index, bytes) {
                    break;
                }
                first = Some((index, chars));
            }
        }
        first
    };
    let enough = find_first(SHORT_RESULT).or_else(|| find_first(SHORTEST_RESULT));
    let last_boundary = || Some((boundaries(conversation, kept_from).next_back()?, SHORTEST_RESULT));
    let (kept_from_now, chars) = match enough.or_else(last_boundary) {
        Some(found) => found,
        // There is only one exchange left, whose results can still be shorter.
        None if was_short > SHORTEST_RESULT && fits_whole(SHORTEST_RESULT) => {
            return Some(CompactionPlan { kept_from, result_chars: Some(SHORTEST_RESULT), transcript: None, summary });
        }
        None => return None,
    };
    let left_out = conversation.range(kept_from..kept_from_now).filter(|message| !is_compaction(message));
    let transcript = summarizes.then(|| transcript(&summary, left_out, max_tokens));
    Some(CompactionPlan { kept_from: kept_from_now, result_chars: Some(chars), transcript, summary })
}

/// Returns whether something can be left out of a conversation, or shortened so that it fits into a number of tokens.
pub(crate) fn can_be_compacted(conversation: &Conversation, max_tokens: u64) -> bool {
    let kept_from = last_compaction(conversation).map_or(0, |last| last.kept_from);
    boundaries(conversation, kept_from).next().is_some() || plan_compaction(conversation, max_tokens, false).is_some()
}

/// Iterates over the messages that a conversation could begin with, instead of the one with which it does.
fn boundaries(conversation: &Conversation, kept_from: usize) -> impl DoubleEndedIterator<Item = usize> {
    let messages = (kept_from + 1..conversation.len()).zip(conversation.since(kept_from + 1));
    messages.filter(|(_, message)| is_boundary(message)).map(|(index, _)| index)
}

/// The length of a summary that is expected, in bytes.
const SUMMARY_BYTES: usize = 2000;

struct LastCompaction<'c> {
    index: usize,
    kept_from: usize,
    summary: &'c str,
    result_chars: Option<usize>,
}

impl LastCompaction<'_> {
    /// Returns whether there is a message of the user among those that are not left out.
    fn has_user(&self, conversation: &Conversation) -> bool {
        conversation.since(self.kept_from).any(|message| is_user(&message))
    }
}

fn last_compaction(conversation: &Conversation) -> Option<LastCompaction<'_>> {
    let index = conversation.last_compaction()?;
    match conversation.get(index)? {
        Message::Compacted { summary, kept_from, result_chars } => {
            Some(LastCompaction { index, kept_from: *kept_from, summary, result_chars: *result_chars })
        }
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    }
}

fn is_user(message: &&Message) -> bool {
    matches!(message, Message::User { .. })
}

fn is_compaction(message: &Message) -> bool {
    matches!(message, Message::Compacted { .. })
}

/// Returns whether what precedes a message can be left out: no result loses its call.
fn is_boundary(message: &Message) -> bool {
    match message {
        Message::User { .. } => true,
        // The results of earlier calls precede it. The message that it answers is part of the summary.
        Message::Assistant { .. } => true,
        Message::Tool { .. } | Message::Compacted { .. } => false,
    }
}

/// Returns what the model reads instead of the messages that are left out.
fn note(summary: &str, asked: Option<&Message>) -> String {
    let mut text = match summary.trim() {
        "" => "(Earlier messages of this conversation were left out, because it is too long.)".to_owned(),
        summary => format!(
            "(Earlier messages of this conversation were left out, because it is too long. This is what they were about.)\n\n\
             {summary}"
        ),
    };
    if let Some(Message::User { text: asked, attachments }) = asked {
        text.push_str("\n\n(The last message of the user:)\n\n");
        text.push_str(&readable(&truncate(asked, TRANSCRIPT_MESSAGE), attachments));
    }
    text
}

/// Returns how many bytes a message has about, with its result shortened. Compactions are not sent.
fn shortened_bytes(message: &Message, max_chars: usize) -> u64 {
    match message {
        Message::Compacted { .. } => 0,
        Message::Tool { outcome, .. } if is_long(outcome, max_chars) => {
            message_bytes(&shortened(message, Some(max_chars)))
        }
        message => message_bytes(message),
    }
}

/// Returns whether a result is shortened to a number of characters.
fn is_long(outcome: &ToolOutcome, max_chars: usize) -> bool {
    outcome_bytes(outcome) > max_chars as u64 || !outcome.media().is_empty()
}

/// Returns a message with its result shortened.
fn shortened(message: &Message, max_chars: Option<usize>) -> Message {
    let (Message::Tool { call_id, tool, outcome }, Some(max_chars)) = (message, max_chars) else {
        return message.clone();
    };
    if !is_long(outcome, max_chars) {
        return message.clone();
    }
    let text = outcome.text();
    let text = match text.chars().count() {
        count if count > max_chars => {
            format!("{}\n(shortened: the whole result has {count} characters)", truncate(&text, max_chars))
        }
        _ => text,
    };
    let outcome = match outcome {
        ToolOutcome::Value { .. } => ToolOutcome::Value { value: text.into() },
        ToolOutcome::Error { .. } => ToolOutcome::Error { message: text.trim_start_matches("error: ").to_owned() },
        outcome => outcome.clone(),
    };
    Message::Tool { call_id: call_id.clone(), tool: tool.clone(), outcome }
}

/// Returns messages as text, with the summary of those before. If there is too much of it, the oldest part is left out.
fn transcript<'m>(summary: &str, messages: impl Iterator<Item = &'m Message>, max_tokens: u64) -> String {
    let mut lines: Vec<String> = Vec::new();
    if !summary.is_empty() {
        lines.push(format!("What was said before: {summary}"));
    }
    for message in messages {
        match message {
            Message::User { text, attachments } => {
                lines.push(format!("User: {}", readable(&truncate(text, TRANSCRIPT_MESSAGE), attachments)));
            }
            Message::Assistant { text, calls, .. } => {
                if !text.trim().is_empty() {
                    lines.push(format!("Assistant: {}", truncate(text, TRANSCRIPT_MESSAGE)));
                }
                lines.extend(calls.iter().map(|call| {
                    format!("Assistant calls {} with {}", call.tool, truncate(&call.arguments, SHORT_RESULT))
                }));
            }
            Message::Tool { tool, outcome, .. } => {
                lines.push(format!("{tool} returned: {}", truncate(&outcome.text(), SHORT_RESULT)));
            }
            Message::Compacted { .. } => {}
        }
    }
    let mut bytes: u64 = lines.iter().map(|line| line.len() as u64 + 1).sum();
    let first = usize::from(!summary.is_empty());
    let mut left_out = 0;
    for line in lines.iter().skip(first) {
        if bytes <= max_tokens * BYTES_PER_TOKEN || lines.len() - left_out <= first + 1 {
            break;
        }
        bytes -= line.len() as u64 + 1;
        left_out += 1;
    }
    lines.drain(first..first + left_out);
    lines.join("\n")
}
