//! The only loop that awaits: performs the steps of a run, and tells it what happened.

mod account;
mod call;
mod compare;
mod event;
mod journal;
mod tally;

pub(crate) use account::Account;
pub use compare::CompareError;
pub use event::{Happened, Listener, RunEvent};
pub use journal::{Journal, JournalError};
pub use tally::Tally;

use crate::agent::{CompileError, Compiled};
use crate::model::{Model, ModelError, Sink};
use crate::tool::{BoxFuture, CancellationToken, Executor, State, Tool};
use call::{Called, Calling};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use patter_core::conversation::{self, Usage};
use patter_core::declare::Agent;
use patter_core::library::Library;
use patter_core::name::ModelRef;
use patter_core::permission::{Permissions, Rule};
use patter_core::project::Project;
use patter_core::request::{Delta, Reply};
use patter_core::run::{Failure, FailureKind, PendingCall, Ruling, Run, Step, Target, Told};
use patter_core::session::{Entry, Path};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Finds who runs a model.
pub type Models = Arc<dyn Fn(&ModelRef) -> Result<Arc<dyn Model>, ModelError> + Send + Sync>;

/// Answers whether calls may be made.
pub trait Approver: Send + Sync {
    /// Asks about a call. Whoever drives the run waits for the answer, or for the run to be cancelled.
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer>;

    /// Asks whether a call is to be made again that was under way when the program ended, so that nobody knows what came
    /// of it. Without a word on this it is not.
    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, Answer> {
        let _ = (agent, call);
        Box::pin(async { Answer::Refuse(IN_DOUBT.to_owned()) })
    }
}

/// What the model reads of a call that was under way when the program ended, and is not made again.
pub const IN_DOUBT: &str = "the run was stopped while this was under way, and nobody knows what came of it";

impl<A: Approver + ?Sized> Approver for Arc<A> {
    fn ask<'a>(&'a self, agent: &'a str, call: &'a PendingCall, because: &'a str) -> BoxFuture<'a, Answer> {
        (**self).ask(agent, call, because)
    }

    fn repeat<'a>(&'a self, agent: &'a str, call: &'a PendingCall) -> BoxFuture<'a, Answer> {
        (**self).repeat(agent, call)
    }
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
    journal: Option<Arc<dyn Journal>>,
    /// The agents that were made ready, by their names.
    ready: Arc<Mutex<HashMap<String, Compiled>>>,
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
    pub fn compile(&self, agent: &Agent) -> Result<Compiled, CompileError> {
        Compiled::new(agent, &self.project, &self.library, self.model.clone())
    }

    /// Makes an agent of the project ready to run, found by its name. It is made once, and then used again. Nothing if
    /// there is no such agent.
    pub fn ready(&self, name: &str) -> Option<Result<Compiled, CompileError>> {
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
    pub async fn drive(&self, compiled: &Compiled, run: Run, cancellation: &CancellationToken) -> Run {
        self.perform(compiled, run, Path::new(), Start::New, cancellation).await
    }

    /// Goes on with a run that was under way when a program ended. What has finished is not done again; calls that
    /// had begun are made again if their tools are idempotent, or if the approver says so.
    pub async fn resume(&self, compiled: &Compiled, run: Run, cancellation: &CancellationToken) -> Run {
        self.perform(compiled, run, Path::new(), Start::Again, cancellation).await
    }

    fn perform<'d>(
        &'d self,
        compiled: &'d Compiled,
        run: Run,
        path: Path,
        start: Start,
        cancellation: &'d CancellationToken,
    ) -> BoxFuture<'d, Run> {
        Box::pin(async move {
            let executor =
                Executor::new(Arc::clone(&self.library), self.permissions(compiled)).with_state(self.state.clone());
            let account = Account::new(&compiled.model().to_string(), compiled.bindings_hash());
            let unkept = Vec::new();
            let mut driven = Driven { driver: self, compiled, executor, run, path, cancellation, account, unkept };
            driven.start(start);
            driven.perform().await;
            driven.run
        })
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
    pub fn permissions(&self, compiled: &Compiled) -> Permissions {
        compiled.permissions(self.rules.iter().cloned())
    }

    /// Finds an agent of the project by name, also one inside of another.
    pub fn agent(&self, name: &str) -> Option<Agent> {
        self.project.any_agent(name)
    }
}

/// How a run comes to be driven.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    New,
    Again,
}

/// A run that is being driven.
struct Driven<'d> {
    driver: &'d Driver,
    compiled: &'d Compiled,
    executor: Executor,
    run: Run,
    path: Path,
    cancellation: &'d CancellationToken,
    /// What was heard of it, if someone listens.
    account: Account,
    /// What happened, and was not kept yet.
    unkept: Vec<Entry>,
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
    fn start(&mut self, start: Start) {
        let bindings = self.compiled.bindings_hash().to_owned();
        if start == Start::Again {
            if self.takes_notes() {
                let (frame, saved) = (Some(Arc::clone(self.compiled.frame())), Box::new(self.run.clone()));
                self.note(&Entry::Restored { run: self.path.clone(), frame, bindings, saved });
            }
            return self.tell(Told::Resumed { at: now() });
        }
        if self.driver.journal.is_some() {
            let frame = Some(Arc::clone(self.compiled.frame()));
            let beginning = self.run.beginning();
            let began = Entry::Began { run: self.path.clone(), frame, bindings, beginning };
            self.note(&began);
            self.unkept.push(began);
        }
        self.hear(Account::began);
    }

    async fn perform(&mut self) {
        let mut running = FuturesUnordered::new();
        for call in self.stalled().await {
            running.push(self.calling(call).made());
        }
        loop {
            // A run that ended by this is seen to have.
            let _ = self.keep().await;
            match self.next() {
                Next::Done => break,
                Next::Model => self.call_model().await,
                Next::Tools(calls) if calls.is_empty() => {
                    match bounded(self.cancellation, self.time_left(), running.next()).await {
                        Ok(Some(called)) => self.called(called),
                        // Nothing is under way, so nothing would ever come.
                        Ok(None) => self.cancel(),
                        Err(cut) => self.cut(cut),
                    }
                }
                Next::Tools(calls) => {
                    // Told and kept before they begin, so that it is known after a crash.
                    for call in &calls {
                        self.tell(Told::Started { call_id: call.id.clone() });
                    }
                    if self.keep().await.is_ok() {
                        running.extend(calls.into_iter().map(|call| self.calling(call).made()));
                    }
                }
                Next::Ask(call, because) => self.ask(&call, &because, &mut running).await,
            }
        }
    }

    /// Returns the calls that had begun when the program ended, and that are to be made again. The others get a result:
    /// nobody knows what came of them.
    async fn stalled(&mut self) -> Vec<PendingCall> {
        let calls: Vec<_> = self.run.under_way().cloned().collect();
        let mut again = Vec::new();
        for call in calls {
            // What an agent did is kept as its own run; it goes on where it was.
            let is_kept = self.driver.journal.is_some() && matches!(call.target, Target::Agent { .. });
            if is_kept || !call.in_doubt() {
                self.begins_again(&call);
                again.push(call);
                continue;
            }
            let question = self.driver.approver.repeat(self.compiled.name(), &call);
            match bounded(self.cancellation, self.time_left(), question).await {
                Ok(Answer::Approve) => {
                    self.begins_again(&call);
                    again.push(call);
                }
                Ok(Answer::Refuse(message)) => self.called(Called {
                    id: call.id,
                    outcome: conversation::Outcome::Error { message },
                    duration: Duration::ZERO,
                    usage: Usage::default(),
                }),
                Err(cut) => {
                    self.cut(cut);
                    return Vec::new();
                }
            }
        }
        again
    }

    /// Tells that a call is made again. It is kept already that it began.
    fn begins_again(&mut self, call: &PendingCall) {
        let told = Told::Started { call_id: call.id.clone() };
        self.hear(|account, run| account.told(run, &told));
        self.note(&Entry::Told { run: self.path.clone(), told });
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
        let model = match (self.driver.models)(compiled.model()) {
            Ok(model) => model,
            Err(error) => return self.model_failed(&error),
        };
        let (agent, depth) = (compiled.name(), self.run.depth());
        let (listener, account, path) = (self.driver.listener.as_ref(), &self.account, &self.path);
        let recorded = self.driver.journal.as_ref().filter(|journal| journal.takes_notes());
        let sink = (listener.is_some() || recorded.is_some()).then_some({
            move |delta: Delta| {
                if let Some(journal) = recorded {
                    journal.note(&Entry::Streamed { run: path.clone(), pieces: vec![delta.clone()] });
                }
                if let (Some(listener), Some(happened)) = (listener, account.piece(delta)) {
                    event::tell(listener, agent, depth, happened);
                }
            }
        });
        let request = compiled.request(self.run.conversation());
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
        let copy = self.is_followed().then(|| reply.clone());
        let (executor, rulings, at) = (&self.executor, RefCell::new(Vec::<Ruling>::new()), now());
        let decide = |call: &PendingCall| {
            let ruling = call::ruling(executor, call);
            if copy.is_some() {
                rulings.borrow_mut().push(ruling.clone());
            }
            ruling
        };
        if let Err(error) = self.run.reply(reply, at, &decide) {
            return tracing::error!(%error, "a reply came at the wrong time");
        }
        if let Some(reply) = copy {
            self.was_told(Told::Reply { reply, rulings: rulings.into_inner(), at });
        }
    }

    /// Tells the run something, to be heard and kept.
    fn tell(&mut self, told: Told) {
        let copy = self.is_followed().then(|| told.clone());
        match (self.run.tell(told), copy) {
            (Ok(()), Some(told)) => self.was_told(told),
            (Ok(()), None) => {}
            (Err(error), _) => tracing::debug!(%error, "a run was told what it does not wait for"),
        }
    }

    fn was_told(&mut self, told: Told) {
        self.hear(|account, run| account.told(run, &told));
        if self.driver.journal.is_some() {
            let entry = Entry::Told { run: self.path.clone(), told };
            self.note(&entry);
            self.unkept.push(entry);
        }
    }

    /// Tells whether anyone wants to know what the run is told.
    fn is_followed(&self) -> bool {
        self.driver.journal.is_some() || self.driver.listener.is_some()
    }

    fn takes_notes(&self) -> bool {
        self.driver.journal.as_ref().is_some_and(|journal| journal.takes_notes())
    }

    /// Notes an entry at once: what is recorded is in the order in which it was heard.
    fn note(&self, entry: &Entry) {
        if let Some(journal) = &self.driver.journal {
            journal.note(entry);
        }
    }

    /// Keeps what happened. A run that cannot be kept ends.
    async fn keep(&mut self) -> Result<(), JournalError> {
        let Some(journal) = &self.driver.journal else { return Ok(()) };
        // That a run goes on is nothing to keep by itself.
        if let [] | [Entry::Told { told: Told::Resumed { .. }, .. }] = self.unkept.as_slice() {
            return Ok(());
        }
        let kept = journal.keep(std::mem::take(&mut self.unkept)).await;
        if let Err(error) = &kept {
            let _ = self.run.fail(Failure { kind: FailureKind::Store, message: error.to_string() }, now());
            self.hear(Account::failed);
        }
        kept
    }

    fn model_failed(&mut self, error: &ModelError) {
        let kind = match error {
            ModelError::Configuration { .. } => FailureKind::Configuration,
            _ => FailureKind::Model,
        };
        let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
        let failure = Failure { kind, message: format!("{error}{hint}") };
        self.tell(Told::ModelFailed { failure, at: now() });
    }

    fn calling(&self, call: PendingCall) -> Calling {
        Calling {
            driver: self.driver.clone(),
            compiled: self.compiled.clone(),
            executor: self.executor.clone(),
            depth: self.run.depth(),
            // Only an agent that is called needs to know of the run that called it.
            parent: matches!(call.target, Target::Agent { .. }).then(|| self.run.clone()),
            path: self.path.clone(),
            cancellation: self.cancellation.child_token(),
            call,
        }
    }

    fn called(&mut self, called: Called) {
        let Called { id: call_id, outcome, duration, usage } = called;
        self.tell(Told::Finished { call_id, outcome, duration_ms: milliseconds(duration), usage, at: now() });
    }

    /// Asks about one call after the other: answers must not be taken for those of others.
    async fn ask(
        &mut self,
        call: &PendingCall,
        because: &str,
        running: &mut FuturesUnordered<impl Future<Output = Called>>,
    ) {
        let (driver, compiled) = (self.driver, self.compiled);
        let mut question = driver.approver.ask(compiled.name(), call, because);
        let call_id = call.id.clone();
        let answer = loop {
            // The others go on meanwhile.
            let first = async {
                tokio::select! {
                    answer = &mut question => First::Answer(answer),
                    Some(called) = running.next() => First::Called(called),
                }
            };
            match bounded(self.cancellation, self.time_left(), first).await {
                Err(cut) => return self.cut(cut),
                Ok(First::Answer(answer)) => break answer,
                Ok(First::Called(called)) => {
                    self.called(called);
                    if self.keep().await.is_err() {
                        return;
                    }
                }
            }
        };
        self.tell(match answer {
            Answer::Approve => Told::Approved { call_id },
            Answer::Refuse(why) => Told::Refused { call_id, why, at: now() },
        });
    }

    fn time_left(&self) -> Option<Duration> {
        self.run.time_left(now()).map(Duration::from_millis)
    }

    /// Ends the run that was cut short.
    fn cut(&mut self, cut: Cut) {
        match cut {
            Cut::Cancelled => self.cancel(),
            // A clock that is a little behind must not make this wait for nothing.
            Cut::Late => self.tell(Told::Tick { at: now() + 1 }),
        }
    }

    fn cancel(&mut self) {
        self.tell(Told::Cancelled { at: now() });
    }

    /// Says what is heard, if someone listens; else it is not even put together.
    fn hear(&mut self, heard: impl FnOnce(&mut Account, &Run) -> Vec<Happened>) {
        let Some(listener) = &self.driver.listener else { return };
        for happened in heard(&mut self.account, &self.run) {
            event::tell(listener, self.compiled.name(), self.run.depth(), happened);
        }
    }
}

/// What comes first while someone is asked.
enum First {
    Answer(Answer),
    Called(Called),
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
