//! Arms, and the judges of their answers.

use super::resolve_beside;
use super::revision::Revision;
use crate::argument::{ModelArgument, parse_model};
use crate::error::CommandError;
use crate::setup::{Setup, ToolSources, Toolset, read_files, report_problems, require_trust, split_agent};
use patter::case::{Case, Check};
use patter::compile::select_agent;
use patter::drive::{Budget, Driver};
use patter::experiment::{Arm, Judge, hash_recordings, recorded_replies};
use patter::library::Library;
use patter::model::model_resolver_with_config;
use patter::project::{Config, Project, ServerSelection, Tools};
use patter::session::SessionError;
use patter::tool::Tool;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// An arm on the command line: `NAME=PART,PART…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ArmSpec {
    pub(crate) name: String,
    /// The parts as written.
    what: String,
    /// Files with toolboxes whose tools replace others.
    pub(crate) toolboxes: Vec<PathBuf>,
    model: Option<ModelArgument>,
    /// Another `FILE#AGENT`.
    agent: Option<String>,
    /// A git revision.
    revision: Option<String>,
    /// A recording, or a folder of them, whose replies replace those of the model.
    recording: Option<PathBuf>,
}

impl ArmSpec {
    /// Returns whether the arm is the file unchanged.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.what.split(',').map(str::trim).all(|part| part.is_empty() || part == "base")
    }
}

impl FromStr for ArmSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, parts) = text.split_once('=').unwrap_or((text, ""));
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("write NAME=WHAT; names consist of letters, digits, `-`, `_` and `.`".to_owned());
        }
        let mut arm = Self { name: name.to_owned(), what: parts.to_owned(), ..Self::default() };
        for part in parts.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "base") {
            match part.split_once(':') {
                Some(("model", model)) => arm.model = Some(parse_model(model)?),
                Some(("agent", agent)) => arm.agent = Some(agent.to_owned()),
                Some(("git", revision)) if !revision.is_empty() && !revision.starts_with('-') => {
                    arm.revision = Some(revision.to_owned());
                }
                Some(("recording", path)) => arm.recording = Some(PathBuf::from(path)),
                Some(("tools", file)) => arm.toolboxes.push(PathBuf::from(file)),
                _ if Path::new(part).extension().is_some_and(|ending| ending == "gram") => {
                    arm.toolboxes.push(PathBuf::from(part));
                }
                _ => {
                    let kinds = "a file with toolboxes, model:NAME, agent:FILE, git:REVISION, recording:PATH, or base";
                    return Err(format!("`{part}` is not {kinds}"));
                }
            }
        }
        Ok(arm)
    }
}

impl ArmSpec {
    /// Returns the arm of the unchanged file.
    pub(crate) fn base(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// What arms and judges are built from.
pub(super) struct Bench<'b> {
    pub(super) setup: &'b Setup,
    pub(super) sources: &'b ToolSources,
    pub(super) file: &'b Path,
    pub(super) agent: Option<&'b str>,
    /// The toolbox files of all arms, which are not part of the project.
    pub(super) toolboxes: &'b [PathBuf],
    /// Sets the approver and the rules of a driver.
    pub(super) configure: &'b dyn Fn(Driver) -> Driver,
    /// What all arms and judges together may spend.
    pub(super) budget: Option<Arc<Budget>>,
}

/// The project that an arm runs in.
struct ArmProject {
    project: Arc<Project>,
    library: Arc<Library<Tool>>,
    config: Config,
    root: Option<PathBuf>,
}

impl Bench<'_> {
    /// Builds an arm, with the checked-out revision that it uses, if any.
    pub(super) fn arm(
        &self,
        spec: &ArmSpec,
        model: Option<&ModelArgument>,
    ) -> Result<(Arm, Option<Revision>), CommandError> {
        let (file, agent) = match &spec.agent {
            Some(other) => split_agent(other),
            None => (self.file.to_owned(), self.agent),
        };
        let mut shown = file.display().to_string();
        let mut checkout = None;
        let mut place = match (&spec.revision, &spec.agent) {
            (Some(revision), _) => {
                shown = format!("{shown} of {revision}");
                let there = Revision::checkout(revision, &file)?;
                let excluded: Vec<_> = self.toolboxes.iter().map(|path| there.path(path)).collect();
                let root = self.setup.root.as_deref().map(|root| there.path(root));
                let place = self.read_project(root, &there.path(&file), &excluded)?;
                checkout = Some(there);
                place
            }
            (None, Some(_)) => self.read_project(self.setup.root.clone(), &file, self.toolboxes)?,
            (None, None) => ArmProject {
                project: Arc::new(self.setup.loaded.project.clone()),
                library: Arc::clone(&self.setup.toolset.library),
                config: self.setup.config.clone(),
                root: self.setup.root.clone(),
            },
        };
        for path in &spec.toolboxes {
            let variant = self.setup.read_variant(path, place.root.as_deref(), &place.config)?;
            place.library = Arc::new(variant.replace_in(&place.library)?);
        }
        let environment = &self.setup.toolset.environment;
        let models = model_resolver_with_config(environment, &place.config.models);
        let driver = Driver::new(Arc::clone(&place.project), Arc::clone(&place.library), Arc::clone(&models));
        let driver = driver.with_prices(place.config.prices()).with_budget(self.budget.clone());
        let mut driver = (self.configure)(driver);
        // Other tools and another revision are what the arm is about.
        let is_as_locked = spec.toolboxes.is_empty() && spec.revision.is_none();
        if let Some(lock) = self.setup.toolset.lock.as_ref().filter(|_| is_as_locked) {
            driver = driver.with_lock(Arc::clone(lock));
        }
        if let Some(model) = spec.model.as_ref().or(model) {
            driver = driver.with_model(model.resolve()?);
        }
        let name = select_agent(&place.project, agent)?.name().unwrap_or_default().into_owned();
        let compiled = driver.compile_named(&name).ok_or_else(|| SessionError::AgentNotFound(name))??;
        if spec.recording.is_none() {
            models(compiled.model())?;
        }
        let what = if spec.what.is_empty() { "base" } else { &spec.what };
        let arm = Arm::new(&spec.name, driver, compiled, place.config.prices()).with_description(&shown, what);
        let arm = match &spec.recording {
            Some(path) if !path.exists() => {
                return Err(CommandError::failure(format!("no recording at `{}`", path.display()))
                    .with_hint("record runs with `patter eval --record FOLDER` or `patter run --record FILE`"));
            }
            Some(path) if path.is_dir() && !has_recordings(path) => {
                let error = CommandError::failure(format!("no recordings in `{}`", path.display()));
                return Err(error.with_hint("`--record` writes a folder for each arm; name one of those"));
            }
            Some(path) => arm.with_replies(recorded_replies(path)).with_setup(hash_recordings(path)?),
            None => arm,
        };
        // The address of a model is part of what it is.
        let arm = arm.with_setup(place.config.models.to_string());
        Ok((arm, checkout))
    }

    /// Reads a file with a project, which may be another one.
    fn read_project(
        &self,
        root: Option<PathBuf>,
        file: &Path,
        excluded: &[PathBuf],
    ) -> Result<ArmProject, CommandError> {
        let is_here = root == self.setup.root;
        let paths: Vec<_> = std::iter::once(file.to_owned()).chain(self.sources.files().cloned()).collect();
        let loaded = read_files(&paths, root.as_deref(), excluded)?;
        let environment = &self.setup.toolset.environment;
        let config = if is_here { self.setup.config.clone() } else { Config::read(root.as_deref())? };
        let mut tools = match is_here {
            // The servers that already run are used.
            true => self.setup.toolset.tools.reread(&loaded.project, root.as_deref(), &config, environment)?,
            false => Tools::read(&loaded.project, root.as_deref(), &config, environment)?,
        };
        report_problems(&tools)?;
        self.require_trust(&tools)?;
        if !self.sources.excludes_servers() {
            let adding = tools.add_servers(&loaded.project, &ServerSelection::ForAgents);
            let report = self.setup.toolset.runtime.block_on(adding);
            for problem in &report.problems {
                CommandError::from(problem).print_problem()?;
            }
        }
        let library = Arc::new(tools.library()?);
        Ok(ArmProject { project: Arc::new(loaded.project), library, config, root })
    }

    /// Makes sure that the user trusts what an arm adds. It counts as part of the project, also if it is an older revision.
    fn require_trust(&self, tools: &Tools) -> Result<(), CommandError> {
        let Toolset { runtime, stop, .. } = &self.setup.toolset;
        require_trust(runtime, stop, self.setup.root.as_deref(), tools.definitions())
    }

    /// Compiles the agents that judge answers.
    pub(super) fn judges(&self, cases: &[Case], files: &[PathBuf]) -> Result<Vec<Judge>, CommandError> {
        let mut judges: Vec<Judge> = Vec::new();
        for check in cases.iter().flat_map(|case| &case.checks) {
            let Check::Judge { agent, .. } = check else { continue };
            if judges.iter().any(|judge| judge.name() == agent) {
                continue;
            }
            judges.push(self.judge(agent, files)?);
        }
        Ok(judges)
    }

    fn judge(&self, named: &str, files: &[PathBuf]) -> Result<Judge, CommandError> {
        let (file, agent) = split_agent(named);
        let is_file = file.extension().is_some_and(|ending| ending == "gram");
        let (project, library) = if is_file {
            let path = resolve_beside(&file.display().to_string(), files);
            let place = self.read_project(self.setup.root.clone(), &path, self.toolboxes)?;
            (place.project, place.library)
        } else {
            (Arc::new(self.setup.loaded.project.clone()), Arc::clone(&self.setup.toolset.library))
        };
        let name = match is_file {
            true => select_agent(&project, agent)?.name().unwrap_or_default().into_owned(),
            false => named.to_owned(),
        };
        let models = model_resolver_with_config(&self.setup.toolset.environment, &self.setup.config.models);
        let driver = Driver::new(project, library, Arc::clone(&models));
        let driver = driver.with_prices(self.setup.config.prices()).with_budget(self.budget.clone());
        let mut driver = (self.configure)(driver);
        if let Some(lock) = &self.setup.toolset.lock {
            driver = driver.with_lock(Arc::clone(lock));
        }
        let compiled = driver.compile_named(&name).ok_or_else(|| {
            let error = CommandError::failure(format!("unknown judge `{name}`"));
            error.with_hint("name an agent of the project, or a file: `judge.gram`")
        })??;
        models(compiled.model())?;
        Judge::new(named, driver, compiled)
            .map_err(|error| CommandError::failure(error.to_string()).with_hint(error.hint()))
    }
}

fn has_recordings(folder: &Path) -> bool {
    let is_one = |path: PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    std::fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| is_one(entry.path()))))
}
