//! Projects on disk, whose changed files are used once somebody agreed to that.

use crate::drive::Driver;
use crate::model::{ModelResolver, model_resolver_with_config};
use crate::os_error::describe;
use crate::project::{
    Config, Definition, Environment, LoadError, LoadedProject, Project, ServerReport, ServerSelection, Tools,
    ToolsError, find_root_of,
};
use crate::tool::{Tool, Workspace, WorkspaceBuilder, WorkspaceError};
use patter_core::diff::{Change, diff};
use patter_core::gram::Dialect;
use patter_core::library::{Library, MergeError};
use patter_core::permission::RuleError;
use patter_core::query::{Limits, ProjectGraph, find_violations};
use patter_core::types::definition::hash;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use thiserror::Error;

/// The agents of a project with its tools. An unchanged project is not compiled again.
///
/// Files that change are not used by themselves, because a tool or another program may have changed them:
/// [`LiveProject::changes`] returns what changed, and after [`LiveProject::accept`] the next turn of a conversation uses it.
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
/// let project = LiveProject::open(&path).with_tools([population::tool()]).read().await.unwrap();
/// assert!(project.driver().compile_named("geo").unwrap().is_ok());
/// # }
/// ```
pub struct LiveProject {
    paths: ProjectPaths,
    config: Config,
    environment: Environment,
    models: ModelResolver,
    snapshot: Mutex<Snapshot>,
}

/// The files of a project.
#[derive(Debug, Clone, Default)]
pub struct ProjectPaths {
    /// The files and folders to read. Agents are looked up in the first one first.
    pub paths: Vec<PathBuf>,
    /// The root of the project, if there is one.
    pub root: Option<PathBuf>,
    /// Files of the project that are not read with it.
    pub excluded: Vec<PathBuf>,
}

/// A project to be opened.
pub struct LiveProjectBuilder {
    paths: ProjectPaths,
    tools: Vec<Tool>,
    environment: Option<Environment>,
    trust: Option<TrustDecision>,
}

/// Decides whether what a project defines is trusted.
type TrustDecision = Arc<dyn Fn(&[Definition]) -> bool + Send + Sync>;

/// The project as last read.
struct Snapshot {
    /// The files, with what they looked like when last checked.
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    /// The hash of their content.
    content_hash: String,
    tools: Tools,
    driver: Driver,
    /// The hash of the content that somebody declined to use.
    declined: Option<String>,
}

/// Files of a project that changed, read but not yet used.
pub struct ProjectChanges {
    /// The files, with how they changed.
    files: Vec<(String, FileChange)>,
    changes: Vec<Change>,
    definitions: Vec<Definition>,
    snapshot: Snapshot,
}

/// How a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// Its content changed.
    Changed,
    /// It is gone.
    Removed,
}

/// The modification time and the size of a file, which change with its content.
type Stamp = (SystemTime, u64);

/// An error reading a project.
#[derive(Debug, Error)]
pub enum LiveProjectError {
    /// The project cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A file cannot be read.
    #[error("cannot read `{}`: {}", path.display(), describe(error))]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The tools of the project cannot be read.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// The project defines something that is not trusted.
    #[error("the project is not trusted, so nothing was started: it defines {}", list(.0))]
    Untrusted(Vec<Definition>),
    /// Tools written in Rust have conflicting names.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The layers of tools cannot be merged.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Merge(Vec<MergeError>),
    /// A rule in `patter.toml` is invalid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Changed files break policies, or policies cannot be read. There is at least one message.
    #[error("{}", .0.join("; "))]
    Policy(Vec<String>),
}

impl LiveProjectBuilder {
    /// Adds tools written in Rust.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Sets the environment that provides keys and addresses. By default it is that of the process and the `.env` file of
    /// the project.
    #[must_use]
    pub fn with_environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Reads the project only if a function agrees to what it defines: commands, servers and addresses. Without it, the
    /// project is trusted, because the program names it.
    #[must_use]
    pub fn with_trust(mut self, trust: impl Fn(&[Definition]) -> bool + Send + Sync + 'static) -> Self {
        self.trust = Some(Arc::new(trust));
        self
    }

    /// Reads the project and starts the MCP servers that its agents need. [`LiveProjectBuilder::read_with_report`] also
    /// returns their problems.
    pub async fn read(self) -> Result<LiveProject, LiveProjectError> {
        Ok(self.read_with_report().await?.0)
    }

    /// Reads the project and starts the MCP servers that its agents need. Also returns a report on the servers.
    pub async fn read_with_report(self) -> Result<(LiveProject, ServerReport), LiveProjectError> {
        let Self { paths, tools: rust_tools, environment, trust } = self;
        let root = paths.root.as_deref();
        let config = Config::read(root)?;
        let environment = match environment {
            Some(environment) => environment,
            None => Environment::read(root).unwrap_or_else(|_| Environment::from_process()),
        };
        let project = load(&paths)?;
        let mut tools = Tools::read(&project, root, &config, &environment)?;
        if trust.is_some_and(|trust| !trust(tools.definitions())) {
            return Err(LiveProjectError::Untrusted(tools.definitions().to_vec()));
        }
        if !rust_tools.is_empty() {
            let builder = rust_tools.into_iter().fold(Workspace::builder(), WorkspaceBuilder::tool);
            tools.add(builder.build()?);
        }
        let report = tools.add_servers(&project, &ServerSelection::ForAgents).await;
        let library = tools.library().map_err(LiveProjectError::Merge)?;
        Ok((LiveProject::new(paths, config, environment, project, tools, library.into()), report))
    }
}

impl LiveProject {
    /// Opens a file, with the project that it belongs to, if any.
    pub fn open(path: impl Into<PathBuf>) -> LiveProjectBuilder {
        let path = path.into();
        let paths = ProjectPaths { root: find_root_of(&path), paths: vec![path], excluded: Vec::new() };
        LiveProjectBuilder { paths, tools: Vec::new(), environment: None, trust: None }
    }

    /// Returns a project that was read from these paths, with its tools merged into a library.
    pub fn new(
        paths: ProjectPaths,
        config: Config,
        environment: Environment,
        project: Project,
        tools: Tools,
        library: Arc<Library<Tool>>,
    ) -> Self {
        let models = model_resolver_with_config(&environment, &config.models);
        let driver = Driver::new(Arc::new(project), library, Arc::clone(&models)).with_prices(config.prices());
        let driver = driver.with_budget(config.budget(paths.root.as_deref()));
        let snapshot = Snapshot::new(tools, driver);
        Self { paths, config, environment, models, snapshot: Mutex::new(snapshot) }
    }

    /// Returns a driver of the agents as they were read, or as they were when changes were last accepted.
    pub fn driver(&self) -> Driver {
        self.snapshot().driver.clone()
    }

    /// Returns what changed in the files since they were read, unless that was declined. Nothing of it is used yet.
    ///
    /// ```
    /// # use patter::live::LiveProject;
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("geo.gram");
    /// # let agent = |text: &str| format!("[geo:Agent {{instruction: '{text}', model: 'demo'}}]");
    /// # std::fs::write(&path, agent("Answer.")).unwrap();
    /// let project = LiveProject::open(&path).read().await.unwrap();
    /// std::fs::write(&path, agent("Answer politely.")).unwrap();
    /// let changes = project.changes().unwrap().unwrap();
    /// assert_eq!(changes.changes()[0].to_string(), "agent `geo`: `instruction` changed");
    /// project.accept(changes).await.unwrap();
    /// assert!(project.changes().unwrap().is_none());
    /// # }
    /// ```
    pub fn changes(&self) -> Result<Option<ProjectChanges>, LiveProjectError> {
        let mut snapshot = self.snapshot();
        let stamps: Vec<_> = snapshot.stamps.iter().map(|(path, _)| (path.clone(), stamp(path))).collect();
        if stamps == snapshot.stamps {
            return Ok(None);
        }
        let project = load(&self.paths)?;
        let tools = snapshot.tools.reread(&project, self.root(), &self.config, &self.environment)?;
        let library = tools.library().map_err(LiveProjectError::Merge)?;
        let scripts_now = scripts(&library);
        let hash = content_hash(&project, &scripts_now);
        if hash == snapshot.content_hash || snapshot.declined.as_ref() == Some(&hash) {
            snapshot.stamps = stamps;
            return Ok(None);
        }
        let known = snapshot.tools.definitions();
        let new = tools.definitions().iter().filter(|definition| !known.contains(definition));
        let definitions = new.cloned().collect();
        let before = snapshot.driver.project();
        let mut files = changed_files(before, &project);
        files.extend(changed_scripts(&scripts(snapshot.driver.library()), &scripts_now));
        let changes = diff(before, &project);
        let driver = snapshot.driver.with_project(Arc::new(project), library.into());
        let snapshot = Snapshot::new(tools, driver);
        Ok(Some(ProjectChanges { files, changes, definitions, snapshot }))
    }

    /// Uses changed files, as they were when the changes were found, from the next turn on. Starts the MCP servers that the
    /// agents need now and did not need before, and returns a report on them. If the changed files break a policy, the ones
    /// from before stay in use.
    pub async fn accept(&self, changes: ProjectChanges) -> Result<ServerReport, LiveProjectError> {
        let mut new = changes.snapshot;
        let report = new.tools.add_more_servers(new.driver.project()).await;
        let library = new.tools.library().map_err(LiveProjectError::Merge)?;
        new.driver = new.driver.with_project(Arc::new(new.driver.project().clone()), library.into());
        self.refuse_broken_policies(&new)?;
        *self.snapshot() = new;
        Ok(report)
    }

    fn refuse_broken_policies(&self, new: &Snapshot) -> Result<(), LiveProjectError> {
        let known = new.tools.policies();
        let unreadable = known
            .errors
            .iter()
            .map(|error| format!("the policy `{}` is invalid: {}", error.name, error.diagnostic.message));
        let mut rules = self.config.permissions.rules()?;
        rules.extend(new.driver.rules().iter().cloned());
        let project = new.driver.project();
        let source = ProjectGraph { project, library: new.driver.library(), rules: &rules, findings: &[] };
        let violations = find_violations(&known.policies, &source, Limits::default());
        let broken = known.findings.iter().chain(violations.iter().map(|violation| &violation.finding));
        let broken = broken.filter(|finding| finding.diagnostic.is_error()).map(|finding| {
            format!("{}: {}", project.location(finding.file, finding.diagnostic.span), finding.diagnostic.message)
        });
        let messages: Vec<_> = unreadable.chain(broken).collect();
        if messages.is_empty() { Ok(()) } else { Err(LiveProjectError::Policy(messages)) }
    }

    /// Continues with the files as they were before, until they change again.
    pub fn decline(&self, changes: ProjectChanges) {
        let mut snapshot = self.snapshot();
        snapshot.stamps = changes.snapshot.stamps;
        snapshot.declined = Some(changes.snapshot.content_hash);
    }

    fn snapshot(&self) -> MutexGuard<'_, Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the resolver of models.
    pub fn models(&self) -> &ModelResolver {
        &self.models
    }

    /// Returns the configuration in `patter.toml`.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the environment that provides keys and addresses.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the root of the project, if there is one.
    pub fn root(&self) -> Option<&Path> {
        self.paths.root.as_deref()
    }
}

impl Snapshot {
    fn new(tools: Tools, driver: Driver) -> Self {
        let with_stamp = |path: &str| (PathBuf::from(path), stamp(Path::new(path)));
        let project = driver.project();
        let scripts = scripts(driver.library());
        let script_stamps = scripts.keys().map(|path| (path.clone(), stamp(path)));
        let stamps = project.files().iter().map(|file| with_stamp(&file.path)).chain(script_stamps).collect();
        let content_hash = content_hash(project, &scripts);
        Self { stamps, content_hash, tools, driver, declined: None }
    }
}

impl ProjectChanges {
    /// Returns a driver with the changed files, to find out what they would do. It starts no MCP servers.
    pub fn driver(&self) -> Driver {
        self.snapshot.driver.clone()
    }

    /// Iterates over the files, with how they changed.
    pub fn files(&self) -> impl Iterator<Item = (&str, FileChange)> {
        self.files.iter().map(|(path, change)| (path.as_str(), *change))
    }

    /// Returns what changed in the declarations of the files.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the commands, servers and addresses that are new or changed.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }
}

impl FileChange {
    /// Returns the name, for people.
    pub const fn name(self) -> &'static str {
        match self {
            FileChange::Added => "added",
            FileChange::Changed => "changed",
            FileChange::Removed => "removed",
        }
    }
}

fn changed_files(before: &Project, after: &Project) -> Vec<(String, FileChange)> {
    let content = |project: &Project, path: &str| {
        project.files().iter().find(|file| file.path == path).map(|file| file.tree.to_bytes())
    };
    let mut files: Vec<_> = before.files().iter().chain(after.files()).map(|file| file.path.clone()).collect();
    files.sort();
    files.dedup();
    let changed = files.into_iter().filter_map(|path| {
        let change = match (content(before, &path), content(after, &path)) {
            (Some(before), Some(after)) if before == after => return None,
            (Some(_), Some(_)) => FileChange::Changed,
            (Some(_), None) => FileChange::Removed,
            (None, _) => FileChange::Added,
        };
        Some((path, change))
    });
    changed.collect()
}

fn list(definitions: &[Definition]) -> String {
    definitions.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn load(paths: &ProjectPaths) -> Result<Project, LiveProjectError> {
    let loaded = LoadedProject::read_excluding(&paths.paths, paths.root.as_deref(), Dialect::Patter, &paths.excluded)?;
    match loaded.unreadable.into_iter().next() {
        Some((path, error)) => Err(LiveProjectError::File { path, error }),
        None => Ok(loaded.project),
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Returns the scripts that tools run, with the hash of each when it was read.
fn scripts(library: &Library<Tool>) -> BTreeMap<PathBuf, String> {
    library.entries().flat_map(|entry| entry.value.implementation.scripts()).collect()
}

fn changed_scripts(before: &BTreeMap<PathBuf, String>, after: &BTreeMap<PathBuf, String>) -> Vec<(String, FileChange)> {
    let change = |(path, hash): (&PathBuf, &String)| match before.get(path) {
        Some(known) if known == hash => None,
        Some(_) => Some((path.display().to_string(), FileChange::Changed)),
        None => Some((path.display().to_string(), FileChange::Added)),
    };
    after.iter().filter_map(change).collect()
}

/// Returns the hash of the files of a project and of the scripts that its tools run.
fn content_hash(project: &Project, scripts: &BTreeMap<PathBuf, String>) -> String {
    let mut all = Vec::new();
    for (path, hash) in scripts {
        all.extend_from_slice(format!("{}\0{hash}\0", path.display()).as_bytes());
    }
    for file in project.files() {
        all.extend_from_slice(file.path.as_bytes());
        all.push(0);
        all.extend_from_slice(&file.tree.to_bytes());
        all.push(0);
    }
    hash(&all)
}
