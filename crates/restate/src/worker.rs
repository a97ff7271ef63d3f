//! A worker: reads sessions from the store, takes steps in them, and writes what happened to their logs.

use crate::failure::Failure;
use crate::progress::{Progress, RunState};
use patter::drive::{ApprovalAnswer, Approver, Driver, now_ms};
use patter::live::LiveProject;
use patter::message::conversation::ToolOutcome;
use patter::run::{FailureKind, PendingCall, RunOutcome};
use patter::session::{AgentSelection, CallAnswer, Log, Session, SessionError, WaitingFor};
use patter::store::{SessionId, SessionState, Store, StoreError};
use patter::text::milliseconds;
use patter::tool::{BoxFuture, CancellationToken};
use patter::trace::Tracer;
use patter_core::serve::native::{AnswerRequest, Decision, MessageRequest, turn_json};
use patter_core::serve::{TurnEnd, Waiting};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How often to try to claim a session that somebody has, and how long to pause in between. Whoever had the step before
/// releases it in a moment; after that, Restate tries again.
const CLAIM_ATTEMPTS: u32 = 20;
const CLAIM_PAUSE: Duration = Duration::from_millis(25);
/// The largest number of entries that are returned at once.
const MAX_ENTRIES: usize = 1000;

/// Configures the driver of all runs: rules, lock and model.
type ConfigureDriver = Arc<dyn Fn(Driver) -> Driver + Send + Sync>;

/// What workers do with sessions. The log of a session is the only record of what was done: an operation that is repeated
/// finds out from it.
pub struct Worker {
    project: Arc<LiveProject>,
    store: Arc<dyn Store>,
    configure: ConfigureDriver,
    approval_expiry: Duration,
    tracer: Option<Tracer>,
    /// The files that other programs find the agents in.
    files: Vec<String>,
}

impl Worker {
    /// Returns a worker for the agents of a project.
    pub fn new(project: Arc<LiveProject>, store: Arc<dyn Store>, approval_expiry: Duration) -> Self {
        let files = project.driver().project().files().iter().map(|file| absolute(&file.path)).collect();
        Self { project, store, configure: Arc::new(|driver| driver), approval_expiry, tracer: None, files }
    }

    /// Sets a function that configures the driver of all runs: its rules, lock and model.
    #[must_use]
    pub fn with_driver(mut self, configure: impl Fn(Driver) -> Driver + Send + Sync + 'static) -> Self {
        self.configure = Arc::new(configure);
        self
    }

    /// Exports what happens in runs, if there is a tracer.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }

    /// Accepts a message: creates the session if it does not exist, and starts a run, which takes no step yet. A message that
    /// was accepted before is recognised by its key.
    pub async fn start(&self, id: &SessionId, request: &Json, key: &str) -> Result<Progress, Failure> {
        let request = MessageRequest::parse(request.to_string().as_bytes())?;
        if request.session.is_some() {
            return Err(Failure::invalid("`session`: the session is named in the address"));
        }
        let opened = self.open(id).await;
        let mut session = match opened {
            Err(SessionError::Store(StoreError::NotFound { .. })) => {
                let session = Session::create(Arc::clone(&self.project), Arc::clone(&self.store), id.clone());
                session.with_source(self.selection(request.agent.as_deref()))
            }
            opened => opened.map_err(|error| Failure::of_request(&error))?,
        };
        if session.read_log(|log| log.has_request(key)) {
            return Ok(self.progress(&session));
        }
        if let Some(agent) = &request.agent {
            session = session.with_source(self.selection(Some(agent))).with_agent(agent);
        }
        // The first step is one like any other.
        let paused = CancellationToken::new();
        paused.cancel();
        let mut session = self.configured(session, Some(paused));
        session.add_contents(&request.contents);
        session.set_request(Some(key.to_owned()));
        let run = session.say(request.message, &CancellationToken::new()).await;
        run.map_err(|error| Failure::of_request(&error))?;
        self.saved_progress(&session)
    }

    /// Takes a step in the run of a session that has so many entries. If it has more, the step was taken before, by whoever
    /// did not live to report it.
    pub async fn step(
        &self,
        id: &SessionId,
        entries: u64,
        cancellation: &CancellationToken,
    ) -> Result<Progress, Failure> {
        let session = self.open(id).await.map_err(|error| Failure::of_run(&error))?;
        let before = self.progress(&session);
        if before.is_next_after(entries) {
            return Ok(before);
        }
        let mut session = self.configured(session, None);
        let run = session.resume(cancellation).await.map_err(|error| Failure::of_run(&error))?;
        if let Some(RunOutcome::Failed(failure)) = run.outcome()
            && failure.kind == FailureKind::Store
        {
            return Err(Failure::Passing(failure.message.clone()));
        }
        let after = self.saved_progress(&session)?;
        match after.is_past(before.entries) {
            true => Ok(after),
            false => Err(Failure::Passing("the step led to nothing".to_owned())),
        }
    }

    /// Returns how far a session is.
    pub async fn look(&self, id: &SessionId) -> Result<Progress, Failure> {
        // The metadata alone, without entries.
        let stored = self.store.read_from(id, u64::MAX).await.map_err(|error| Failure::of_request(&error.into()))?;
        let entries = stored.summary.entries;
        match stored.summary.state {
            SessionState::Idle => Ok(Progress { entries, state: RunState::Ended }),
            SessionState::Running => Ok(Progress { entries, state: RunState::Running }),
            SessionState::Waiting => Ok(self.progress_of(&self.log(id).await?)),
        }
    }

    /// Answers a call that waits.
    pub async fn answer(&self, id: &SessionId, request: &Json) -> Result<Progress, Failure> {
        let AnswerRequest { run, call_id, hash, decision } = AnswerRequest::parse(request.to_string().as_bytes())?;
        let mut session = self.open(id).await.map_err(|error| Failure::of_request(&error))?;
        let waiting = session.read_log(Waiting::all);
        let call = waiting.iter().find(|call| call.run == run && call.call_id == call_id);
        let call = call.ok_or_else(|| Failure::conflict(format!("no call `{call_id}` waits in the session `{id}`")))?;
        if hash.is_some_and(|hash| hash != call.hash) {
            return Err(Failure::conflict("the answer is about another call: `hash` does not match"));
        }
        let answer = match decision {
            Decision::Approve => CallAnswer::Approve,
            Decision::Refuse(reason) => CallAnswer::Refuse(reason),
            Decision::Result(value) => CallAnswer::Result(ToolOutcome::Value { value }),
        };
        session.answer(&run, &call_id, answer).await.map_err(|error| Failure::of_request(&error))?;
        self.saved_progress(&session)
    }

    /// Ends the questions that nobody answered in time, unless the session went on from so many entries.
    pub async fn expire(&self, id: &SessionId, entries: u64) -> Result<Progress, Failure> {
        let mut session = self.open(id).await.map_err(|error| Failure::of_run(&error))?;
        let before = self.progress(&session);
        if before.is_past(entries) {
            return Ok(before);
        }
        for (run, call_id, answer) in session.read_log(|log| expired_calls(log, now_ms())) {
            session.answer(&run, &call_id, answer).await.map_err(|error| Failure::of_run(&error))?;
        }
        self.saved_progress(&session)
    }

    /// Ends the run of a session, unless it was started by another request than this one. Returns how the last run ended.
    pub async fn abandon(&self, id: &SessionId, key: Option<&str>) -> Result<Json, Failure> {
        let mut session = self.open(id).await.map_err(|error| Failure::of_request(&error))?;
        let is_meant =
            session.read_log(|log| log.open_run().is_some() && key.is_none_or(|key| log.last_request() == Some(key)));
        if is_meant {
            session.abandon().await.map_err(|error| Failure::of_run(&error))?;
        }
        self.saved_progress(&session)?;
        session.read_log(|log| reply(id, log))
    }

    /// Returns how the last run of a session ended.
    pub async fn reply(&self, id: &SessionId) -> Result<Json, Failure> {
        reply(id, &self.log(id).await?)
    }

    /// Returns a session with its entries from a number on, up to a limit.
    pub async fn read(&self, id: &SessionId, after: u64) -> Result<Json, Failure> {
        let stored = self.store.read_from(id, after).await.map_err(|error| Failure::of_request(&error.into()))?;
        let is_complete = stored.entries.len() <= MAX_ENTRIES;
        let entries = stored.entries.iter().take(MAX_ENTRIES);
        let entries: Vec<Json> = entries.map(|entry| serde_json::from_str(entry).unwrap_or_default()).collect();
        let first = after.min(stored.summary.entries);
        let next = first.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        let waiting = Waiting::all(&self.log(id).await?);
        Ok(json!({
            "session": id,
            "agent": stored.summary.agent,
            "state": stored.summary.state,
            "entries": entries,
            "next": next,
            "complete": is_complete,
            "waiting": waiting,
        }))
    }

    async fn log(&self, id: &SessionId) -> Result<Log, Failure> {
        let stored = self.store.read(id).await.map_err(|error| Failure::of_request(&error.into()))?;
        Log::read(&stored.entries).map_err(|error| Failure::of_request(&error.into()))
    }

    /// Opens a session, once it is free.
    async fn open(&self, id: &SessionId) -> Result<Session, SessionError> {
        for _ in 1..CLAIM_ATTEMPTS {
            match Session::open(Arc::clone(&self.project), Arc::clone(&self.store), id).await {
                Err(SessionError::Store(StoreError::Busy { .. })) => tokio::time::sleep(CLAIM_PAUSE).await,
                opened => return opened,
            }
        }
        Session::open(Arc::clone(&self.project), Arc::clone(&self.store), id).await
    }

    /// Configures a session whose runs stop after one step, or before the first.
    fn configured(&self, session: Session, pause: Option<CancellationToken>) -> Session {
        let configure = Arc::clone(&self.configure);
        let session = session.with_driver(move |driver| {
            let driver = configure(driver).with_approver(LaterApprover).with_single_steps();
            match &pause {
                Some(pause) => driver.with_pause(pause.clone()),
                None => driver,
            }
        });
        session.with_tracer(self.tracer.clone())
    }

    /// Returns how an agent is found when its session is opened elsewhere: its file comes first.
    fn selection(&self, agent: Option<&str>) -> AgentSelection {
        let driver = self.project.driver();
        let declared = driver.project().agents().find(|(declaration, _)| Some(declaration.name.as_str()) == agent);
        let own = declared.and_then(|(declaration, _)| self.files.get(declaration.file));
        let others = self.files.iter().filter(|file| Some(*file) != own);
        let files = own.into_iter().chain(others).cloned().collect();
        AgentSelection { files, agent: agent.map(str::to_owned), ..AgentSelection::default() }
    }

    fn progress(&self, session: &Session) -> Progress {
        session.read_log(|log| self.progress_of(log))
    }

    fn progress_of(&self, log: &Log) -> Progress {
        Progress::new(log, now_ms(), milliseconds(self.approval_expiry))
    }

    /// Returns how far a session is, if all of that is in the store.
    fn saved_progress(&self, session: &Session) -> Result<Progress, Failure> {
        match session.save_error() {
            Some(error) => Err(Failure::Passing(error.to_string())),
            None => Ok(self.progress(session)),
        }
    }
}

fn reply(id: &SessionId, log: &Log) -> Result<Json, Failure> {
    let run = log.open_run().or(log.last_run());
    let run = run.ok_or_else(|| Failure::conflict(format!("the session `{id}` has no run")))?;
    Ok(turn_json(Some(id.as_str()), &TurnEnd::new(run, log)))
}

/// Returns the answers to the calls that nobody answered in time: the questions whose own time is up, or else all approvals.
fn expired_calls(log: &Log, now_ms: u64) -> Vec<(Vec<String>, String, CallAnswer)> {
    let calls = log.waiting_calls();
    let is_late = |expires_at: Option<u64>| expires_at.is_some_and(|expires_at| expires_at <= now_ms);
    let has_late = calls.iter().any(|waiting| is_late(waiting.call.expires_at));
    let answers = calls.iter().filter_map(|waiting| {
        let message = "nobody answered in time".to_owned();
        let answer = match waiting.waiting_for {
            WaitingFor::Client if is_late(waiting.call.expires_at) => {
                CallAnswer::Result(ToolOutcome::Error { message })
            }
            WaitingFor::Approval(_) if !has_late => CallAnswer::Refuse("nobody approved the call in time".to_owned()),
            _ => return None,
        };
        Some((waiting.run.clone(), waiting.call.id.clone(), answer))
    });
    answers.collect()
}

/// Leaves all decisions to those who answer later.
struct LaterApprover;

impl Approver for LaterApprover {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Later })
    }
}

fn absolute(path: &str) -> String {
    Path::new(path).canonicalize().map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}
