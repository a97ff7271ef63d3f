//! A segment of a session, read from its log: a run, or the part of it between two waits for somebody.

use super::TurnEnd;
use crate::event::{Playback, RunEvent};
use crate::message::conversation::{Message, Usage};
use crate::run::{ClientAdditions, Run};
use crate::session::{Log, LogEntry, LogError};

/// A segment of a session: what one request of a client made happen. See [`Log::segments`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Segment {
    /// The agent.
    pub agent: String,
    /// What the user said, if the run started with this segment or before.
    pub input: String,
    /// What the client added to it.
    pub client: Option<ClientAdditions>,
    /// When the run started, in milliseconds.
    pub started_ms: u64,
    /// How long the run took until the end of the segment, in milliseconds.
    pub elapsed_ms: u64,
    /// The events.
    pub events: Vec<RunEvent>,
    /// How it ended, if it did.
    pub end: Option<TurnEnd>,
    /// The conversation at its end.
    pub conversation: Vec<Message>,
    /// The tokens that the run had used before.
    pub usage_before: Usage,
    /// Whether it is the last one of the session.
    pub is_last: bool,
}

impl Segment {
    /// Reads a segment from the entries of a log, counted from 1. Returns `None` if there is none with this number.
    ///
    /// ```
    /// use patter_core::run::{Run, RunInput, RunSpec};
    /// use patter_core::serve::{Segment, TurnOutcome};
    /// use patter_core::session::LogEntry;
    ///
    /// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 7).unwrap();
    /// let start = run.to_start();
    /// let began = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start, traceparent: None };
    /// let ended = LogEntry::InputReceived { run: vec![], input: RunInput::Cancelled { at: 8 } };
    /// let entries = [&began, &ended].map(|entry| serde_json::to_string(entry).unwrap());
    /// let segment = Segment::read(&entries, 1).unwrap().unwrap();
    /// assert_eq!((segment.agent.as_str(), segment.started_ms), ("hi", 7));
    /// assert_eq!(segment.end.unwrap().outcome, TurnOutcome::Cancelled);
    /// assert_eq!(Segment::read(&entries, 2).unwrap(), None);
    /// ```
    pub fn read<T: AsRef<str>>(entries: impl IntoIterator<Item = T>, number: u32) -> Result<Option<Self>, LogError> {
        let mut playback = Playback::default();
        let mut segment = None;
        for (index, text) in entries.into_iter().enumerate() {
            let entry: LogEntry = serde_json::from_str(text.as_ref())
                .map_err(|error| LogError { number: index + 1, message: error.to_string() })?;
            let was_suspended = playback.log().is_suspended();
            let before = playback.log().segments();
            let usage_before = playback.log().open_run().map(Run::usage).unwrap_or_default();
            let events = playback.play(entry)?;
            let log = playback.log();
            if log.segments() > number {
                return Ok(segment.map(|segment| Self { is_last: false, ..segment }));
            }
            if log.segments() < number || number == 0 {
                continue;
            }
            let current = segment.get_or_insert_with(|| Self { usage_before, is_last: true, ..Self::default() });
            // Answers to calls that wait belong to what follows.
            if !was_suspended || before < number {
                current.events.extend(events);
            }
            current.update(log);
        }
        Ok(segment)
    }

    fn update(&mut self, log: &Log) {
        let open = log.open_run().filter(|_| log.is_suspended());
        let Some(run) = log.open_run().or(log.last_run()) else { return };
        self.agent.clone_from(&run.spec().agent);
        self.client.clone_from(&run.spec().client);
        let start = run.to_start();
        self.started_ms = start.at;
        self.input = start.input;
        self.elapsed_ms = run.elapsed_ms();
        if let Some(ended) = open.or(log.last_run())
            && self.end.as_ref().is_none_or(|_| open.is_none())
        {
            self.end = Some(TurnEnd::new(ended, log).since(self.usage_before));
            self.conversation = log.conversation().iter().cloned().collect();
        }
    }
}
