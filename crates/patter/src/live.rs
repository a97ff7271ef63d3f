//! The agents of files on disk, with their tools: made ready once, and again when the files change.

use crate::drive::{Driver, Models};
use crate::model::models_with;
use crate::project::{
    Config, Environment, LoadError, Loaded, Project, ServerReport, Servers, Tools, ToolsError, find_root_of,
};
use crate::tool::{Tool, Workspace, WorkspaceBuilder, WorkspaceError};
use patter_core::gram::Dialect;
use patter_core::library::{Library, MergeError};
use patter_core::types::definition::hash;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use thiserror::Error;

/// The agents of files, with the tools of their project. Files that changed are read again, so that the next turn of a
/// conversation sees the change; what did not change is not made again.
///
/// ```
/// use patter::live::LiveProject;
///
/// /// Returns the population of a city
/// #[patter::tool(effect = "reads")]
/// fn population(city: String) -> u64 {
///     if city == "Bern" { 146_000 } else { 0 }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("geo.gram");
/// # std::fs::write(&path, "[geo:Agent {instruction: 'Answer.', model: 'demo'} | population]").unwrap();
/// let agents = LiveProject::open(&path).with_tools([population::tool()]).read().await.unwrap();
/// assert!(agents.driver().unwrap().ready("geo").unwrap().is_ok());
/// # }
/// ```
pub struct LiveProject {
    places: Places,
    config: Config,
    environment: Environment,
    models: Models,
    current: Mutex<Current>,
}

/// Where agents are read from.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The files and folders that were named. Agents are first looked for in the first.
    pub paths: Vec<PathBuf>,
    /// The root of the project, if there is one.
    pub root: Option<PathBuf>,
}

/// Agents that are about to be read.
pub struct Opening {
    places: Places,
    tools: Vec<Tool>,
    environment: Option<Environment>,
}

/// What was read last.
struct Current {
    /// The files as they were looked at last.
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    /// The hash of what was in them.
    content: String,
    tools: Tools,
    driver: Driver,
}

/// What shows that a file changed, without reading it.
type Stamp = (SystemTime, u64);

/// Why agents cannot be read.
#[derive(Debug, Error)]
pub enum LiveProjectError {
    /// The project cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The tools cannot be read.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// Tools have names that cannot stand together.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// Layers cannot be merged.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Merge(Vec<MergeError>),
}

impl Opening {
    /// Adds tools that are written in Rust.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets where keys and addresses come from. Without this they come from the variables of the process, and from the
    /// `.env` of the project.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Reads the files and the configuration of the project, makes its tools, and starts its MCP servers. What cannot be
    /// had of those is in [`Opening::read_reporting`].
    pub async fn read(self) -> Result<LiveProject, LiveProjectError> {
        Ok(self.read_reporting().await?.0)
    }

    /// Reads them, and returns what is to be said about the MCP servers too.
    pub async fn read_reporting(self) -> Result<(LiveProject, ServerReport), LiveProjectError> {
        let Self { places, tools: ours, environment } = self;
        let root = places.root.as_deref();
        let config = Config::read(root)?;
        let environment = match environment {
            Some(environment) => environment,
            None => Environment::read(root).unwrap_or_else(|_| Environment::of_process()),
        };
        let project = load(&places)?;
        let mut tools = Tools::read(&project, root, &config, &environment)?;
        if !ours.is_empty() {
            let builder = ours.into_iter().fold(Workspace::builder(), WorkspaceBuilder::tool);
            tools.add(builder.build()?);
        }
        let report = tools.add_servers(&Servers::All).await;
        let library = tools.library().map_err(LiveProjectError::Merge)?;
        Ok((LiveProject::new(places, config, environment, project, tools, library.into()), report))
    }
}

impl LiveProject {
    /// Opens a file, in its project, if it is part of one.
    pub fn open(path: impl Into<PathBuf>) -> Opening {
        let path = path.into();
        let places = Places { root: find_root_of(&path), paths: vec![path] };
        Opening { places, tools: Vec::new(), environment: None }
    }

    /// Returns the agents of a project that was read from these places, with its tools and the library of them.
    pub fn new(
        places: Places,
        config: Config,
        environment: Environment,
        project: Project,
        tools: Tools,
        library: Arc<Library<Tool>>,
    ) -> Self {
        let models = models_with(&environment, &config.models);
        let current = Current::new(project, tools, library, &models);
        Self { places, config, environment, models, current: Mutex::new(current) }
    }

    /// Returns a driver of the agents as they are now. Files that changed are read again.
    pub fn driver(&self) -> Result<Driver, LiveProjectError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps: Vec<_> = current.stamps.iter().map(|(path, _)| (path.clone(), stamp(path))).collect();
        if stamps != current.stamps {
            let project = load(&self.places)?;
            if content(&project) == current.content {
                current.stamps = stamps;
            } else {
                let tools = current.tools.reread(&project, self.root(), &self.config, &self.environment)?;
                let library = tools.library().map_err(LiveProjectError::Merge)?;
                *current = Current::new(project, tools, library.into(), &self.models);
            }
        }
        Ok(current.driver.clone())
    }

    /// Returns who finds models.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// Returns what `patter.toml` said.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns where keys and addresses come from.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the root of the project, if there is one.
    pub fn root(&self) -> Option<&Path> {
        self.places.root.as_deref()
    }
}

impl Current {
    fn new(project: Project, tools: Tools, library: Arc<Library<Tool>>, models: &Models) -> Self {
        let stamped = |path: &str| (PathBuf::from(path), stamp(Path::new(path)));
        let stamps = project.files().iter().map(|file| stamped(&file.path)).collect();
        let content = content(&project);
        let driver = Driver::new(Arc::new(project), library, Arc::clone(models));
        Self { stamps, content, tools, driver }
    }
}

fn load(places: &Places) -> Result<Project, LiveProjectError> {
    let loaded = Loaded::read(&places.paths, places.root.as_deref(), Dialect::Patter)?;
    match loaded.unreadable.into_iter().next() {
        Some((path, error)) => Err(LiveProjectError::File { path, error }),
        None => Ok(loaded.project),
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn content(project: &Project) -> String {
    let mut all = Vec::new();
    for file in project.files() {
        all.extend_from_slice(file.path.as_bytes());
        all.push(0);
        all.extend_from_slice(&file.tree.to_bytes());
        all.push(0);
    }
    hash(&all)
}
