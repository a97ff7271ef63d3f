//! The log of a session: in memory, in a store, and in a recording.

use super::entry::to_json;
use super::recording::Recorder;
use crate::drive::{Journal, JournalError, now_ms};
use crate::store::{Claim, NewSession, SessionId, SessionState, Store, StoreError};
use crate::tool::BoxFuture;
use crate::tool::idempotency::IdempotencyKey;
use patter_core::message::attachment::{AttachmentContents, attachments};
use patter_core::message::conversation::Conversation;
use patter_core::run::Run;
use patter_core::session::{Log, LogEntry};
use std::future::{Future, ready};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The log of a session. Entries are applied in memory first, so that a run and its log never differ; once the store
/// fails, nothing more is added.
#[derive(Default)]
pub(super) struct SessionLog {
    id: Option<SessionId>,
    shared: Arc<SharedLog>,
    recorder: Mutex<Option<Recorder>>,
    /// Why the recording is incomplete.
    recording_error: Mutex<Option<JournalError>>,
}

/// The part of a log that the tasks which save it need.
#[derive(Default)]
struct SharedLog {
    entries: Mutex<Entries>,
    /// Locked while entries are added, so that they have the same order in memory and in the store.
    saved: tokio::sync::Mutex<SavedLog>,
    /// What a new session is listed as.
    description: Mutex<Description>,
    failure: Mutex<SaveFailure>,
    /// Cancelled when the claim of the session is lost.
    lost: watch::Sender<Option<CancellationToken>>,
    /// The contents of attachments that are in memory.
    contents: Mutex<AttachmentContents>,
    /// The stored sessions that have the others.
    sources: Vec<StoredContents>,
}

/// A stored session that has contents of attachments.
#[derive(Clone)]
pub(super) struct StoredContents {
    store: Arc<dyn Store>,
    session: SessionId,
}

/// The agent of a session, and its first message.
#[derive(Clone, Default)]
struct Description {
    agent: String,
    title: String,
}

/// The entries in memory.
#[derive(Clone, Default)]
struct Entries {
    log: Log,
    /// Whether there is a store.
    is_saved: bool,
    /// Entries for the store that wait for the next append.
    pending: Vec<String>,
    /// Contents of attachments that are not in the store yet.
    unsaved_contents: AttachmentContents,
    /// Contents of images and documents of tools that are not in the store yet.
    unsaved_media: AttachmentContents,
}

/// The log in the store.
#[derive(Default)]
enum SavedLog {
    /// The session is not saved.
    #[default]
    None,
    /// The session is created with its first entries.
    New(UnsavedSession),
    Claimed(Box<dyn Claim>),
}

/// A session that is not in its store yet.
pub(super) struct UnsavedSession {
    store: Arc<dyn Store>,
    id: SessionId,
    forked_from: Option<SessionId>,
}

/// What went wrong with the store.
#[derive(Default)]
struct SaveFailure {
    /// Why nothing more is saved.
    error: Option<JournalError>,
    /// Why the session could not be created. The next message tries again.
    creation: Option<StoreError>,
}

impl SessionLog {
    /// Returns an empty log, of a session that is created in a store with its first entries.
    pub(super) fn new(session: Option<UnsavedSession>) -> Self {
        Self::with_sources(session, Vec::new())
    }

    /// Returns an empty log that has the contents of attachments of this one.
    pub(super) fn fork(&self, session: Option<UnsavedSession>) -> Self {
        let fork = Self::with_sources(session, self.shared.sources.clone());
        fork.add_contents(&lock(&self.shared.contents).clone());
        fork
    }

    fn with_sources(session: Option<UnsavedSession>, sources: Vec<StoredContents>) -> Self {
        let id = session.as_ref().map(|session| session.id.clone());
        let saved = tokio::sync::Mutex::new(session.map_or(SavedLog::None, SavedLog::New));
        let entries = Mutex::new(Entries { is_saved: id.is_some(), ..Entries::default() });
        let shared = Arc::new(SharedLog { entries, saved, sources, ..SharedLog::default() });
        Self { id, shared, ..Self::default() }
    }

    /// Returns the log of a stored session.
    pub(super) fn continued(log: Log, claim: Box<dyn Claim>, store: Arc<dyn Store>) -> Self {
        let session = claim.id().clone();
        let id = Some(session.clone());
        let shared = SharedLog {
            entries: Mutex::new(Entries { log, is_saved: true, ..Entries::default() }),
            lost: watch::Sender::new(claim.lost()),
            saved: tokio::sync::Mutex::new(SavedLog::Claimed(claim)),
            sources: vec![StoredContents { store, session }],
            ..SharedLog::default()
        };
        Self { id, shared: Arc::new(shared), ..Self::default() }
    }

    /// Adds contents of attachments. Those that messages name are saved together with the messages.
    pub(super) fn add_contents(&self, contents: &AttachmentContents) {
        if !contents.is_empty() {
            lock(&self.shared.contents).extend(contents);
            lock(&self.shared.entries).unsaved_contents.extend(contents);
        }
    }

    /// Calls a function with the log.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        read(&lock(&self.shared.entries).log)
    }

    pub(super) fn id(&self) -> Option<SessionId> {
        self.id.clone()
    }

    pub(super) fn save_error(&self) -> Option<JournalError> {
        lock(&self.shared.failure).error.clone()
    }

    /// Waits until nothing is being saved.
    pub(super) async fn wait_until_saved(&self) -> Result<(), JournalError> {
        drop(self.shared.saved.lock().await);
        self.save_error().map_or(Ok(()), Err)
    }

    /// Performs a run, unless the claim of the session is lost meanwhile: then somebody else may have it soon.
    pub(super) async fn while_claimed<T>(&self, run: impl Future<Output = T>) -> Result<T, StoreError> {
        // A claim that was lost between runs may be taken again: the first append finds out.
        self.shared.lost.send_if_modified(|lost| {
            let is_lost = lost.as_ref().is_some_and(CancellationToken::is_cancelled);
            if is_lost {
                *lost = None;
            }
            is_lost
        });
        let lost = async {
            let mut changes = self.shared.lost.subscribe();
            loop {
                let lost = changes.borrow_and_update().clone();
                tokio::select! {
                    () = async { match lost { Some(lost) => lost.cancelled().await, None => std::future::pending().await } } => return,
                    changed = changes.changed() => if changed.is_err() { std::future::pending().await },
                }
            }
        };
        tokio::select! {
            biased;
            run = run => Ok(run),
            () = lost => match &self.id {
                Some(id) => Err(StoreError::Lost { id: id.clone() }),
                None => std::future::pending().await,
            },
        }
    }

    /// Returns why the session could not be created, once.
    pub(super) fn take_creation_error(&self) -> Option<StoreError> {
        lock(&self.shared.failure).creation.take()
    }

    /// Sets what a new session is listed as.
    pub(super) fn describe(&self, agent: &str, title: &str) {
        *lock(&self.shared.description) = Description { agent: agent.to_owned(), title: title.to_owned() };
    }

    pub(super) fn set_recorder(&self, recorder: Recorder) {
        let recorder = self.read(|log| recorder.continuing(log));
        *lock(&self.recorder) = Some(recorder);
    }

    /// Adds an entry, which is saved together with the next one.
    pub(super) fn add_pending(&self, entry: LogEntry) -> Result<(), JournalError> {
        self.record(&entry);
        self.check_recording()?;
        let mut entries = lock(&self.shared.entries);
        let document = entries.apply(entry)?;
        entries.pending.extend(document);
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

    /// Adds entries in memory and to the store. They are added even if the future is dropped, or not polled for a while.
    fn save(&self, new: Vec<LogEntry>) -> BoxFuture<'_, Result<(), JournalError>> {
        if let Err(error) = self.check_recording() {
            return Box::pin(ready(Err(error)));
        }
        if self.id.is_none() {
            return Box::pin(ready(self.shared.add_entries(new).map(drop)));
        }
        // In a task of its own, from before it waits for the lock: the run of a called agent is not polled while its caller
        // saves, and must not be next in line then.
        let shared = Arc::clone(&self.shared);
        Box::pin(in_task(Box::pin(async move { shared.append(new).await })))
    }

    async fn sync_saved(&self) -> Result<(), JournalError> {
        if self.id.is_none() {
            return Ok(());
        }
        // In a task of its own, as above.
        let shared = Arc::clone(&self.shared);
        in_task(Box::pin(async move { shared.sync().await })).await
    }
}

impl SharedLog {
    /// Adds entries to the log in memory. Returns what is saved of them, and the state of the session.
    fn add_entries(&self, new: Vec<LogEntry>) -> Result<(Vec<String>, SessionState), JournalError> {
        let mut entries = lock(&self.entries);
        let documents = entries.add(new).map_err(|error| self.fail(error))?;
        let state = match entries.log.open_run() {
            None => SessionState::Idle,
            Some(_) if entries.log.is_waiting() => SessionState::Waiting,
            Some(_) => SessionState::Running,
        };
        Ok((documents, state))
    }

    /// Adds entries in memory and to the store.
    async fn append(&self, new: Vec<LogEntry>) -> Result<(), JournalError> {
        let mut saved = self.saved.lock().await;
        if let Some(error) = lock(&self.failure).error.clone() {
            return Err(error);
        }
        if matches!(*saved, SavedLog::New(_)) {
            return Box::pin(self.create(&mut saved, new)).await;
        }
        let (documents, state) = self.add_entries(new)?;
        let contents = lock(&self.entries).take_unsaved_contents();
        let result = saved.append(documents, contents, state).await;
        saved.watch_claim(&self.lost);
        result.map_err(|error| self.fail(error.into()))
    }

    /// Creates the session with its first entries. If that fails, it can be tried again.
    async fn create(&self, saved: &mut SavedLog, new: Vec<LogEntry>) -> Result<(), JournalError> {
        let before = lock(&self.entries).clone();
        let (documents, state) = self.add_entries(new)?;
        let created = self.create_with(saved, documents, state).await;
        saved.watch_claim(&self.lost);
        Ok(created.inspect_err(|error| {
            *lock(&self.entries) = before;
            lock(&self.failure).creation = Some(error.clone());
        })?)
    }

    async fn create_with(
        &self,
        saved: &mut SavedLog,
        documents: Vec<String>,
        state: SessionState,
    ) -> Result<(), StoreError> {
        // Messages from elsewhere may name attachments that are stored there.
        let conversation = lock(&self.entries).log.conversation().clone();
        let mut contents = self.find_contents(&conversation).await?;
        contents.extend(&std::mem::take(&mut lock(&self.entries).unsaved_media));
        let description = lock(&self.description).clone();
        saved.create(documents, contents, state, &description).await
    }

    /// Remembers why nothing more is saved.
    fn fail(&self, error: JournalError) -> JournalError {
        lock(&self.failure).error = Some(error.clone());
        error
    }

    async fn sync(&self) -> Result<(), JournalError> {
        let mut saved = self.saved.lock().await;
        let SavedLog::Claimed(claim) = &mut *saved else { return Ok(()) };
        claim.sync().await.map_err(|error| self.fail(error.into()))
    }

    /// Returns the contents of the attachments of messages, as far as they are known.
    async fn find_contents(&self, messages: &Conversation) -> Result<AttachmentContents, StoreError> {
        let mut found = lock(&self.contents).of_messages(messages);
        for attachment in attachments(messages) {
            for StoredContents { store, session } in &self.sources {
                if found.get(attachment).is_some() {
                    break;
                }
                if let Some(content) = store.attachment(session, &attachment.sha256).await? {
                    found.insert(&attachment.sha256, content.into());
                }
            }
        }
        lock(&self.contents).extend(&found);
        Ok(found)
    }
}

/// Starts a task. It is boxed, because a task is copied several times.
fn in_task(
    work: BoxFuture<'static, Result<(), JournalError>>,
) -> impl Future<Output = Result<(), JournalError>> + use<> {
    let task = tokio::spawn(work);
    async { task.await.unwrap_or_else(|error| Err(JournalError::new(error.to_string()))) }
}

impl UnsavedSession {
    pub(super) fn new(store: Arc<dyn Store>, id: SessionId, forked_from: Option<SessionId>) -> Self {
        Self { store, id, forked_from }
    }
}

impl SavedLog {
    /// Watches the claim, if it is new or was taken again.
    fn watch_claim(&self, lost: &watch::Sender<Option<CancellationToken>>) {
        let SavedLog::Claimed(claim) = self else { return };
        lost.send_if_modified(|watched| {
            let is_new = watched.as_ref().is_none_or(CancellationToken::is_cancelled);
            if is_new {
                *watched = claim.lost();
            }
            is_new && watched.is_some()
        });
    }

    /// Appends entries to the session in the store.
    async fn append(
        &mut self,
        documents: Vec<String>,
        contents: AttachmentContents,
        state: SessionState,
    ) -> Result<(), StoreError> {
        let SavedLog::Claimed(claim) = self else { return Ok(()) };
        for (sha256, content) in contents.iter() {
            claim.attach(sha256, Arc::clone(content)).await?;
        }
        claim.append(&documents, state, now_ms()).await
    }

    /// Creates the session in the store with entries.
    async fn create(
        &mut self,
        documents: Vec<String>,
        contents: AttachmentContents,
        state: SessionState,
        description: &Description,
    ) -> Result<(), StoreError> {
        let SavedLog::New(session) = self else { return Ok(()) };
        let mut new = NewSession::new(session.id.clone(), &description.agent, &description.title);
        new.forked_from = session.forked_from.clone();
        let new = new.with_entries(documents, state).with_attachments(contents);
        let claim = session.store.create(new, now_ms()).await?;
        tracing::debug!(session = %session.id, agent = description.agent, "session created");
        *self = SavedLog::Claimed(claim);
        Ok(())
    }
}

impl Entries {
    /// Returns the contents that entries name and that are not in the store yet.
    fn take_unsaved_contents(&mut self) -> AttachmentContents {
        let mut contents = std::mem::take(&mut self.unsaved_media);
        if !self.unsaved_contents.is_empty() {
            let unsaved = std::mem::take(&mut self.unsaved_contents);
            contents.extend(&unsaved.of_messages(self.log.conversation()));
        }
        contents
    }

    /// Applies entries. Returns the JSON of those for the store.
    fn add(&mut self, new: Vec<LogEntry>) -> Result<Vec<String>, JournalError> {
        let mut documents = std::mem::take(&mut self.pending);
        for entry in new {
            documents.extend(self.apply(entry)?);
        }
        Ok(documents)
    }

    /// Applies an entry to the log. Returns its JSON, if there is a store.
    fn apply(&mut self, mut entry: LogEntry) -> Result<Option<String>, JournalError> {
        // The frame is saved when it changes, not with every turn.
        if let LogEntry::RunStarted { frame, start, .. } = &mut entry
            && self.log.frame(&start.spec.agent) == frame.as_ref()
        {
            *frame = None;
        }
        let document = match self.is_saved {
            true => Some(match entry.detach_media(&mut self.unsaved_media) {
                Some(detached) => to_json(&detached)?,
                None => to_json(&entry)?,
            }),
            false => None,
        };
        self.log.apply(entry).map_err(|error| JournalError::new(error.to_string()))?;
        Ok(document)
    }
}

impl Journal for SessionLog {
    fn append(&self, entries: Vec<LogEntry>) -> BoxFuture<'_, Result<(), JournalError>> {
        self.save(entries)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.sync_saved())
    }

    fn unfinished_run(&self, path: &[String]) -> Option<Run> {
        self.read(|log| log.child_run(path).cloned())
    }

    fn call_key(&self, path: &[String], call_id: &str) -> Option<Arc<str>> {
        let session = self.id()?;
        let run = self.read(Log::run_count);
        Some(IdempotencyKey::new(&session, run, path, call_id).0)
    }

    fn attachments<'a>(
        &'a self,
        messages: &'a Conversation,
    ) -> BoxFuture<'a, Result<AttachmentContents, JournalError>> {
        Box::pin(async move {
            let found = self.shared.find_contents(messages).await;
            found.map_err(|error| JournalError::new(format!("an attachment cannot be read: {error}")))
        })
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
