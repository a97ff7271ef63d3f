//! Logs without their contents: runs, calls, times, tokens and costs stay, and how everything ended.

use super::{Log, LogEntry, LogError, RunPath, parse_entry};
use crate::message::conversation::Message;
use crate::message::redact::redact_text;
use crate::run::{Run, RunInput};
use std::sync::Arc;

/// Returns the entries of a log without contents, followed by the entry that says so. What a run decided by contents that are
/// gone (whether an answer has the required form, which steps of a workflow follow) is kept as the state of the run.
///
/// ```
/// use patter_core::session::{Log, LogEntry, redacted_entries};
/// let entry = r#"{"entry":"forked","from":"a","messages":[{"role":"user","text":"I am Ada"}]}"#;
/// let redacted = redacted_entries([entry], 7).unwrap();
/// assert_eq!(Log::read(redacted.iter().map(|entry| serde_json::to_string(entry).unwrap())).unwrap().redacted_at(), Some(7));
/// assert!(!format!("{redacted:?}").contains("Ada"));
/// ```
pub fn redacted_entries<T: AsRef<str>>(
    entries: impl IntoIterator<Item = T>,
    at: u64,
) -> Result<Vec<LogEntry>, LogError> {
    let mut original = Log::default();
    let mut log = Log::default();
    let mut redacted = Vec::new();
    for text in entries {
        let entry = parse_entry(text.as_ref()).map_err(|error| original.error(&error))?;
        original.apply(entry.clone())?;
        let Some(entry) = log.redact_entry(&original, entry) else { continue };
        log.apply(entry.clone())?;
        redacted.push(entry);
    }
    redacted.push(LogEntry::Redacted { at });
    Ok(redacted)
}

impl Log {
    /// Returns when the contents were removed, in milliseconds since 1970.
    pub fn redacted_at(&self) -> Option<u64> {
        self.redacted_at
    }

    /// Returns what follows in a log without contents. `None` if nothing does.
    fn redact_entry(&self, original: &Log, mut entry: LogEntry) -> Option<LogEntry> {
        match &mut entry {
            LogEntry::Opened { .. }
            | LogEntry::Requested { .. }
            | LogEntry::Rewound { .. }
            | LogEntry::Redacted { .. } => {}
            LogEntry::ReplyStreamed { .. } | LogEntry::CallProgressed { .. } => return None,
            LogEntry::Forked { messages, .. } => messages.iter_mut().for_each(Message::redact),
            LogEntry::RunStarted { frame, start, .. } => {
                if let Some(frame) = frame {
                    let frame = Arc::make_mut(frame);
                    // An instruction may contain the input.
                    redact_text(&mut frame.instruction);
                    frame.returns = None;
                }
                start.redact();
            }
            LogEntry::RunRestored { frame, snapshot, .. } => {
                *frame = None;
                snapshot.redact();
            }
            LogEntry::InputReceived { run, input } => {
                input.redact();
                if let Some(restored) = self.diverging_state(original, run, input) {
                    return Some(restored);
                }
            }
        }
        Some(entry)
    }

    /// Returns the state that an input led to, if it would lead to another one without contents.
    fn diverging_state(&self, original: &Log, path: &RunPath, input: &RunInput) -> Option<LogEntry> {
        let expected = original.any_run(path)?;
        let mut trial = self.any_run(path)?.clone();
        if trial.apply(input.clone()).is_ok() && trial.shape() == expected.shape() {
            return None;
        }
        let mut snapshot = Box::new(expected.clone());
        snapshot.redact();
        Some(LogEntry::RunRestored { run: path.clone(), frame: None, bindings: String::new(), snapshot })
    }

    /// Returns the open run, a called one, or the one that ended last.
    fn any_run(&self, path: &RunPath) -> Option<&Run> {
        match path.is_empty() {
            true => self.open_run.as_ref().or(self.last_run.as_ref()),
            false => self.child_runs.get(path),
        }
    }
}
