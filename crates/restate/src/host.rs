//! The project that a worker hosts: read as `patter serve` does, with its rules, policies, lock and trust.

use patter::drive::Driver;
use patter::gram::Dialect;
use patter::library::{KnownTools, Toolkits};
use patter::live::{LiveProject, ProjectPaths};
use patter::permission::Rule;
use patter::project::{
    ACCEPT_HINT, Config, Definition, Environment, LoadedProject, ProjectLock, ServerSelection, Tools, TrustRecord,
    TrustStore, find_root_of,
};
use patter::provider::ModelRef;
use patter::query::{Limits, ProjectGraph, find_violations};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A project that can run, and how its driver is configured.
pub struct HostedProject {
    /// The project with its tools.
    pub project: LiveProject,
    rules: Vec<Rule>,
    lock: Option<Arc<ProjectLock>>,
    model: Option<ModelRef>,
}

/// How to read a project.
#[derive(Debug, Clone, Default)]
pub struct HostOptions {
    /// Files and folders with agents.
    pub paths: Vec<PathBuf>,
    /// Whether the project must be as its lock records it.
    pub is_locked: bool,
    /// Whether the project is trusted whatever it defines.
    pub is_trusted: bool,
    /// The model to use instead of those of the agents.
    pub model: Option<ModelRef>,
}

/// Why a project cannot be hosted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// The cause.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
}

impl HostError {
    fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

impl HostedProject {
    /// Reads a project and starts the MCP servers that its agents need. Servers that do not start are only logged: agents that
    /// need them do not compile.
    pub async fn read(options: HostOptions) -> Result<Self, HostError> {
        let HostOptions { paths, is_locked, is_trusted, model } = options;
        let root = paths.first().and_then(|path| find_root_of(path));
        let folder = root.as_deref();
        let config = Config::read(folder).map_err(HostError::new)?;
        let loaded = LoadedProject::read_excluding(&paths, folder, Dialect::Patter, &[]).map_err(HostError::new)?;
        if let Some((path, error)) = loaded.unreadable.first() {
            return Err(HostError::new(format!("cannot read `{}`: {error}", path.display())));
        }
        let project = loaded.project;
        let environment = Environment::read(folder).unwrap_or_else(|_| Environment::from_process());
        let mut tools = Tools::read(&project, folder, &config, &environment).map_err(HostError::new)?;
        if !is_trusted {
            require_trust(folder, tools.definitions())?;
        }
        let lock = match is_locked {
            true => Some(Arc::new(read_lock(folder, &tools)?)),
            false => None,
        };
        let servers = tools.add_servers(&project, &ServerSelection::ForAgents).await;
        for problem in &servers.problems {
            tracing::warn!(server = problem.server, error = problem.message, "a server does not work");
        }
        let library = Arc::new(
            tools
                .library()
                .map_err(|errors| HostError::new(errors.first().map(ToString::to_string).unwrap_or_default()))?,
        );
        let rules = config.permissions.rules().map_err(HostError::new)?;
        let known = KnownTools::new(&project, &*library);
        if let Some(unused) = rules.iter().find_map(|rule| known.unused(rule)) {
            let error = HostError::new(format!("a permission rule is about nothing: {unused}"));
            return Err(error.with_hint(unused.hint()));
        }
        let toolkits = Toolkits::new(&project, &library);
        let rules: Vec<_> = rules.into_iter().map(|rule| toolkits.expand(rule)).collect();
        let graph = ProjectGraph { project: &project, library: &*library, rules: &rules, findings: &[] };
        refuse_broken_policies(&tools, &graph)?;
        let places = ProjectPaths { paths, root, excluded: Vec::new() };
        let project = LiveProject::new(places, config, environment, project, tools, library);
        let hosted = Self { project, rules, lock, model };
        hosted.check_agents()?;
        Ok(hosted)
    }

    /// Checks that there are agents, and that all of them can run.
    fn check_agents(&self) -> Result<(), HostError> {
        let driver = self.configure(self.project.driver());
        let names: Vec<_> = driver.project().agents().map(|(declaration, _)| declaration.name.clone()).collect();
        if names.is_empty() {
            return Err(
                HostError::new("there are no agents to host").with_hint("name a file with agents, or its folder")
            );
        }
        for name in names {
            driver.compile_named(&name).transpose().map_err(HostError::new)?;
        }
        Ok(())
    }

    /// Configures a driver with the rules, the lock and the model.
    pub fn configure(&self, driver: Driver) -> Driver {
        configure(driver, &self.rules, self.lock.as_ref(), self.model.as_ref())
    }

    /// Returns the project, and a function that configures its driver.
    pub fn into_parts(self) -> (LiveProject, impl Fn(Driver) -> Driver + Send + Sync + 'static) {
        let Self { project, rules, lock, model } = self;
        (project, move |driver| configure(driver, &rules, lock.as_ref(), model.as_ref()))
    }
}

fn configure(driver: Driver, rules: &[Rule], lock: Option<&Arc<ProjectLock>>, model: Option<&ModelRef>) -> Driver {
    let mut driver = driver.with_rules(rules.iter().cloned());
    if let Some(lock) = lock {
        driver = driver.with_lock(Arc::clone(lock));
    }
    match model {
        Some(model) => driver.with_model(model.clone()),
        None => driver,
    }
}

fn read_lock(root: Option<&Path>, tools: &Tools) -> Result<ProjectLock, HostError> {
    let lock = ProjectLock::read(root).map_err(|error| HostError::new(&error).with_hint(error.hint()))?;
    lock.check_project(tools).map_err(|error| HostError::new(error).with_hint(ACCEPT_HINT))?;
    Ok(lock)
}

/// Returns an error if a project defines something that the user has not agreed to.
fn require_trust(root: Option<&Path>, definitions: &[Definition]) -> Result<(), HostError> {
    let folder = root.unwrap_or(Path::new("."));
    let record = match TrustStore::of_user() {
        Some(store) => store.read(folder).map_err(|error| HostError::new(&error).with_hint(error.hint()))?,
        None => TrustRecord::default(),
    };
    let untrusted: Vec<_> = record.untrusted(definitions).iter().map(ToString::to_string).collect();
    if untrusted.is_empty() {
        return Ok(());
    }
    let message = format!("the project is not trusted, so nothing was started: {}", untrusted.join("; "));
    let hint = "review these, then run `patter trust`; or pass --trust to trust them for one command";
    Err(HostError::new(message).with_hint(hint))
}

fn refuse_broken_policies(tools: &Tools, graph: &ProjectGraph<'_, patter::tool::Tool>) -> Result<(), HostError> {
    let known = tools.policies();
    if let Some(error) = known.errors.first() {
        return Err(HostError::new(format!("the policy `{}` is invalid: {}", error.name, error.diagnostic.message)));
    }
    let violations = find_violations(&known.policies, graph, Limits::default());
    let findings = known.findings.iter().chain(violations.iter().map(|violation| &violation.finding));
    match findings.map(|finding| &finding.diagnostic).find(|diagnostic| diagnostic.is_error()) {
        None => Ok(()),
        Some(diagnostic) => Err(HostError::new(format!("the project breaks a policy: {}", diagnostic.message))),
    }
}
