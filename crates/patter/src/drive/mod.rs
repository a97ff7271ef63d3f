//! The only loop that awaits: performs the steps of a run, and tells it what happened.

mod event_log;
mod approve;
mod call;
mod compare;
mod run_task;
mod event;
mod journal;
mod tally;

pub use approve::{Answer, Approver, IN_DOUBT, Nobody};
pub use compare::CompareError;
pub use event::{Listener, RunEvent, RunEventKind, RunFailure};
pub(crate) use event_log::EventLog;
pub use journal::{Journal, JournalError};
pub use tally::Tally;

use crate::agent::{CompileError, CompiledAgent};
use crate::model::{Model, ModelError};
use crate::tool::{BoxFuture, CancellationToken, State, Tool};
use patter_core::declare::Agent;
use patter_core::declare::project::Project;
use patter_core::library::Library;
use patter_core::permission::{Permissions, Rule};
use patter_core::provider::ModelRef;
use patter_core::run::Run;
use patter_core::session::RunPath;
use run_task::{RunTask, Start};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Finds who runs a model.
pub type Models = Arc<dyn Fn(&ModelRef) -> Result<Arc<dyn Model>, ModelError> + Send + Sync>;

/// Drives runs: calls models and tools, and asks people. Cheap to clone.
#[derive(Clone)]
pub struct Driver {
    project: Arc<Project>,
    library: Arc<Library<Tool>>,
    models: Models,
    model: Option<ModelRef>,
    rules: Vec<Rule>,
    state: State,
    approver: Arc<dyn Approver>,
    listener: Option<Listener>,
    journal: Option<Arc<dyn Journal>>,
    /// The agents that were made ready, by their names.
    ready: Arc<Mutex<HashMap<String, CompiledAgent>>>,
}

impl Driver {
    /// Returns a driver of the agents of a project, with the tools of a library.
    pub fn new(project: Arc<Project>, library: Arc<Library<Tool>>, models: Models) -> Self {
        Self {
            project,
            library,
            models,
            model: None,
            rules: Vec::new(),
            state: State::default(),
            approver: Arc::new(Nobody),
            listener: None,
            journal: None,
            ready: Arc::default(),
        }
    }

    /// Sets the model, whatever the agents say.
    #[must_use]
    pub fn with_model(mut self, model: ModelRef) -> Self {
        self.model = Some(model);
        self.ready = Arc::default();
        self
    }

    /// Sets who finds models, in place of those that it has: such as [`RecordedModel`](crate::model::RecordedModel).
    #[must_use]
    pub fn with_models(mut self, models: Models) -> Self {
        self.models = models;
        self
    }

    /// Adds rules to those of the agents.
    #[must_use]
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules.extend(rules);
        self
    }

    /// Sets what tools share.
    #[must_use]
    pub fn with_state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets who answers whether calls may be made.
    #[must_use]
    pub fn with_approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Arc::new(approver);
        self
    }

    /// Sets who hears what happens.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Sets who keeps what happens.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Makes an agent ready to run.
    pub fn compile(&self, agent: &Agent) -> Result<CompiledAgent, CompileError> {
        CompiledAgent::new(agent, &self.project, &self.library, self.model.clone())
    }

    /// Makes an agent of the project ready to run, found by its name. It is made once, and then used again. Nothing if
    /// there is no such agent.
    pub fn ready(&self, name: &str) -> Option<Result<CompiledAgent, CompileError>> {
        let known = self.ready.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let compiled = match known {
            Some(compiled) => Ok(compiled),
            None => self.compile(&self.agent(name)?),
        };
        if let Ok(compiled) = &compiled {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            ready.insert(name.to_owned(), compiled.clone());
        }
        Some(compiled)
    }

    /// Performs the steps of a new run until it is done, and returns it.
    pub async fn drive(&self, compiled: &CompiledAgent, run: Run, cancellation: &CancellationToken) -> Run {
        self.perform(compiled, run, RunPath::new(), Start::New, cancellation).await
    }

    /// Goes on with a run that was under way when a program ended. What has finished is not done again; calls that
    /// had begun are made again if their tools are idempotent, or if the approver says so.
    pub async fn resume(&self, compiled: &CompiledAgent, run: Run, cancellation: &CancellationToken) -> Run {
        self.perform(compiled, run, RunPath::new(), Start::Again, cancellation).await
    }

    fn perform<'d>(
        &'d self,
        compiled: &'d CompiledAgent,
        run: Run,
        path: RunPath,
        start: Start,
        cancellation: &'d CancellationToken,
    ) -> BoxFuture<'d, Run> {
        Box::pin(RunTask::new(self, compiled, run, path, cancellation).done(start))
    }

    /// Tells whether it drives the same agents with the same tools as another.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.project, &other.project) && Arc::ptr_eq(&self.library, &other.library)
    }

    /// Returns the project whose agents it drives.
    pub fn project(&self) -> &Project {
        &self.project
    }

    /// Returns the library whose tools they call.
    pub fn library(&self) -> &Library<Tool> {
        &self.library
    }

    /// Returns the permissions of an agent in its runs.
    pub fn permissions(&self, compiled: &CompiledAgent) -> Permissions {
        compiled.permissions(self.rules.iter().cloned())
    }

    /// Finds an agent of the project by name, also one inside of another.
    pub fn agent(&self, name: &str) -> Option<Agent> {
        self.project.any_agent(name)
    }
}

/// Returns the time in milliseconds, as runs count it.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
