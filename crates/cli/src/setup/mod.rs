//! The project that a command works on: its files, its configuration and its tools.

mod limit;
mod lock;
mod policy;
mod rules;
mod signal;
mod trace;
mod trust;

pub(crate) use limit::{max_runs, raise_file_limit};
pub(crate) use lock::LockOption;
pub(crate) use policy::{invalid_policy, refuse_broken_policies};
pub(crate) use rules::{Rules, refuse_unused, unused_error, unused_hooks};
pub(crate) use signal::{
    Signals, ToolRuntime, Turn, new_runtime, outlive_file_size_limit, stop_code, stop_name, until_stopped,
};

pub(crate) use trust::{
    Intent, UNTRUSTED, definition_line, extend_trust, is_trust_given, remember_trust, require_trust, set_trust,
    shown_folder,
};

use crate::error::CommandError;
use crate::file::check_readable;
use crate::place::Place;
use crate::ui::{self, StartingServers};
use clap::Args;
use patter::compile::select_agent;
use patter::declare::Agent;
use patter::gram::Dialect;
use patter::library::Library;
use patter::project::{
    Config, Environment, LoadedProject, Project, ProjectLock, ServerReport, ServerSelection, ToolProblem, ToolVariant,
    Tools, find_root, find_root_of,
};
use patter::tool::mcp::McpServer;
use patter::tool::{CancellationToken, Tool};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing::{debug, info};

/// A project with its tools.
pub(crate) struct Setup {
    pub(crate) root: Option<PathBuf>,
    pub(crate) config: Config,
    pub(crate) loaded: LoadedProject,
    pub(crate) toolset: Toolset,
}

/// The tools of a project, and the runtime to call them on.
pub(crate) struct Toolset {
    pub(crate) library: Arc<Library<Tool>>,
    /// The servers that could not be asked for their tools. They are already reported on stderr.
    pub(crate) missing_servers: Vec<CommandError>,
    pub(crate) runtime: ToolRuntime,
    /// Cancelled when a signal stops the program.
    pub(crate) stop: CancellationToken,
    /// What the signal asks for.
    pub(crate) signals: Signals,
    /// What Ctrl-C stops first.
    pub(crate) turn: Turn,
    /// The variables that tools and models read.
    pub(crate) environment: Environment,
    /// Keeps the servers alive.
    pub(crate) tools: Tools,
    /// What agents must match to run, if the project is locked.
    pub(crate) lock: Option<Arc<ProjectLock>>,
}

/// Sources of tools beside the project.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ToolSources {
    /// Gram file with more toolboxes; may be repeated
    #[arg(long = "tools", value_name = "FILE")]
    toolboxes: Vec<PathBuf>,

    /// Do not start MCP servers
    #[arg(long)]
    no_mcp: bool,
}

impl ToolSources {
    /// Returns the sources that a command has as options of other names.
    pub(crate) fn new(toolboxes: Vec<PathBuf>, no_mcp: bool) -> Self {
        Self { toolboxes, no_mcp }
    }

    /// Iterates over the files with toolboxes.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.toolboxes.iter()
    }

    /// Returns whether MCP servers are not to be started.
    pub(crate) fn excludes_servers(&self) -> bool {
        self.no_mcp
    }

    /// Returns whether any option is set.
    pub(crate) fn is_given(&self) -> bool {
        !self.toolboxes.is_empty() || self.no_mcp
    }
}

impl Setup {
    /// Reads files with the project around the first of them, or around the current folder if there are none.
    pub(crate) fn read(
        files: &[PathBuf],
        sources: &ToolSources,
        servers: &ServerSelection,
        intent: Intent,
    ) -> Result<Self, CommandError> {
        Self::read_locked(files, sources, servers, intent, &[], LockOption::NEVER)
    }

    /// Reads files and their project, except for some files of it. The project may have to match its lock.
    pub(crate) fn read_locked(
        files: &[PathBuf],
        sources: &ToolSources,
        servers: &ServerSelection,
        intent: Intent,
        excluded: &[PathBuf],
        lock: LockOption,
    ) -> Result<Self, CommandError> {
        let root = files.first().map_or_else(find_root, |file| find_root_of(file));
        let config = Config::read(root.as_deref())?;
        let paths: Vec<_> = files.iter().chain(&sources.toolboxes).cloned().collect();
        let loaded = read_files(&paths, root.as_deref(), excluded)?;
        let servers = if sources.no_mcp { &ServerSelection::None } else { servers };
        debug!(root = ?root, files = loaded.project.files().len(), "read the project");
        let toolset = Toolset::read(&loaded.project, root.as_deref(), &config, servers, intent, lock)?;
        Ok(Self { root, config, loaded, toolset })
    }

    /// Finds an agent of the first file: by its name, or the one that no other agent calls.
    pub(crate) fn agent(&self, name: Option<&str>) -> Result<Agent, CommandError> {
        Ok(select_agent(&self.loaded.project, name)?)
    }

    /// Reads a file whose tools replace those of a project. The user must trust what it defines, as part of this project.
    pub(crate) fn read_variant(
        &self,
        path: &Path,
        root: Option<&Path>,
        config: &Config,
    ) -> Result<ToolVariant, CommandError> {
        let loaded = read_files(&[path.to_owned()], None, &[])?;
        let Toolset { runtime, stop, environment, .. } = &self.toolset;
        let tools = Tools::read(&loaded.project, root, config, environment)?;
        report_problems(&tools)?;
        require_trust(runtime, stop, self.root.as_deref(), tools.definitions())?;
        ToolVariant::new(&tools)?.ok_or_else(|| {
            let error = CommandError::failure(format!("`{}` has no toolbox", path.display()));
            error.with_hint("write `[mine:Toolbox | [sayHello:Command {…} | …]]`")
        })
    }
}

/// Reads files, and those of a project except for some.
pub(crate) fn read_files(
    paths: &[PathBuf],
    root: Option<&Path>,
    excluded: &[PathBuf],
) -> Result<LoadedProject, CommandError> {
    let loaded = LoadedProject::read_excluding(paths, root, Dialect::Patter, excluded)?;
    check_readable(&loaded.unreadable)?;
    Ok(loaded)
}

impl Toolset {
    /// Creates the tools of a project, and asks its servers for theirs, if the user trusts it and it matches its lock where
    /// it has to. Tools and servers that do not work are reported on stderr, and the others are available all the same.
    pub(crate) fn read(
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        servers: &ServerSelection,
        intent: Intent,
        lock: LockOption,
    ) -> Result<Self, CommandError> {
        let environment = match Environment::read(root) {
            Ok(environment) => environment,
            Err(error) => {
                ui::warning(&format!("{error}; its variables are missing"))?;
                Environment::from_process()
            }
        };
        for line in environment.bad_lines() {
            ui::warning(&format!("line {line} of .env is not an assignment such as NAME=value"))?;
        }
        let runtime = match intent {
            Intent::Call => ToolRuntime::traced()?,
            Intent::Describe => ToolRuntime::new()?,
        };
        let turn = Turn::default();
        let signals = Signals::listen(&runtime, turn.clone())?;
        let stop = signals.stop.clone();
        let mut tools = Tools::read(project, root, config, &environment)?;
        report_problems(&tools)?;
        let lock = lock.read(root, &tools)?;
        let names: Vec<_> = tools.needed_servers(project, servers).into_iter().map(str::to_owned).collect();
        if intent == Intent::Call || !names.is_empty() {
            require_trust(&runtime, &stop, root, tools.definitions())?;
        }
        if !names.is_empty() {
            info!(servers = names.join(", "), "starting MCP servers");
        }
        let starting = StartingServers::new(names);
        let report =
            until_stopped(&runtime, &stop, tools.add_servers_with(project, servers, |name| starting.set_done(name)));
        // Its line is removed before others follow.
        drop(starting);
        let ServerReport { problems, warnings } = report.ok_or_else(CommandError::interrupted)?;
        for warning in warnings {
            ui::warning(&warning)?;
        }
        let mut missing_servers: Vec<_> = problems.iter().map(CommandError::from).collect();
        missing_servers.iter_mut().try_for_each(CommandError::print_problem)?;
        let library = Arc::new(tools.library()?);
        debug!(tools = library.entries().count(), "the tools are available");
        Ok(Self { library, missing_servers, runtime, stop, signals, turn, environment, tools, lock })
    }
}

impl Toolset {
    /// Finds an MCP server by its name.
    pub(crate) fn server(&self, name: &str) -> Result<&McpServer, CommandError> {
        let Some(server) = self.tools.server(name) else {
            let names: Vec<_> = self.tools.servers().collect();
            let hint = match patter::text::nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "add a section [mcp.NAME] to patter.toml".to_owned(),
                None => format!("the servers are {}", names.join(", ")),
            };
            return Err(CommandError::failure(format!("unknown MCP server `{name}`")).with_hint(hint));
        };
        server.map_err(|problem| CommandError::failure(problem.message.clone()).with_hint_if(problem.hint()))
    }
}

/// Reports declared tools that cannot be created. The others are available all the same.
pub(crate) fn report_problems(tools: &Tools) -> io::Result<()> {
    tools.problems().iter().try_for_each(|problem| tool_error(problem).print_problem())
}

fn tool_error(problem: &ToolProblem) -> CommandError {
    CommandError::failure(problem.message.clone())
        .with_place(Place::parse(&problem.place))
        .with_hint("run `patter check` for details")
}

/// Returns the file and the agent of `FILE#AGENT`.
pub(crate) fn split_agent(text: &str) -> (PathBuf, Option<&str>) {
    match text.rsplit_once('#') {
        Some((file, agent)) if !agent.is_empty() => (PathBuf::from(file), Some(agent)),
        _ => (PathBuf::from(text), None),
    }
}
