//! Playback: the events of a log or a recording.

use super::{EventLog, RunEvent, RunEventKind};
use crate::run::Run;
use crate::session::{Log, LogEntry, LogError, RunPath};
use std::collections::HashMap;

/// Plays the entries of a log or a recording: for each it returns the events that were emitted when it was made.
///
/// A recording yields all events, in the same order and in the same pieces. The log in a store has neither pieces nor
/// progress, so each text is one event.
///
/// ```
/// use patter_core::event::{Playback, RunEventKind};
/// use patter_core::run::{Run, RunInput, RunSpec};
/// use patter_core::session::LogEntry;
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 0).unwrap();
/// let began = LogEntry::RunStarted { run: vec![], frame: None, bindings: String::new(), start: run.to_start(), traceparent: None };
/// let mut playback = Playback::default();
/// let events = playback.play(began).unwrap();
/// assert!(matches!(events[0].kind, RunEventKind::Started { .. }));
/// assert!(matches!(events[1].kind, RunEventKind::ModelCalled { number: 1 }));
///
/// let events = playback.play(LogEntry::InputReceived { run: vec![], input: RunInput::Cancelled { at: 5 } }).unwrap();
/// assert!(matches!(events[0].kind, RunEventKind::Finished { .. }));
/// assert!(playback.log().last_run().is_some());
/// ```
#[derive(Debug, Default)]
pub struct Playback {
    log: Log,
    event_logs: HashMap<RunPath, EventLog>,
    bindings: String,
}

impl Playback {
    /// Plays the next entry and returns its events.
    pub fn play(&mut self, entry: LogEntry) -> Result<Vec<RunEvent>, LogError> {
        match &entry {
            LogEntry::Opened { .. }
            | LogEntry::Forked { .. }
            | LogEntry::Requested { .. }
            | LogEntry::Rewound { .. }
            | LogEntry::Redacted { .. } => {
                self.log.apply(entry)?;
                Ok(Vec::new())
            }
            LogEntry::RunStarted { run, bindings, .. } => {
                let path = run.clone();
                let bindings = bindings.clone();
                self.log.apply(entry)?;
                self.open_run(&path, bindings);
                Ok(self.events(&path, EventLog::start))
            }
            LogEntry::RunRestored { run, bindings, .. } => {
                let path = run.clone();
                let bindings = bindings.clone();
                self.log.apply(entry)?;
                self.open_run(&path, bindings);
                Ok(Vec::new())
            }
            LogEntry::InputReceived { run, input } => {
                let path = run.clone();
                let input = input.clone();
                self.log.apply(entry)?;
                Ok(self.events(&path, |event_log, run| event_log.input(run, &input)))
            }
            LogEntry::ReplyStreamed { run, pieces } => {
                let path = run.clone();
                let pieces = pieces.clone();
                self.log.apply(entry)?;
                Ok(self.events(&path, |event_log, _| {
                    pieces.into_iter().filter_map(|piece| event_log.piece(piece)).collect()
                }))
            }
            LogEntry::CallProgressed { run, call_id, fraction, message } => {
                let path = run.clone();
                let kind = RunEventKind::ToolProgress {
                    call_id: call_id.clone(),
                    fraction: *fraction,
                    message: message.clone(),
                };
                self.log.apply(entry)?;
                Ok(self.events(&path, |_, _| vec![kind]))
            }
        }
    }

    /// Returns the log of the entries played so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the hash of the bindings of the last outermost run.
    pub fn bindings(&self) -> &str {
        &self.bindings
    }

    fn open_run(&mut self, path: &RunPath, bindings: String) {
        let frame = find_run(&self.log, path).and_then(|run| self.log.frame(&run.spec().agent));
        let event_log = EventLog::new(frame.map_or("", |frame| frame.model.as_str()), &bindings);
        if path.is_empty() {
            self.event_logs.clear();
            self.bindings = bindings;
        }
        self.event_logs.insert(path.clone(), event_log);
    }

    fn events(
        &mut self,
        path: &RunPath,
        kinds: impl FnOnce(&mut EventLog, &Run) -> Vec<RunEventKind>,
    ) -> Vec<RunEvent> {
        let run = find_run(&self.log, path);
        let Some((run, event_log)) = run.zip(self.event_logs.get_mut(path)) else { return Vec::new() };
        let event = |kind| RunEvent::new(&run.spec().agent, path, kind);
        kinds(event_log, run).into_iter().map(event).collect()
    }
}

fn find_run<'l>(log: &'l Log, path: &RunPath) -> Option<&'l Run> {
    if path.is_empty() { log.open_run().or(log.last_run()) } else { log.child_run(path) }
}
