//! What keeps a session: its log in memory, in a store, and in a recording.

use super::{Entry, Log, Recorder};
use crate::drive::{Journal, JournalError, now};
use crate::store::{Claim, SessionId, SessionState};
use crate::tool::BoxFuture;
use patter_core::run::Run;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The log of a session. Entries are added in memory first, so that a run and its log never differ; if the store then
/// fails, nothing more is added.
#[derive(Default)]
pub(super) struct SessionLog {
    log: Mutex<Log>,
    recorder: Mutex<Option<Recorder>>,
    /// Why the recording is not complete.
    unrecorded: Mutex<Option<JournalError>>,
    /// Held while entries are added, so that they come in one order everywhere.
    out: Arc<tokio::sync::Mutex<Out>>,
    id: Mutex<Option<SessionId>>,
    /// What was noted, and goes to the store with what comes next.
    noted: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Out {
    claim: Option<Box<dyn Claim>>,
    /// Why nothing more is kept.
    broken: Option<JournalError>,
}

impl SessionLog {
    pub(super) fn new(log: Log, claim: Option<Box<dyn Claim>>) -> Self {
        let id = Mutex::new(claim.as_ref().map(|claim| claim.id().clone()));
        let out = Arc::new(tokio::sync::Mutex::new(Out { claim, broken: None }));
        Self { log: Mutex::new(log), id, out, ..Self::default() }
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        locked(&self.log)
    }

    pub(super) fn id(&self) -> Option<SessionId> {
        locked(&self.id).clone()
    }

    pub(super) async fn broken(&self) -> Option<JournalError> {
        self.out.lock().await.broken.clone()
    }

    pub(super) async fn claimed(&self, claim: Box<dyn Claim>) {
        *locked(&self.id) = Some(claim.id().clone());
        self.out.lock().await.claim = Some(claim);
    }

    pub(super) fn record(&self, recorder: Recorder) {
        *locked(&self.recorder) = Some(recorder.after(&self.log()));
    }

    /// Adds an entry, which goes to the store with what comes next.
    pub(super) fn open(&self, entry: Entry) -> Result<(), JournalError> {
        self.note(&entry);
        self.recorded()?;
        let text = self.apply(entry)?;
        locked(&self.noted).push(text);
        Ok(())
    }

    /// Adds an entry, everywhere.
    pub(super) async fn add(&self, entry: Entry) -> Result<(), JournalError> {
        self.note(&entry);
        self.keep_all(vec![entry]).await
    }

    fn recorded(&self) -> Result<(), JournalError> {
        locked(&self.unrecorded).clone().map_or(Ok(()), Err)
    }

    async fn keep_all(&self, entries: Vec<Entry>) -> Result<(), JournalError> {
        self.recorded()?;
        let mut out = Arc::clone(&self.out).lock_owned().await;
        if let Some(error) = &out.broken {
            return Err(error.clone());
        }
        let mut texts = std::mem::take(&mut *locked(&self.noted));
        for entry in entries {
            match self.apply(entry) {
                Ok(text) => texts.push(text),
                Err(error) => {
                    out.broken = Some(error.clone());
                    return Err(error);
                }
            }
        }
        if out.claim.is_none() {
            return Ok(());
        }
        let state = if self.log().run().is_some() { SessionState::Running } else { SessionState::Idle };
        // In a task of its own, which ends even if nobody waits for it any more: the log in memory has the entries.
        let appended = tokio::spawn(async move {
            let Out { claim: Some(claim), broken } = &mut *out else { return Ok(()) };
            let appended = claim.append(&texts, state, now()).await.map_err(|error| JournalError(error.to_string()));
            *broken = appended.as_ref().err().cloned();
            appended
        });
        appended.await.unwrap_or_else(|error| Err(JournalError(error.to_string())))
    }

    /// Adds an entry to the log. Returns it as text, for the store.
    fn apply(&self, mut entry: Entry) -> Result<String, JournalError> {
        let mut log = self.log();
        // What the model is given is kept when it changes, and not with each turn.
        if let Entry::Began { frame, beginning, .. } = &mut entry
            && log.frame(&beginning.spec.agent) == frame.as_ref()
        {
            *frame = None;
        }
        let text = text(&entry)?;
        log.apply(entry).map_err(|error| JournalError(error.to_string()))?;
        Ok(text)
    }
}

impl Journal for SessionLog {
    fn keep(&self, entries: Vec<Entry>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.keep_all(entries))
    }

    fn open_run(&self, path: &[String]) -> Option<Run> {
        self.log().inner(path).cloned()
    }

    fn note(&self, entry: &Entry) {
        let mut recorder = locked(&self.recorder);
        if let Some(Err(error)) = recorder.as_mut().map(|recorder| recorder.write(entry)) {
            *recorder = None;
            *locked(&self.unrecorded) = Some(error);
        }
    }

    fn takes_notes(&self) -> bool {
        locked(&self.recorder).is_some()
    }
}

/// Returns an entry as text.
pub(super) fn text(entry: &Entry) -> Result<String, JournalError> {
    serde_json::to_string(entry).map_err(|error| JournalError(error.to_string()))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
