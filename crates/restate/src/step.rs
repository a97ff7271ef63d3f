//! The private service that takes a step, and the steps under way.

use crate::failure::Failure;
use crate::progress::Progress;
use crate::worker::Worker;
use patter::store::SessionId;
use patter::tool::CancellationToken;
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::TaskTracker;

/// A step to take: the next one of a session that has so many entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRequest {
    /// The session.
    pub session: String,
    /// The number of entries in its log.
    pub entries: u64,
}

/// Takes steps. Only turns call it.
///
/// A step is a call of its own, so that any worker may take it, the turn uses none meanwhile, and it can be cancelled: the
/// side effect of a handler cannot.
pub struct SessionStep {
    steps: Arc<Steps>,
}

impl SessionStep {
    /// Returns the service of a worker.
    pub fn new(steps: Arc<Steps>) -> Self {
        Self { steps }
    }
}

#[restate_sdk::service(
    name = "SessionStep",
    client_visibility = "pub(crate)",
    ingress_private = true,
    // A step takes as long as the tools and models that it calls, and must not be cut short.
    inactivity_timeout = "7 days",
    abort_timeout = "1h",
    journal_retention = "1h",
    invocation_retry_policy(
        initial_interval = "100ms",
        factor = 2.0,
        max_interval = "5s",
        max_attempts = 1000,
        on_max_attempts = "pause",
    )
)]
impl SessionStep {
    /// Takes the next step of a session, unless that was done before. What happened is in the log.
    #[handler]
    pub async fn perform(&self, ctx: Context<'_>, Json(request): Json<StepRequest>) -> Result<(), HandlerError> {
        let id = SessionId::parse(&request.session).map_err(Failure::from)?;
        // Restate may have the end of this call already, and ask for it again. Then nothing must be awaited that was not
        // awaited before, and the result must be the same: so there is none.
        if self.steps.worker.look(&id).await?.is_next_after(request.entries) {
            return Ok(());
        }
        let mut step = self.steps.begin(id, request.entries)?;
        // Nobody resolves it: all that can come is the cancellation of this call.
        let (_, never) = ctx.awakeable::<bool>();
        tokio::select! {
            biased;
            ended = step.ended() => ended?,
            _ = never => {
                step.cancellation.cancel();
                step.ended().await?
            }
        };
        Ok(())
    }
}

/// The steps under way in this process. They end even if Restate loses sight of them: what they did is in the log then.
pub struct Steps {
    worker: Arc<Worker>,
    under_way: Mutex<HashMap<SessionId, StepUnderWay>>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// A step under way.
#[derive(Clone)]
struct StepUnderWay {
    cancellation: CancellationToken,
    end: watch::Receiver<Option<Result<Progress, Failure>>>,
}

impl StepUnderWay {
    /// Waits for the end.
    async fn ended(&mut self) -> Result<Progress, Failure> {
        match self.end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or_else(|| Err(broken_off())),
            Err(_) => Err(broken_off()),
        }
    }
}

fn broken_off() -> Failure {
    Failure::Passing("the step broke off".to_owned())
}

impl Steps {
    /// Returns the steps of a worker, which takes so many at a time.
    pub fn new(worker: Arc<Worker>, limit: usize) -> Self {
        let permits = Arc::new(Semaphore::new(limit));
        Self { worker, under_way: Mutex::default(), permits, tasks: TaskTracker::new() }
    }

    /// Returns the worker.
    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Starts a step, or joins the one that is under way in the session.
    fn begin(self: &Arc<Self>, id: SessionId, entries: u64) -> Result<StepUnderWay, Failure> {
        let mut under_way = self.under_way();
        if let Some(step) = under_way.get(&id) {
            return Ok(step.clone());
        }
        if self.tasks.is_closed() {
            return Err(Failure::Passing("this worker stops".to_owned()));
        }
        let too_many = |_| Failure::Passing("this worker takes as many steps as it may".to_owned());
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(too_many)?;
        let (sender, end) = watch::channel(None);
        let step = StepUnderWay { cancellation: CancellationToken::new(), end };
        under_way.insert(id.clone(), step.clone());
        let cancellation = step.cancellation.clone();
        let steps = Arc::clone(self);
        self.tasks.spawn(async move {
            let entry = Entry { steps, id };
            let ended = entry.steps.worker.step(&entry.id, entries, &cancellation).await;
            if let Err(failure) = &ended {
                tracing::warn!(session = %entry.id, %failure, "a step is tried again");
            }
            // The next step may start as soon as somebody learns about this one.
            drop(entry);
            drop(permit);
            let _ = sender.send(Some(ended));
        });
        Ok(step)
    }

    /// Starts no more steps, and waits for those under way.
    pub async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn under_way(&self) -> MutexGuard<'_, HashMap<SessionId, StepUnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a step in the list of those under way.
struct Entry {
    steps: Arc<Steps>,
    id: SessionId,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.steps.under_way().remove(&self.id);
    }
}
