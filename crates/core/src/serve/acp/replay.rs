//! A session that is loaded: its log as updates.

use super::tool::ToolKinds;
use super::update::UpdateStream;
use crate::event::{Playback, RunEvent, RunEventKind};
use crate::message::attachment::readable;
use crate::message::conversation::Message;
use crate::serve::Waiting;
use crate::session::{LogEntry, LogError, RunPath};
use serde_json::Value as Json;

/// What a client is sent about a session that it loads.
///
/// ```
/// use patter_core::run::{Run, RunInput, RunSpec};
/// use patter_core::serve::acp::{Replay, ToolKind};
/// use patter_core::session::LogEntry;
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 7).unwrap();
/// let start = run.to_start();
/// let began = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None };
/// let replay = Replay::read([serde_json::to_string(&began).unwrap()], &|_, _| ToolKind::Other).unwrap();
/// assert_eq!(replay.agent.as_deref(), Some("hi"));
/// assert_eq!(replay.updates[0]["content"]["text"], "Hello");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// The updates.
    pub updates: Vec<Json>,
    /// The agent of the last run.
    pub agent: Option<String>,
}

/// The updates of a part of the conversation.
struct Part {
    /// The number of messages before it.
    start: usize,
    updates: Vec<Json>,
}

impl Replay {
    /// Reads the entries of a log. What was undone is left out.
    pub fn read<T: AsRef<str>>(entries: impl IntoIterator<Item = T>, kinds: ToolKinds<'_>) -> Result<Self, LogError> {
        let mut playback = Playback::default();
        let mut stream = UpdateStream::default();
        let mut parts: Vec<Part> = Vec::new();
        let mut agent = None;
        for (index, text) in entries.into_iter().enumerate() {
            let entry: LogEntry = serde_json::from_str(text.as_ref())
                .map_err(|error| LogError { number: index + 1, message: error.to_string() })?;
            let start = playback.log().conversation().len();
            let segment = playback.log().segments();
            let mut said = None;
            match &entry {
                LogEntry::Forked { messages, .. } => parts.extend(message_parts(messages, &mut stream, kinds)),
                LogEntry::RunStarted { run, start: run_start, .. } if run.is_empty() => {
                    agent = Some(run_start.spec.agent.clone());
                    said = Some(readable(&run_start.input, &run_start.attachments));
                }
                LogEntry::Rewound { messages } => parts.retain(|part| part.start < *messages),
                _ => {}
            }
            let events = playback.play(entry)?;
            let log = playback.log();
            if log.segments() != segment {
                stream.start_segment(log.segments());
            }
            if let Some(said) = said {
                parts.push(Part { start, updates: vec![stream.user_message(&said)] });
            }
            if let Some(part) = parts.last_mut() {
                part.updates.extend(events.iter().filter_map(|event| stream.event(event, kinds)));
            }
        }
        let waiting = Waiting::all(playback.log());
        let mut updates: Vec<_> = parts.into_iter().flat_map(|part| part.updates).collect();
        updates.extend(waiting.iter().filter(|call| call.because.is_some()).map(|call| stream.waiting(call, kinds)));
        let question = waiting.iter().find_map(|call| call.question.as_deref());
        updates.extend(question.map(|question| stream.question(question, None)));
        Ok(Self { updates, agent })
    }
}

/// Returns the updates of messages that came from elsewhere, a part for each message of the user.
fn message_parts(messages: &[Message], stream: &mut UpdateStream, kinds: ToolKinds<'_>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (start, message) in messages.iter().enumerate() {
        if parts.is_empty() || matches!(message, Message::User { .. }) {
            parts.push(Part { start, updates: Vec::new() });
        }
        stream.start_message(start);
        let mut updates = Vec::new();
        let mut event = |kind| updates.extend(stream.event(&RunEvent::new("", &RunPath::new(), kind), kinds));
        match message {
            Message::User { .. } | Message::Compacted { .. } => {}
            Message::Assistant { text, calls, .. } => {
                event(RunEventKind::Text { text: text.clone() });
                for call in calls {
                    let arguments = call.parse_arguments().unwrap_or_else(|_| call.arguments.as_str().into());
                    let tool = call.tool.clone();
                    event(RunEventKind::ToolStarted { call_id: call.id.clone(), tool, arguments });
                }
            }
            Message::Tool { call_id, tool, outcome } => event(RunEventKind::ToolFinished {
                call_id: call_id.clone(),
                tool: tool.clone(),
                outcome: outcome.clone(),
                duration_ms: 0,
                unstarted: None,
            }),
        }
        if let Message::User { text, attachments } = message {
            updates.push(stream.user_message(&readable(text, attachments)));
        }
        if let Some(part) = parts.last_mut() {
            part.updates.extend(updates);
        }
    }
    parts
}
