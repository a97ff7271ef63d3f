//! The log of a session: in memory, in a store, and in a recording.

use super::entry::to_json;
use super::recording::Recorder;
use crate::drive::{Journal, JournalError, now_ms};
use crate::store::{Claim, SessionId, SessionState};
use crate::tool::BoxFuture;
use patter_core::run::Run;
use patter_core::session::{Log, LogEntry};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The log of a session. Entries are applied in memory first, so that a run and its log never differ; once the store
/// fails, nothing more is added.
#[derive(Default)]
pub(super) struct SessionLog {
    log: Mutex<Log>,
    recorder: Mutex<Option<Recorder>>,
    /// Why the recording is incomplete.
    recording_error: Mutex<Option<JournalError>>,
    /// Locked while entries are added, so that they have the same order in memory and in the store.
    saved: Arc<tokio::sync::Mutex<SavedLog>>,
    id: Mutex<Option<SessionId>>,
    /// Entries for the store that wait for the next append.
    pending: Mutex<Vec<String>>,
}

/// The log in the store, if the session is saved.
#[derive(Default)]
struct SavedLog {
    claim: Option<Box<dyn Claim>>,
    /// Why nothing more is saved.
    error: Option<JournalError>,
}

impl SessionLog {
    pub(super) fn new(log: Log, claim: Option<Box<dyn Claim>>) -> Self {
        let id = Mutex::new(claim.as_ref().map(|claim| claim.id().clone()));
        let saved = Arc::new(tokio::sync::Mutex::new(SavedLog { claim, error: None }));
        Self { log: Mutex::new(log), id, saved, ..Self::default() }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        lock(&self.log)
    }

    pub(super) fn id(&self) -> Option<SessionId> {
        lock(&self.id).clone()
    }

    pub(super) async fn save_error(&self) -> Option<JournalError> {
        self.saved.lock().await.error.clone()
    }

    pub(super) async fn set_claim(&self, claim: Box<dyn Claim>) {
        *lock(&self.id) = Some(claim.id().clone());
        self.saved.lock().await.claim = Some(claim);
    }

    pub(super) fn set_recorder(&self, recorder: Recorder) {
        *lock(&self.recorder) = Some(recorder.continuing(&self.log()));
    }

    /// Adds an entry, which is saved together with the next one.
    pub(super) fn add_pending(&self, entry: LogEntry) -> Result<(), JournalError> {
        self.record(&entry);
        self.check_recording()?;
        let json = self.apply(entry)?;
        lock(&self.pending).push(json);
        Ok(())
    }

    /// Adds an entry in memory, to the store and to the recording.
    pub(super) async fn add(&self, entry: LogEntry) -> Result<(), JournalError> {
        self.record(&entry);
        self.save(vec![entry]).await
    }

    fn check_recording(&self) -> Result<(), JournalError> {
        lock(&self.recording_error).clone().map_or(Ok(()), Err)
    }

    async fn save(&self, entries: Vec<LogEntry>) -> Result<(), JournalError> {
        self.check_recording()?;
        let mut saved = Arc::clone(&self.saved).lock_owned().await;
        if let Some(error) = &saved.error {
            return Err(error.clone());
        }
        let mut documents = std::mem::take(&mut *lock(&self.pending));
        for entry in entries {
            match self.apply(entry) {
                Ok(json) => documents.push(json),
                Err(error) => {
                    saved.error = Some(error.clone());
                    return Err(error);
                }
            }
        }
        if saved.claim.is_none() {
            return Ok(());
        }
        let state = if self.log().open_run().is_some() { SessionState::Running } else { SessionState::Idle };
        // In a task of its own, which completes even if this future is dropped: the log in memory has the entries.
        let append = tokio::spawn(async move {
            let SavedLog { claim: Some(claim), error } = &mut *saved else { return Ok(()) };
            let result =
                claim.append(&documents, state, now_ms()).await.map_err(|error| JournalError(error.to_string()));
            *error = result.as_ref().err().cloned();
            result
        });
        append.await.unwrap_or_else(|error| Err(JournalError(error.to_string())))
    }

    /// Applies an entry to the log in memory. Returns its JSON, for the store.
    fn apply(&self, mut entry: LogEntry) -> Result<String, JournalError> {
        let mut log = self.log();
        // The frame is saved when it changes, not with every turn.
        if let LogEntry::RunStarted { frame, start, .. } = &mut entry
            && log.frame(&start.spec.agent) == frame.as_ref()
        {
            *frame = None;
        }
        let json = to_json(&entry)?;
        log.apply(entry).map_err(|error| JournalError(error.to_string()))?;
        Ok(json)
    }
}

impl Journal for SessionLog {
    fn append(&self, entries: Vec<LogEntry>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.save(entries))
    }

    fn unfinished_run(&self, path: &[String]) -> Option<Run> {
        self.log().child_run(path).cloned()
    }

    fn record(&self, entry: &LogEntry) {
        let mut recorder = lock(&self.recorder);
        if let Some(Err(error)) = recorder.as_mut().map(|recorder| recorder.write(entry)) {
            *recorder = None;
            *lock(&self.recording_error) = Some(error);
        }
    }

    fn is_recording(&self) -> bool {
        lock(&self.recorder).is_some()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
