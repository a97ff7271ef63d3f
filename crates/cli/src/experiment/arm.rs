//! What an arm is made of, and how it is made ready.

use super::revision::Revision;
use super::{beside, unready};
use crate::diagnostics;
use crate::setup::{Setup, ToolSources, merged, read_files, say_problems, split_agent};
use patter::case::{Case, Check};
use patter::drive::Driver;
use patter::experiment::{Arm, Judge, recorded_replies};
use patter::library::{Entry, Layer, Library};
use patter::model::models_with;
use patter::project::{Config, Project, Servers, Tools};
use patter::provider::ModelRef;
use patter::session::SessionError;
use patter::tool::Tool;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// An arm, as it is given: `NAME=PART,PART…`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ArmSpec {
    pub(crate) name: String,
    /// As it was written.
    what: String,
    /// Files with toolboxes, whose tools take the place of others.
    pub(crate) toolboxes: Vec<PathBuf>,
    model: Option<ModelRef>,
    /// Another `FILE#AGENT`.
    agent: Option<String>,
    /// A revision that git knows.
    revision: Option<String>,
    /// A recording, or a folder of them, whose replies take the place of the model's.
    recording: Option<PathBuf>,
}

impl FromStr for ArmSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, parts) = text.split_once('=').unwrap_or((text, ""));
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err("write NAME=WHAT; a name has letters, digits, `-`, `_` and `.`".to_owned());
        }
        let mut arm = Self { name: name.to_owned(), what: parts.to_owned(), ..Self::default() };
        for part in parts.split(',').map(str::trim).filter(|part| !part.is_empty() && *part != "base") {
            match part.split_once(':') {
                Some(("model", model)) => arm.model = Some(model.parse().map_err(|error| format!("{error}"))?),
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
                    return Err(format!("`{part}` is none of {kinds}"));
                }
            }
        }
        Ok(arm)
    }
}

impl ArmSpec {
    /// Returns the arm that is the file as it is.
    pub(crate) fn base(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// What arms are made of.
pub(super) struct Bench<'b> {
    pub(super) setup: &'b Setup,
    pub(super) sources: &'b ToolSources,
    pub(super) file: &'b Path,
    pub(super) agent: Option<&'b str>,
    /// The files of all arms whose tools take the place of others; they are no part of the project.
    pub(super) toolboxes: &'b [PathBuf],
    /// Makes a driver fit: its approver and rules.
    pub(super) fitting: &'b dyn Fn(Driver) -> Driver,
}

/// The files of a project as they are, or as they were.
struct Place {
    project: Arc<Project>,
    library: Arc<Library<Tool>>,
    config: Config,
    root: Option<PathBuf>,
}

impl Bench<'_> {
    /// Makes an arm ready, with the revision that its files are of. Says why where it cannot.
    pub(super) fn arm(&self, spec: &ArmSpec, model: Option<&ModelRef>) -> io::Result<Option<(Arm, Option<Revision>)>> {
        let (mut file, mut agent) = (self.file.to_owned(), self.agent);
        if let Some(other) = &spec.agent {
            (file, agent) = split_agent(other);
        }
        let mut shown = file.display().to_string();
        let mut put = None;
        let found = match (&spec.revision, &spec.agent) {
            (Some(revision), _) => {
                shown = format!("{shown} of {revision}");
                let Some(there) = Revision::checkout(revision, &file)? else { return Ok(None) };
                let without: Vec<_> = self.toolboxes.iter().map(|path| there.path(path)).collect();
                let root = self.setup.root.as_deref().map(|root| there.path(root));
                let place = self.place_of(root, &there.path(&file), &without)?;
                put = Some(there);
                place
            }
            (None, Some(_)) => self.place_of(self.setup.root.clone(), &file, self.toolboxes)?,
            (None, None) => Some(Place {
                project: Arc::new(self.setup.loaded.project.clone()),
                library: Arc::clone(&self.setup.toolset.library),
                config: self.setup.config.clone(),
                root: self.setup.root.clone(),
            }),
        };
        let Some(mut place) = found else { return Ok(None) };
        for path in &spec.toolboxes {
            let Some(library) = self.replaced(&place, path)? else { return Ok(None) };
            place.library = library;
        }
        let environment = &self.setup.toolset.environment;
        let models = models_with(environment, &place.config.models);
        let driver = Driver::new(Arc::clone(&place.project), Arc::clone(&place.library), Arc::clone(&models));
        let mut driver = (self.fitting)(driver);
        if let Some(model) = spec.model.as_ref().or(model) {
            driver = driver.with_model(model.clone());
        }
        let name = match place.project.main_agent(agent) {
            Ok(agent) => agent.name().unwrap_or_default().into_owned(),
            Err(error) => return unready(error),
        };
        let compiled = match driver.ready(&name) {
            Some(Ok(compiled)) => compiled,
            Some(Err(error)) => return unready(error),
            None => return unready(SessionError::Gone(name)),
        };
        if spec.recording.is_none()
            && let Err(error) = models(compiled.model())
        {
            return unready(error);
        }
        let what = if spec.what.is_empty() { "base" } else { &spec.what };
        let arm = Arm::new(&spec.name, driver, compiled, place.config.prices()).described(&shown, what);
        let arm = match &spec.recording {
            Some(path) if !path.exists() => {
                diagnostics::error(&format!("there is no recording `{}`", path.display()), None)?;
                return Ok(None);
            }
            Some(path) if path.is_dir() && !has_recordings(path) => {
                let hint = "`--record` writes a folder for each arm; name one of those";
                diagnostics::error(&format!("there are no recordings in `{}`", path.display()), Some(hint))?;
                return Ok(None);
            }
            Some(path) => arm.with_replies(recorded_replies(path)),
            None => arm,
        };
        Ok(Some((arm, put)))
    }

    /// Reads another file with the project around it. Says why where it cannot.
    fn place_of(&self, root: Option<PathBuf>, file: &Path, without: &[PathBuf]) -> io::Result<Option<Place>> {
        let is_here = root == self.setup.root;
        let paths: Vec<_> = std::iter::once(file.to_owned()).chain(self.sources.files().cloned()).collect();
        let Some(loaded) = read_files(&paths, root.as_deref(), without)? else { return Ok(None) };
        let (config, environment) = match is_here {
            true => (self.setup.config.clone(), &self.setup.toolset.environment),
            false => match Config::read(root.as_deref()) {
                Ok(config) => (config, &self.setup.toolset.environment),
                Err(error) => return diagnostics::unloaded(&error).map(|_| None),
            },
        };
        let tools = match is_here {
            // The servers are those that run already.
            true => self.setup.toolset.tools.reread(&loaded.project, root.as_deref(), &config, environment),
            false => Tools::read(&loaded.project, root.as_deref(), &config, environment),
        };
        let mut tools = match tools {
            Ok(tools) => tools,
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                return Ok(None);
            }
        };
        say_problems(&tools)?;
        if !is_here {
            let report = self.setup.toolset.runtime.block_on(tools.add_servers(&Servers::All));
            for problem in &report.problems {
                diagnostics::error(&problem.to_string(), problem.hint().as_deref())?;
            }
        }
        let Some(library) = merged(tools.library())? else { return Ok(None) };
        Ok(Some(Place { project: Arc::new(loaded.project), library, config, root }))
    }

    /// Returns a library in which the tools of a file take the place of those of the same name. Says why where it cannot.
    fn replaced(&self, place: &Place, path: &Path) -> io::Result<Option<Arc<Library<Tool>>>> {
        let Some(loaded) = read_files(&[path.to_owned()], None, &[])? else { return Ok(None) };
        let environment = &self.setup.toolset.environment;
        let root = place.root.as_deref();
        let tools = match Tools::read(&loaded.project, root, &place.config, environment) {
            Ok(tools) => tools,
            Err(error) => {
                diagnostics::error(&error.to_string(), error.hint().as_deref())?;
                return Ok(None);
            }
        };
        say_problems(&tools)?;
        let Some(given) = merged(tools.library())? else { return Ok(None) };
        let ours: Vec<Entry<Tool>> = given.entries().filter(|entry| entry.layer == Layer::Project).cloned().collect();
        if ours.is_empty() {
            let message = format!("`{}` has no toolbox", path.display());
            diagnostics::error(&message, Some("write `[mine:Toolbox | [sayHello:Command {…} | …]]`"))?;
            return Ok(None);
        }
        let names: HashSet<_> = ours.iter().map(|entry| entry.name.own().to_owned()).collect();
        let is_replaced = |entry: &&Entry<Tool>| entry.layer == Layer::Project && names.contains(entry.name.own());
        let others = place.library.entries().filter(|entry| !is_replaced(entry)).cloned();
        merged(Library::merge(others.chain(ours.clone())))
    }

    /// Makes the agents ready that judge. Says why where it cannot.
    pub(super) fn judges(&self, cases: &[Case], files: &[PathBuf]) -> io::Result<Option<Vec<Judge>>> {
        let mut judges: Vec<Judge> = Vec::new();
        for check in cases.iter().flat_map(|case| &case.checks) {
            let Check::Judge { agent, .. } = check else { continue };
            if judges.iter().any(|judge| judge.name() == agent) {
                continue;
            }
            let Some(judge) = self.judge(agent, files)? else { return Ok(None) };
            judges.push(judge);
        }
        Ok(Some(judges))
    }

    fn judge(&self, named: &str, files: &[PathBuf]) -> io::Result<Option<Judge>> {
        let (file, agent) = split_agent(named);
        let is_file = file.extension().is_some_and(|ending| ending == "gram");
        let (project, library) = if is_file {
            let path = beside(&file.display().to_string(), files);
            let Some(place) = self.place_of(self.setup.root.clone(), &path, self.toolboxes)? else { return Ok(None) };
            (place.project, place.library)
        } else {
            (Arc::new(self.setup.loaded.project.clone()), Arc::clone(&self.setup.toolset.library))
        };
        let name = match (is_file, project.main_agent(agent)) {
            (false, _) => named.to_owned(),
            (true, Ok(agent)) => agent.name().unwrap_or_default().into_owned(),
            (true, Err(error)) => return unready(error),
        };
        let models = models_with(&self.setup.toolset.environment, &self.setup.config.models);
        let driver = (self.fitting)(Driver::new(project, library, Arc::clone(&models)));
        let compiled = match driver.ready(&name) {
            Some(Ok(compiled)) => compiled,
            Some(Err(error)) => return unready(error),
            None => {
                let message = format!("there is no agent `{name}` to judge");
                diagnostics::error(&message, Some("name an agent of the project, or a file: `judge.gram`"))?;
                return Ok(None);
            }
        };
        if let Err(error) = models(compiled.model()) {
            return unready(error);
        }
        match Judge::new(named, driver, compiled) {
            Ok(judge) => Ok(Some(judge)),
            Err(error) => {
                diagnostics::error(&error.to_string(), Some(error.hint()))?;
                Ok(None)
            }
        }
    }
}

fn has_recordings(folder: &Path) -> bool {
    let is_one = |path: PathBuf| path.extension().is_some_and(|extension| extension == "jsonl");
    std::fs::read_dir(folder)
        .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| is_one(entry.path()))))
}
