//! Sessions: conversations with an agent, turn by turn, optionally saved in a store and recorded to a file.

mod entry;
mod error;
mod recording;
mod log;

pub use entry::with_media;
pub use error::SessionError;
pub use patter_core::event::Playback;
pub use patter_core::session::{
    AgentSelection, Log, LogEntry, LogError, RunPath, Turn, WaitingCall, WaitingFor, replay, session_pattern,
};
pub(crate) use recording::create_private;
pub use recording::{Recorder, Recording, RecordingError};

use crate::drive::{Driver, JournalError, now_ms};
use crate::live::LiveProject;
use crate::store::{SessionId, Store, StoreError};
use crate::tool::CancellationToken;
use crate::trace::{SessionTracer, TraceParent, Tracer};
use log::{SessionLog, UnsavedSession};
use patter_core::compile::{ClientToolError, CompiledAgent};
use patter_core::message::attachment::{AttachmentContents, UserInput, attachments};
use patter_core::message::context::sent_messages;
use patter_core::message::conversation::{Conversation, Message, ToolOutcome, Usage};
use patter_core::provider::ModelRef;
use patter_core::run::{ClientAdditions, Limits, Run, RunInput, StartError};
use std::collections::HashSet;
use std::sync::Arc;

/// Configures the driver of a session: its listener, approver, model and rules.
type ConfigureDriver = Arc<dyn Fn(Driver) -> Driver + Send + Sync>;
/// Changes the limits of a run.
type ConfigureLimits = Arc<dyn Fn(&mut Limits) + Send + Sync>;

/// A conversation with an agent.
///
/// ```
/// use patter::live::LiveProject;
/// use patter::session::Session;
/// use patter::tool::CancellationToken;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("hello.gram");
/// # std::fs::write(&path, "[hi:Agent {instruction: 'Greet with `sayHello`.', model: 'demo'} | sayHello]").unwrap();
/// let project = LiveProject::open(&path).read().await.unwrap();
/// let mut session = Session::new(project.into());
/// let stop = CancellationToken::new();
/// let run = session.say("Hello! My name is Alice.", &stop).await.unwrap();
/// assert!(run.response().content.contains("Alice"));
/// session.say("And again!", &stop).await.unwrap();
/// assert_eq!(session.turns(), 2);
/// # }
/// ```
pub struct Session {
    project: Arc<LiveProject>,
    source: AgentSelection,
    configure_driver: ConfigureDriver,
    configure_limits: ConfigureLimits,
    log: Arc<SessionLog>,
    /// The model to use instead of the configured one.
    model: Option<ModelRef>,
    /// The agent to talk to, wherever in the project it is declared.
    agent: Option<String>,
    /// What the client adds to the agent in the next runs.
    client: Option<ClientAdditions>,
    /// What identifies the request for the next run.
    request: Option<String>,
    /// The current driver of the project, and the one configured from it.
    driver: Option<(Driver, Driver)>,
    tracer: Option<SessionTracer>,
    /// The log of a session that was opened with an unfinished run, for a tracer.
    unfinished: Vec<String>,
}

/// The answer to a call that waits for somebody.
#[derive(Debug, Clone, PartialEq)]
pub enum CallAnswer {
    /// The call may be made.
    Approve,
    /// The call may not be made; the model reads the reason.
    Refuse(String),
    /// The client made the call.
    Result(ToolOutcome),
}

impl CallAnswer {
    fn is_for_client(&self) -> bool {
        matches!(self, CallAnswer::Result(_))
    }
}

impl Session {
    /// Returns a new session that is not saved. By default it talks to the agent of the first file that no other agent
    /// calls.
    pub fn new(project: Arc<LiveProject>) -> Self {
        Self::with_log(project, SessionLog::default())
    }

    /// Returns a new session that is created in a store with its first message.
    pub fn create(project: Arc<LiveProject>, store: Arc<dyn Store>, id: SessionId) -> Self {
        Self::with_log(project, SessionLog::new(Some(UnsavedSession::new(store, id, None))))
    }

    /// Opens a session of a store to continue it, and claims it until it is dropped.
    pub async fn open(project: Arc<LiveProject>, store: Arc<dyn Store>, id: &SessionId) -> Result<Self, SessionError> {
        let claim = store.claim(id).await?;
        let stored = store.read(id).await?.entries;
        if stored.len() as u64 != claim.entries() {
            // The claim was lost in between.
            return Err(StoreError::Conflict { id: id.clone(), expected: claim.entries() }.into());
        }
        let entries = with_media(&*store, id, stored).await?;
        let log = Log::read(&entries)?;
        if log.redacted_at().is_some() {
            return Err(SessionError::Redacted(id.clone()));
        }
        tracing::debug!(session = %id, entries = entries.len(), turns = log.turns().len(), "session opened");
        let source = log.selection().cloned().unwrap_or_default();
        let unfinished = log.open_run().map_or_else(Vec::new, |_| entries);
        Ok(Self { source, unfinished, ..Self::with_log(project, SessionLog::continued(log, claim, store)) })
    }

    fn with_log(project: Arc<LiveProject>, log: SessionLog) -> Self {
        Self {
            project,
            source: AgentSelection::default(),
            configure_driver: Arc::new(|driver| driver),
            configure_limits: Arc::new(|_| {}),
            log: Arc::new(log),
            model: None,
            agent: None,
            client: None,
            request: None,
            driver: None,
            tracer: None,
            unfinished: Vec::new(),
        }
    }

    /// Sets the agent to talk to, and how it was named, which is saved.
    #[must_use]
    pub fn with_source(mut self, source: AgentSelection) -> Self {
        self.source = source;
        self
    }

    /// Sets the agent to talk to, wherever in the project it is declared. Otherwise it is one of the first file.
    #[must_use]
    pub fn with_agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// Sets a function that configures the driver: its listener, approver, model and rules.
    #[must_use]
    pub fn with_driver(mut self, configure: impl Fn(Driver) -> Driver + Send + Sync + 'static) -> Self {
        self.configure_driver = Arc::new(configure);
        self.driver = None;
        self
    }

    /// Sets a function that changes the limits of runs.
    #[must_use]
    pub fn with_limits(mut self, configure: impl Fn(&mut Limits) + Send + Sync + 'static) -> Self {
        self.configure_limits = Arc::new(configure);
        self
    }

    /// Exports what happens in the session as spans, if there is a tracer.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<Tracer>) -> Self {
        self.tracer = tracer.map(|tracer| {
            // Spans need an id, even if the session is not saved.
            let id = self.id().unwrap_or_else(|| SessionId::new(now_ms()));
            let session = tracer.session(id.as_str(), self.log.read(Log::run_count));
            if !self.unfinished.is_empty() {
                session.restore(std::mem::take(&mut self.unfinished));
            }
            session
        });
        self.driver = None;
        self
    }

    /// Sets the span of another program that the next runs are a part of: that of the request which starts them.
    pub fn set_trace_parent(&self, parent: Option<TraceParent>) {
        if let Some(tracer) = &self.tracer {
            tracer.set_parent(parent);
        }
    }

    /// Sets the model of all agents from now on. It is saved with the next message, so that a resumed run uses it too.
    pub fn set_model(&mut self, model: ModelRef) {
        self.source.model = Some(model.to_string());
        self.model = Some(model);
        self.driver = None;
    }

    /// Starts the conversation of a new session with messages from elsewhere. They are saved with the first message.
    pub fn import(&mut self, messages: Vec<Message>) -> Result<(), SessionError> {
        Ok(self.log.add_pending(LogEntry::Forked { from: String::new(), messages })?)
    }

    /// Sets what the client adds to the agent in runs that start from now on.
    pub fn set_client(&mut self, client: Option<ClientAdditions>) {
        self.client = client;
    }

    /// Sets what identifies the request for the next run, so that [`Log::has_request`] says whether it started.
    pub fn set_request(&mut self, key: Option<String>) {
        self.request = key;
    }

    /// Records everything from now on.
    pub fn record(&self, recorder: Recorder) {
        self.log.set_recorder(recorder.with_session(self.id().as_ref()));
    }

    /// Adds the contents of attachments, which the next messages may name. A content is saved with the message that names it.
    pub fn add_contents(&self, contents: &AttachmentContents) {
        self.log.add_contents(contents);
    }

    /// Sends a message and performs the run until it is done. Files that
    /// changed are used after [`LiveProject::accept`](crate::live::LiveProject::accept).
    ///
    /// If the future is dropped early, the run is unfinished: see [`Session::resume`] and [`Session::abandon`].
    pub async fn say(
        &mut self,
        input: impl Into<UserInput>,
        cancellation: &CancellationToken,
    ) -> Result<Run, SessionError> {
        let input = input.into();
        if input.is_empty() {
            return Err(StartError::EmptyInput.into());
        }
        if self.log.read(|log| log.open_run().is_some()) {
            return Err(SessionError::UnfinishedRun);
        }
        let (driver, compiled) = self.prepare(None)?;
        let compiled = extended(compiled, self.client.as_ref())?;
        // Fail before the session is created if the model cannot be reached, or does not read what is attached.
        let model = (self.project.models())(compiled.model())?;
        let conversation = self.conversation();
        let sent = sent_messages(&conversation);
        let attached: Vec<_> = attachments(&sent).into_iter().chain(&input.attachments).collect();
        model.check_attachments(compiled.model(), &attached).map_err(SessionError::Attachments)?;
        self.check_step_models(&driver, &compiled, &mut HashSet::new())?;
        let mut spec = compiled.spec().clone();
        (self.configure_limits)(&mut spec.limits);
        let title = input.title();
        let run = Run::start(spec, conversation.clone(), input, now_ms())?;
        if self.log.read(|log| log.selection() != Some(&self.source)) {
            self.log.add_pending(LogEntry::Opened { selection: self.source.clone() })?;
        }
        if let Some(key) = self.request.take() {
            self.log.add_pending(LogEntry::Requested { key })?;
        }
        self.log.describe(compiled.name(), &title);
        let run = self.log.while_claimed(driver.drive(&compiled, run, cancellation)).await?;
        match self.log.take_creation_error() {
            Some(error) => Err(error.into()),
            None => Ok(run),
        }
    }

    /// Checks that the models of all steps of a workflow can be reached.
    fn check_step_models(
        &self,
        driver: &Driver,
        workflow: &CompiledAgent,
        known: &mut HashSet<String>,
    ) -> Result<(), SessionError> {
        if !workflow.is_workflow() || !known.insert(workflow.name().to_owned()) {
            return Ok(());
        }
        for agent in workflow.delegates() {
            let compiled = driver.compile(agent)?;
            (self.project.models())(compiled.model())?;
            self.check_step_models(driver, &compiled, known)?;
        }
        Ok(())
    }

    /// Resumes the unfinished run. Completed steps are not repeated.
    pub async fn resume(&mut self, cancellation: &CancellationToken) -> Result<Run, SessionError> {
        // Whoever wanted to trace the run has read it.
        self.unfinished = Vec::new();
        let open_run = self.log.read(|log| log.open_run().cloned());
        let run = open_run.ok_or(SessionError::NoUnfinishedRun)?;
        let (driver, compiled) = self.prepare(Some(&run.spec().agent))?;
        let compiled = extended(compiled, run.spec().client.as_ref())?;
        (self.project.models())(compiled.model())?;
        let limited = cancellation.run_until_cancelled(self.limit(run)).await;
        let run = limited.unwrap_or_else(|| Err(JournalError::new("the run was stopped before it resumed").into()))?;
        Ok(self.log.while_claimed(driver.resume(&compiled, run, cancellation)).await?)
    }

    /// Applies the limits of this session to a run before it resumes. The time that the run already took does not count
    /// against a new time limit.
    async fn limit(&self, run: Run) -> Result<Run, SessionError> {
        let before = &run.spec().limits;
        let mut limits = before.clone();
        (self.configure_limits)(&mut limits);
        if limits == *before {
            return Ok(run);
        }
        if limits.deadline_ms != before.deadline_ms {
            limits.deadline_ms = limits.deadline_ms.map(|deadline| deadline.saturating_add(run.elapsed_ms()));
        }
        self.add(LogEntry::InputReceived { run: RunPath::new(), input: RunInput::LimitsChanged { limits } }).await?;
        Ok(self.log.read(|log| log.open_run().cloned()).unwrap_or(run))
    }

    /// Returns whether [`Session::answer`] would accept an answer.
    pub fn check_answer(&self, run: &RunPath, call_id: &str, answer: &CallAnswer) -> Result<(), SessionError> {
        let expected = answer.is_for_client();
        self.log.read(|log| {
            let calls = log.waiting_calls();
            let mut calls = calls.iter().filter(|waiting| (waiting.waiting_for == WaitingFor::Client) == expected);
            let call = calls.find(|waiting| waiting.run == *run && waiting.call.id == call_id);
            let call = call.ok_or_else(|| SessionError::NotWaiting(call_id.to_owned()))?;
            match answer {
                CallAnswer::Result(outcome) => call.check(outcome).map_err(SessionError::WrongAnswer),
                CallAnswer::Approve | CallAnswer::Refuse(_) => Ok(()),
            }
        })
    }

    /// Answers a call of the unfinished run that waits for somebody: see [`Log::waiting_calls`]. [`Session::resume`] continues
    /// the run.
    pub async fn answer(&mut self, run: &RunPath, call_id: &str, answer: CallAnswer) -> Result<(), SessionError> {
        self.check_answer(run, call_id, &answer)?;
        let call_id = call_id.to_owned();
        let at = now_ms();
        let input = match answer {
            CallAnswer::Approve => RunInput::CallApproved { call_id, at: Some(at) },
            CallAnswer::Refuse(reason) => RunInput::CallRefused { call_id, reason, at },
            CallAnswer::Result(outcome) => {
                let usage = Usage::default();
                RunInput::CallFinished { call_id, outcome, duration_ms: 0, usage, model_calls: 0, at }
            }
        };
        self.add(LogEntry::InputReceived { run: run.clone(), input }).await
    }

    /// Ends the unfinished run: calls without a result are cancelled.
    pub async fn abandon(&mut self) -> Result<(), SessionError> {
        if self.log.read(|log| log.open_run().is_none()) {
            return Err(SessionError::NoUnfinishedRun);
        }
        let input = RunInput::Cancelled { at: now_ms() };
        self.add(LogEntry::InputReceived { run: RunPath::new(), input }).await
    }

    /// Adds an entry about a run to the log, and exports the spans that end with it.
    async fn add(&self, entry: LogEntry) -> Result<(), SessionError> {
        let traced = self.tracer.as_ref().map(|tracer| (tracer, entry.clone()));
        self.log.add(entry).await?;
        if let Some((tracer, entry)) = traced
            && let LogEntry::InputReceived { run: path, .. } = &entry
        {
            self.log.read(|log| {
                let run = if path.is_empty() { log.open_run().or(log.last_run()) } else { log.child_run(path) };
                run.map(|run| tracer.record(&entry, run))
            });
        }
        Ok(())
    }

    /// Removes the last message of the user and everything after it from the conversation. Returns the message, or `None`
    /// if there is none.
    pub async fn undo(&mut self) -> Result<Option<String>, SessionError> {
        let last = self.log.read(|log| {
            if log.open_run().is_some() {
                return Err(SessionError::UnfinishedRun);
            }
            let is_user = |message: &Message| matches!(message, Message::User { .. });
            let last = log.turns().last().map(|turn| turn.begin);
            let last = last.or_else(|| log.conversation().iter().rposition(is_user));
            Ok(last.and_then(|last| match log.conversation().get(last) {
                Some(Message::User { text, .. }) => Some((last, text.clone())),
                _ => None,
            }))
        })?;
        let Some((messages, text)) = last else { return Ok(None) };
        self.log.add(LogEntry::Rewound { messages }).await?;
        Ok(Some(text))
    }

    /// Returns a new session that starts with the first messages of this one. With `save_to` it is created in a store with
    /// its first message.
    pub fn fork(&self, messages: usize, save_to: Option<(Arc<dyn Store>, SessionId)>) -> Result<Self, SessionError> {
        let conversation = self.conversation();
        let count = conversation.len();
        if messages > count {
            return Err(SessionError::NoMessage { number: messages, count });
        }
        let messages = conversation.range(0..messages).cloned().collect();
        let forked_from = self.id();
        let from = forked_from.as_ref().map(ToString::to_string).unwrap_or_default();
        let fork = self.log.fork(save_to.map(|(store, id)| UnsavedSession::new(store, id, forked_from)));
        fork.add_pending(LogEntry::Forked { from, messages })?;
        let fork = Self {
            source: self.source.clone(),
            configure_driver: Arc::clone(&self.configure_driver),
            configure_limits: Arc::clone(&self.configure_limits),
            model: self.model.clone(),
            agent: self.agent.clone(),
            client: self.client.clone(),
            ..Self::with_log(Arc::clone(&self.project), fork)
        };
        Ok(fork.with_tracer(self.tracer.as_ref().map(|tracer| tracer.tracer().clone())))
    }

    /// Returns why the session is no longer saved, if the store failed; the last entries are lost.
    pub fn save_error(&self) -> Option<JournalError> {
        self.log.save_error()
    }

    /// Waits for the step that is being saved, if there is one: that of a run whose future was dropped, for example. Fails
    /// if the session is no longer saved.
    pub async fn wait_until_saved(&self) -> Result<(), JournalError> {
        self.log.wait_until_saved().await
    }

    /// Returns the id of the session, if it is saved.
    pub fn id(&self) -> Option<SessionId> {
        self.log.id()
    }

    /// Returns the conversation.
    pub fn conversation(&self) -> Conversation {
        self.read_log(|log| log.conversation().clone())
    }

    /// Returns the number of completed turns.
    pub fn turns(&self) -> usize {
        self.read_log(|log| log.turns().len())
    }

    /// Calls a function with the log.
    pub fn read_log<T>(&self, read: impl FnOnce(&Log) -> T) -> T {
        self.log.read(read)
    }

    /// Compiles an agent of the project: the one named, or the agent of this session.
    pub fn prepare(&mut self, name: Option<&str>) -> Result<(Driver, CompiledAgent), SessionError> {
        let current = self.project.driver();
        let driver = match &self.driver {
            Some((base, driver)) if base.is_same(&current) => driver.clone(),
            _ => {
                let driver = (self.configure_driver)(current.clone()).with_journal(Arc::clone(&self.log) as _);
                let driver = driver.with_tracer(self.tracer.clone());
                let driver = match &self.model {
                    Some(model) => driver.with_model(model.clone()),
                    None => driver,
                };
                self.driver = Some((current, driver.clone()));
                driver
            }
        };
        let name = name.or(self.agent.as_deref());
        let compiled = match name {
            Some(name) => driver.compile_named(name),
            None => driver.compile_selected(&self.source.agent),
        };
        let not_found = || SessionError::AgentNotFound(name.unwrap_or_default().to_owned());
        Ok((driver, compiled.ok_or_else(not_found)??))
    }
}

/// Returns an agent with what a client adds.
fn extended(compiled: CompiledAgent, client: Option<&ClientAdditions>) -> Result<CompiledAgent, ClientToolError> {
    match client {
        Some(client) => compiled.with_client(client),
        None => Ok(compiled),
    }
}
