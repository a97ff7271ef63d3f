//! Logs and recordings, played again: what was heard when they were made.

use super::{Entry, Log, LogError, RunPath};
use crate::drive::{EventLog, RunEvent, RunEventKind};
use patter_core::run::Run;
use std::collections::HashMap;

/// Plays the entries of a log or a recording: of each it makes what was heard when it was made.
///
/// A recording gives all that was heard, in the same order and in the same pieces. A log of a store has neither pieces nor
/// progress, so each text is heard as a whole.
///
/// ```
/// use patter::drive::RunEventKind;
/// use patter::run::{Run, RunSpec, RunInput};
/// use patter::session::{Entry, Playback};
///
/// let run = Run::start(RunSpec { agent: "hi".into(), ..RunSpec::default() }, Vec::new(), "Hello", 0).unwrap();
/// let began = Entry::Began { run: vec![], frame: None, bindings: String::new(), beginning: run.beginning() };
/// let mut playback = Playback::default();
/// let heard = playback.play(began).unwrap();
/// assert!(matches!(heard[0].happened, RunEventKind::Started { .. }));
/// assert!(matches!(heard[1].happened, RunEventKind::ModelCalled { number: 1 }));
///
/// let heard = playback.play(Entry::Input { run: vec![], input: RunInput::Cancelled { at: 5 } }).unwrap();
/// assert!(matches!(heard[0].happened, RunEventKind::Finished { .. }));
/// assert!(playback.log().last().is_some());
/// ```
#[derive(Debug, Default)]
pub struct Playback {
    log: Log,
    accounts: HashMap<RunPath, EventLog>,
    bindings: String,
}

impl Playback {
    /// Plays the next entry, and returns what was heard then.
    pub fn play(&mut self, entry: Entry) -> Result<Vec<RunEvent>, LogError> {
        match &entry {
            Entry::Opened { .. } | Entry::Forked { .. } | Entry::Rewound { .. } => {
                self.log.apply(entry)?;
                Ok(Vec::new())
            }
            Entry::Began { run, bindings, .. } => {
                let (path, bindings) = (run.clone(), bindings.clone());
                self.log.apply(entry)?;
                self.opened(&path, bindings);
                Ok(self.heard(&path, EventLog::began))
            }
            Entry::Restored { run, bindings, .. } => {
                let (path, bindings) = (run.clone(), bindings.clone());
                self.log.apply(entry)?;
                self.opened(&path, bindings);
                Ok(Vec::new())
            }
            Entry::Input { run, input } => {
                let (path, input) = (run.clone(), input.clone());
                self.log.apply(entry)?;
                Ok(self.heard(&path, |account, run| account.input(run, &input)))
            }
            Entry::Streamed { run, pieces } => {
                let (path, pieces) = (run.clone(), pieces.clone());
                self.log.apply(entry)?;
                Ok(self
                    .heard(&path, |account, _| pieces.into_iter().filter_map(|piece| account.piece(piece)).collect()))
            }
            Entry::Progressed { run, call_id, fraction, message } => {
                let (call_id, fraction, message) = (call_id.clone(), *fraction, message.clone());
                let path = run.clone();
                self.log.apply(entry)?;
                Ok(self.heard(&path, |_, _| vec![RunEventKind::ToolProgress { call_id, fraction, message }]))
            }
        }
    }

    /// Returns what was played amounts to.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the hash of what the tools of the last run of a person were bound to.
    pub fn bindings(&self) -> &str {
        &self.bindings
    }

    fn opened(&mut self, path: &RunPath, bindings: String) {
        let frame = self.run(path).and_then(|run| self.log.frame(&run.spec().agent));
        let account = EventLog::new(frame.map_or("", |frame| frame.model.as_str()), &bindings);
        if path.is_empty() {
            self.accounts.clear();
            self.bindings = bindings;
        }
        self.accounts.insert(path.clone(), account);
    }

    fn run(&self, path: &RunPath) -> Option<&Run> {
        if path.is_empty() { self.log.run().or(self.log.last()) } else { self.log.inner(path) }
    }

    fn heard(&mut self, path: &RunPath, heard: impl FnOnce(&mut EventLog, &Run) -> Vec<RunEventKind>) -> Vec<RunEvent> {
        let run = if path.is_empty() { self.log.run().or(self.log.last()) } else { self.log.inner(path) };
        let Some((run, account)) = run.zip(self.accounts.get_mut(path)) else { return Vec::new() };
        let event = |kind| RunEvent { agent: run.spec().agent.clone(), depth: run.depth(), kind };
        heard(account, run).into_iter().map(event).collect()
    }
}
