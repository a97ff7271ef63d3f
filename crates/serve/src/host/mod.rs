//! The agents of a project, and the turns that run.

mod error;
mod joined;
mod turn;

pub(crate) use error::{api_error, unknown_agent};
pub(crate) use joined::{RecentRequests, RequestKey};
pub(crate) use turn::{Follower, Turn, TurnDetails, TurnItem};

use crate::mcp::McpHandler;
use crate::metrics::Metrics;
use crate::settings::{ServeSettings, ToolAccess};
use crate::token::Access;
use patter::drive::{ApprovalAnswer, Approver, Driver, now_ms};
use patter::live::LiveProject;
use patter::run::PendingCall;
use patter::session::{AgentSelection, CallAnswer, Log, Session, SessionError};
use patter::store::{SessionId, SessionState, SessionSummary, Store, StoreError};
use patter::tool::{BoxFuture, CancellationToken, Executor};
use patter::trace::Tracer;
use patter_core::compile::CompiledAgent;
use patter_core::message::conversation::{Message, Usage};
use patter_core::run::{ClientAdditions, Run};
use patter_core::serve::{ApiError, ApiErrorKind, Segment, TurnEnd, Waiting};
use patter_core::session::{RunPath, TraceParent};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// Configures the driver of all runs: rules, lock and model.
pub(crate) type ConfigureDriver = Arc<dyn Fn(Driver) -> Driver + Send + Sync>;

/// How long a request waits for a turn of its session to end before the session counts as busy.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// How long a message waits in the queue of a busy session.
const QUEUE_WAIT: Duration = Duration::from_secs(120);

/// The agents of a project, and the turns that run.
pub(crate) struct Host {
    pub(crate) project: Arc<LiveProject>,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) settings: ServeSettings,
    pub(crate) metrics: Metrics,
    pub(crate) recent: RecentRequests,
    /// Cancelled when the server stops taking requests.
    pub(crate) draining: CancellationToken,
    /// The agents to serve; `None` for all.
    served: Option<Vec<String>>,
    /// The files that sessions are resumed with.
    files: Vec<String>,
    drivers: Arc<ConfiguredDriver>,
    /// What the application adds to the MCP server.
    pub(crate) mcp_handler: Option<McpHandler>,
    tracer: Option<Tracer>,
    active: Mutex<HashMap<SessionId, Arc<Turn>>>,
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
    /// Cancelled when turns have to stop.
    stop: CancellationToken,
}

/// A turn to be started.
pub(crate) struct TurnRequest {
    pub(crate) agent: String,
    pub(crate) session: SessionChoice,
    /// The conversation before it, in a new session.
    pub(crate) history: Vec<Message>,
    pub(crate) client: Option<ClientAdditions>,
    pub(crate) input: String,
    pub(crate) lifetime: Lifetime,
    pub(crate) when_busy: WhenBusy,
    /// The span of the client that the turn is a part of.
    pub(crate) parent: Option<TraceParent>,
}

/// The session of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// A new session that is not stored.
    Unsaved,
    /// A new session.
    New(SessionId),
    /// A session that may exist.
    Named(SessionId),
    /// A session whose last segment has this number.
    After(SessionId, u32),
}

/// Whether a turn needs a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It is cancelled when its clients are gone.
    Attached,
    /// It continues without a client.
    Detached,
}

/// How a message to a session that is in use is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum WhenBusy {
    /// It is refused.
    #[default]
    Reject,
    /// It waits for its turn.
    Enqueue,
}

/// An answer to a call that waits.
pub(crate) struct Answer {
    pub(crate) run: RunPath,
    pub(crate) call_id: String,
    /// The hash of the call that the answer is about, if it is an approval.
    pub(crate) hash: Option<String>,
    pub(crate) answer: CallAnswer,
}

/// What a turn does.
enum Work {
    Say(String),
    /// Continues a run, with what is known of the segment that the turn is about.
    Resume(Box<Segment>),
}

/// The driver of all runs. It is configured once for all turns, because setting a model or a lock forgets the agents that
/// are compiled.
struct ConfiguredDriver {
    configure: ConfigureDriver,
    /// The driver of the project that was configured last, and the result.
    last: Mutex<Option<(Driver, Driver)>>,
}

impl ConfiguredDriver {
    fn configured(&self, driver: Driver) -> Driver {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((base, configured)) = last.as_ref()
            && base.is_same(&driver)
        {
            return configured.clone();
        }
        let configured = (self.configure)(driver.clone());
        *last = Some((driver, configured.clone()));
        configured
    }
}

/// Leaves all decisions to those who answer later.
struct LaterApprover;

impl Approver for LaterApprover {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Later })
    }
}

impl Host {
    pub(crate) fn new(
        project: Arc<LiveProject>,
        store: Option<Arc<dyn Store>>,
        settings: ServeSettings,
        configure: ConfigureDriver,
    ) -> Self {
        let files = project.driver().project().files().iter().map(|file| absolute(&file.path)).collect();
        let permits = Arc::new(Semaphore::new(settings.limits.max_turns));
        Self {
            project,
            store,
            settings,
            metrics: Metrics::default(),
            recent: RecentRequests::default(),
            draining: CancellationToken::new(),
            served: None,
            files,
            drivers: Arc::new(ConfiguredDriver { configure, last: Mutex::default() }),
            mcp_handler: None,
            tracer: None,
            active: Mutex::default(),
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

    pub(crate) fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer;
        self
    }

    fn serves(&self, agent: &str) -> bool {
        self.served.as_ref().is_none_or(|served| served.iter().any(|known| known == agent))
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

    /// Compiles an agent.
    pub(crate) fn compile(&self, agent: &str) -> Result<CompiledAgent, ApiError> {
        let driver = self.drivers.configured(self.project.driver());
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
        Some(self.drivers.configured(self.project.driver()).client_executor())
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

    /// Starts a turn.
    pub(crate) async fn start(self: &Arc<Self>, access: &Access, request: TurnRequest) -> Result<Follower, ApiError> {
        let permit = self.permit()?;
        let TurnRequest { agent, session, history, client, input, lifetime, when_busy, parent } = request;
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
        if !history.is_empty() {
            session.import(history).map_err(|error| api_error(&error))?;
        }
        session.set_trace_parent(parent);
        session.set_client(client.clone());
        let number = session.read_log(Log::segments) + 1;
        let about = TurnDetails { number, agent: agent.clone(), client, created_ms: now_ms() };
        Ok(self.spawn(session, about, Work::Say(input), lifetime, permit).follow())
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
            let message = match call {
                None => format!("no call `{}` waits in the session `{id}`", answer.call_id),
                Some(call) if answer.hash.as_ref().is_some_and(|hash| *hash != call.hash) => {
                    "the answer is about another call: `hash` does not match".to_owned()
                }
                Some(_) => continue,
            };
            return Err(ApiError::new(ApiErrorKind::Busy, message));
        }
        for Answer { run, call_id, answer, .. } in answers {
            session.answer(&run, &call_id, answer).await.map_err(|error| api_error(&error))?;
        }
        let about = session.read_log(open_run_details);
        let usage_before = session.read_log(open_run_usage);
        let work = Work::Resume(Box::new(Segment { usage_before, ..Segment::default() }));
        Ok(self.spawn(session, about, work, lifetime, permit).follow())
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
        Ok(self.spawn(session, about, Work::Resume(Box::new(segment)), lifetime, permit).follow())
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

    /// Cancels the run of a session, whether it is under way or waits.
    pub(crate) async fn cancel(&self, access: &Access, id: &SessionId) -> Result<(), ApiError> {
        self.find_session(access, id).await?;
        if let Some(turn) = self.active_turn(id) {
            turn.cancellation.cancel();
            turn.ended().await;
            return Ok(());
        }
        let mut session = self.open(id).await.map_err(|error| api_error(&error))?;
        session.abandon().await.map_err(|error| api_error(&error))
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

    /// Returns the store, or an error if sessions are not stored.
    pub(crate) fn require_store(&self) -> Result<Arc<dyn Store>, ApiError> {
        let message = "this server stores no sessions";
        self.store.clone().ok_or_else(|| ApiError::new(ApiErrorKind::Invalid, message))
    }

    /// Stops: waits for the turns under way, and then suspends those that are left, so that they can be resumed.
    pub(crate) async fn drain(&self) {
        self.draining.cancel();
        self.tasks.close();
        let drained = tokio::time::timeout(self.settings.limits.drain_timeout, self.tasks.wait()).await;
        if drained.is_err() {
            tracing::warn!(turns = self.metrics.active(), "turns were suspended, because the server stops");
            self.stop.cancel();
            self.tasks.wait().await;
        }
    }

    /// Refuses calls whose approval expired. Runs until the server stops.
    pub(crate) async fn expire_approvals(self: Arc<Self>) {
        const MAX_SESSIONS: usize = 1000;
        let Some(store) = self.store.clone() else { return };
        while self
            .draining
            .run_until_cancelled(tokio::time::sleep(self.settings.limits.expiry_interval))
            .await
            .is_some()
        {
            let waiting = store.list_in_state(Some(SessionState::Waiting), MAX_SESSIONS).await.unwrap_or_default();
            let expiry = patter::text::milliseconds(self.settings.approval_expiry);
            let is_expired = |changed_ms: u64| now_ms().saturating_sub(changed_ms) > expiry;
            for summary in waiting.into_iter().filter(|summary| is_expired(summary.changed_ms)) {
                if let Err(error) = self.refuse_expired(&summary.id).await {
                    tracing::debug!(session = %summary.id, %error, "cannot refuse expired approvals");
                }
            }
        }
    }

    async fn refuse_expired(self: &Arc<Self>, id: &SessionId) -> Result<(), ApiError> {
        let stored = self.require_store()?.read(id).await.map_err(|error| api_error(&error.into()))?;
        let log = Log::read(&stored.entries).map_err(|error| api_error(&error.into()))?;
        let refuse = |call: Waiting| Answer {
            answer: CallAnswer::Refuse("nobody approved the call in time".to_owned()),
            hash: Some(call.hash),
            run: call.run,
            call_id: call.call_id,
        };
        let answers: Vec<_> =
            Waiting::all(&log).into_iter().filter(|call| call.because.is_some()).map(refuse).collect();
        if !answers.is_empty() {
            self.answer(&Access::default(), id, answers, Lifetime::Detached).await?;
        }
        Ok(())
    }

    async fn open(&self, id: &SessionId) -> Result<Session, SessionError> {
        let missing = || SessionError::Store(StoreError::NotFound { text: id.to_string(), nearest: None });
        let store = self.store.clone().ok_or_else(missing)?;
        Session::open(Arc::clone(&self.project), store, id).await.map(|session| self.traced(session))
    }

    fn create(&self, store: &Arc<dyn Store>, id: SessionId) -> Session {
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

    fn permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        if self.draining.is_cancelled() {
            return Err(ApiError::new(ApiErrorKind::Unavailable, "the server is stopping"));
        }
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.map_err(|_| ApiError::new(ApiErrorKind::TooMany, "too many turns are under way"))
    }

    fn spawn(
        self: &Arc<Self>,
        session: Session,
        about: TurnDetails,
        work: Work,
        lifetime: Lifetime,
        permit: OwnedSemaphorePermit,
    ) -> Arc<Turn> {
        let grace = match lifetime {
            Lifetime::Attached => Some(self.settings.limits.disconnect_grace),
            Lifetime::Detached => None,
        };
        let source = self.selection(&about.agent);
        let agent = about.agent.clone();
        let turn = Arc::new(Turn::new(session.id(), about, CancellationToken::new(), grace));
        if let Work::Resume(segment) = &work {
            segment.events.iter().for_each(|event| turn.push(event));
        }
        if let Some(id) = session.id() {
            self.active().insert(id, Arc::clone(&turn));
        }
        let drivers = Arc::clone(&self.drivers);
        let listening = Arc::clone(&turn);
        let session = session.with_source(source).with_agent(&agent).with_driver(move |driver| {
            let turn = Arc::clone(&listening);
            drivers.configured(driver).with_approver(LaterApprover).with_listener(move |event| turn.push(event))
        });
        self.metrics.started();
        let running = RunningTurn { host: Arc::clone(self), turn: Arc::clone(&turn), start: Instant::now() };
        self.tasks.spawn(running.run(session, work, permit));
        turn
    }

    /// Returns how an agent is found when its session is resumed elsewhere: its file comes first.
    fn selection(&self, agent: &str) -> AgentSelection {
        let driver = self.project.driver();
        let project = driver.project();
        let is_agent = |declared: &patter_core::declare::Agent| declared.name().is_some_and(|name| name == agent);
        let declared = project.agents().find(|(_, declared)| is_agent(declared));
        let own = declared.and_then(|(declaration, _)| self.files.get(declaration.file));
        let others = self.files.iter().filter(|file| Some(*file) != own);
        let files = own.into_iter().chain(others).cloned().collect();
        AgentSelection { files, agent: Some(agent.to_owned()), model: None }
    }

    fn active(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Turn>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A turn that runs. However it ends, its clients learn about it.
struct RunningTurn {
    host: Arc<Host>,
    turn: Arc<Turn>,
    start: Instant,
}

impl RunningTurn {
    async fn run(self, mut session: Session, work: Work, permit: OwnedSemaphorePermit) {
        let turn = Arc::clone(&self.turn);
        let stop = self.host.stop.clone();
        let usage_before = match &work {
            Work::Say(_) => Usage::default(),
            Work::Resume(segment) => segment.usage_before,
        };
        let performed = async {
            match &work {
                Work::Say(text) => session.say(text, &turn.cancellation).await,
                Work::Resume(_) => session.resume(&turn.cancellation).await,
            }
        };
        // A turn that is stopped with the server is unfinished, and can be resumed.
        let end = match stop.run_until_cancelled(performed).await {
            Some(Ok(run)) => Ok(session.read_log(|log| TurnEnd::new(&run, log)).since(usage_before)),
            Some(Err(error)) => Err(api_error(&error)),
            None => {
                let _ = session.wait_until_saved().await;
                Err(ApiError::new(ApiErrorKind::Unavailable, "the server stopped; the run can be resumed"))
            }
        };
        // The next request may follow at once, so the session is free before this one ends.
        drop(session);
        self.finish(end);
        drop(permit);
    }

    fn finish(&self, end: Result<TurnEnd, ApiError>) {
        if let Some(id) = &self.turn.session {
            self.host.active().remove(id);
        }
        self.host.metrics.ended(end.as_ref().ok(), self.start.elapsed());
        self.turn.end(end);
    }
}

impl Drop for RunningTurn {
    fn drop(&mut self) {
        if self.turn.ending().is_none() {
            self.finish(Err(ApiError::new(ApiErrorKind::Server, "the turn broke off")));
        }
    }
}

/// Returns what the turn is about that continues the open run.
fn open_run_details(log: &Log) -> TurnDetails {
    let number = log.segments() + u32::from(log.is_suspended());
    let spec = log.open_run().map(Run::spec);
    TurnDetails {
        number,
        agent: spec.map(|spec| spec.agent.clone()).unwrap_or_default(),
        client: spec.and_then(|spec| spec.client.clone()),
        created_ms: now_ms(),
    }
}

fn open_run_usage(log: &Log) -> Usage {
    log.open_run().map(Run::usage).unwrap_or_default()
}

/// Reads a segment of a session.
pub(crate) fn read_segment(entries: &[String], number: u32) -> Result<Option<Segment>, ApiError> {
    Segment::read(entries, number).map_err(|error| ApiError::new(ApiErrorKind::Server, error.to_string()))
}

fn absolute(path: &str) -> String {
    Path::new(path).canonicalize().map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

fn modified(path: &Path) -> u64 {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = |time: SystemTime| time.duration_since(UNIX_EPOCH).ok();
    modified.ok().and_then(since).map_or(0, |since| since.as_secs())
}
