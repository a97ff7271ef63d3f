//! The only loop that awaits: performs the steps of a run, and tells it what happened.

mod call;
mod event;
mod tally;

pub use event::{Happened, Listener, RunEvent};
pub use tally::Tally;

use crate::agent::{CompileError, Compiled};
use crate::model::{Model, ModelError, Sink};
use crate::tool::{BoxFuture, CancellationToken, Executor, State, Tool};
use call::{Called, Calling};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use patter_core::conversation::{self, Message};
use patter_core::declare::Agent;
use patter_core::library::Library;
use patter_core::name::ModelRef;
use patter_core::permission::Rule;
use patter_core::project::Project;
use patter_core::request::{Delta, Reply, Request};
use patter_core::run::{Failure, FailureKind, PendingCall, Run, Step, Target};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Finds who runs a model.
pub type Models = Arc<dyn Fn(&ModelRef) -> Result<Arc<dyn Model>, ModelError> + Send + Sync>;

/// Answers whether calls may be made.
pub trait Approver: Send + Sync {
    /// Asks about a call. Whoever drives the run waits for the answer, or for the run to be cancelled.
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer>;
}

/// What is answered about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may be made.
    Approve,
    /// It may not, and why, which the model gets to read.
    Refuse(String),
}

/// An approver for runs that nobody watches: it refuses.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Approver for Nobody {
    fn ask<'a>(&'a self, _: &'a str, _: &'a PendingCall, _: &'a str) -> BoxFuture<'a, Answer> {
        Box::pin(async { Answer::Refuse("it needs an approval, and there is nobody to ask".to_owned()) })
    }
}

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
        }
    }

    /// Sets the model, whatever the agents say.
    #[must_use]
    pub fn with_model(mut self, model: ModelRef) -> Self {
        self.model = Some(model);
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

    /// Makes an agent ready to run.
    pub fn compile(&self, agent: &Agent) -> Result<Compiled, CompileError> {
        Compiled::new(agent, &self.project, &self.library, self.model.clone())
    }

    /// Performs the steps of a run until it is done, and returns it. `saved` gets to see the run after each change, to
    /// keep it; the run goes on when it returns.
    pub async fn drive(
        &self,
        compiled: &Compiled,
        run: Run,
        cancellation: &CancellationToken,
        saved: &mut (dyn FnMut(&Run) + Send),
    ) -> Run {
        self.drive_boxed(compiled, run, cancellation, saved).await
    }

    fn drive_boxed<'d>(
        &'d self,
        compiled: &'d Compiled,
        run: Run,
        cancellation: &'d CancellationToken,
        saved: &'d mut (dyn FnMut(&Run) + Send),
    ) -> BoxFuture<'d, Run> {
        Box::pin(async move {
            let permissions = compiled.permissions(self.rules.iter().cloned());
            let executor = Executor::new(Arc::clone(&self.library), permissions).with_state(self.state.clone());
            let read = run.conversation().len();
            let mut driven = Driven { driver: self, compiled, executor, run, cancellation, read, told: HashSet::new() };
            driven.tell(|| Happened::Started {
                model: compiled.model().to_string(),
                bindings: compiled.bindings_hash().to_owned(),
            });
            driven.perform(saved).await;
            driven.run
        })
    }

    /// Finds an agent of the project by name, also one inside of another.
    pub fn agent(&self, name: &str) -> Option<Agent> {
        let trees = self.project.files().iter().map(|file| &file.tree);
        trees.flat_map(|tree| tree.walk().filter_map(Agent::cast)).find(|agent| agent.name().as_deref() == Some(name))
    }
}

/// A run that is being driven.
struct Driven<'d> {
    driver: &'d Driver,
    compiled: &'d Compiled,
    executor: Executor,
    run: Run,
    cancellation: &'d CancellationToken,
    /// How much of the conversation was looked at for results that nobody was told of.
    read: usize,
    /// The calls whose end was told.
    told: HashSet<String>,
}

/// What to do next, without holding on to the run.
enum Next {
    Model,
    /// The calls that are to begin; those under way are waited for.
    Tools(Vec<PendingCall>),
    Ask(PendingCall, String),
    Done,
}

impl Driven<'_> {
    async fn perform(&mut self, saved: &mut (dyn FnMut(&Run) + Send)) {
        let mut running = FuturesUnordered::new();
        loop {
            saved(&self.run);
            self.tell_results();
            match self.next() {
                Next::Done => break,
                Next::Model => self.call_model().await,
                Next::Tools(calls) => {
                    for call in &calls {
                        // Told before it begins, so that it is known after a crash.
                        let _ = self.run.started(&call.id);
                        self.tell(|| Happened::ToolStarted {
                            call_id: call.id.clone(),
                            tool: call.tool.clone(),
                            arguments: call.arguments.clone(),
                        });
                    }
                    saved(&self.run);
                    for call in calls {
                        running.push(self.calling(call).made());
                    }
                    match bounded(self.cancellation, self.time_left(), running.next()).await {
                        Ok(Some(called)) => self.called(called),
                        // Calls that began before the run was loaded, and that are not under way.
                        Ok(None) => self.abandon(),
                        Err(cut) => self.cut(cut),
                    }
                }
                Next::Ask(call, because) => self.ask(&call, &because).await,
            }
        }
        self.tell(|| Happened::Finished { response: self.run.response(), usage: self.run.usage() });
    }

    /// Tells of calls that ended without having begun: refused, of tools that do not exist, or cancelled.
    fn tell_results(&mut self) {
        for message in self.run.conversation().get(self.read..).unwrap_or_default() {
            if let Message::Tool { call_id, tool, outcome } = message
                && !self.told.contains(call_id)
            {
                self.tell(|| Happened::ToolFinished {
                    call_id: call_id.clone(),
                    tool: tool.clone(),
                    outcome: outcome.clone(),
                    duration_ms: 0,
                });
            }
        }
        self.read = self.run.conversation().len();
    }

    fn next(&self) -> Next {
        match self.run.step() {
            Step::CallModel { .. } => Next::Model,
            Step::CallTools { calls } => Next::Tools(calls.into_iter().filter(|call| !call.started).cloned().collect()),
            Step::AskApproval { calls } => match calls.first() {
                Some(question) => Next::Ask(question.call.clone(), question.because.to_owned()),
                None => Next::Done,
            },
            Step::Done(_) => Next::Done,
        }
    }

    async fn call_model(&mut self) {
        let compiled = self.compiled;
        self.tell(|| Happened::ModelCalled { number: self.run.model_calls() + 1 });
        let model = match (self.driver.models)(compiled.model()) {
            Ok(model) => model,
            Err(error) => return self.model_failed(&error),
        };
        let (agent, depth) = (compiled.name(), self.run.depth());
        let sink = self.driver.listener.as_ref().map(|listener| {
            move |delta: Delta| {
                let happened = match delta {
                    Delta::Text { text } => Happened::Text { text },
                    Delta::Thought { text } => Happened::Thought { text },
                    Delta::Waiting { seconds, because } => Happened::Waiting { seconds, because },
                    Delta::Call { .. } | Delta::Arguments { .. } => return,
                };
                event::tell(listener, agent, depth, happened);
            }
        });
        let request = Request {
            model: compiled.model(),
            instruction: compiled.instruction(),
            messages: self.run.conversation(),
            tools: compiled.offered(),
            settings: compiled.settings(),
            returns: compiled.returns(),
        };
        let sink = sink.as_ref().map(|sink| sink as &Sink<'_>);
        let call = model.call(&request, sink, self.cancellation);
        match bounded(self.cancellation, self.time_left(), call).await {
            Err(cut) => self.cut(cut),
            Ok(Ok(reply)) => self.replied(reply),
            Ok(Err(ModelError::Cancelled)) => self.cancel(),
            Ok(Err(error)) => self.model_failed(&error),
        }
    }

    fn replied(&mut self, reply: Reply) {
        self.tell(|| Happened::Replied {
            model: self.compiled.model().to_string(),
            usage: reply.usage,
            calls: reply.calls.len(),
        });
        let executor = self.executor.clone();
        let decide = |call: &PendingCall| call::ruling(&executor, call);
        if let Err(error) = self.run.reply(reply, now(), &decide) {
            tracing::error!(%error, "a reply came at the wrong time");
        }
    }

    fn model_failed(&mut self, error: &ModelError) {
        let kind = match error {
            ModelError::Configuration { .. } => FailureKind::Configuration,
            _ => FailureKind::Model,
        };
        let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        let _ = self.run.model_failed(Failure { kind, message: format!("{error}{hint}") }, now());
    }

    fn calling(&self, call: PendingCall) -> Calling {
        Calling {
            driver: self.driver.clone(),
            compiled: self.compiled.clone(),
            executor: self.executor.clone(),
            depth: self.run.depth(),
            // Only an agent that is called needs to know of the run that called it.
            parent: matches!(call.target, Target::Agent { .. }).then(|| self.run.clone()),
            cancellation: self.cancellation.child_token(),
            call,
        }
    }

    fn called(&mut self, called: Called) {
        let Called { id, tool, outcome, duration, usage } = called;
        let duration_ms = milliseconds(duration);
        self.run.add_usage(usage);
        self.tell(|| Happened::ToolFinished { call_id: id.clone(), tool, outcome: outcome.clone(), duration_ms });
        if let Err(error) = self.run.finished(&id, outcome, duration_ms, now()) {
            tracing::debug!(%error, "a call ended that nobody waits for");
        }
        self.told.insert(id);
    }

    /// Asks about one call after the other: answers must not be taken for those of others.
    async fn ask(&mut self, call: &PendingCall, because: &str) {
        self.tell(|| Happened::Asked {
            call_id: call.id.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            because: because.to_owned(),
        });
        let approver = Arc::clone(&self.driver.approver);
        let question = approver.ask(self.compiled.name(), call, because);
        let told = match bounded(self.cancellation, self.time_left(), question).await {
            Err(cut) => return self.cut(cut),
            Ok(Answer::Approve) => self.run.approved(&call.id),
            Ok(Answer::Refuse(why)) => self.run.refused(&call.id, &why, now()),
        };
        if let Err(error) = told {
            tracing::debug!(%error, "an answer came too late");
        }
    }

    /// Ends calls that began before the run was stopped and that are not under way: nobody knows what came of them.
    fn abandon(&mut self) {
        let Step::CallTools { calls } = self.run.step() else { return };
        let ids: Vec<_> = calls.into_iter().map(|call| call.id.clone()).collect();
        for id in ids {
            let message = "the run was stopped while this was under way, and nobody knows what came of it".to_owned();
            let outcome = conversation::Outcome::Error { message };
            let _ = self.run.finished(&id, outcome, 0, now());
        }
    }

    fn time_left(&self) -> Option<Duration> {
        self.run.time_left(now()).map(Duration::from_millis)
    }

    /// Ends the run that was cut short.
    fn cut(&mut self, cut: Cut) {
        match cut {
            Cut::Cancelled => self.cancel(),
            // A clock that is a little behind must not make this wait for nothing.
            Cut::Late => {
                let _ = self.run.tick(now() + 1);
            }
        }
    }

    fn cancel(&mut self) {
        let _ = self.run.cancel(now());
    }

    /// Tells what happened, if someone listens; else it is not even put together.
    fn tell(&self, happened: impl FnOnce() -> Happened) {
        if let Some(listener) = &self.driver.listener {
            event::tell(listener, self.compiled.name(), self.run.depth(), happened());
        }
    }
}

/// Why a wait was cut short.
#[derive(Clone, Copy)]
enum Cut {
    Cancelled,
    Late,
}

/// Waits for something, as long as a run may take.
async fn bounded<T>(
    cancellation: &CancellationToken,
    left: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, Cut> {
    let late = async {
        match left {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = cancellation.cancelled() => Err(Cut::Cancelled),
        done = work => Ok(done),
        () = late => Err(Cut::Late),
    }
}

/// Returns the time in milliseconds, as runs count it.
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, milliseconds)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
