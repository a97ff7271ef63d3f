//! The driver of a project's agents, and how it is configured.

use super::account::Account;
use super::approve::{Approver, RefusingApprover};
use super::budget::Budget;
use super::journal::Journal;
use super::listener::Listener;
use crate::model::ModelResolver;
use crate::project::ProjectLock;
use crate::tool::{CancellationToken, Executor, SharedState, Tool};
use crate::trace::SessionTracer;
use patter_core::compile::{CompileError, CompiledAgent, select_agent};
use patter_core::declare::Agent;
use patter_core::declare::project::Project;
use patter_core::declare::scope::AgentPath;
use patter_core::event::RunEvent;
use patter_core::library::{KnownTools, Library};
use patter_core::message::attachment::AttachmentContents;
use patter_core::name::FullName;
use patter_core::permission::{Permissions, Rule, UnusedRule};
use patter_core::provider::ModelRef;
use patter_core::provider::price::Prices;
use patter_core::serve::mcp::client_permissions;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Drives runs: calls models and tools, and asks for approval. Cheap to clone.
#[derive(Clone)]
pub struct Driver {
    pub(super) project: Arc<Project>,
    pub(super) library: Arc<Library<Tool>>,
    pub(super) models: ModelResolver,
    model: Option<ModelRef>,
    pub(super) rules: Vec<Rule>,
    pub(super) state: SharedState,
    pub(super) approver: Arc<dyn Approver>,
    pub(super) listener: Option<Listener>,
    pub(super) streamed: StreamedReplies,
    pub(super) journal: Option<Arc<dyn Journal>>,
    pub(super) tracer: Option<SessionTracer>,
    /// Cancelled when runs have to stop before their next step.
    pub(super) pause: Option<CancellationToken>,
    /// Whether runs stop after one step.
    pub(super) is_stepwise: bool,
    /// Contents of attachments that the journal does not have.
    pub(super) attachments: AttachmentContents,
    pub(super) prices: Prices,
    /// The account of the project, if it has a budget.
    pub(super) account: Option<Arc<Account>>,
    /// What agents must match to be compiled.
    lock: Option<Arc<ProjectLock>>,
    /// The agents compiled so far.
    compiled: Arc<Mutex<CompiledAgents>>,
}

/// Compiled agents, by what they were asked for. Finding an agent in the project takes longer than this.
#[derive(Default)]
struct CompiledAgents {
    by_path: HashMap<AgentPath, CompiledAgent>,
    by_name: HashMap<String, CompiledAgent>,
    /// By the name that the user selected, if any.
    by_selection: HashMap<Option<String>, CompiledAgent>,
}

/// Which replies a listener receives piece by piece. It receives the others when they are complete: then nobody has seen
/// a part of them, and a reply whose connection breaks can be requested again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamedReplies {
    /// All replies.
    #[default]
    All,
    /// The replies of the outermost run.
    Outermost,
    /// No replies.
    None,
}

/// How the driver comes by a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    New,
    /// The run was under way when a process ended.
    Resumed,
}

impl Driver {
    /// Returns a driver of the agents of a project, with the tools of a library.
    pub fn new(project: Arc<Project>, library: Arc<Library<Tool>>, models: ModelResolver) -> Self {
        Self {
            project,
            library,
            models,
            model: None,
            rules: Vec::new(),
            state: SharedState::default(),
            approver: Arc::new(RefusingApprover),
            listener: None,
            streamed: StreamedReplies::default(),
            journal: None,
            tracer: None,
            pause: None,
            is_stepwise: false,
            attachments: AttachmentContents::default(),
            prices: Prices::builtin(),
            account: None,
            lock: None,
            compiled: Arc::default(),
        }
    }

    /// Returns a driver of a changed project that is configured like this one.
    #[must_use]
    pub(crate) fn with_project(&self, project: Arc<Project>, library: Arc<Library<Tool>>) -> Self {
        Self { project, library, compiled: Arc::default(), ..self.clone() }
    }

    /// Sets the model, overriding those of the agents.
    #[must_use]
    pub fn with_model(mut self, model: ModelRef) -> Self {
        self.model = Some(model);
        self.compiled = Arc::default();
        self
    }

    /// Uses other tools. Agents that are compiled are forgotten.
    #[must_use]
    pub fn with_library(mut self, library: Arc<Library<Tool>>) -> Self {
        self.library = library;
        self.compiled = Arc::default();
        self
    }

    /// Replaces the resolver of models, for example to answer from a [`ReplayModel`](crate::model::ReplayModel).
    #[must_use]
    pub fn with_models(mut self, models: ModelResolver) -> Self {
        self.models = models;
        self
    }

    /// Adds rules to those of the agents.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Returns the added rules that are about nothing that the library or the project knows. They would protect nothing, so
    /// a caller should not run an agent with them.
    pub fn unused_rules(&self) -> Vec<UnusedRule> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let known = KnownTools::new(&self.project, &*self.library);
        self.rules.iter().filter_map(|rule| known.unused(rule)).collect()
    }

    /// Sets the state that tools share.
    #[must_use]
    pub fn with_state(mut self, state: SharedState) -> Self {
        self.state = state;
        self
    }

    /// Sets the approver of calls. By default every call that needs approval is refused.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Sets the listener that receives events.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets which replies the listener receives piece by piece. By default all are.
    #[must_use]
    pub fn with_streamed_replies(mut self, streamed: StreamedReplies) -> Self {
        self.streamed = streamed;
        self
    }

    /// Sets the journal that runs are saved to.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets the tracer that exports what happens in runs. A [`Session`](crate::session::Session) sets its own.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Option<SessionTracer>) -> Self {
        self.tracer = tracer;
        self
    }

    /// Stops runs before their next step once this token is cancelled. What is under way ends first, so nothing has to be
    /// repeated; the runs are unfinished, and can be resumed.
    #[must_use]
    pub fn with_pause(mut self, pause: CancellationToken) -> Self {
        self.pause = Some(pause);
        self
    }

    /// Stops runs after one step: a reply of the model, or the results of the calls that it requested, which are made at the
    /// same time. Called agents take one step, too. The runs are unfinished until somebody has resumed them often enough, in
    /// this process or in another.
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
    /// let mut session = Session::new(project.into()).with_driver(|driver| driver.with_single_steps());
    /// let stop = CancellationToken::new();
    /// let mut run = session.say("Hello! My name is Alice.", &stop).await.unwrap();
    /// let mut steps = 1;
    /// while run.outcome().is_none() {
    ///     run = session.resume(&stop).await.unwrap();
    ///     steps += 1;
    /// }
    /// assert_eq!(steps, 3, "a reply, the result of the call, and the answer");
    /// # }
    /// ```
    #[must_use]
    pub fn with_single_steps(mut self) -> Self {
        self.is_stepwise = true;
        self
    }

    /// Sets the contents of attachments. A [`Session`](crate::session::Session) keeps those of its own.
    #[must_use]
    pub fn with_attachments(mut self, attachments: AttachmentContents) -> Self {
        self.attachments = attachments;
        self
    }

    /// Sets the prices that limits of the cost apply to. By default they are the list prices.
    #[must_use]
    pub fn with_prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets what all runs together may spend per day. However many drivers of a process share a budget, at most one request
    /// exceeds it.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<Arc<Budget>>) -> Self {
        self.account = budget.map(Account::project);
        self
    }

    /// Refuses agents that are not as a lock records them, with their tools: when a run starts, when files changed since
    /// the last turn, and when an agent calls another one.
    #[must_use]
    pub fn with_lock(mut self, lock: Arc<ProjectLock>) -> Self {
        self.lock = Some(lock);
        self.compiled = Arc::default();
        self
    }

    /// Compiles an agent.
    pub fn compile(&self, agent: &Agent) -> Result<CompiledAgent, CompileError> {
        let compiled = CompiledAgent::new(agent, &self.project, &self.library, self.model.clone())?;
        if let Some(lock) = &self.lock {
            lock.check_agent(&compiled, &self.library)?;
        }
        Ok(compiled)
    }

    /// Compiles a top-level agent of the project by name, once: later calls return the same compiled agent. Returns `None`
    /// if there is no such agent.
    pub fn compile_named(&self, name: &str) -> Option<Result<CompiledAgent, CompileError>> {
        if let Some(compiled) = self.compiled().by_name.get(name) {
            return Some(Ok(compiled.clone()));
        }
        let compiled = self.compile_once(&self.project.find_agent(name)?);
        if let Ok(compiled) = &compiled {
            self.compiled().by_name.insert(name.to_owned(), compiled.clone());
        }
        Some(compiled)
    }

    /// Compiles the agent that [`select_agent`] selects, once. Returns `None` if it has no name.
    pub(crate) fn compile_selected(&self, selection: &Option<String>) -> Option<Result<CompiledAgent, CompileError>> {
        if let Some(compiled) = self.compiled().by_selection.get(selection) {
            return Some(Ok(compiled.clone()));
        }
        let agent = match select_agent(&self.project, selection.as_deref()) {
            Ok(agent) => agent,
            Err(error) => return Some(Err(error)),
        };
        let compiled = self.compile_named(&agent.name()?)?;
        if let Ok(compiled) = &compiled {
            self.compiled().by_selection.insert(selection.clone(), compiled.clone());
        }
        Some(compiled)
    }

    /// Compiles an agent that another one calls, by the name under which it is called, once. Returns `None` if it calls no
    /// agent by that name.
    pub fn compile_delegate(&self, caller: &CompiledAgent, name: &str) -> Option<Result<CompiledAgent, CompileError>> {
        Some(self.compile_once(caller.delegate(name)?))
    }

    fn compile_once(&self, agent: &Agent) -> Result<CompiledAgent, CompileError> {
        let path = agent.path();
        if let Some(compiled) = self.compiled().by_path.get(&path) {
            return Ok(compiled.clone());
        }
        let compiled = self.compile(agent)?;
        self.compiled().by_path.insert(path, compiled.clone());
        Ok(compiled)
    }

    fn compiled(&self) -> MutexGuard<'_, CompiledAgents> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether another driver has the same agents and tools.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.project, &other.project) && Arc::ptr_eq(&self.library, &other.library)
    }

    /// Returns the project.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the library of tools.
    pub fn library(&self) -> &Library<Tool> {
        &self.library
    }

    /// Returns the rules that are added to those of the agents.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the executor of calls that a client makes by itself, without an agent, with the permissions that
    /// [`client_permissions`] returns. With a lock, only tools as the lock records them are permitted.
    pub fn client_executor(&self) -> Executor {
        let is_locked = |name: &FullName| self.lock.as_ref().is_none_or(|lock| lock.records_tool(name, &self.library));
        let permissions = client_permissions(&self.library, &self.rules, is_locked);
        Executor::new(Arc::clone(&self.library), permissions).with_state(self.state.clone())
    }

    /// Returns the permissions of an agent in its runs.
    pub fn permissions(&self, compiled: &CompiledAgent) -> Permissions {
        compiled.permissions(self.rules.iter().cloned())
    }
}
