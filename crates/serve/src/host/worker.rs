//! A server as a worker of a fleet: it takes work from the queue, and reports that it is alive.

use super::running::Work as TurnWork;
use super::start::{open_run_details, open_run_usage, read_segment};
use super::work::{SayTask, Task, Ticket, is_busy};
use super::{Host, Lifetime, TurnDetails};
use patter::drive::now_ms;
use patter::session::{CallAnswer, Log, Session, SessionError};
use patter::store::{SessionId, Settlement, StoreError, Work, WorkFilter, WorkerInfo, WorkerReport};
use patter::tool::CancellationToken;
use patter_core::message::attachment::UserInput;
use patter_core::serve::{Segment, Waiting};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// How much work is taken at once. Others get their share.
const MAX_TAKEN: usize = 32;
/// How often to look for work that nobody announced.
const POLL: Duration = Duration::from_secs(5);
/// How long to wait for more turns that end.
const FREED_PAUSE: Duration = Duration::from_millis(20);
/// When to look again at a session that somebody else has.
const BUSY_PAUSE: Duration = Duration::from_secs(2);

impl Host {
    /// Makes this server a worker, if its store has a queue, and reports that it is alive until it has left.
    pub(crate) async fn report_alive(self: Arc<Self>, address: Option<String>) {
        let Some(queue) = self.store.as_ref().and_then(|store| store.queue()) else { return };
        let limits = self.settings.limits;
        let capacity = u32::try_from(limits.max_turns).unwrap_or(u32::MAX);
        let worker = SessionId::unique(now_ms()).to_string();
        let about = WorkerInfo { address, ..WorkerInfo::new(capacity) };
        let report = WorkerReport {
            worker: worker.clone(),
            about,
            timeout: limits.worker_timeout,
            max_attempts: limits.max_attempts,
        };
        let mut forgotten = HashSet::new();
        loop {
            match queue.report(report.clone()).await {
                Ok(()) => {
                    // It takes work once others know that it is there.
                    let _ = self.worker.set(worker.clone());
                }
                Err(error) => tracing::warn!(%error, "cannot report that this worker is alive"),
            }
            forgotten = self.put_back_forgotten(forgotten).await;
            tokio::time::sleep(limits.worker_timeout / 4).await;
        }
    }

    /// Puts work back that this worker has without performing it: the request that took it broke off. Such work must have been
    /// seen before, because it may have been taken just now. Returns what was seen.
    async fn put_back_forgotten(&self, seen: HashSet<u64>) -> HashSet<u64> {
        const MOST: usize = 10_000;
        let Some((queue, worker)) = self.queue() else { return HashSet::new() };
        let filter = WorkFilter { worker: Some(worker.to_owned()), ..WorkFilter::default() };
        let work = queue.list(&filter, MOST).await.unwrap_or_default();
        let unknown = work.iter().map(|work| work.id).filter(|id| !self.cancellations().contains_key(id));
        let (forgotten, new): (Vec<_>, Vec<_>) = unknown.partition(|id| seen.contains(id));
        for id in forgotten {
            if let Err(error) = queue.settle(id, worker, Settlement::HandedOver).await {
                tracing::warn!(work = id, %error, "cannot put work back");
            }
        }
        new.into_iter().collect()
    }

    /// Takes work until the server stops.
    pub(crate) async fn take_work(self: Arc<Self>) {
        let Some(store) = self.store.clone() else { return };
        let Some(queue) = store.queue() else { return };
        loop {
            let taken = self.take_some().await;
            if let Err(error) = &taken {
                tracing::debug!(%error, "cannot take work");
            }
            self.cancel_some().await;
            let next = async {
                match taken {
                    // There may be more.
                    Ok(1..) => {}
                    Ok(0) => tokio::select! {
                        () = queue.wait() => {}
                        () = self.turns_end() => {}
                        () = tokio::time::sleep(POLL) => {}
                    },
                    Err(_) => tokio::time::sleep(POLL).await,
                }
            };
            if self.draining.run_until_cancelled(next).await.is_none() {
                return;
            }
        }
    }

    /// Waits until a turn has ended, and then a moment for others: what they make possible is taken together.
    async fn turns_end(&self) {
        self.freed.notified().await;
        tokio::time::sleep(FREED_PAUSE).await;
    }

    /// Says that this worker stops.
    pub(crate) async fn leave(&self) {
        if let Some((queue, worker)) = self.queue()
            && let Err(error) = queue.leave(worker).await
        {
            tracing::warn!(%error, "cannot report that this worker stops");
        }
    }

    /// Returns whether another worker could continue what this one has begun.
    pub(super) async fn has_successor(&self) -> bool {
        let Some((queue, worker)) = self.queue() else { return false };
        let timeout_ms = patter::text::milliseconds(self.settings.limits.worker_timeout);
        let workers = queue.workers().await.unwrap_or_default();
        workers.iter().any(|other| other.id != worker && other.seen_ago_ms < timeout_ms)
    }

    /// Takes as much work as this server can perform now. Returns how much that was.
    async fn take_some(self: &Arc<Self>) -> Result<usize, StoreError> {
        let Some((queue, worker)) = self.queue() else { return Ok(0) };
        let limit = self.permits.available_permits().min(MAX_TAKEN);
        if limit == 0 {
            return Ok(0);
        }
        let mut request = self.take_request(worker);
        request.limit = limit;
        let taken = queue.take(request).await?;
        let count = taken.len();
        for work in taken {
            self.watch_cancellation(&Ticket::from(&work), CancellationToken::new());
            let host = Arc::clone(self);
            self.tasks.spawn(async move { host.perform(work).await });
        }
        Ok(count)
    }

    /// Cancels the turns of this server that somebody wants to end.
    async fn cancel_some(&self) {
        let Some((queue, worker)) = self.queue() else { return };
        for id in queue.cancelled(worker).await.unwrap_or_default() {
            if let Some(cancellation) = self.cancellations().get(&id) {
                cancellation.cancel();
            }
        }
    }

    async fn perform(self: Arc<Self>, work: Work) {
        let ticket = Ticket::from(&work);
        if let Err(settlement) = self.start_work(&work, &ticket).await {
            self.settle(ticket, settlement).await;
        }
    }

    /// Starts the turn that work is about. Returns how the work is settled if there is none to start.
    async fn start_work(self: &Arc<Self>, work: &Work, ticket: &Ticket) -> Result<(), Settlement> {
        let task: Task = serde_json::from_str(&work.task)
            .map_err(|error| Settlement::Parked(format!("it cannot be read: {error}")))?;
        let permit = self.permit().map_err(|_| Settlement::HandedOver)?;
        if let Task::Notify(notify) = &task {
            return Err(self.deliver(notify, work).await);
        }
        let session = match self.open(&work.session).await {
            Ok(session) => session,
            Err(SessionError::Store(StoreError::NotFound { .. })) => {
                let say = match task {
                    Task::Say(say) => *say,
                    Task::Tick(tick) => self.tick_message(&tick).await?,
                    Task::Resume | Task::Notify(_) => return Err(Settlement::Done),
                };
                let session = self.create(&self.stored()?, work.session.clone());
                return self.say(session, say, work, ticket, permit);
            }
            Err(SessionError::Store(error)) if is_busy(&error) => {
                return Err(Settlement::Later(BUSY_PAUSE, error.to_string()));
            }
            Err(error @ SessionError::Log(_)) => return Err(Settlement::Parked(error.to_string())),
            Err(error) => return Err(self.again(ticket, error.to_string())),
        };
        let has_open_run = session.read_log(|log| log.open_run().is_some());
        let is_known = session.read_log(|log| log.has_request(&work.key));
        match task {
            Task::Say(say) if !is_known => {
                if has_open_run {
                    let reason = "an earlier run of the session has not ended".to_owned();
                    return Err(Settlement::Later(BUSY_PAUSE, reason));
                }
                self.say(session, *say, work, ticket, permit)
            }
            // Whoever has its session, the tick was there.
            Task::Tick(_) if !is_known => Err(Settlement::Done),
            Task::Say(_) | Task::Tick(_) if session.read_log(|log| log.last_request() != Some(work.key.as_str())) => {
                Err(Settlement::Done)
            }
            _ if !has_open_run => {
                drop(session);
                self.notify_again(ticket, &work.session).await?;
                Err(Settlement::Done)
            }
            _ => self.continue_run(session, ticket, permit).await,
        }
    }

    /// Sends a message to its agent.
    fn say(
        self: &Arc<Self>,
        mut session: Session,
        say: SayTask,
        work: &Work,
        ticket: &Ticket,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), Settlement> {
        session.add_contents(&say.contents);
        if !say.history.is_empty() && session.conversation().is_empty() {
            let imported = session.import(say.history.clone());
            imported.map_err(|error| Settlement::Parked(error.to_string()))?;
        }
        session.set_trace_parent(say.parent);
        session.set_client(say.client.clone());
        let number = session.read_log(Log::segments) + 1;
        let client = say.client.clone();
        let about = TurnDetails { number, agent: work.agent.clone(), client, created_ms: now_ms() };
        let choice = say.choice();
        let input = UserInput { text: say.message, attachments: say.attachments };
        let say = TurnWork::Say(input, choice);
        self.spawn(session, about, say, Lifetime::Detached, permit, Some(ticket.clone()));
        Ok(())
    }

    /// Continues the run of a session. If it waits for an approval that nobody gave in time, the call is refused.
    async fn continue_run(
        self: &Arc<Self>,
        mut session: Session,
        ticket: &Ticket,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), Settlement> {
        let Some(id) = session.id() else { return Err(Settlement::Done) };
        let again = |error: String| self.again(ticket, error);
        let stored = self.stored()?.read(&id).await.map_err(|error| again(error.to_string()))?;
        if session.read_log(Log::is_waiting) {
            let since_ms = now_ms().saturating_sub(stored.summary.changed_ms);
            let left = self.settings.approval_expiry.saturating_sub(Duration::from_millis(since_ms));
            if !left.is_zero() {
                drop(session);
                self.notify_again(ticket, &id).await?;
                return Err(Settlement::Waiting(left));
            }
            for call in session.read_log(Waiting::all).into_iter().filter(|call| call.because.is_some()) {
                let refusal = CallAnswer::Refuse(super::expiry::NOT_IN_TIME.to_owned());
                let refused = session.answer(&call.run, &call.call_id, refusal).await;
                refused.map_err(|error| again(error.to_string()))?;
            }
            if session.read_log(Log::is_waiting) {
                // For the result of a tool that the client executes.
                return Err(Settlement::Waiting(self.settings.approval_expiry));
            }
        }
        let about = session.read_log(open_run_details);
        let usage_before = session.read_log(open_run_usage);
        let segment = read_segment(&stored.entries, about.number).ok().flatten();
        let segment = segment.unwrap_or_else(|| Segment { usage_before, ..Segment::default() });
        let resume = TurnWork::Resume(Box::new(segment));
        self.spawn(session, about, resume, Lifetime::Detached, permit, Some(ticket.clone()));
        Ok(())
    }

    fn stored(&self) -> Result<Arc<dyn patter::store::Store>, Settlement> {
        self.store.clone().ok_or(Settlement::HandedOver)
    }
}
