//! What commands need that work with tools: the project, its configuration and its library.

use crate::diagnostics;
use crate::source::Input;
use clap::Args;
use patter::declare::Agent;
use patter::gram::Dialect;
use patter::library::{Library, MergeError};
use patter::permission::{Permissions, Rule, RuleError};
use patter::project::{
    Config, Environment, Loaded, PermissionConfig, Project, ServerReport, Servers, Tools, find_root, find_root_of,
};
use patter::tool::{CancellationToken, Tool};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// A project with its tools.
pub(crate) struct Setup {
    pub(crate) root: Option<PathBuf>,
    pub(crate) config: Config,
    pub(crate) loaded: Loaded,
    pub(crate) toolset: Toolset,
}

/// The tools of a project, ready to be called.
pub(crate) struct Toolset {
    pub(crate) library: Arc<Library<Tool>>,
    /// Why servers could not be asked for their tools; it was told.
    pub(crate) missing_servers: Vec<String>,
    pub(crate) runtime: Runtime,
    /// Cancelled when the program is told to stop.
    pub(crate) stop: CancellationToken,
    /// What Ctrl-C stops first.
    pub(crate) turn: Turn,
    /// Where tools and models look variables up.
    pub(crate) environment: Environment,
    /// Keeps the servers alive.
    pub(crate) tools: Tools,
}

/// Where tools come from, beside the project.
#[derive(Args, Clone, Default)]
pub(crate) struct ToolSources {
    /// Gram file with toolboxes to use beside those of the project; may be given several times
    #[arg(long = "tools", value_name = "FILE")]
    toolboxes: Vec<PathBuf>,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,
}

/// Rules that are given with the command.
#[derive(Args, Clone, Default)]
pub(crate) struct Rules {
    /// Allow calls: `fs/*`, or `fs/readFile when path matches "docs/*"`
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Ask before calls
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,

    /// Refuse calls
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
}

impl ToolSources {
    /// Iterates over the files with toolboxes.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.toolboxes.iter()
    }
}

impl Setup {
    /// Reads the files that were named, with the project of the first, or else the one around the current folder. Says why where it cannot.
    pub(crate) fn read(files: &[PathBuf], sources: &ToolSources, servers: &Servers<'_>) -> io::Result<Option<Self>> {
        Self::read_without(files, sources, servers, &[])
    }

    /// Reads the same without some files of the project.
    pub(crate) fn read_without(
        files: &[PathBuf],
        sources: &ToolSources,
        servers: &Servers<'_>,
        without: &[PathBuf],
    ) -> io::Result<Option<Self>> {
        let root = files.first().map_or_else(find_root, |file| find_root_of(file));
        let config = match Config::read(root.as_deref()) {
            Ok(config) => config,
            Err(error) => return diagnostics::unloaded(&error).map(|_| None),
        };
        let paths: Vec<_> = files.iter().chain(&sources.toolboxes).cloned().collect();
        let Some(loaded) = read_files(&paths, root.as_deref(), without)? else { return Ok(None) };
        let servers = if sources.no_mcp { &Servers::None } else { servers };
        let toolset = Toolset::read(&loaded.project, root.as_deref(), &config, servers)?;
        Ok(toolset.map(|toolset| Self { root, config, loaded, toolset }))
    }

    /// Finds an agent of the first file that was named: by its name, or the one that no other calls. Says why where it
    /// cannot.
    pub(crate) fn agent(&self, name: Option<&str>) -> io::Result<Option<Agent>> {
        match self.loaded.project.main_agent(name) {
            Ok(agent) => Ok(Some(agent)),
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                Ok(None)
            }
        }
    }
}

/// Reads the files that were named, and those of a project without some. Says why where it cannot.
pub(crate) fn read_files(paths: &[PathBuf], root: Option<&Path>, without: &[PathBuf]) -> io::Result<Option<Loaded>> {
    let loaded = match Loaded::read_without(paths, root, Dialect::Patter, without) {
        Ok(loaded) => loaded,
        Err(error) => return diagnostics::unloaded(&error).map(|_| None),
    };
    for (path, error) in &loaded.unreadable {
        diagnostics::unreadable(&Input::Path(path.clone()), error)?;
    }
    Ok(loaded.unreadable.is_empty().then_some(loaded))
}

impl Toolset {
    /// Makes the tools of a project, and asks its servers for theirs. Says why where it cannot.
    pub(crate) fn read(
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        servers: &Servers<'_>,
    ) -> io::Result<Option<Self>> {
        let environment = match Environment::read(root) {
            Ok(environment) => environment,
            Err(error) => {
                diagnostics::warning(&format!("{error}; its variables are missing"))?;
                Environment::of_process()
            }
        };
        for line in environment.bad_lines() {
            diagnostics::warning(&format!("line {line} of .env is no assignment, as in NAME=value"))?;
        }
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let turn = Turn::default();
        let stop = stop_signal(&runtime, turn.clone())?;
        let mut tools = match Tools::read(project, root, config, &environment) {
            Ok(tools) => tools,
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                return Ok(None);
            }
        };
        say_problems(&tools)?;
        let Some(ServerReport { problems, warnings }) = until_stopped(&runtime, &stop, tools.add_servers(servers))
        else {
            diagnostics::say("stopped")?;
            return Ok(None);
        };
        for warning in warnings {
            diagnostics::warning(&warning)?;
        }
        for problem in &problems {
            diagnostics::error(&problem.to_string(), problem.hint().as_deref())?;
        }
        let Some(library) = merged(tools.library())? else { return Ok(None) };
        let missing_servers = problems.iter().map(ToString::to_string).collect();
        Ok(Some(Self { library, missing_servers, runtime, stop, turn, environment, tools }))
    }
}

/// Says which tools cannot be made.
pub(crate) fn say_problems(tools: &Tools) -> io::Result<()> {
    for problem in tools.problems() {
        diagnostics::error(&problem.to_string(), Some("`patter check` says more"))?;
    }
    Ok(())
}

/// Returns a library that could be merged. Says why where it could not.
pub(crate) fn merged(library: Result<Library<Tool>, Vec<MergeError>>) -> io::Result<Option<Arc<Library<Tool>>>> {
    match library {
        Ok(library) => Ok(Some(Arc::new(library))),
        Err(errors) => {
            for error in errors {
                diagnostics::error(&error.to_string(), Some("rename one of the two, or remove it"))?;
            }
            Ok(None)
        }
    }
}

impl Rules {
    /// Adds the rules of the project and of the command to permissions; says why where it cannot.
    pub(crate) fn add_to(&self, permissions: Permissions, config: &Config) -> io::Result<Option<Permissions>> {
        Ok(self.all(config)?.map(|rules| permissions.with_all(rules)))
    }

    /// Returns the rules of the project and of the command; says why where it cannot.
    pub(crate) fn all(&self, config: &Config) -> io::Result<Option<Vec<Rule>>> {
        let ours = config.permissions.rules();
        match ours.and_then(|mut ours| {
            ours.extend(self.rules()?);
            Ok(ours)
        }) {
            Ok(rules) => Ok(Some(rules)),
            Err(error) => {
                diagnostics::error(&error.to_string(), Some(error.hint()))?;
                Ok(None)
            }
        }
    }

    fn rules(&self) -> Result<Vec<Rule>, RuleError> {
        let Self { allow, ask, deny } = self.clone();
        PermissionConfig { allow, ask, deny }.rules_of(|decision| format!("--{}", decision.name()))
    }
}

/// Waits for something, unless the program is told to stop: then there is nothing. What was started is ended as it goes
/// out of scope, which would not happen if a signal ended the program at once.
pub(crate) fn until_stopped<T>(
    runtime: &Runtime,
    stop: &CancellationToken,
    work: impl Future<Output = T>,
) -> Option<T> {
    runtime.block_on(stop.run_until_cancelled(work))
}

/// Asks the person at the terminal. The thread that reads the answer is nobody's to wait for: whoever is told to stop
/// meanwhile does not hang on it.
pub(crate) async fn confirmed(question: String) -> bool {
    let (answer, answered) = oneshot::channel();
    std::thread::spawn(move || {
        // Nobody listens any more if the program was told to stop.
        let _ = answer.send(diagnostics::confirm(&question).unwrap_or(false));
    });
    answered.await.unwrap_or(false)
}

/// The turn of a conversation that began last: Ctrl-C stops it, and the program only if it is stopped already.
#[derive(Clone, Default)]
pub(crate) struct Turn(Arc<Mutex<Option<CancellationToken>>>);

impl Turn {
    /// Begins a turn, which also stops with the program.
    pub(crate) fn begin(&self, stop: &CancellationToken) -> CancellationToken {
        let token = stop.child_token();
        *self.current() = Some(token.clone());
        token
    }

    /// Stops the turn; tells whether there was one that went on.
    fn interrupt(&self) -> bool {
        let current = self.current();
        let going = current.as_ref().filter(|turn| !turn.is_cancelled());
        going.inspect(|turn| turn.cancel()).is_some()
    }

    fn current(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listens from now on for being told to stop: by Ctrl-C, by whoever started the program, or by the end of its terminal.
/// Whoever says it twice wants it at once.
pub(crate) fn stop_signal(runtime: &Runtime, turn: Turn) -> io::Result<CancellationToken> {
    let _entered = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    runtime.spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => if turn.interrupt() { continue },
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            if told.is_cancelled() {
                std::process::exit(130);
            }
            told.cancel();
        }
    });
    Ok(stop)
}

/// Returns the file and the agent of `FILE#AGENT`.
pub(crate) fn split_agent(text: &str) -> (PathBuf, Option<&str>) {
    match text.rsplit_once('#') {
        Some((file, agent)) if !agent.is_empty() => (PathBuf::from(file), Some(agent)),
        _ => (PathBuf::from(text), None),
    }
}
