//! Conversations with an agent, turn after turn: kept in a store, if there is one, and recorded, if that is wanted.

mod log;
mod playback;
mod recording;

pub use patter_core::session::{Entry, Log, LogError, RunPath, Source, Turn, replay};
pub use playback::Playback;
pub use recording::{Recorder, Recording, RecordingError};

use crate::agent::{CompileError, CompiledAgent};
use crate::drive::{Driver, JournalError, now};
use crate::live::{LiveProject, LiveProjectError};
use crate::model::ModelError;
use crate::store::{NewSession, SessionId, Store, StoreError};
use crate::tool::CancellationToken;
use log::SessionLog;
use patter_core::declare::project::ChoiceError;
use patter_core::message::conversation::Message;
use patter_core::run::{Limits, Run, RunInput, StartError};
use std::sync::Arc;
use thiserror::Error;

/// What makes a driver fit for a session: its listener, approver, model and rules.
type Fitting = Arc<dyn Fn(Driver) -> Driver + Send + Sync>;
/// What changes how far a run may go.
type Limiting = Arc<dyn Fn(&mut Limits) + Send + Sync>;

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
/// let agents = LiveProject::open(&path).read().await.unwrap();
/// let mut session = Session::new(agents.into());
/// let stop = CancellationToken::new();
/// let run = session.say("Hello! My name is Alice.", &stop).await.unwrap();
/// assert!(run.response().content.contains("Alice"));
/// session.say("And again!", &stop).await.unwrap();
/// assert_eq!(session.turns(), 2);
/// # }
/// ```
pub struct Session {
    agents: Arc<LiveProject>,
    source: Source,
    fitting: Fitting,
    limiting: Limiting,
    kept: Arc<SessionLog>,
    /// Where it is kept from its first word on.
    keeping: Option<UnsavedSession>,
    /// The driver of the agents as they were last, and the one that was made of it.
    fitted: Option<(Driver, Driver)>,
}

/// A session that nothing was said in yet.
struct UnsavedSession {
    store: Arc<dyn Store>,
    id: SessionId,
    forked_from: Option<SessionId>,
}

/// Why a session cannot go on.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The agents cannot be read.
    #[error(transparent)]
    Agents(#[from] LiveProjectError),
    /// It is not clear which agent is meant.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The agent is not ready to run.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The model cannot be called.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What was said cannot be answered.
    #[error(transparent)]
    Start(#[from] StartError),
    /// There is a run that has not ended.
    #[error("the last run has not ended")]
    Unfinished,
    /// There is none.
    #[error("there is nothing to go on with: the last run has ended")]
    Finished,
    /// There is no such agent any more.
    #[error("there is no agent `{0}` any more")]
    Gone(String),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The log is damaged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// What happens cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no such message.
    #[error("there is no message {number}: the conversation has {count}")]
    NoMessage {
        /// Which.
        number: usize,
        /// How many there are.
        count: usize,
    },
}

impl SessionError {
    /// Returns the name of the kind of error: `ValidationError`, `ToolError`, `ConfigurationError` or `StoreError`.
    pub const fn name(&self) -> &'static str {
        match self {
            SessionError::Start(error) => error.name(),
            SessionError::Compile(_) | SessionError::Choice(_) | SessionError::Gone(_) => "ToolError",
            SessionError::Agents(_) | SessionError::Model(_) => "ConfigurationError",
            SessionError::Unfinished | SessionError::Finished | SessionError::NoMessage { .. } => "ValidationError",
            SessionError::Store(_) | SessionError::Log(_) | SessionError::Journal(_) => "StoreError",
        }
    }
}

impl Session {
    /// Returns a new conversation that is not kept, with the agent of the first file that no other calls.
    pub fn new(agents: Arc<LiveProject>) -> Self {
        Self::of(agents, SessionLog::default(), None)
    }

    /// Returns a new conversation that is kept in a store once something is said.
    pub fn keep(agents: Arc<LiveProject>, store: Arc<dyn Store>, id: SessionId) -> Self {
        Self::of(agents, SessionLog::default(), Some(UnsavedSession { store, id, forked_from: None }))
    }

    /// Goes on with a conversation of a store. Nobody else can until this is dropped.
    pub async fn open(agents: Arc<LiveProject>, store: Arc<dyn Store>, id: &SessionId) -> Result<Self, SessionError> {
        let claim = store.claim(id).await?;
        let stored = store.read(id).await?;
        let log = Log::read(&stored.entries)?;
        let source = log.source().cloned().unwrap_or_default();
        Ok(Self { source, ..Self::of(agents, SessionLog::new(log, Some(claim)), None) })
    }

    fn of(agents: Arc<LiveProject>, kept: SessionLog, keeping: Option<UnsavedSession>) -> Self {
        Self {
            agents,
            source: Source::default(),
            fitting: Arc::new(|driver| driver),
            limiting: Arc::new(|_| {}),
            kept: Arc::new(kept),
            keeping,
            fitted: None,
        }
    }

    /// Sets which agent it is held with, and how that was named, to be kept.
    #[must_use]
    pub fn with_source(mut self, source: Source) -> Self {
        self.source = source;
        self
    }

    /// Sets what makes a driver fit for it: its listener, approver, model and rules.
    #[must_use]
    pub fn with_driver(mut self, fitting: impl Fn(Driver) -> Driver + Send + Sync + 'static) -> Self {
        (self.fitting, self.fitted) = (Arc::new(fitting), None);
        self
    }

    /// Sets what changes how far its runs may go.
    #[must_use]
    pub fn with_limits(mut self, limiting: impl Fn(&mut Limits) + Send + Sync + 'static) -> Self {
        self.limiting = Arc::new(limiting);
        self
    }

    /// Records what happens from now on.
    pub fn record(&self, recorder: Recorder) {
        self.kept.record(recorder.of(self.id().as_ref()));
    }

    /// Says something, and performs the run until it is done. An agent whose file changed is read again first.
    ///
    /// If this is dropped before its end, the run has not ended: see [`Session::resume`] and [`Session::abandon`].
    pub async fn say(&mut self, text: &str, cancellation: &CancellationToken) -> Result<Run, SessionError> {
        if self.kept.log().run().is_some() {
            return Err(SessionError::Unfinished);
        }
        let (driver, compiled) = self.ready(None)?;
        (self.agents.models())(compiled.model())?;
        let mut spec = compiled.spec().clone();
        (self.limiting)(&mut spec.limits);
        let conversation = self.kept.log().conversation().to_vec();
        let run = Run::start(spec, conversation, text, now())?;
        self.begin_keeping(compiled.name(), text).await?;
        Ok(driver.drive(&compiled, run, cancellation).await)
    }

    /// Goes on with the run that has not ended, as the program did before it. What has finished is not done again.
    pub async fn resume(&mut self, cancellation: &CancellationToken) -> Result<Run, SessionError> {
        let Some(run) = self.kept.log().run().cloned() else { return Err(SessionError::Finished) };
        let (driver, compiled) = self.ready(Some(&run.spec().agent))?;
        (self.agents.models())(compiled.model())?;
        let run = self.limited(run).await?;
        Ok(driver.resume(&compiled, run, cancellation).await)
    }

    /// Holds a run that goes on to the limits of this session. The time that it took already does not count against a new
    /// limit of time.
    async fn limited(&self, run: Run) -> Result<Run, SessionError> {
        let before = &run.spec().limits;
        let mut limits = before.clone();
        (self.limiting)(&mut limits);
        if limits == *before {
            return Ok(run);
        }
        if limits.deadline_ms != before.deadline_ms {
            limits.deadline_ms = limits.deadline_ms.map(|deadline| deadline.saturating_add(run.elapsed_ms()));
        }
        self.kept.add(Entry::Input { run: RunPath::new(), input: RunInput::Limited { limits } }).await?;
        Ok(self.kept.log().run().cloned().unwrap_or(run))
    }

    /// Ends the run that has not ended: calls that have no result are cancelled.
    pub async fn abandon(&mut self) -> Result<(), SessionError> {
        if self.kept.log().run().is_none() {
            return Err(SessionError::Finished);
        }
        Ok(self.kept.add(Entry::Input { run: RunPath::new(), input: RunInput::Cancelled { at: now() } }).await?)
    }

    /// Takes back what was said last, and all that came of it in the conversation. Returns what it was; nothing if there
    /// is nothing to take back.
    pub async fn undo(&mut self) -> Result<Option<String>, SessionError> {
        let (messages, said) = {
            let log = self.kept.log();
            if log.run().is_some() {
                return Err(SessionError::Unfinished);
            }
            let is_said = |message: &Message| matches!(message, Message::User { .. });
            let last = log.turns().last().map(|turn| turn.begin);
            let Some(last) = last.or_else(|| log.conversation().iter().rposition(is_said)) else { return Ok(None) };
            match log.conversation().get(last) {
                Some(Message::User { text }) => (last, text.clone()),
                _ => return Ok(None),
            }
        };
        self.kept.add(Entry::Rewound { messages }).await?;
        Ok(Some(said))
    }

    /// Returns a new conversation that begins with the first messages of this one. It is kept where it is told to be,
    /// once something is said.
    pub fn fork(&self, messages: usize, keeping: Option<(Arc<dyn Store>, SessionId)>) -> Result<Self, SessionError> {
        let (log, from) = (self.kept.log(), self.id());
        let kept = SessionLog::default();
        let taken = log.conversation().get(..messages);
        let count = log.conversation().len();
        let taken = taken.ok_or(SessionError::NoMessage { number: messages, count })?.to_vec();
        let name = from.as_ref().map(ToString::to_string).unwrap_or_default();
        kept.open(Entry::Forked { from: name, messages: taken })?;
        let keeping = keeping.map(|(store, id)| UnsavedSession { store, id, forked_from: from });
        let (source, fitting, limiting) = (self.source.clone(), Arc::clone(&self.fitting), Arc::clone(&self.limiting));
        Ok(Self { source, fitting, limiting, ..Self::of(Arc::clone(&self.agents), kept, keeping) })
    }

    /// Returns why nothing more is kept, if that is so: the store failed, and what happened last is not there.
    pub async fn broken(&self) -> Option<JournalError> {
        self.kept.broken().await
    }

    /// Returns which session it is, if it is kept.
    pub fn id(&self) -> Option<SessionId> {
        self.keeping.as_ref().map(|keeping| keeping.id.clone()).or_else(|| self.kept.id())
    }

    /// Returns the conversation.
    pub fn conversation(&self) -> Vec<Message> {
        self.kept.log().conversation().to_vec()
    }

    /// Returns how many runs ended.
    pub fn turns(&self) -> usize {
        self.kept.log().turns().len()
    }

    /// Looks at the log.
    pub fn with_log<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.kept.log())
    }

    /// Makes the agent ready, as it is now: the one of a name, or the one of this session.
    pub fn ready(&mut self, name: Option<&str>) -> Result<(Driver, CompiledAgent), SessionError> {
        let current = self.agents.driver()?;
        let driver = match &self.fitted {
            Some((made_of, driver)) if made_of.is_same(&current) => driver.clone(),
            _ => {
                let driver = (self.fitting)(current.clone()).with_journal(Arc::clone(&self.kept) as _);
                self.fitted = Some((current, driver.clone()));
                driver
            }
        };
        let name = match name {
            Some(name) => name.to_owned(),
            None => {
                let agent = driver.project().main_agent(self.source.agent.as_deref())?;
                agent.name().unwrap_or_default().into_owned()
            }
        };
        let compiled = driver.ready(&name).ok_or(SessionError::Gone(name))??;
        Ok((driver, compiled))
    }

    /// Makes the session in the store with the first word, and notes what it is opened with.
    async fn begin_keeping(&mut self, agent: &str, text: &str) -> Result<(), SessionError> {
        if self.kept.log().source() != Some(&self.source) {
            self.kept.open(Entry::Opened { source: self.source.clone() })?;
        }
        let Some(UnsavedSession { store, id, forked_from }) = &self.keeping else { return Ok(()) };
        let mut new = NewSession::new(id.clone(), agent, text);
        new.forked_from = forked_from.clone();
        self.kept.claimed(store.create(new, now()).await?).await;
        self.keeping = None;
        Ok(())
    }
}
