//! Turns that outlive the requests that started them. Each is work of the queue until it ends, so that another worker
//! continues it if this one stops, and a message that was accepted is not lost.

use super::schedule::TickTask;
use super::webhook::{NotifyTask, WEBHOOK};
use super::{Choice, Host, SessionChoice, Turn, TurnRequest};
use crate::token::Access;
use patter::drive::now_ms;
use patter::store::{
    NewWork, SessionId, Settlement, StoreError, TakeRequest, Work, WorkChange, WorkFilter, WorkQueue, WorkState,
};
use patter::tool::CancellationToken;
use patter_core::message::attachment::{Attachment, AttachmentContents};
use patter_core::message::conversation::Message;
use patter_core::run::{ClientAdditions, FailureKind};
use patter_core::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome};
use patter_core::session::TraceParent;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest pause before work that failed is tried again.
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How much work of a session is cancelled at once.
const MAX_CANCELLED: usize = 1000;

/// What is to be done in a session, as the queue stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub(super) enum Task {
    /// Send a message.
    Say(Box<SayTask>),
    /// Continue the run.
    Resume,
    /// Run a schedule.
    Tick(TickTask),
    /// Report the end of a turn.
    Notify(Box<NotifyTask>),
}

/// The part of a task that says who learns about its end. The rest may be large.
#[derive(Deserialize)]
struct TaskWebhook {
    #[serde(default)]
    webhook: Option<String>,
}

/// A message to an agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SayTask {
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attachments: Vec<Attachment>,
    /// The contents of the attachments of the message and of the history.
    #[serde(default, skip_serializing_if = "AttachmentContents::is_empty")]
    pub(super) contents: AttachmentContents,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) history: Vec<Message>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<ClientAdditions>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) variant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<TraceParent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) webhook: Option<String>,
}

impl SayTask {
    pub(super) fn new(request: &TurnRequest) -> Self {
        Self {
            message: request.input.text.clone(),
            attachments: request.input.attachments.clone(),
            contents: request.contents.clone(),
            history: request.history.clone(),
            client: request.client.clone(),
            model: request.choice.model.as_ref().map(ToString::to_string),
            variant: request.choice.variant.clone(),
            parent: request.parent,
            webhook: request.webhook.clone(),
        }
    }

    pub(super) fn choice(&self) -> Choice {
        let model = self.model.as_ref().and_then(|model| model.parse().ok());
        Choice { model, variant: self.variant.clone() }
    }
}

/// Work that this server performs, until it is settled.
#[derive(Debug, Clone)]
pub(super) struct Ticket {
    pub(super) id: u64,
    pub(super) key: String,
    attempts: u32,
    /// Whether somebody who waits for the turn learns why it cannot start.
    is_awaited: bool,
    /// The URL that learns about the end of the turn.
    pub(super) webhook: Option<String>,
}

/// What became of work that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelledWork {
    /// There was none.
    Nothing,
    /// It had not started, or was parked.
    Removed,
    /// Its worker was asked to cancel it.
    Asked,
}

impl From<&Work> for Ticket {
    fn from(work: &Work) -> Self {
        let webhook = serde_json::from_str(&work.task).ok().and_then(|TaskWebhook { webhook }| webhook);
        Self { id: work.id, key: work.key.clone(), attempts: work.attempts, is_awaited: false, webhook }
    }
}

impl Host {
    /// Returns the queue with the name of this worker, if this server is one.
    pub(super) fn queue(&self) -> Option<(&dyn WorkQueue, &str)> {
        let worker = self.worker.get()?;
        Some((self.store.as_ref()?.queue()?, worker))
    }

    /// Adds a turn to the queue that this server performs at once. Returns `None` if it is not a worker.
    pub(super) async fn new_ticket(
        &self,
        access: &Access,
        session: &SessionId,
        agent: &str,
        task: Task,
    ) -> Result<Option<Ticket>, ApiError> {
        let Some((queue, worker)) = self.queue() else { return Ok(None) };
        let new = NewWork { worker: Some(worker.to_owned()), ..new_work(access, session, agent, &task)? };
        let key = new.key.clone();
        let id = queue.add(new).await.map_err(|error| super::api_error(&error.into()))?;
        Ok(id.map(|id| Ticket { id, key, attempts: 1, is_awaited: true, webhook: None }))
    }

    /// Adds a turn to the queue for any worker. With a key, adding it again has no effect. Returns its session.
    pub(crate) async fn enqueue(
        &self,
        access: &Access,
        key: Option<String>,
        request: &TurnRequest,
    ) -> Result<SessionId, ApiError> {
        let failed = |error: StoreError| super::api_error(&error.into());
        let (SessionChoice::New(session) | SessionChoice::Named(session)) = &request.session else {
            return Err(ApiError::invalid("background", "needs a session that is stored"));
        };
        let store = self.require_store()?;
        let unqueued = || ApiError::new(ApiErrorKind::Invalid, "this server has no queue for turns in the background");
        let queue = store.queue().ok_or_else(unqueued)?;
        if self.worker.get().is_none() {
            let message = "this server has not reported to its store yet, so nobody would perform the turn";
            return Err(ApiError::new(ApiErrorKind::Unavailable, message));
        }
        let is_known = self.find_session(access, session).await?.is_some();
        if is_known && matches!(request.session, SessionChoice::New(_)) {
            let (_, log) = self.read_session(session).await?;
            // The same request was sent before.
            if key.as_ref().is_some_and(|key| log.has_request(key)) {
                return Ok(session.clone());
            }
            return Err(failed(StoreError::Exists { id: session.clone() }));
        }
        let task = Task::Say(Box::new(SayTask::new(request)));
        let mut new = new_work(access, session, &request.agent, &task)?;
        let filter = WorkFilter { key: key.clone(), ..WorkFilter::default() };
        if let Some(key) = key {
            new.key = key;
        }
        if queue.add(new).await.map_err(failed)?.is_some() {
            return Ok(session.clone());
        }
        let known = queue.list(&filter, 1).await.map_err(failed)?;
        Ok(known.into_iter().next().map_or_else(|| session.clone(), |work| work.session))
    }

    /// Returns the work of a session that the sender may see.
    pub(crate) async fn work_of(&self, access: &Access, id: &SessionId) -> Result<Vec<Work>, ApiError> {
        const MOST: usize = 100;
        let Some(queue) = self.store.as_ref().and_then(|store| store.queue()) else { return Ok(Vec::new()) };
        let filter = WorkFilter { session: Some(id.clone()), ..WorkFilter::default() };
        let mut work = queue.list(&filter, MOST).await.map_err(|error| super::api_error(&error.into()))?;
        work.retain(|work| access.may_reach(&work.agent));
        Ok(work)
    }

    /// Takes the work of a session whose run waits, so that this server continues it. Returns `None` if there is none.
    pub(super) async fn ticket_of(&self, session: &SessionId) -> Result<Option<Ticket>, ApiError> {
        let Some((queue, worker)) = self.queue() else { return Ok(None) };
        let request = TakeRequest { session: Some(session.clone()), limit: 1, ..self.take_request(worker) };
        let taken = queue.take(request).await.map_err(|error| super::api_error(&error.into()))?;
        Ok(taken.first().map(|work| Ticket { is_awaited: true, ..Ticket::from(work) }))
    }

    /// Returns what this server takes: work for its agents, within the limits.
    pub(super) fn take_request(&self, worker: &str) -> TakeRequest {
        let limits = &self.settings.turn_limits;
        let limit = |name: &str| limits.agents.get(name).copied();
        let agents = self.agents().into_iter().map(|(name, _)| (name.clone(), limit(&name)));
        let agents = agents.chain(self.settings.webhooks.as_ref().map(|_| (WEBHOOK.to_owned(), None)));
        TakeRequest {
            worker: worker.to_owned(),
            agents: agents.collect(),
            tenants: limits.tokens.clone(),
            session: None,
            limit: 0,
        }
    }

    /// Settles work after its turn ended.
    pub(super) async fn settle_turn(&self, ticket: Ticket, turn: &Turn, end: &Result<TurnEnd, ApiError>) {
        let settlement = self.settlement_of(&ticket, end);
        let is_end = matches!(settlement, Settlement::Done | Settlement::Waiting(_) | Settlement::Parked(_));
        let settlement = match turn.session.as_ref().filter(|_| is_end) {
            // The turn has ended once its report is in the queue.
            Some(session) => match self.notify(&ticket, session, &turn.about, end).await {
                Ok(()) => settlement,
                Err(error) => self.again(&ticket, error.to_string()),
            },
            None => settlement,
        };
        self.settle(ticket, settlement).await;
    }

    fn settlement_of(&self, ticket: &Ticket, end: &Result<TurnEnd, ApiError>) -> Settlement {
        match end {
            Ok(TurnEnd { outcome: TurnOutcome::Waiting(_), .. }) => Settlement::Waiting(self.settings.approval_expiry),
            Ok(TurnEnd { outcome: TurnOutcome::Failed(failure), .. }) if failure.kind == FailureKind::Store => {
                self.again(ticket, failure.message.clone())
            }
            Ok(_) => Settlement::Done,
            Err(ApiError { kind: ApiErrorKind::Unavailable, .. }) if self.draining.is_cancelled() => {
                Settlement::HandedOver
            }
            Err(_) if ticket.is_awaited => Settlement::Done,
            Err(error) => match error.kind {
                ApiErrorKind::Busy | ApiErrorKind::Unavailable | ApiErrorKind::TooMany => {
                    self.again(ticket, error.to_string())
                }
                _ => Settlement::Parked(error.to_string()),
            },
        }
    }

    pub(super) async fn settle(&self, ticket: Ticket, settlement: Settlement) {
        self.cancellations().remove(&ticket.id);
        let Some((queue, worker)) = self.queue() else { return };
        if let Settlement::Parked(reason) = &settlement {
            tracing::warn!(work = ticket.id, reason, "work was parked");
        }
        match queue.settle(ticket.id, worker, settlement).await {
            Ok(true) => {}
            Ok(false) => tracing::warn!(work = ticket.id, "another worker has taken over"),
            // Once this worker does not report any more, another one finds the work and looks at the log.
            Err(error) => tracing::warn!(work = ticket.id, %error, "cannot settle work"),
        }
    }

    /// Returns that work failed: it is tried again, up to a number of times.
    pub(super) fn again(&self, ticket: &Ticket, reason: String) -> Settlement {
        if ticket.attempts >= self.settings.limits.max_attempts {
            return Settlement::Parked(reason);
        }
        let pause = Duration::from_secs(1).saturating_mul(1 << ticket.attempts.min(6));
        Settlement::Again(pause.min(MAX_PAUSE), reason)
    }

    /// Cancels the turns of a session that are work of the queue, whoever performs them.
    pub(super) async fn cancel_work(&self, id: &SessionId) -> Result<CancelledWork, ApiError> {
        let mut cancelled = CancelledWork::Nothing;
        let Some((queue, _)) = self.queue() else { return Ok(cancelled) };
        let failed = |error: StoreError| super::api_error(&error.into());
        let filter = WorkFilter { session: Some(id.clone()), ..WorkFilter::default() };
        for work in queue.list(&filter, MAX_CANCELLED).await.map_err(failed)? {
            let change = match work.state {
                WorkState::Running => WorkChange::Cancel,
                WorkState::Queued | WorkState::Parked => WorkChange::Remove,
                // The run has to be ended in its log.
                WorkState::Waiting => continue,
            };
            if queue.change(work.id, change).await.map_err(failed)? {
                cancelled = match (change, cancelled) {
                    (WorkChange::Cancel, _) | (_, CancelledWork::Asked) => CancelledWork::Asked,
                    _ => CancelledWork::Removed,
                };
            }
        }
        Ok(cancelled)
    }

    /// Lets whoever wants to cancel work reach its turn.
    pub(super) fn watch_cancellation(&self, ticket: &Ticket, cancellation: CancellationToken) {
        self.cancellations().insert(ticket.id, cancellation);
    }
}

/// Returns work for any worker.
pub(super) fn new_work(access: &Access, session: &SessionId, agent: &str, task: &Task) -> Result<NewWork, ApiError> {
    let unwritable = |error: serde_json::Error| ApiError::new(ApiErrorKind::Server, error.to_string());
    Ok(NewWork {
        key: format!("{session}/{}", SessionId::unique(now_ms())),
        session: session.clone(),
        agent: agent.to_owned(),
        tenant: access.name().to_owned(),
        task: serde_json::to_string(task).map_err(unwritable)?,
        worker: None,
        due_ms: None,
    })
}

/// Returns whether an error of a store passes.
pub(super) fn is_busy(error: &StoreError) -> bool {
    matches!(error, StoreError::Busy { .. })
}
