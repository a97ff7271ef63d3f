//! The tools of a project, from all layers.

use super::{Config, Environment, gram_files};
use crate::tool::{Kit, Tool, Workspace, WorkspaceError, declared, merge, standard};
use patter_core::library::{Layer, Library, MergeError};
use patter_core::project::{Finding, Project};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The tools of a project: the standard library, what the organisation shares, and its own.
pub struct Tools {
    layers: Vec<(Layer, Workspace)>,
    problems: Vec<ToolProblem>,
}

/// Which MCP servers are started and asked for their tools.
#[derive(Debug, Clone, Copy)]
pub enum Servers<'s> {
    /// None.
    None,
    /// All.
    All,
    /// Those that may have the tool of this name.
    For(&'s str),
}

/// A tool that is declared, and cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolProblem {
    /// Where it is declared.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// Why the tools of a project cannot be read.
#[derive(Debug, Error)]
pub enum ToolsError {
    /// A file or folder of the organisation cannot be read.
    #[error("cannot read the tools of the organisation in `{}`: {error}", path.display())]
    Org {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The name of the organisation cannot be one.
    #[error("the organisation cannot be called so: {0}")]
    OrgName(#[from] WorkspaceError),
}

impl ToolsError {
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ToolsError::Org { .. } => Some("`tools` in the section [org] of patter.toml names it".to_owned()),
            ToolsError::OrgName(_) => Some("`name` in the section [org] of patter.toml names it".to_owned()),
        }
    }
}

impl fmt::Display for ToolProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl Tools {
    /// Makes the tools of a project, without those of MCP servers.
    pub fn read(
        project: &Project,
        root: Option<&Path>,
        config: &Config,
        environment: &Environment,
    ) -> Result<Self, ToolsError> {
        let root = root.unwrap_or(Path::new("."));
        let kit = Kit { root: root.to_owned(), environment: environment.clone() };
        let mut tools = Self { layers: vec![(Layer::Internal, standard(&kit))], problems: Vec::new() };
        if let Some(org) = &config.org {
            let mut unreadable = Vec::new();
            let files: Vec<_> =
                org.tools.iter().flat_map(|path| gram_files(&root.join(path), &mut unreadable)).collect();
            let failed = |(path, error)| ToolsError::Org { path, error };
            if let Some(first) = unreadable.into_iter().next() {
                return Err(failed(first));
            }
            let read = |path: PathBuf| match std::fs::read(&path) {
                Ok(content) => Ok((path.display().to_string(), content)),
                Err(error) => Err(failed((path, error))),
            };
            let shared = Project::read(files.into_iter().map(read).collect::<Result<Vec<_>, _>>()?);
            let workspace = tools.declared(&shared, &kit);
            let workspace = match &org.name {
                Some(name) => workspace.of_org(name)?,
                None => workspace,
            };
            tools.layers.push((Layer::Org, workspace));
        }
        let ours = tools.declared(project, &kit);
        tools.layers.push((Layer::Project, ours));
        Ok(tools)
    }

    /// Returns the tools that are declared and could not be made.
    pub fn problems(&self) -> &[ToolProblem] {
        &self.problems
    }

    /// Merges the layers.
    pub fn library(&self) -> Result<Library<Tool>, Vec<MergeError>> {
        merge(self.layers.iter().cloned())
    }

    fn declared(&mut self, project: &Project, kit: &Kit) -> Workspace {
        let (workspace, findings) = declared(project, kit);
        self.problems.extend(findings.into_iter().map(|Finding { file, diagnostic }| ToolProblem {
            place: project.place(file, diagnostic.span),
            message: diagnostic.message.into_owned(),
        }));
        workspace
    }
}
