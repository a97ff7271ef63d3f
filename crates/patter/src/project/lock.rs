//! `patter.lock` of a project on disk: what it records beyond the agents, and whether the project still is as it was.

use super::load::CONFIG;
use super::tools::Tools;
use crate::file::{read_project_file, read_settings};
use crate::os_error::describe;
use crate::tool::Tool;
use crate::tool::command::named_files;
use crate::tool::mcp::ServerConfig;
use patter_core::compile::{CompileError, CompiledAgent, Drift, LOCK_FILE, Lock, LockError, LockedFile, LockedServer};
use patter_core::library::Library;
use patter_core::name::FullName;
use patter_core::text::mask_secrets;
use patter_core::types::definition::hash;
use serde_json::Value as Json;
use std::io;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// The sections of `patter.toml` that do not decide what runs do. Servers are recorded by themselves.
const OTHER_SECTIONS: [&str; 4] = ["check", "store", "prices", "mcp"];

/// The lock of a project, which its agents must match to run.
#[derive(Debug, Clone)]
pub struct ProjectLock {
    lock: Lock,
    root: PathBuf,
}

/// A reason why a project cannot be used as it is locked.
#[derive(Debug, Error)]
pub enum ProjectLockError {
    /// There is no lock.
    #[error("`{LOCK_FILE}` does not exist")]
    Missing,
    /// The lock cannot be read.
    #[error("cannot read `{LOCK_FILE}`: {}", describe(.0))]
    Unreadable(io::Error),
    /// The lock is malformed or of another version.
    #[error(transparent)]
    Invalid(#[from] LockError),
    /// The settings, the servers or the policies of the project are not as they were.
    #[error("the project is not as `{LOCK_FILE}` records it")]
    Drift(Vec<Drift>),
}

impl ProjectLockError {
    /// Returns what to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            ProjectLockError::Missing => "create it with `patter lock`",
            ProjectLockError::Unreadable(_) => "make it readable, or write it again with `patter lock`",
            ProjectLockError::Invalid(error) => error.hint(),
            ProjectLockError::Drift(_) => ACCEPT_HINT,
        }
    }
}

/// How to accept a change.
pub const ACCEPT_HINT: &str = "if the changes are intended, accept them with `patter lock`";

impl ProjectLock {
    /// Returns the path of the lock of a project.
    pub fn path(root: Option<&Path>) -> PathBuf {
        root.unwrap_or(Path::new(".")).join(LOCK_FILE)
    }

    /// Reads the lock of a project.
    pub fn read(root: Option<&Path>) -> Result<Self, ProjectLockError> {
        let text = read_settings(&Self::path(root)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ProjectLockError::Missing,
            _ => ProjectLockError::Unreadable(error),
        })?;
        let root = root.unwrap_or(Path::new(".")).to_owned();
        Ok(Self { lock: Lock::parse(&text)?, root })
    }

    /// Returns what is locked.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Checks the settings, the servers and the policies of the project.
    pub fn check_project(&self, tools: &Tools) -> Result<(), ProjectLockError> {
        let current = lock_project(Some(&self.root), tools);
        let mut locked = Lock::default();
        locked.settings.clone_from(&self.lock.settings);
        locked.servers.clone_from(&self.lock.servers);
        locked.policies.clone_from(&self.lock.policies);
        let drift = locked.drift(&current);
        if drift.is_empty() { Ok(()) } else { Err(ProjectLockError::Drift(drift)) }
    }

    /// Checks an agent and its tools, with the scripts that they run.
    pub fn check_agent(&self, compiled: &CompiledAgent, library: &Library<Tool>) -> Result<(), CompileError> {
        let mut current = compiled.bindings().clone();
        lock_files(&mut current, Some(&self.root), library);
        let drift = self.lock.drift_of_agents(&current);
        if drift.is_empty() {
            return Ok(());
        }
        Err(CompileError::Drift { agent: compiled.name().to_owned(), drift })
    }

    /// Returns whether a tool is as the lock records it. The lock records the tools that agents may call.
    pub fn records_tool(&self, name: &FullName, library: &Library<Tool>) -> bool {
        let mut current = Lock::default();
        current.add_tool(name, library);
        lock_files(&mut current, Some(&self.root), library);
        self.lock.drift_of_agents(&current).is_empty()
    }
}

/// Returns a lock with the settings, the servers and the policies of a project.
pub fn lock_project(root: Option<&Path>, tools: &Tools) -> Lock {
    let mut lock = Lock::default();
    lock.settings = root.map(settings).unwrap_or_default();
    let folder = root.unwrap_or(Path::new("."));
    lock.servers =
        tools.server_configs().map(|(name, server, file)| locked_server(name, server, file, folder)).collect();
    lock.add_policies(&tools.policies().policies);
    lock.sort();
    lock
}

/// Adds the hashes of the files that tools run. Files outside of the project belong to the machine, and are left out.
pub fn lock_files(lock: &mut Lock, root: Option<&Path>, library: &Library<Tool>) {
    let root = root.unwrap_or(Path::new("."));
    for tool in &mut lock.tools {
        // The files of a server are recorded with the server.
        let Some(entry) = library.get(&tool.name).filter(|entry| entry.value.kind.name() == "command") else {
            continue;
        };
        tool.files = locked_files(&entry.value.implementation.files(), root);
    }
}

/// Returns the settings of `patter.toml` as lines. Later sections are included without further ado.
fn settings(root: &Path) -> Vec<String> {
    let text = read_settings(&root.join(CONFIG)).unwrap_or_default();
    // A file that cannot be parsed was reported before.
    let table: toml::Table = toml::from_str(&text).unwrap_or_default();
    let mut lines = Vec::new();
    for (name, value) in table.iter().filter(|(name, _)| !OTHER_SECTIONS.contains(&name.as_str())) {
        flatten(name, value, &mut lines);
    }
    // A hook that allows everything would be the same setting.
    let hooks = table.get("hooks").and_then(toml::Value::as_array).into_iter().flatten();
    for words in hooks.filter_map(|hook| hook.get("run")?.as_array()) {
        let words: Vec<_> = words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect();
        let files = locked_files(&named_files(&words, &[root]), root);
        lines.extend(files.into_iter().map(|LockedFile { path, hash }| format!("hooks.files.{path} = {hash}")));
    }
    let models = table.get("models").and_then(toml::Value::as_table).into_iter().flatten();
    for words in models.filter_map(|(_, section)| section.get("key")?.get("command")?.as_array()) {
        let words: Vec<_> = words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect();
        let files = locked_files(&named_files(&words, &[root]), root);
        lines.extend(files.into_iter().map(|LockedFile { path, hash }| format!("models.files.{path} = {hash}")));
    }
    lines.sort();
    lines.dedup();
    lines
}

fn flatten(name: &str, value: &toml::Value, lines: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                flatten(&format!("{name}.{key}"), value, lines);
            }
        }
        other => lines.push(format!("{name} = {}", mask_secrets(&other.to_string()))),
    }
}

fn locked_server(name: &str, server: &ServerConfig, file: &Path, root: &Path) -> LockedServer {
    let ServerConfig { command, args, env, cwd, url, headers, .. } = server;
    let words: Vec<_> = command.iter().chain(args).cloned().collect();
    let folder = cwd.as_ref().map(|cwd| file.parent().unwrap_or(root).join(cwd));
    let files = named_files(&words, &[folder.as_deref().unwrap_or(Path::new(".")), root]);
    LockedServer {
        name: name.to_owned(),
        command: words.iter().map(|word| mask_secrets(word).into_owned()).collect(),
        folder: cwd.as_ref().map(|cwd| cwd.display().to_string()),
        url: url
            .as_ref()
            .map(|url| mask_secrets(url.split_once('?').map_or(url.as_str(), |(url, _)| url)).into_owned()),
        environment: env.keys().cloned().collect(),
        headers: headers.keys().cloned().collect(),
        files: locked_files(&files, root),
        declaration: hash(Json::Object(server.decisive_settings()).to_string().as_bytes()),
    }
}

fn locked_files(paths: &[PathBuf], root: &Path) -> Vec<LockedFile> {
    let full_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let mut files: Vec<LockedFile> = Vec::new();
    for path in paths {
        let Ok(full) = path.canonicalize() else { continue };
        let Ok(inside) = full.strip_prefix(&full_root) else { continue };
        // A link in the project to a program of the machine is the program.
        let Ok(bytes) = read_project_file(&full) else { continue };
        let steps: Vec<_> = inside.components().filter(|step| matches!(step, Component::Normal(_))).collect();
        let path = steps.iter().map(|step| step.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        if !files.iter().any(|file| file.path == path) {
            files.push(LockedFile { path, hash: hash(&bytes) });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}
