//! Experiments that people start from the studio.

use patter::store::SessionId;
use patter::tool::{BoxFuture, CancellationToken};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How many experiments run at a time.
const MAX_RUNNING: usize = 4;
/// How many failures are remembered.
const MAX_FAILED: usize = 100;
/// How long an experiment may take until it is stored: its servers start before.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// An experiment to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExperimentRequest {
    /// The file with the agent.
    pub file: PathBuf,
    /// The name of the agent.
    pub agent: String,
    /// The files with the cases.
    pub cases: Vec<PathBuf>,
    /// The arms to compare, as `patter ab` takes them: `NAME=WHAT`. Without any, the agent is evaluated.
    pub arms: Vec<String>,
    /// The number of runs per case.
    pub repeats: u32,
    /// Whether to stop as soon as the result is clear.
    pub stops_early: bool,
    /// What was asked for, to store with the experiment.
    pub asked: Json,
    /// The interrupted experiment to resume.
    pub resumed: Option<SessionId>,
}

/// Runs experiments for a server.
pub trait ExperimentRunner: Send + Sync {
    /// Runs an experiment, and returns once it has ended. Its id is sent as soon as it is in the store of the server. When
    /// `stop` is cancelled, it ends soon, and can be resumed.
    fn run(
        &self,
        request: ExperimentRequest,
        started: oneshot::Sender<SessionId>,
        stop: CancellationToken,
    ) -> BoxFuture<'_, Result<(), String>>;
}

/// The experiments that this server runs.
#[derive(Default)]
pub(crate) struct Experiments {
    runner: Option<Arc<dyn ExperimentRunner>>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    running: HashMap<SessionId, CancellationToken>,
    /// Why experiments ended early.
    failed: HashMap<SessionId, String>,
}

impl Experiments {
    pub(crate) fn new(runner: Option<Arc<dyn ExperimentRunner>>) -> Self {
        Self { runner, known: Arc::default() }
    }

    /// Returns whether experiments can be started.
    pub(crate) fn can_start(&self) -> bool {
        self.runner.is_some()
    }

    /// Returns whether this server runs an experiment.
    pub(crate) fn is_running(&self, id: &SessionId) -> bool {
        self.known().running.contains_key(id)
    }

    /// Returns why an experiment ended early.
    pub(crate) fn failure(&self, id: &SessionId) -> Option<String> {
        self.known().failed.get(id).cloned()
    }

    /// Stops an experiment, if this server runs it.
    pub(crate) fn stop(&self, id: &SessionId) -> bool {
        let known = self.known();
        let token = known.running.get(id);
        token.inspect(|token| token.cancel()).is_some()
    }

    /// Starts an experiment, and returns its id once it is stored. It stops when `stop` is cancelled.
    pub(crate) async fn start(
        &self,
        request: ExperimentRequest,
        stop: CancellationToken,
        spawn: impl FnOnce(BoxFuture<'static, ()>) -> Result<(), ApiError>,
    ) -> Result<SessionId, ApiError> {
        let unavailable = || ApiError::new(ApiErrorKind::Invalid, "this server starts no experiments");
        let runner = Arc::clone(self.runner.as_ref().ok_or_else(unavailable)?);
        if self.known().running.len() >= MAX_RUNNING {
            let message = format!("{MAX_RUNNING} experiments are running; wait until one has ended");
            return Err(ApiError::new(ApiErrorKind::TooMany, message));
        }
        let known = Arc::clone(&self.known);
        let (started, is_stored) = oneshot::channel();
        let (report, id) = oneshot::channel();
        spawn(Box::pin(async move {
            let running = runner.run(request, started, stop.clone());
            tokio::pin!(running);
            let stored = tokio::select! {
                biased;
                stored = tokio::time::timeout(START_TIMEOUT, is_stored) => stored,
                ended = &mut running => {
                    let _ = report.send(Err(failure_to_start(ended)));
                    return;
                }
            };
            let id = match stored {
                Ok(Ok(id)) => id,
                // It closed what it prints, so it is about to end.
                Ok(Err(_)) => {
                    let _ = report.send(Err(failure_to_start(running.await)));
                    return;
                }
                Err(_) => {
                    stop.cancel();
                    let _ = report.send(Err("the experiment did not start in time".to_owned()));
                    let _ = running.await;
                    return;
                }
            };
            lock(&known).running.insert(id.clone(), stop);
            let _ = report.send(Ok(id.clone()));
            let ended = running.await;
            lock(&known).end(&id, ended);
        }))?;
        let failed = |message: String| ApiError::new(ApiErrorKind::Invalid, message);
        id.await.unwrap_or_else(|_| Err("the server stops".to_owned())).map_err(failed)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

fn failure_to_start(ended: Result<(), String>) -> String {
    ended.err().unwrap_or_else(|| "the experiment ended before it was stored".to_owned())
}

impl Known {
    fn end(&mut self, id: &SessionId, ended: Result<(), String>) {
        self.running.remove(id);
        if self.failed.len() >= MAX_FAILED {
            self.failed.clear();
        }
        match ended {
            Ok(()) => drop(self.failed.remove(id)),
            Err(message) => drop(self.failed.insert(id.clone(), message)),
        }
    }
}

fn lock(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
