//! The virtual object that a session is.

use crate::failure::Failure;
use crate::progress::{Progress, RunState};
use crate::step::{SessionStepClient, StepRequest, Steps};
use crate::worker::Worker;
use patter::store::SessionId;
use restate_sdk::prelude::*;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The state of an object: the invocation whose run is under way, and the awakeable that it waits for.
const TURN: &str = "turn";
const AWAKEABLE: &str = "awakeable";
/// The status of an error that says that the invocation was cancelled.
const CANCELLED: u16 = 409;

/// A session: its key is the id. Restate decides when a turn takes a step, and who does that; what happens is in the log of
/// the session, in the store.
pub struct Session {
    worker: Arc<Worker>,
}

impl Session {
    /// Returns the object of a worker.
    pub fn new(steps: &Steps) -> Self {
        Self { worker: Arc::clone(steps.worker()) }
    }
}

#[restate_sdk::object(
    name = "Session",
    client_visibility = "pub(crate)",
    journal_retention = "1h",
    invocation_retry_policy(
        initial_interval = "100ms",
        factor = 2.0,
        max_interval = "5s",
        max_attempts = 1000,
        on_max_attempts = "pause",
    )
)]
impl Session {
    /// Sends a message to an agent, and returns its answer: `{"agent": "greeter", "message": "Hello"}`.
    #[handler]
    pub async fn turn(&self, ctx: ObjectContext<'_>, Json(request): Json<Value>) -> Result<Json<Value>, HandlerError> {
        let id = session_id(ctx.key())?;
        let key = ctx.invocation_id().to_owned();
        ctx.set(TURN, key.clone());
        let worker = Arc::clone(&self.worker);
        let session = id.clone();
        let request_key = key.clone();
        let start = ctx.run(move || async move { Ok(Json(worker.start(&session, &request, &request_key).await?)) });
        match start.name("start").await {
            Ok(Json(progress)) => self.run_to_end(&ctx, &id, progress).await,
            Err(error) => {
                // If it was cancelled, the run may have started all the same.
                if error.code() == CANCELLED {
                    let _ = self.abandon(&ctx, &id, Some(key)).await;
                }
                ctx.clear(TURN);
                Err(error.into())
            }
        }
    }

    /// Continues the run of a session that has not ended: one that another program started, for example.
    #[handler]
    pub async fn resume(&self, ctx: ObjectContext<'_>) -> Result<Json<Value>, HandlerError> {
        let id = session_id(ctx.key())?;
        let progress = self.look(&ctx, &id).await?;
        if progress.state == RunState::Ended {
            return Err(Failure::conflict("there is nothing to resume: the last run has ended").into());
        }
        ctx.set(TURN, ctx.invocation_id().to_owned());
        self.run_to_end(&ctx, &id, progress).await
    }

    /// Answers a call that waits: `{"call_id": "…", "hash": "…", "decision": "approve"}`.
    #[handler(lazy_state = true)]
    pub async fn answer(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(request): Json<Value>,
    ) -> Result<Json<Progress>, HandlerError> {
        let id = session_id(ctx.key())?;
        let worker = Arc::clone(&self.worker);
        let answer = ctx.run(move || async move { Ok(Json(worker.answer(&id, &request).await?)) });
        let answered = answer.name("answer").await;
        // Also after an error: if this is repeated, the answer may be in the log already, and the turn has to look there.
        if let Some(awakeable) = ctx.get::<String>(AWAKEABLE).await? {
            ctx.resolve_awakeable(&awakeable, true);
        }
        Ok(answered?)
    }

    /// Cancels the run of a session, also in the middle of a step, and returns how it ended.
    #[handler(lazy_state = true)]
    pub async fn cancel(&self, ctx: SharedObjectContext<'_>) -> Result<Json<Value>, HandlerError> {
        let id = session_id(ctx.key())?;
        let turn = ctx.get::<String>(TURN).await?;
        if let Some(turn) = &turn {
            let turn = ctx.invocation_handle(turn.clone());
            turn.cancel();
            // It may have ended meanwhile, or have been killed: the log says what happened.
            let _ = turn.attach::<Json<Value>>().await;
        }
        let worker = Arc::clone(&self.worker);
        let abandon = ctx.run(move || async move { Ok(Json(worker.abandon(&id, turn.as_deref()).await?)) });
        Ok(abandon.name("abandon").await?)
    }

    /// Returns the entries of the log from a number on, and the calls that wait: `{"after": 0}`.
    #[handler(lazy_state = true)]
    pub async fn read(
        &self,
        ctx: SharedObjectContext<'_>,
        Json(request): Json<Value>,
    ) -> Result<Json<Value>, HandlerError> {
        let id = session_id(ctx.key())?;
        let after = match request.get("after") {
            None => 0,
            Some(after) => after.as_u64().ok_or_else(|| Failure::invalid("`after` is not a number of entries"))?,
        };
        let worker = Arc::clone(&self.worker);
        let read = ctx.run(move || async move { Ok(Json(worker.read(&id, after).await?)) });
        Ok(read.name("read").await?)
    }
}

impl Session {
    /// Takes steps until the run has ended. The journal has one number for each.
    async fn run_to_end(
        &self,
        ctx: &ObjectContext<'_>,
        id: &SessionId,
        mut progress: Progress,
    ) -> Result<Json<Value>, HandlerError> {
        loop {
            let entries = progress.entries;
            let next = match progress.state {
                RunState::Ended => break,
                RunState::Running => {
                    let request = StepRequest { session: id.to_string(), entries };
                    match ctx.service_client::<SessionStepClient>().perform(Json(request)).call().await {
                        Ok(()) => self.look(ctx, id).await,
                        Err(error) => Err(error),
                    }
                }
                RunState::Waiting { expires_in_ms } => self.wait(ctx, id, entries, expires_in_ms).await,
            };
            progress = match next {
                Ok(progress) => progress,
                Err(error) if error.code() == CANCELLED => {
                    self.abandon(ctx, id, None).await?;
                    break;
                }
                // The session was removed, for example.
                Err(error) => {
                    ctx.clear(AWAKEABLE);
                    ctx.clear(TURN);
                    return Err(error.into());
                }
            };
        }
        ctx.clear(AWAKEABLE);
        ctx.clear(TURN);
        Ok(Json(self.worker.reply(id).await?))
    }

    /// Waits until somebody answered, or nobody did in time.
    async fn wait(
        &self,
        ctx: &ObjectContext<'_>,
        id: &SessionId,
        entries: u64,
        expires_in_ms: Option<u64>,
    ) -> Result<Progress, TerminalError> {
        let (awakeable, answered) = ctx.awakeable::<bool>();
        ctx.set(AWAKEABLE, awakeable);
        // Whoever answers from now on finds the awakeable, and whoever answered before left that in the log. The first look
        // is only there to know that the state is set: its result is in the journal after the state.
        self.look(ctx, id).await?;
        let progress = self.look(ctx, id).await?;
        if progress.is_past(entries) {
            return Ok(progress);
        }
        let Some(expires_in_ms) = expires_in_ms else {
            answered.await?;
            return self.look(ctx, id).await;
        };
        let expiry = ctx.sleep(Duration::from_millis(expires_in_ms));
        restate_sdk::select! {
            answered = answered => {
                answered?;
                self.look(ctx, id).await
            },
            expired = expiry => {
                expired?;
                let worker = Arc::clone(&self.worker);
                let id = id.clone();
                let expire = ctx.run(move || async move { Ok(Json(worker.expire(&id, entries).await?)) });
                expire.name(format!("expire {entries}")).await.map(|Json(progress)| progress)
            }
        }
    }

    async fn look(&self, ctx: &ObjectContext<'_>, id: &SessionId) -> Result<Progress, TerminalError> {
        let worker = Arc::clone(&self.worker);
        let id = id.clone();
        let look = ctx.run(move || async move { Ok(Json(worker.look(&id).await?)) });
        look.name("look").await.map(|Json(progress)| progress)
    }

    /// Ends the run after the turn was cancelled, or only the run of a request. The step that was under way may have done
    /// that.
    async fn abandon(&self, ctx: &ObjectContext<'_>, id: &SessionId, key: Option<String>) -> Result<(), TerminalError> {
        let worker = Arc::clone(&self.worker);
        let id = id.clone();
        let abandon = ctx.run(move || async move { Ok(Json(worker.abandon(&id, key.as_deref()).await?)) });
        abandon.name("abandon").await.map(|_| ())
    }
}

fn session_id(key: &str) -> Result<SessionId, Failure> {
    SessionId::parse(key).map_err(Failure::from)
}
