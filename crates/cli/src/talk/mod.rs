//! What commands share that talk to agents: the options, the session, and what is shown.

mod approve;
mod events;
mod keeping;

pub(crate) use approve::Terminal;
pub(crate) use events::{DIM, Format, Opening, event_line, listener, short, show_end, show_nothing};
pub(crate) use keeping::{StoreOption, Stores};

use crate::setup::{Rules, Setup, ToolSources, Toolset, split_agent};
use crate::{Outcome, diagnostics, unsent};
use clap::Args;
use patter::agent::CompiledAgent;
use patter::drive::{Approver, Driver, RunEvent, Tally, now};
use patter::live::{LiveProject, Places};
use patter::permission::Rule;
use patter::project::{Config, Servers};
use patter::provider::ModelRef;
use patter::run::Run;
use patter::session::{Recorder, Session, SessionError, Source};
use patter::store::{self, SessionId, Store, StoreError};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How an agent is talked to.
#[derive(Args, Clone, Default)]
pub(crate) struct TalkOptions {
    /// Model to use, whatever the file says: Provider/name, or demo
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<ModelRef>,

    /// Call the model at most this often in a turn
    #[arg(long, value_name = "N")]
    max_turns: Option<u32>,

    /// Stop a turn after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,

    /// Approve all calls that are asked about
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// Record all that happens in a file, for `patter replay`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    #[command(flatten)]
    store: StoreOption,

    #[command(flatten)]
    rules: Rules,

    #[command(flatten)]
    pub(crate) sources: ToolSources,
}

/// Which session is meant.
#[derive(Args, Clone, Default)]
pub(crate) struct SessionOptions {
    /// Go on with this session: its id, or the beginning of it; with --new the id of the new one
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Begin a new session, which is what happens if nothing is said
    #[arg(long, conflicts_with = "continue_last")]
    new: bool,

    /// Go on with the last session of the agent
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    continue_last: bool,
}

/// A session that is open, with what it runs on.
pub(crate) struct Talk {
    pub(crate) session: Session,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) agents: Arc<LiveProject>,
    /// What it cost since it was opened.
    pub(crate) tally: Arc<Tally>,
    pub(crate) toolset: Toolset,
}

impl TalkOptions {
    /// Opens a session with an agent: `FILE#AGENT`. Says why where it cannot.
    pub(crate) fn open(
        &self,
        agent: &str,
        session: &SessionOptions,
        listener: impl Fn(&RunEvent) + Send + Sync + 'static,
        approver: impl Approver + 'static,
    ) -> io::Result<Option<Talk>> {
        let (file, name) = split_agent(agent);
        let Some(ready) = self.ready(&[file], name)? else { return Ok(None) };
        let store = match ready.store(&self.store, session.is_explicit())? {
            Ok(store) => store,
            Err(()) => return Ok(None),
        };
        let opened = ready.toolset.runtime.block_on(ready.session(session, store.clone()));
        let opened = match opened {
            Ok(opened) => opened,
            Err(error) => return told(&error),
        };
        self.talk(ready, opened, store, listener, approver)
    }

    /// Opens a session of a store to go on with a run that has not ended, with the files that it was opened with, unless
    /// another is given. Says why where it cannot.
    pub(crate) fn reopen(
        &self,
        id: Option<&str>,
        file: Option<&str>,
        listener: impl Fn(&RunEvent) + Send + Sync + 'static,
        approver: impl Approver + 'static,
    ) -> io::Result<Option<Talk>> {
        let Some(Stores { runtime, store }) = self.store.open()? else { return Ok(None) };
        let found = runtime.block_on(async {
            let id = match id {
                Some(id) => store::find(&*store, id).await?,
                None => keeping::unfinished(&*store).await?,
            };
            let log = patter::session::Log::read(store.read(&id).await?.entries)?;
            Ok::<_, SessionError>((id, log.source().cloned().unwrap_or_default()))
        });
        let (id, source) = match found {
            Ok(found) => found,
            Err(error) => return told(&error),
        };
        let (paths, name) = match (file, &source.files) {
            (Some(file), _) => (vec![split_agent(file).0], split_agent(file).1.map(str::to_owned)),
            (None, files) => (files.iter().map(PathBuf::from).collect(), source.agent.clone()),
        };
        if let Some(gone) = paths.iter().find(|path| !path.exists()) {
            let message = format!("the session `{id}` was held with `{}`, which is not there", gone.display());
            diagnostics::error(&message, Some("name the file with --file"))?;
            return Ok(None);
        }
        let mut options = self.clone();
        options.model = options.model.or_else(|| source.model.as_ref().and_then(|model| model.parse().ok()));
        let Some(ready) = options.ready(&paths, name.as_deref())? else { return Ok(None) };
        // The store belongs to the runtime that opened it.
        let runtime = &ready.toolset.runtime;
        let opened = runtime.block_on(async {
            let store = self.store.reopen(ready.root.as_deref(), &ready.config, &ready.toolset.environment).await?;
            let session = Session::open(Arc::clone(&ready.agents), Arc::clone(&store), &id).await?;
            Ok::<_, SessionError>((session.with_source(ready.source.clone()), store))
        });
        match opened {
            Ok((session, store)) => options.talk(ready, session, Some(store), listener, approver),
            Err(error) => told(&error),
        }
    }

    /// Reads files, with their project and its tools.
    fn ready(&self, paths: &[PathBuf], name: Option<&str>) -> io::Result<Option<Ready>> {
        let Some(setup) = Setup::read(paths, &self.sources, &Servers::All)? else { return Ok(None) };
        // Before anything else is done: which agent is meant.
        let Some(agent) = setup.agent(name)? else { return Ok(None) };
        let Some(rules) = self.rules.all(&setup.config)? else { return Ok(None) };
        let Setup { root, config, loaded, mut toolset } = setup;
        let paths: Vec<_> = paths.iter().chain(self.sources.files()).cloned().collect();
        let full = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string();
        let source = Source {
            files: paths.iter().map(full).collect(),
            agent: name.map(str::to_owned),
            model: self.model.as_ref().map(ToString::to_string),
        };
        let tools = std::mem::take(&mut toolset.tools);
        let places = Places { paths, root: root.clone() };
        let (library, environment) = (Arc::clone(&toolset.library), toolset.environment.clone());
        let agents = LiveProject::new(places, config.clone(), environment, loaded.project, tools, library);
        let agent = agent.name().unwrap_or_default().into_owned();
        Ok(Some(Ready { root, config, agents: Arc::new(agents), agent, source, rules, toolset }))
    }

    fn talk(
        &self,
        ready: Ready,
        session: Session,
        store: Option<Arc<dyn Store>>,
        listener: impl Fn(&RunEvent) + Send + Sync + 'static,
        approver: impl Approver + 'static,
    ) -> io::Result<Option<Talk>> {
        let (listener, approver): (Arc<_>, Arc<dyn Approver>) = (Arc::new(listener), Arc::new(approver));
        let (model, rules) = (self.model.clone(), ready.rules);
        let tally = Arc::new(Tally::new(ready.config.prices()));
        let heard = Arc::clone(&tally);
        let fitting = move |driver: Driver| {
            let (listener, heard) = (Arc::clone(&listener), Arc::clone(&heard));
            let driver = driver.with_rules(rules.clone()).with_listener(move |event| {
                heard.hear(event);
                listener(event);
            });
            let driver = driver.with_approver(Arc::clone(&approver));
            match &model {
                Some(model) => driver.with_model(model.clone()),
                None => driver,
            }
        };
        let (max_turns, timeout) = (self.max_turns, self.timeout);
        let session = session.with_driver(fitting).with_limits(move |limits| {
            limits.max_model_calls = max_turns.unwrap_or(limits.max_model_calls);
            if let Some(timeout) = timeout {
                limits.deadline_ms = Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
            }
        });
        match self.record.as_ref().map(Recorder::create).transpose() {
            Ok(recorder) => recorder.into_iter().for_each(|recorder| session.record(recorder)),
            Err(error) => {
                diagnostics::error(&error.to_string(), Some("remove the file, or name another"))?;
                return Ok(None);
            }
        }
        Ok(Some(Talk { session, store, agents: ready.agents, tally, toolset: ready.toolset }))
    }
}

impl Talk {
    /// Makes the agent ready, and says what people should know before it is asked. Says why where it cannot.
    pub(crate) fn ready(&mut self) -> io::Result<Option<CompiledAgent>> {
        let (driver, compiled) = match self.session.ready(None) {
            Ok(ready) => ready,
            Err(error) => return told(&error),
        };
        let settings = (self.agents.environment(), &self.agents.config().models);
        unsent::warn(vec![compiled.clone()], |name| driver.ready(name)?.ok(), settings)?;
        let model = (self.agents.models())(compiled.model());
        if let Some(notice) = model.as_ref().ok().and_then(|model| model.notice()) {
            diagnostics::say(&format!("{DIM}{notice}{DIM:#}"))?;
        }
        Ok(Some(compiled))
    }

    /// Shows how a turn ended.
    pub(crate) fn end(
        &self,
        format: Format,
        done: Result<Run, SessionError>,
        compiled: &CompiledAgent,
    ) -> io::Result<Outcome> {
        let run = match done {
            Ok(run) => run,
            Err(error) => {
                say_error(&error)?;
                return show_nothing(format, error.name(), &error.to_string());
            }
        };
        let id = self.session.id().map(|id| id.to_string());
        let outcome = show_end(format, &run, compiled.bindings_hash(), self.tally.cost(), id.as_deref())?;
        if let (Outcome::Success, Some(error)) = (outcome, self.toolset.runtime.block_on(self.session.broken())) {
            diagnostics::warning(&format!("the end of this conversation is lost: {error}"))?;
        }
        Ok(outcome)
    }
}

/// What a session is made of.
struct Ready {
    root: Option<PathBuf>,
    config: Config,
    agents: Arc<LiveProject>,
    /// The agent that is meant.
    agent: String,
    source: Source,
    rules: Vec<Rule>,
    toolset: Toolset,
}

impl Ready {
    /// Opens the store. Without one a session is not kept, which is an error only where one was asked for.
    fn store(&self, option: &StoreOption, is_needed: bool) -> io::Result<Result<Option<Arc<dyn Store>>, ()>> {
        let environment = &self.toolset.environment;
        let is_named = option.store.is_some() || is_needed;
        let opened = self.toolset.runtime.block_on(async {
            match option.location(self.root.as_deref(), &self.config, environment)? {
                Some(location) => store::open(&location).await.map(Some),
                None => Ok(None),
            }
        });
        match opened {
            Ok(None) if is_needed => {
                diagnostics::error("there is no store of sessions", Some("--store names one"))?;
                Ok(Err(()))
            }
            Ok(store) => Ok(Ok(store)),
            Err(error) if is_named => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                Ok(Err(()))
            }
            Err(error) => {
                diagnostics::warning(&format!("this conversation is not kept: {error}"))?;
                Ok(Ok(None))
            }
        }
    }

    async fn session(&self, options: &SessionOptions, store: Option<Arc<dyn Store>>) -> Result<Session, SessionError> {
        let agents = Arc::clone(&self.agents);
        let Some(store) = store else { return Ok(Session::new(agents).with_source(self.source.clone())) };
        let session = match (&options.session, options.continue_last) {
            (Some(id), _) if options.new => Session::keep(agents, store, SessionId::parse(id)?),
            (Some(id), _) => {
                let id = store::find(&*store, id).await?;
                Session::open(agents, store, &id).await?
            }
            (None, true) => {
                let last = store.list(LAST_AMONG).await?.into_iter().find(|summary| summary.agent == self.agent);
                let last = last.ok_or_else(|| StoreError::Unusable {
                    message: format!("there is no session with the agent `{}` yet", self.agent),
                    hint: Some("without --continue one begins".to_owned()),
                })?;
                Session::open(agents, store, &last.id).await?
            }
            (None, false) => Session::keep(agents, store, SessionId::new(now())),
        };
        Ok(session.with_source(self.source.clone()))
    }
}

/// Among how many sessions the last of an agent is looked for.
const LAST_AMONG: usize = 1000;

impl SessionOptions {
    /// Tells whether a session is asked for that must be kept.
    fn is_explicit(&self) -> bool {
        self.session.is_some() || self.continue_last
    }
}

/// Says why a session cannot be opened.
fn told<T>(error: &SessionError) -> io::Result<Option<T>> {
    say_error(error)?;
    Ok(None)
}

/// Says why a session cannot go on.
pub(crate) fn say_error(error: &SessionError) -> io::Result<()> {
    match error {
        SessionError::Compile(patter::agent::CompileError::Bind(error)) => {
            for failure in &error.failures {
                diagnostics::error(&failure.to_string(), failure.hint().as_deref())?;
            }
            Ok(())
        }
        SessionError::Compile(patter::agent::CompileError::Broken { file, findings }) => {
            let source = std::fs::read_to_string(file).unwrap_or_default();
            diagnostics::show(findings, &source, file, diagnostics::Limit::default())?;
            diagnostics::error(&format!("`{file}` has mistakes, so it is not run"), Some("`patter check` says more"))
        }
        SessionError::Compile(error) => diagnostics::error(&error.to_string(), Some("`patter check` says more")),
        SessionError::Model(error) => diagnostics::error(&format!("ConfigurationError: {error}"), error.hint()),
        SessionError::Start(error) => {
            diagnostics::error(&format!("{}: {error}", error.name()), Some("say something to the agent"))
        }
        SessionError::Unfinished => {
            let hint = "`patter resume` goes on with it, `patter resume --abandon` gives it up";
            diagnostics::error("the last run of this session has not ended", Some(hint))
        }
        SessionError::Choice(error) => diagnostics::error(&error.to_string(), error.hint().as_deref()),
        SessionError::Store(error) => diagnostics::error(&error.to_string(), error.hint().as_deref()),
        error => diagnostics::error(&error.to_string(), None),
    }
}

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.trim_end_matches('s').parse().map_err(|_| "write seconds, as in 30".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}
