//! Sessions with agents, for the commands that run them: options, opening, and what is shown.

mod approve;
mod display;
mod question;
mod store;
mod transcript;

pub(crate) use approve::{TerminalApprover, refusal};
use display::finish_suspended;
pub(crate) use display::{Opening, finish_run, listener, session_line, unsaved_hint};
pub(crate) use question::{Asker, TerminalRespondent, answer, ask_step};
pub(crate) use store::{OpenStore, StoreOption};
pub(crate) use transcript::{fork_log, markdown, state, summary_json};

use crate::argument::{ModelArgument, parse_cost, parse_count, parse_duration, parse_model};
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::format::RunFormat;
use crate::inspect::{UsedOverrides, with_called};
use crate::logging::log_event;
use crate::setup::{
    Intent, LockOption, Rules, Setup, Signals, ToolSources, Toolset, refuse_broken_policies, split_agent, until_stopped,
};
use crate::ui::style::DIM;
use crate::{ui, unsupported};
use clap::Args;
use patter::compile::CompiledAgent;
use patter::drive::{Approver, Driver, RunEvent, StreamedReplies, Tally, now_ms};
use patter::live::{LiveProject, ProjectPaths};
use patter::permission::Rule;
use patter::project::{Config, ServerSelection};
use patter::provider::price::{Cost, Price};
use patter::run::{CallTarget, Limits, Run, Step};
use patter::session::{AgentSelection, Recorder, Session, SessionError};
use patter::store::{SessionId, Store, StoreError};
use patter::tool::CancellationToken;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

/// How an agent is run.
#[derive(Args, Clone, Default)]
pub(crate) struct RunOptions {
    /// Model to use instead of the agent's: Provider/name, or demo
    #[arg(long, value_name = "MODEL", value_parser = parse_model)]
    pub(crate) model: Option<ModelArgument>,

    #[command(flatten)]
    limits: TurnLimits,

    /// Show the model's reasoning on stderr, if its provider shows it
    #[arg(long)]
    pub(crate) thinking: bool,

    /// Approve all calls that need an approval
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Record the run in this file, for `patter replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    lock: LockOption,

    #[command(flatten)]
    pub(crate) sources: ToolSources,
}

/// Limits of a turn.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct TurnLimits {
    /// Maximum number of model calls in a turn
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    max_turns: Option<NonZeroU32>,

    /// Stop a turn once it used this many input and output tokens
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    max_total_tokens: Option<NonZeroU32>,

    /// Stop a turn once it cost this many dollars: 0.50
    #[arg(long, value_name = "DOLLARS", value_parser = parse_cost, allow_negative_numbers = true)]
    max_cost: Option<Cost>,

    /// Stop a turn after this time: 30s, 2m, 1h, or a number of seconds
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
}

impl TurnLimits {
    /// Applies the limits that are set.
    pub(crate) fn apply(self, limits: &mut Limits) {
        limits.max_model_calls = self.max_turns.map_or(limits.max_model_calls, NonZeroU32::get);
        limits.max_tokens = self.max_total_tokens.map(|tokens| u64::from(tokens.get())).or(limits.max_tokens);
        limits.max_cost = self.max_cost.or(limits.max_cost);
        if let Some(timeout) = self.timeout {
            limits.deadline_ms = Some(patter::text::milliseconds(timeout));
        }
    }

    /// Returns when a turn that starts now has to end.
    fn deadline(self) -> Option<Instant> {
        self.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }
}

/// The choice of a session.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct SessionOptions {
    /// Continue this session: its id, or the start of it; with --new, the id of the new session
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Start a new session (default)
    #[arg(long, conflicts_with = "continue_last")]
    new: bool,

    /// Continue the last session of the agent
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    continue_last: bool,
}

impl SessionOptions {
    /// Returns whether a session was asked for that has to be stored.
    fn needs_store(&self) -> bool {
        self.session.is_some() || self.continue_last
    }
}

/// An open session, with everything it runs on.
pub(crate) struct OpenSession {
    pub(crate) session: Session,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) agents: Arc<LiveProject>,
    /// What it cost since it was opened.
    pub(crate) tally: Arc<Tally>,
    /// The options with which `patter resume` finds it.
    pub(crate) resume_options: String,
    pub(crate) toolset: Toolset,
    /// The overrides that its agent makes use of, once it is compiled.
    pub(crate) overrides: UsedOverrides,
}

impl RunOptions {
    /// Opens a session with an agent: `FILE#AGENT`.
    pub(crate) fn open(
        &self,
        agent: &str,
        session: &SessionOptions,
        streamed: StreamedReplies,
        listener: impl Fn(&RunEvent) + Send + Sync + 'static,
        approver: impl Approver + 'static,
    ) -> Result<OpenSession, CommandError> {
        let (file, name) = split_agent(agent);
        let prepared = self.prepare(&[file], name)?;
        let deadline = self.limits.deadline();
        let store = prepared.open_store(&self.store, session.needs_store(), deadline)?;
        let opened = prepared.wait_for_store(deadline, prepared.open_session(session, store.clone()))?;
        self.connect(prepared, opened, store, streamed, listener, approver)
    }

    /// Opens a stored session to resume its unfinished run, with the files that it was started with unless another is
    /// given.
    pub(crate) fn reopen(
        &self,
        id: Option<&str>,
        file: Option<&str>,
        streamed: StreamedReplies,
        listener: impl Fn(&RunEvent) + Send + Sync + 'static,
        approver: impl Approver + 'static,
    ) -> Result<OpenSession, CommandError> {
        let OpenStore { runtime, store } = self.store.open_existing()?;
        let (id, source) = runtime.block_on(async {
            let id = match id {
                Some(id) => patter::store::find(&*store, id).await?,
                None => store::find_unfinished(&*store).await?,
            };
            let stored = store.read(&id).await?;
            if stored.summary.is_experiment() {
                return Err(SessionError::Store(StoreError::Unusable {
                    message: format!("`{id}` is an experiment, not a conversation"),
                    hint: Some("repeat the command that started it to continue it".to_owned()),
                }));
            }
            let log = patter::session::Log::read(stored.entries)?;
            Ok::<_, SessionError>((id, log.selection().cloned().unwrap_or_default()))
        })?;
        if let Some(variant) = &source.variant {
            let message = format!("the session `{id}` uses the tools `{variant}` of a studio");
            let hint = format!("resume it there: `patter studio --variant {variant}=FILE`");
            return Err(CommandError::failure(message).with_hint(hint));
        }
        let (paths, name) = match file.map(split_agent) {
            Some((path, name)) => (vec![path], name.map(str::to_owned)),
            None => (recorded_files(&id, &source)?, source.agent.clone()),
        };
        let mut options = self.clone();
        options.model = options.model.or_else(|| source.model.clone().map(ModelArgument::new));
        let prepared = options.prepare(&paths, name.as_deref())?;
        // A store is bound to the runtime that opened it.
        let (session, store) = prepared.wait_for_store(self.limits.deadline(), async {
            let environment = &prepared.toolset.environment;
            let store = self.store.connect(prepared.root.as_deref(), &prepared.config, environment).await?;
            let session = Session::open(Arc::clone(&prepared.agents), Arc::clone(&store), &id).await?;
            Ok::<_, CommandError>((session.with_source(prepared.source.clone()), store))
        })?;
        options.connect(prepared, session, Some(store), streamed, listener, approver)
    }

    /// Reads files, with their project and its tools.
    fn prepare(&self, paths: &[PathBuf], name: Option<&str>) -> Result<PreparedAgent, CommandError> {
        let servers = ServerSelection::ForAgent(name.map(str::to_owned));
        let setup = Setup::read_locked(paths, &self.sources, &servers, Intent::Call, &[], self.lock)?;
        let agent = setup.agent(name)?;
        let rules = self.rules.checked(&setup)?;
        refuse_broken_policies(&setup, &rules)?;
        let Setup { root, config, loaded, mut toolset } = setup;
        let paths: Vec<_> = paths.iter().chain(self.sources.files()).cloned().collect();
        let full = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
        let source = AgentSelection {
            files: paths.iter().map(full).collect(),
            agent: name.map(str::to_owned),
            model: self.model.as_ref().map(ModelArgument::resolve).transpose()?.map(|model| model.to_string()),
            variant: None,
        };
        let tools = std::mem::take(&mut toolset.tools);
        let places = ProjectPaths { paths, root: root.clone(), ..ProjectPaths::default() };
        let library = Arc::clone(&toolset.library);
        let environment = toolset.environment.clone();
        let agents = LiveProject::new(places, config.clone(), environment, loaded.project, tools, library);
        let agent = agent.name().unwrap_or_default().into_owned();
        Ok(PreparedAgent { root, config, agents: Arc::new(agents), agent, source, rules, toolset })
    }

    /// Connects a session with its listener and approver, and applies the options.
    fn connect(
        &self,
        prepared: PreparedAgent,
        session: Session,
        store: Option<Arc<dyn Store>>,
        streamed: StreamedReplies,
        listener: impl Fn(&RunEvent) + Send + Sync + 'static,
        approver: impl Approver + 'static,
    ) -> Result<OpenSession, CommandError> {
        let listener = Arc::new(listener);
        let approver: Arc<dyn Approver> = Arc::new(approver);
        let model = self.model.as_ref().map(ModelArgument::resolve).transpose()?;
        let rules = prepared.rules;
        let lock = prepared.toolset.lock.clone();
        let tally = Arc::new(Tally::new(prepared.config.prices()));
        let counted = Arc::clone(&tally);
        let configure = move |driver: Driver| {
            let listener = Arc::clone(&listener);
            let counted = Arc::clone(&counted);
            let driver = driver.with_rules(rules.clone()).with_listener(move |event| {
                log_event(event);
                counted.record(event);
                listener(event);
            });
            let driver = driver.with_streamed_replies(streamed).with_approver(Arc::clone(&approver));
            let driver = match &lock {
                Some(lock) => driver.with_lock(Arc::clone(lock)),
                None => driver,
            };
            match &model {
                Some(model) => driver.with_model(model.clone()),
                None => driver,
            }
        };
        let limits = self.limits;
        let session = session.with_driver(configure).with_limits(move |all| limits.apply(all));
        let session = session.with_tracer(prepared.toolset.runtime.tracer());
        if let Some(path) = &self.record {
            let recorder = Recorder::create(path);
            session.record(
                recorder.map_err(|error| CommandError::from(error).with_hint("remove the file, or name another"))?,
            );
        }
        let resume_options = self.store.argument();
        let agents = prepared.agents;
        let overrides = UsedOverrides::default();
        Ok(OpenSession { session, store, agents, tally, resume_options, toolset: prepared.toolset, overrides })
    }
}

impl OpenSession {
    /// Compiles the agent, and prints what people should know before it runs.
    pub(crate) fn compile(&mut self) -> Result<CompiledAgent, CommandError> {
        let (driver, compiled) = self.session.prepare(None)?;
        let environment = self.agents.environment();
        let models = &self.agents.config().models;
        let agents = with_called(vec![compiled.clone()], |agent| driver.compile(agent).ok());
        unsupported::warn(&agents, environment, models)?;
        self.overrides = UsedOverrides::of_agents(&agents, driver.library());
        self.overrides.print()?;
        // A workflow has no model, but its steps have.
        let own: &[CompiledAgent] = if compiled.is_workflow() { &agents } else { std::slice::from_ref(&compiled) };
        let models = own.iter().filter(|agent| !agent.is_workflow()).map(|agent| (self.agents.models())(agent.model()));
        let notices = models.filter_map(|model| model.ok()?.notice().map(str::to_owned));
        for notice in notices.collect::<BTreeSet<_>>() {
            ui::status(&format!("{DIM}{notice}{DIM:#}"))?;
        }
        Ok(compiled)
    }

    /// Performs a run until it ends: `None` if a signal suspends it.
    pub(crate) fn perform<T>(&mut self, run: impl AsyncFnOnce(&mut Session, &CancellationToken) -> T) -> Option<T> {
        let Signals { interrupt, suspend, .. } = self.toolset.signals.clone();
        self.toolset.runtime.block_on(suspend.run_until_cancelled(run(&mut self.session, &interrupt)))
    }

    /// Shows how a run ended: `None` if a signal suspended it.
    pub(crate) fn finish(
        &self,
        format: RunFormat,
        run: Option<Result<Run, SessionError>>,
        compiled: &CompiledAgent,
    ) -> CommandResult {
        let id = self.session.id().map(|id| id.to_string());
        let Some(run) = run else { return Err(self.suspended(format, id.as_deref(), compiled)) };
        let bindings = compiled.bindings_hash();
        let store = &self.resume_options;
        finish_run(format, &run?, bindings, self.tally.bill(), id.as_deref(), store, &self.overrides)
    }
}

impl OpenSession {
    fn suspended(&self, format: RunFormat, id: Option<&str>, compiled: &CompiledAgent) -> CommandError {
        let is_saved = self.wait_until_saved();
        let run = self.session.read_log(|log| log.open_run().cloned());
        let resume = self.resume_command().filter(|_| is_saved);
        let bindings = compiled.bindings_hash();
        let store = &self.resume_options;
        let mut cost = self.tally.bill();
        let is_free = self.agents.config().prices().price(compiled.model()) == Some(Price::FREE);
        // The request that was in progress may cost something.
        if !is_free && run.as_ref().is_some_and(is_calling_model) {
            cost.add(None);
        }
        finish_suspended(format, run.as_ref(), bindings, cost, id, store, resume.as_deref())
    }

    /// Waits for the step that was being saved when a run was suspended. Returns whether all steps are saved.
    pub(crate) fn wait_until_saved(&self) -> bool {
        let saved = async { tokio::time::timeout(SAVE_TIMEOUT, self.session.wait_until_saved()).await };
        matches!(self.toolset.runtime.block_on(saved), Ok(Ok(())))
    }

    /// Returns the command that resumes the unfinished run, if it is stored.
    pub(crate) fn resume_command(&self) -> Option<String> {
        self.store.as_ref().and(self.session.id()).map(|id| format!("patter resume {id}{}", self.resume_options))
    }
}

/// An agent with its project, before a session with it is opened.
struct PreparedAgent {
    root: Option<PathBuf>,
    config: Config,
    agents: Arc<LiveProject>,
    /// The name of the agent.
    agent: String,
    source: AgentSelection,
    rules: Vec<Rule>,
    toolset: Toolset,
}

impl PreparedAgent {
    /// Opens the store. A session without a store is not saved, which is an error only if one was asked for.
    fn open_store(
        &self,
        option: &StoreOption,
        is_needed: bool,
        deadline: Option<Instant>,
    ) -> Result<Option<Arc<dyn Store>>, CommandError> {
        let root = self.root.as_deref();
        let Some(location) = option.location(root, &self.config, &self.toolset.environment)? else {
            return if is_needed { Err(option.disabled()) } else { Ok(None) };
        };
        debug!(%location, "opening the store of sessions");
        let opened = async { Ok::<_, CommandError>(patter::store::open(&location).await) };
        match self.wait_for_store(deadline, opened)? {
            Ok(store) => Ok(Some(store)),
            Err(error) if option.is_given() || is_needed => Err(error.into()),
            Err(error) => {
                ui::warning(&format!("this conversation will not be saved: {error}"))?;
                Ok(None)
            }
        }
    }

    /// Waits for the store, until a signal stops the program, and no longer than a turn may take.
    fn wait_for_store<T, E>(
        &self,
        deadline: Option<Instant>,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, CommandError>
    where
        CommandError: From<E>,
    {
        let limited = async {
            match deadline {
                Some(deadline) => timeout_at(deadline, work).await.ok(),
                None => Some(work.await),
            }
        };
        let Toolset { runtime, stop, .. } = &self.toolset;
        let done = until_stopped(runtime, stop, limited).ok_or_else(CommandError::interrupted)?;
        let late = || {
            let message = "the session store did not answer within the time limit of the turn";
            CommandError::new(ErrorKind::named("StoreError"), message)
                .with_hint("check the store with `patter doctor`, or raise --timeout")
        };
        Ok(done.ok_or_else(late)??)
    }

    async fn open_session(
        &self,
        options: &SessionOptions,
        store: Option<Arc<dyn Store>>,
    ) -> Result<Session, SessionError> {
        let agents = Arc::clone(&self.agents);
        let Some(store) = store else { return Ok(Session::new(agents).with_source(self.source.clone())) };
        let session = match (&options.session, options.continue_last) {
            (Some(id), _) if options.new => Session::create(agents, store, SessionId::parse(id)?),
            (Some(id), _) => {
                let id = patter::store::find(&*store, id).await.map_err(|error| match error {
                    StoreError::NotFound { text, nearest: None } => StoreError::Unusable {
                        message: format!("there is no session `{text}`"),
                        hint: Some("add --new to start it, or list sessions with `patter sessions`".to_owned()),
                    },
                    error => error,
                })?;
                Session::open(agents, store, &id).await?
            }
            (None, true) => {
                let recent = store.list(RECENT_SESSIONS).await?;
                let last = recent.into_iter().find(|summary| summary.agent == self.agent);
                let last = last.ok_or_else(|| StoreError::Unusable {
                    message: format!("the agent `{}` has no sessions yet", self.agent),
                    hint: Some("omit --continue to start one".to_owned()),
                })?;
                Session::open(agents, store, &last.id).await?
            }
            (None, false) => Session::create(agents, store, SessionId::new(now_ms())),
        };
        Ok(session.with_source(self.source.clone()))
    }
}

/// Returns the files that a session was started with.
fn recorded_files(id: &SessionId, source: &AgentSelection) -> Result<Vec<PathBuf>, CommandError> {
    let paths: Vec<_> = source.files.iter().map(PathBuf::from).collect();
    let message = match paths.iter().find(|path| !path.exists()) {
        Some(missing) => format!("the session `{id}` used `{}`, which no longer exists", missing.display()),
        None if paths.is_empty() => format!("the session `{id}` does not say which files it was started with"),
        None => return Ok(paths),
    };
    Err(CommandError::failure(message).with_hint("name the file with --file"))
}

/// Returns whether a run, or an agent that it called, waits for a model.
fn is_calling_model(run: &Run) -> bool {
    matches!(run.step(), Step::CallModel { .. })
        || run.started_calls().any(|call| matches!(call.target, CallTarget::Agent { .. }))
}

/// The time that a store has to save the last step of a run that is suspended.
const SAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// How many recent sessions are searched.
pub(crate) const RECENT_SESSIONS: usize = 1000;

/// Returns the error of a run that failed.
pub(crate) fn run_failure(kind: &'static str, message: &str, hint: Option<&str>) -> CommandError {
    CommandError::new(ErrorKind::named(kind), message).with_hint_if(hint).with_kind_shown()
}
