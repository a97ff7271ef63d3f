//! Starting, answering, resuming and cancelling turns.

use super::running::Work;
use super::work::{CancelledWork, SayTask, Task, Ticket};
use super::{Answer, Follower, Host, Lifetime, SessionChoice, Turn, TurnDetails, TurnRequest, WhenBusy, api_error};
use crate::token::Access;
use patter::drive::now_ms;
use patter::session::{Log, Session, SessionError};
use patter::store::{SessionId, Settlement, Store, StoreError};
use patter::tool::CancellationToken;
use patter_core::message::conversation::Usage;
use patter_core::run::Run;
use patter_core::serve::{ApiError, ApiErrorKind, Segment, Waiting};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How long a request waits for a turn of its session to end before the session counts as busy.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// How long a message waits in the queue of a busy session.
const QUEUE_WAIT: Duration = Duration::from_secs(120);

impl Host {
    /// Starts a turn.
    pub(crate) async fn start(self: &Arc<Self>, access: &Access, request: TurnRequest) -> Result<Follower, ApiError> {
        let permit = self.permit()?;
        self.drivers.check_variant(request.choice.variant.as_deref())?;
        // A copy of the request, which only the queue needs.
        let is_work = request.lifetime == Lifetime::Detached && self.queue().is_some();
        let task = is_work.then(|| Task::Say(Box::new(SayTask::new(&request))));
        let TurnRequest {
            agent, session, history, client, input, contents, choice, lifetime, when_busy, parent, ..
        } = request;
        if let SessionChoice::Named(id) | SessionChoice::After(id, _) = &session {
            self.find_session(access, id).await?;
        }
        let mut session = match (session, &self.store) {
            (SessionChoice::Unsaved, _) | (SessionChoice::New(_), None) => {
                self.traced(Session::new(Arc::clone(&self.project)))
            }
            (SessionChoice::New(id), Some(store)) => self.create(store, id),
            (SessionChoice::Named(id), _) => match self.open_free(&id, when_busy).await {
                Err(SessionError::Store(StoreError::NotFound { .. })) => self.create(&self.require_store()?, id),
                opened => opened.map_err(|error| api_error(&error))?,
            },
            (SessionChoice::After(id, number), _) => {
                let session = self.open_free(&id, when_busy).await.map_err(|error| api_error(&error))?;
                if session.read_log(Log::segments) != number {
                    let message = format!("the session `{id}` was continued meanwhile");
                    return Err(ApiError::new(ApiErrorKind::Busy, message));
                }
                session
            }
        };
        session.add_contents(&contents);
        if !history.is_empty() {
            session.import(history).map_err(|error| api_error(&error))?;
        }
        session.set_trace_parent(parent);
        session.set_client(client.clone());
        let number = session.read_log(Log::segments) + 1;
        let about = TurnDetails { number, agent: agent.clone(), client, created_ms: now_ms() };
        let ticket = match (session.id(), task) {
            (Some(id), Some(task)) => self.new_ticket(access, &id, &agent, task).await?,
            _ => None,
        };
        Ok(self.spawn(session, about, Work::Say(input, choice), lifetime, permit, ticket).follow())
    }

    /// Answers calls of a session that waits, and resumes its run.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        access: &Access,
        id: &SessionId,
        answers: Vec<Answer>,
        lifetime: Lifetime,
    ) -> Result<Follower, ApiError> {
        let permit = self.permit()?;
        self.find_session(access, id).await?;
        self.wait_until_suspended(id).await?;
        let mut session = self.open(id).await.map_err(|error| api_error(&error))?;
        let waiting = session.read_log(Waiting::all);
        // All or nothing.
        for answer in &answers {
            let call = waiting.iter().find(|call| call.run == answer.run && call.call_id == answer.call_id);
            let problem = match call {
                None => Some(format!("no call `{}` waits in the session `{id}`", answer.call_id)),
                Some(call) if answer.hash.as_ref().is_some_and(|hash| *hash != call.hash) => {
                    Some("the answer is about another call: `hash` does not match".to_owned())
                }
                Some(_) => None,
            };
            if let Some(problem) = problem {
                return Err(ApiError::new(ApiErrorKind::Busy, problem));
            }
            let checked = session.check_answer(&answer.run, &answer.call_id, &answer.answer);
            checked.map_err(|error| api_error(&error))?;
        }
        for Answer { run, call_id, answer, .. } in answers {
            session.answer(&run, &call_id, answer).await.map_err(|error| api_error(&error))?;
        }
        let about = session.read_log(open_run_details);
        let usage_before = session.read_log(open_run_usage);
        let work = Work::Resume(Box::new(Segment { usage_before, ..Segment::default() }));
        let ticket = self.resume_ticket(access, id, &about.agent, lifetime).await?;
        Ok(self.spawn(session, about, work, lifetime, permit, ticket).follow())
    }

    /// Resumes the unfinished run of a session, for example after a crash.
    pub(crate) async fn resume(
        self: &Arc<Self>,
        access: &Access,
        id: &SessionId,
        lifetime: Lifetime,
    ) -> Result<Follower, ApiError> {
        self.find_session(access, id).await?;
        if let Some(turn) = self.active_turn(id) {
            return Ok(turn.follow());
        }
        let permit = self.permit()?;
        let session = self.open(id).await.map_err(|error| api_error(&error))?;
        if session.read_log(|log| log.open_run().is_none()) {
            return Err(api_error(&SessionError::NoUnfinishedRun));
        }
        let about = session.read_log(open_run_details);
        // Who follows the turn learns about all of it, including what happened before the interruption.
        let stored = self.require_store()?.read(id).await.map_err(|error| api_error(&error.into()))?;
        let usage_before = session.read_log(open_run_usage);
        let segment = read_segment(&stored.entries, about.number)?;
        let segment = segment.unwrap_or_else(|| Segment { usage_before, ..Segment::default() });
        let ticket = self.resume_ticket(access, id, &about.agent, lifetime).await?;
        Ok(self.spawn(session, about, Work::Resume(Box::new(segment)), lifetime, permit, ticket).follow())
    }

    /// Returns the work that a run which continues is a part of.
    async fn resume_ticket(
        &self,
        access: &Access,
        id: &SessionId,
        agent: &str,
        lifetime: Lifetime,
    ) -> Result<Option<Ticket>, ApiError> {
        match (self.ticket_of(id).await?, lifetime) {
            (None, Lifetime::Detached) => self.new_ticket(access, id, agent, Task::Resume).await,
            (ticket, _) => Ok(ticket),
        }
    }

    /// Returns the turn of a segment that a request started before a restart: it continues if it had not ended.
    pub(crate) async fn rejoin(
        self: &Arc<Self>,
        access: &Access,
        id: &SessionId,
        number: u32,
    ) -> Result<Follower, ApiError> {
        self.find_session(access, id).await?;
        if let Some(turn) = self.active_turn(id).filter(|turn| turn.about.number == number) {
            return Ok(turn.follow());
        }
        let stored = self.require_store()?.read(id).await.map_err(|error| api_error(&error.into()))?;
        let missing = || ApiError::new(ApiErrorKind::NotFound, format!("the session `{id}` has no such run"));
        let segment = read_segment(&stored.entries, number)?.ok_or_else(missing)?;
        let Some(end) = segment.end else { return self.resume(access, id, Lifetime::Attached).await };
        let Segment { agent, client, started_ms: created_ms, .. } = segment;
        let about = TurnDetails { number, agent, client, created_ms };
        let turn = Turn::new(Some(id.clone()), about, CancellationToken::new(), None);
        segment.events.iter().for_each(|event| turn.push(event));
        turn.end(Ok(end));
        Ok(Arc::new(turn).follow())
    }

    /// Removes the last message of a session and everything after it, and returns the message if there was one.
    pub(crate) async fn undo(&self, access: &Access, id: &SessionId) -> Result<Option<String>, ApiError> {
        self.find_session(access, id).await?;
        let mut session = self.open_free(id, WhenBusy::Reject).await.map_err(|error| api_error(&error))?;
        session.undo().await.map_err(|error| api_error(&error))
    }

    /// Cancels the run of a session, whether it is under way or waits.
    pub(crate) async fn cancel(&self, access: &Access, id: &SessionId) -> Result<(), ApiError> {
        self.find_session(access, id).await?;
        if let Some(turn) = self.active_turn(id) {
            turn.cancellation.cancel();
            turn.ended().await;
            return Ok(());
        }
        let cancelled = self.cancel_work(id).await?;
        if cancelled == CancelledWork::Asked {
            return Ok(());
        }
        let abandoned = async { self.open(id).await?.abandon().await }.await;
        if let Some(ticket) = self.ticket_of(id).await? {
            self.settle(ticket, Settlement::Done).await;
        }
        match abandoned {
            // The work had not started.
            Err(SessionError::Store(StoreError::NotFound { .. }) | SessionError::NoUnfinishedRun)
                if cancelled == CancelledWork::Removed =>
            {
                Ok(())
            }
            abandoned => abandoned.map_err(|error| api_error(&error)),
        }
    }

    pub(super) async fn open(&self, id: &SessionId) -> Result<Session, SessionError> {
        let missing = || SessionError::Store(StoreError::NotFound { text: id.to_string(), nearest: None });
        let store = self.store.clone().ok_or_else(missing)?;
        Session::open(Arc::clone(&self.project), store, id).await.map(|session| self.traced(session))
    }

    pub(super) fn create(&self, store: &Arc<dyn Store>, id: SessionId) -> Session {
        self.traced(Session::create(Arc::clone(&self.project), Arc::clone(store), id))
    }

    fn traced(&self, session: Session) -> Session {
        session.with_tracer(self.tracer.clone())
    }

    /// Opens a session, once it is free if the message may wait.
    async fn open_free(&self, id: &SessionId, when_busy: WhenBusy) -> Result<Session, SessionError> {
        const PAUSE: Duration = Duration::from_millis(50);
        let deadline = tokio::time::Instant::now() + QUEUE_WAIT;
        loop {
            let is_last = when_busy == WhenBusy::Reject || tokio::time::Instant::now() > deadline;
            match self.active_turn(id) {
                // Another process may have it.
                None => match self.open(id).await {
                    Err(SessionError::Store(StoreError::Busy { .. })) if !is_last => tokio::time::sleep(PAUSE).await,
                    opened => return opened,
                },
                Some(_) if is_last => {
                    let holder = Some("another request".to_owned());
                    return Err(StoreError::Busy { id: id.clone(), holder }.into());
                }
                Some(turn) => {
                    let _ = tokio::time::timeout_at(deadline, turn.ended()).await;
                }
            }
        }
    }

    /// Waits until the run of a session waits: its other calls may still be under way.
    async fn wait_until_suspended(&self, id: &SessionId) -> Result<(), ApiError> {
        let Some(turn) = self.active_turn(id) else { return Ok(()) };
        let waited = tokio::time::timeout(ANSWER_WAIT, turn.ended()).await;
        waited.map_err(|_| ApiError::new(ApiErrorKind::Busy, format!("other calls of `{id}` are under way")))
    }

    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        if self.draining.is_cancelled() {
            return Err(ApiError::new(ApiErrorKind::Unavailable, "the server is stopping"));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map_err(|_| ApiError::new(ApiErrorKind::TooMany, "too many turns are under way"))
    }
}

/// Returns what the turn is about that continues the open run.
pub(super) fn open_run_details(log: &Log) -> TurnDetails {
    let number = log.segments() + u32::from(log.is_suspended());
    let spec = log.open_run().map(Run::spec);
    TurnDetails {
        number,
        agent: spec.map(|spec| spec.agent.clone()).unwrap_or_default(),
        client: spec.and_then(|spec| spec.client.clone()),
        created_ms: now_ms(),
    }
}

pub(super) fn open_run_usage(log: &Log) -> Usage {
    log.open_run().map(Run::usage).unwrap_or_default()
}

/// Reads a segment of a session.
pub(crate) fn read_segment(entries: &[String], number: u32) -> Result<Option<Segment>, ApiError> {
    Segment::read(entries, number).map_err(|error| ApiError::new(ApiErrorKind::Server, error.to_string()))
}
