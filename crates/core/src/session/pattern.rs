//! Sessions as patterns: what was said, called and answered, in the notation in which agents are written.
//!
//! A session contains the responses of its runs, a response the messages of its run, a message of the user its attachments,
//! and a message of the model the invocations of tools, each with its outcome. Nothing that the JSON export has is lost.

use super::{Log, Turn};
use crate::message::attachment::Attachment;
use crate::message::conversation::{Message, Messages, Opaque, ToolCall, ToolOutcome, Usage};
use crate::run::RunOutcome;
use patter_gram::{quote, quote_name};
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Returns a session as a pattern, formatted. `summary` has its other properties, such as its agent and title.
///
/// Text is text, and data is JSON in a tagged string, so that a tool's result `"5"` differs from `5`.
///
/// ```
/// use patter_core::session::{Log, session_pattern};
/// let summary = serde_json::json!({"agent": "hello", "created_ms": 5, "forked_from": null});
/// let pattern = session_pattern("20261116-1", summary.as_object().unwrap(), &Log::default());
/// assert!(pattern.starts_with("[`20261116-1`:Session { agent: \"hello\", createdMs: 5"), "{pattern}");
/// ```
pub fn session_pattern(id: &str, summary: &Map<String, Json>, log: &Log) -> String {
    let mut record = Record::default();
    for (name, value) in summary.iter().filter(|(name, _)| *name != "id") {
        record.data(&camel_case(name), value);
    }
    record.usage(log.usage());
    let conversation = log.conversation();
    let mut elements = Vec::new();
    // Messages before the first run come from another session; those after the last one belong to a run in progress.
    let begins = log.turns().iter().map(|turn| turn.begin).chain([open_begin(log)]);
    let mut begins = begins.map(|begin| begin.min(conversation.len())).peekable();
    let first = begins.peek().copied().unwrap_or(conversation.len());
    elements.extend(messages(conversation.range(0..first), &BTreeMap::new()));
    for turn in log.turns() {
        let begin = begins.next().unwrap_or(conversation.len());
        let end = begins.peek().copied().unwrap_or(conversation.len()).max(begin);
        elements.push(response(turn, conversation.range(begin..end)));
    }
    let open = begins.next().unwrap_or(conversation.len()).max(first);
    elements.extend(messages(conversation.since(open), &BTreeMap::new()));
    let source = pattern(&quote_name(id), "Session", &record, &elements);
    patter_gram::format(&source).unwrap_or(source)
}

/// Returns the index of the first message of the run in progress.
fn open_begin(log: &Log) -> usize {
    let new = log.open_run().map_or(0, |run| run.new_messages().len());
    log.conversation().len().saturating_sub(new)
}

/// Returns a finished run with its messages.
fn response(turn: &Turn, conversation: Messages<'_>) -> String {
    let mut record = Record::default();
    match &turn.outcome {
        RunOutcome::Answer { text, value, finish } => {
            record.text("content", text);
            if let Some(value) = value {
                record.value("value", value);
            }
            record.data("finish", &serde_json::to_value(finish).unwrap_or_default());
        }
        RunOutcome::Failed(failure) => {
            record.text("error", &failure.message);
            record.data("errorKind", &serde_json::to_value(failure.kind).unwrap_or_default());
        }
        RunOutcome::Cancelled => record.data("cancelled", &Json::Bool(true)),
    }
    record.text("agent", &turn.agent);
    if !turn.model.is_empty() {
        record.text("model", &turn.model);
    }
    record.number("at", turn.at);
    record.number("elapsedMs", turn.elapsed_ms);
    record.number("modelCalls", u64::from(turn.model_calls));
    record.usage(turn.usage);
    pattern("", "Response", &record, &messages(conversation, &turn.durations_ms))
}

/// Returns messages, in which each call has its outcome.
fn messages(conversation: Messages<'_>, durations: &BTreeMap<String, u64>) -> Vec<String> {
    let mut elements = Vec::new();
    let mut rest = conversation.peekable();
    while let Some(message) = rest.next() {
        let mut record = Record::default();
        match message {
            Message::User { text, attachments } => {
                record.text("role", "user");
                record.text("text", text);
                let attachments: Vec<String> = attachments.iter().map(attachment).collect();
                elements.push(pattern("", "Message", &record, &attachments));
            }
            Message::Assistant { text, calls, opaque } => {
                record.text("role", "assistant");
                if !text.is_empty() {
                    record.text("text", text);
                }
                if let Some(opaque) = opaque {
                    record.opaque(opaque);
                }
                let invocations = calls.iter().map(|call| {
                    let is_own = |message: &&Message| {
                        matches!(message, Message::Tool { call_id, tool, .. } if *call_id == call.id && *tool == call.tool)
                    };
                    let outcome = rest.next_if(is_own).and_then(|message| match message {
                        Message::Tool { outcome, .. } => Some(outcome),
                        Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => None,
                    });
                    invocation(call, outcome, durations.get(&call.id).copied())
                });
                let invocations: Vec<String> = invocations.collect();
                elements.push(pattern("", "Message", &record, &invocations));
            }
            // An outcome apart from its call, where a conversation was cut.
            Message::Tool { call_id, tool, outcome } => {
                record.text("role", "tool");
                record.text("call", call_id);
                record.text("tool", tool);
                record.outcome(outcome);
                elements.push(pattern("", "Message", &record, &[]));
            }
            Message::Compacted { summary, kept_from, result_chars } => {
                record.text("role", "compacted");
                if !summary.is_empty() {
                    record.text("summary", summary);
                }
                record.number("keptFrom", *kept_from as u64);
                if let Some(chars) = result_chars {
                    record.number("resultChars", *chars as u64);
                }
                elements.push(pattern("", "Message", &record, &[]));
            }
        }
    }
    elements
}

fn attachment(attachment: &Attachment) -> String {
    let Attachment { name, media_type, bytes, sha256 } = attachment;
    let mut record = Record::default();
    record.text("name", name);
    record.text("mediaType", media_type);
    record.number("bytes", *bytes);
    record.text("sha256", sha256);
    pattern("", "Attachment", &record, &[])
}

fn invocation(call: &ToolCall, outcome: Option<&ToolOutcome>, duration_ms: Option<u64>) -> String {
    let mut record = Record::default();
    record.text("tool", &call.tool);
    record.text("call", &call.id);
    // The arguments are what the model wrote, which may not be JSON.
    match serde_json::from_str::<Json>(&call.arguments) {
        Ok(_) => record.json("args", &call.arguments),
        Err(_) => record.text("args", &call.arguments),
    }
    if let Some(outcome) = outcome {
        record.outcome(outcome);
    }
    if let Some(duration_ms) = duration_ms {
        record.number("durationMs", duration_ms);
    }
    pattern("", "Invocation", &record, &[])
}

fn pattern(name: &str, label: &str, record: &Record, elements: &[String]) -> String {
    let elements = if elements.is_empty() { String::new() } else { format!(" | {}", elements.join(", ")) };
    format!("[{name}:{label} {{{}}}{elements}]", record.0)
}

/// The properties of a pattern.
#[derive(Default)]
struct Record(String);

impl Record {
    fn add(&mut self, name: &str, value: &str) {
        let comma = if self.0.is_empty() { "" } else { ", " };
        let _ = write!(self.0, "{comma}{}: {value}", quote_name(name));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.add(name, &quote(text));
    }

    fn number(&mut self, name: &str, number: u64) {
        self.add(name, &number.to_string());
    }

    /// Adds JSON as text with a tag.
    fn json(&mut self, name: &str, json: &str) {
        self.add(name, &tagged_json(json));
    }

    /// Adds a value of a tool or a model: text as such, everything else as JSON.
    fn value(&mut self, name: &str, value: &Json) {
        match value {
            Json::String(text) => self.text(name, text),
            other => self.json(name, &other.to_string()),
        }
    }

    /// Adds a property: text, whole numbers and booleans as such, and everything else as JSON. Null is left out.
    fn data(&mut self, name: &str, value: &Json) {
        match value {
            Json::Null => {}
            Json::String(text) => self.text(name, text),
            Json::Bool(bool) => self.add(name, &bool.to_string()),
            Json::Number(number) if number.is_u64() => self.add(name, &number.to_string()),
            other => self.json(name, &other.to_string()),
        }
    }

    /// Adds the counts that are not 0.
    fn usage(&mut self, usage: Usage) {
        let counts = match serde_json::to_value(usage) {
            Ok(Json::Object(counts)) => counts,
            _ => Map::new(),
        };
        let counts = counts.iter().filter(|(_, count)| count.as_u64() != Some(0));
        let counts: Vec<String> = counts.map(|(name, count)| format!("{}: {count}", camel_case(name))).collect();
        if !counts.is_empty() {
            self.add("usage", &format!("{{{}}}", counts.join(", ")));
        }
    }

    fn opaque(&mut self, opaque: &Opaque) {
        let Opaque { wire, origin, data } = opaque;
        let origin = if origin.is_empty() { String::new() } else { format!("origin: {}, ", quote(origin)) };
        let data = tagged_json(&data.to_string());
        self.add("opaque", &format!("{{wire: {}, {origin}data: {data}}}", quote(wire)));
    }

    fn outcome(&mut self, outcome: &ToolOutcome) {
        match outcome {
            ToolOutcome::Value { value } => self.value("result", value),
            ToolOutcome::Error { message } => self.text("error", message),
            ToolOutcome::Denied { message } => self.text("denied", message),
            ToolOutcome::Cancelled => self.data("cancelled", &Json::Bool(true)),
        }
    }
}

fn tagged_json(json: &str) -> String {
    patter_gram::Value::Tagged { tag: "json".to_owned(), text: json.to_owned() }.to_string()
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut name, part| {
        let mut letters = part.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}
