//! Reading entries of a log.
//!
//! Serde holds a copy of an entry until it knows the kind of it, and another one of the input inside. Entries as they are
//! written begin with their kind, so the frequent ones are read without copies.

use super::{LogEntry, RunPath, TraceParent};
use crate::message::conversation::{ToolOutcome, Usage};
use crate::message::request::{Reply, RequestTemplate};
use crate::run::{CallTiming, Ruling, RunInput, RunStart};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::sync::Arc;

/// Reads an entry.
pub(super) fn parse_entry(text: &str) -> serde_json::Result<LogEntry> {
    // Whatever is unusual about an entry, serde knows best.
    parse_frequent(text).map_or_else(|| serde_json::from_str(text), Ok)
}

fn parse_frequent(text: &str) -> Option<LogEntry> {
    if text.starts_with(r#"{"entry":"input","#) {
        let InputReceived { run, input, .. } = serde_json::from_str(text).ok()?;
        return Some(LogEntry::InputReceived { run, input: input.into_input()? });
    }
    if text.starts_with(r#"{"entry":"began","#) {
        let RunStarted { run, frame, bindings, start, traceparent, .. } = serde_json::from_str(text).ok()?;
        return Some(LogEntry::RunStarted { run, frame, bindings, start, traceparent });
    }
    None
}

/// The fields of [`LogEntry::InputReceived`].
#[derive(Deserialize)]
struct InputReceived {
    #[serde(rename = "entry")]
    _kind: IgnoredAny,
    #[serde(default)]
    run: RunPath,
    input: FrequentInput,
}

/// The fields of [`LogEntry::RunStarted`].
#[derive(Deserialize)]
struct RunStarted {
    #[serde(rename = "entry")]
    _kind: IgnoredAny,
    #[serde(default)]
    run: RunPath,
    #[serde(default)]
    frame: Option<Arc<RequestTemplate>>,
    bindings: String,
    #[serde(rename = "beginning")]
    start: RunStart,
    #[serde(default)]
    traceparent: Option<TraceParent>,
}

/// The inputs that every run with a call has, and the fields of all of them.
#[derive(Deserialize)]
struct FrequentInput {
    what: InputKind,
    reply: Option<Reply>,
    #[serde(default)]
    rulings: Vec<Ruling>,
    #[serde(default)]
    timing: CallTiming,
    call_id: Option<String>,
    outcome: Option<ToolOutcome>,
    duration_ms: Option<u64>,
    #[serde(default)]
    usage: Usage,
    #[serde(default)]
    model_calls: u32,
    at: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum InputKind {
    Reply,
    Started,
    Finished,
}

impl FrequentInput {
    /// Returns the input, unless a field is missing.
    fn into_input(self) -> Option<RunInput> {
        Some(match self.what {
            InputKind::Reply => {
                RunInput::ModelReplied { reply: self.reply?, rulings: self.rulings, timing: self.timing, at: self.at? }
            }
            InputKind::Started => RunInput::CallStarted { call_id: self.call_id?, at: self.at },
            InputKind::Finished => RunInput::CallFinished {
                call_id: self.call_id?,
                outcome: self.outcome?,
                duration_ms: self.duration_ms?,
                usage: self.usage,
                model_calls: self.model_calls,
                at: self.at?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_entry, parse_frequent};
    use crate::session::LogEntry;

    const FREQUENT: [&str; 7] = [
        r#"{"entry":"began","run":["c1"],"bindings":"b","beginning":{"spec":{"agent":"a","hash":"h","tools":[],"limits":{"max_model_calls":10,"max_tool_calls":null,"max_tokens":null,"deadline_ms":null,"max_depth":4,"max_answer_retries":2}},"depth":1,"input":"Hello","at":5}}"#,
        r#"{"entry":"input","input":{"what":"reply","reply":{"text":"","calls":[{"id":"c1","tool":"t","arguments":"{}"}],"finish":"stop","usage":{"input_tokens":5,"cached_tokens":0,"cache_write_tokens":0,"output_tokens":1,"reasoning_tokens":0},"opaque":null},"rulings":[{"decision":"allow","because":"x"}],"at":6}}"#,
        r#"{"entry":"input","run":["c1"],"input":{"what":"started","call_id":"c1"}}"#,
        r#"{"entry":"input","input":{"what":"started","call_id":"c1","at":9}}"#,
        r#"{"entry":"began","bindings":"b","beginning":{"spec":{"agent":"a","hash":"h","tools":[],"limits":{"max_model_calls":10,"max_tool_calls":null,"max_tokens":null,"deadline_ms":null,"max_depth":4,"max_answer_retries":2}},"depth":0,"input":"Hello","at":5},"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}"#,
        r#"{"entry":"input","input":{"what":"finished","call_id":"c1","outcome":{"kind":"value","value":null},"duration_ms":63,"at":7}}"#,
        r#"{"entry":"input","input":{"what":"finished","call_id":"c1","outcome":{"kind":"cancelled"},"duration_ms":63,"usage":{"input_tokens":5,"cached_tokens":0,"cache_write_tokens":0,"output_tokens":1,"reasoning_tokens":0},"model_calls":2,"at":7}}"#,
    ];

    #[test]
    fn frequent_entries_are_read_as_serde_reads_them() {
        for text in FREQUENT {
            let entry: LogEntry = serde_json::from_str(text).unwrap();
            assert_eq!(parse_frequent(text).as_ref(), Some(&entry), "{text}");
            assert_eq!(serde_json::to_string(&entry).unwrap(), text, "this is how entries are written");
        }
    }

    #[test]
    fn unusual_entries_are_left_to_serde() {
        let texts = [
            r#"{"entry":"told","told":{"what":"tick","at":1}}"#,
            r#"{"entry":"input","input":{"what":"tick","at":1}}"#,
            r#"{"entry":"input","input":{"what":"started"}}"#,
            r#"{"entry":"input","entry":"input","input":{"what":"started","call_id":"c1"}}"#,
            r#"{"entry":"input","input":{"what":"started","call_id":"c1"}} "#,
            r#"{"entry":"input","input":{"call_id":"c1","what":"started"}}"#,
            r#"{"entry":"began","bindings":"b"}"#,
            r#"{"entry":"rewound","messages":1}"#,
            "",
        ];
        for text in texts {
            let expected = serde_json::from_str::<LogEntry>(text).map_err(|error| error.to_string());
            assert_eq!(parse_entry(text).map_err(|error| error.to_string()), expected, "{text}");
        }
    }
}
