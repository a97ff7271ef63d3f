//! The agents of a project, and the turns that run.

mod driver;
mod error;
mod expiry;
mod joined;
mod pace;
mod request;
mod running;
mod schedule;
mod schedule_status;
mod start;
mod turn;
mod webhook;
mod work;
mod worker;

pub(crate) use driver::ConfigureDriver;
pub(crate) use error::{api_error, unknown_agent};
pub(crate) use joined::{RecentRequests, RequestKey, background_session};
pub(crate) use request::{Answer, Choice, Lifetime, SessionChoice, TurnRequest, WhenBusy};
pub use schedule_status::{LastTick, ScheduleStatus, schedule_statuses};
pub(crate) use start::read_segment;
pub(crate) use turn::{Follower, Turn, TurnDetails, TurnItem};

use driver::ConfiguredDrivers;

use crate::experiment::{ExperimentRunner, Experiments};
use crate::mcp::McpHandler;
use crate::metrics::Metrics;
use crate::settings::{ServeSettings, ToolAccess};
use crate::studio::{Logins, ProjectViews, TimelineCache};
use crate::token::{Access, Token};
use patter::drive::{Driver, now_ms};
use patter::live::{LiveProject, LiveProjectError};
use patter::project::ToolVariant;
use patter::session::Log;
use patter::store::{SessionId, SessionSummary, Store, StoreError, WorkerId};
use patter::tool::{CancellationToken, Executor};
use patter::trace::Tracer;
use patter_core::compile::CompiledAgent;
use patter_core::serve::{ApiError, ApiErrorKind};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, Semaphore};
use tokio_util::task::TaskTracker;

/// The agents of a project, and the turns that run.
pub(crate) struct Host {
    pub(crate) project: Arc<LiveProject>,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) settings: ServeSettings,
    pub(crate) metrics: Metrics,
    pub(crate) recent: RecentRequests,
    /// Who logged in to the studio.
    pub(crate) logins: Logins,
    pub(crate) timelines: TimelineCache,
    pub(crate) experiments: Experiments,
    /// The project as pages show it.
    pub(crate) views: ProjectViews,
    /// Cancelled when the server stops taking requests.
    pub(crate) draining: CancellationToken,
    /// The agents to serve; `None` for all.
    served: Option<Vec<String>>,
    /// The files that sessions are resumed with.
    files: Vec<String>,
    drivers: Arc<ConfiguredDrivers>,
    /// What the application adds to the MCP server.
    pub(crate) mcp_handler: Option<McpHandler>,
    tracer: Option<Tracer>,
    active: Mutex<HashMap<SessionId, Arc<Turn>>>,
    /// The name of this server in its fleet, once it is a part of one.
    worker: OnceLock<WorkerId>,
    /// How to cancel the turns that are work of the queue, by the number of the work.
    cancellations: Mutex<HashMap<u64, CancellationToken>>,
    /// Notified when a turn ends, so that another one can start.
    freed: Notify,
    /// Cancelled when turns that are work of the queue have to stop before their next step.
    handover: CancellationToken,
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
    /// Cancelled when turns have to stop.
    stop: CancellationToken,
}

impl Host {
    pub(crate) fn new(
        project: Arc<LiveProject>,
        store: Option<Arc<dyn Store>>,
        settings: ServeSettings,
        configure: ConfigureDriver,
        variants: BTreeMap<String, ToolVariant>,
    ) -> Self {
        let files = project.driver().project().files().iter().map(|file| absolute(&file.path)).collect();
        let permits = Arc::new(Semaphore::new(settings.limits.max_turns));
        Self {
            project,
            store,
            settings,
            metrics: Metrics::default(),
            recent: RecentRequests::default(),
            logins: Logins::default(),
            timelines: TimelineCache::default(),
            experiments: Experiments::default(),
            views: ProjectViews::default(),
            draining: CancellationToken::new(),
            served: None,
            files,
            drivers: Arc::new(ConfiguredDrivers::new(configure, variants)),
            mcp_handler: None,
            tracer: None,
            active: Mutex::default(),
            worker: OnceLock::new(),
            cancellations: Mutex::default(),
            freed: Notify::new(),
            handover: CancellationToken::new(),
            tasks: TaskTracker::new(),
            permits,
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn with_agents(mut self, agents: Option<Vec<String>>) -> Self {
        self.served = agents;
        self
    }

    pub(crate) fn with_mcp_handler(mut self, handler: Option<McpHandler>) -> Self {
        self.mcp_handler = handler;
        self
    }

    pub(crate) fn with_experiments(mut self, runner: Option<Arc<dyn ExperimentRunner>>) -> Self {
        self.experiments = Experiments::new(runner);
        self
    }

    pub(crate) fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }

    fn serves(&self, agent: &str) -> bool {
        self.served.as_ref().is_none_or(|served| served.iter().any(|known| known == agent))
    }

    /// Returns whether all agents of the project are served.
    pub(crate) fn serves_all(&self) -> bool {
        self.project.driver().project().agents().all(|(declaration, _)| self.serves(&declaration.name))
    }

    /// Returns the driver of the agents as they are now, with the rules of the server.
    pub(crate) fn driver(&self) -> Driver {
        self.driver_with(None)
    }

    /// Returns the names of the tools that a conversation may use instead of some of the project.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &str> {
        self.drivers.variants()
    }

    /// Returns the driver of the agents as they are now, with the tools of a variant.
    pub(crate) fn driver_with(&self, variant: Option<&str>) -> Driver {
        self.drivers.configured(self.project.driver(), variant)
    }

    /// Returns the token that a text is, if it is one.
    pub(crate) fn find_token(&self, text: &str) -> Option<&Token> {
        // All are compared, so that the time does not tell which one is similar.
        self.settings
            .tokens
            .iter()
            .fold(None, |found, token| if token.hash.matches(text) { Some(token) } else { found })
    }

    /// Returns the names of the agents, with the time of their files in seconds since 1970.
    pub(crate) fn agents(&self) -> Vec<(String, u64)> {
        let driver = self.project.driver();
        let project = driver.project();
        let agents = project.agents().filter_map(|(declaration, agent)| {
            let path = project.files().get(declaration.file).map(|file| file.path.as_str()).unwrap_or_default();
            Some((agent.name()?.into_owned(), modified(Path::new(path))))
        });
        agents.filter(|(name, _)| self.serves(name)).collect()
    }

    /// Compiles an agent that the sender may reach.
    pub(crate) fn compile_for(&self, access: &Access, agent: &str) -> Result<CompiledAgent, ApiError> {
        if access.may_reach(agent) { self.compile(agent) } else { Err(unknown_agent(agent)) }
    }

    /// Returns the driver of the project as it is on disk, and whether that differs from the one in use.
    pub(crate) fn driver_on_disk(&self) -> Result<(Driver, bool), LiveProjectError> {
        Ok(match self.project.changes()? {
            Some(changes) => (self.drivers.configured_once(changes.driver()), true),
            None => (self.drivers.configured(self.project.driver(), None), false),
        })
    }

    /// Compiles an agent.
    pub(crate) fn compile(&self, agent: &str) -> Result<CompiledAgent, ApiError> {
        let driver = self.driver();
        match driver.compile_named(agent).filter(|_| self.serves(agent)) {
            Some(compiled) => compiled.map_err(|error| ApiError::new(ApiErrorKind::Server, error.to_string())),
            None => Err(unknown_agent(agent)),
        }
    }

    /// Returns the executor of the tools that clients may call without an agent; `None` if they may not.
    pub(crate) fn tools(&self, access: &Access) -> Option<Executor> {
        if self.settings.tools == ToolAccess::ThroughAgents || !access.may_reach_all() {
            return None;
        }
        Some(self.driver().client_executor())
    }

    /// Starts work that the server waits for when it stops. It is dropped if it takes too long then.
    pub(crate) fn spawn_work(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), ApiError> {
        let permit = self.permit()?;
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            stop.run_until_cancelled(work).await;
            drop(permit);
        });
        Ok(())
    }

    /// Returns the turn of a session that is under way here.
    pub(crate) fn active_turn(&self, id: &SessionId) -> Option<Arc<Turn>> {
        self.active().get(id).cloned()
    }

    /// Finds the session of a request that was sent before a restart, by what its id ends with.
    pub(crate) async fn find_request(&self, key: &RequestKey) -> Option<SessionId> {
        const MINUTES: u64 = 10;
        const MAX_IDS: usize = 10_000;
        let store = self.store.as_ref()?;
        for minute in 0..=MINUTES {
            let at = now_ms().saturating_sub(minute * 60_000);
            // An id starts with the time: `20261116-151203-`.
            let prefix: String = SessionId::new(at).as_str().chars().take("20261116-1512".len()).collect();
            let ids = store.ids(&prefix, MAX_IDS).await.ok()?;
            if let Some(id) = ids.into_iter().find(|id| id.as_str().ends_with(key.as_str())) {
                return Some(id);
            }
        }
        None
    }

    /// Returns the metadata of a session; `None` if there is none. An experiment, or a session with an agent that the sender
    /// may not reach, does not exist for the sender. Everything that uses a session is checked here, whatever the protocol.
    pub(crate) async fn find_session(
        &self,
        access: &Access,
        id: &SessionId,
    ) -> Result<Option<SessionSummary>, ApiError> {
        let Some(store) = &self.store else { return Ok(None) };
        // The metadata alone, without entries.
        match store.read_from(id, u64::MAX).await {
            Ok(stored) if !stored.summary.is_experiment() && access.may_reach(&stored.summary.agent) => {
                Ok(Some(stored.summary))
            }
            Err(StoreError::NotFound { .. }) => Ok(None),
            Ok(_) => Err(ApiError::new(ApiErrorKind::NotFound, format!("there is no session `{id}`"))),
            Err(error) => Err(api_error(&error.into())),
        }
    }

    /// Reads a session with its log. The sender must have been checked.
    pub(crate) async fn read_session(&self, id: &SessionId) -> Result<(SessionSummary, Log), ApiError> {
        let stored = self.require_store()?.read(id).await.map_err(|error| api_error(&error.into()))?;
        let log = Log::read(&stored.entries).map_err(|error| api_error(&error.into()))?;
        Ok((stored.summary, log))
    }

    /// Returns the store, or an error if sessions are not stored.
    pub(crate) fn require_store(&self) -> Result<Arc<dyn Store>, ApiError> {
        let message = "this server stores no sessions";
        self.store.clone().ok_or_else(|| ApiError::new(ApiErrorKind::Invalid, message))
    }

    /// Stops: waits for the turns under way, and then suspends those that are left, so that they can be resumed.
    pub(crate) async fn drain(&self) {
        self.draining.cancel();
        self.tasks.close();
        if self.has_successor().await {
            self.handover.cancel();
        }
        let drained = tokio::time::timeout(self.settings.limits.drain_timeout, self.tasks.wait()).await;
        if drained.is_err() {
            tracing::warn!(turns = self.metrics.active(), "turns were suspended, because the server stops");
            self.stop.cancel();
            self.tasks.wait().await;
        }
    }

    fn cancellations(&self) -> MutexGuard<'_, HashMap<u64, CancellationToken>> {
        self.cancellations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn active(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Turn>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn absolute(path: &str) -> String {
    Path::new(path).canonicalize().map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn modified(path: &Path) -> u64 {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    modified.ok().and_then(since).map_or(0, |since| since.as_secs())
}
