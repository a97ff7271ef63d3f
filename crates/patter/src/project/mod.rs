//! Projects on disk: `patter.toml`, the gram files around it, and the tools of all layers.

mod config;
mod environment;
mod models;
mod servers;
mod tools;

pub use config::{CheckConfig, Config, FsConfig, HttpConfig, OrgConfig, PermissionConfig, StoreConfig};
pub use environment::{Environment, Source};
pub use models::{Dollars, ModelKey, ModelsConfig, PriceConfig, ProviderConfig, Seconds};
pub use servers::{ServerProblem, ServerReport};
pub use tools::{Servers, ToolProblem, Tools, ToolsError};

use ignore::WalkBuilder;
use patter_core::gram::Dialect;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

pub use patter_core::declare::project::{ChoiceError, Declaration, File, Finding, Project};

/// The name of the file that marks the root of a project.
pub const CONFIG: &str = "patter.toml";

/// A project that was read from disk.
#[derive(Debug)]
pub struct Loaded {
    /// The files, read together.
    pub project: Project,
    /// The files that were asked for, by their place in the project.
    pub selected: BTreeSet<usize>,
    /// What could not be read.
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

/// Why a project cannot be read.
#[derive(Debug, Error)]
pub enum LoadError {
    /// `patter.toml` is malformed.
    #[error("cannot read `{}`: {message}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A folder has no gram files.
    #[error("there are no *.gram files in `{}`", .0.display())]
    Empty(PathBuf),
}

/// Finds the root of the project that the current folder is part of: it itself, or the nearest folder above, with a
/// `patter.toml`. The current folder is called `.`, so that files in it have short names.
pub fn find_root() -> Option<PathBuf> {
    if Path::new(CONFIG).is_file() {
        return Some(PathBuf::from("."));
    }
    let current = std::env::current_dir().ok()?;
    current.ancestors().find(|folder| folder.join(CONFIG).is_file()).map(Path::to_owned)
}

/// Finds the root of the project that a file is part of; that of the current folder where it is part of none. So an agent
/// runs under the rules of its own project, whatever the current folder is.
pub fn find_root_of(path: &Path) -> Option<PathBuf> {
    let full = path.canonicalize().ok();
    let found = full.as_deref().and_then(|full| full.ancestors().find(|folder| folder.join(CONFIG).is_file()));
    let ours = find_root();
    match (found, ours) {
        (Some(found), Some(ours)) if ours.canonicalize().is_ok_and(|ours| ours == found) => Some(ours),
        (Some(found), _) => Some(found.to_owned()),
        (None, ours) => ours,
    }
}

impl Loaded {
    /// Reads what paths stand for. Within a project (one with a `patter.toml`) all its files are read, since they may
    /// refer to one another; else only those that were named.
    pub fn read(paths: &[PathBuf], root: Option<&Path>, dialect: Dialect) -> Result<Self, LoadError> {
        Self::read_without(paths, root, dialect, &[])
    }

    /// Reads the files that were named, and those of the project around them without some.
    pub fn read_without(
        paths: &[PathBuf],
        root: Option<&Path>,
        dialect: Dialect,
        without: &[PathBuf],
    ) -> Result<Self, LoadError> {
        let mut unreadable = Vec::new();
        let mut named = Vec::new();
        for path in paths {
            let found = gram_files(path, &mut unreadable);
            if found.is_empty() && path.is_dir() {
                return Err(LoadError::Empty(path.clone()));
            }
            named.extend(found);
        }
        // A file may be named twice, by links too; it is one file.
        let mut known = BTreeSet::new();
        let mut is_new = |path: &PathBuf| path.canonicalize().map_or(true, |path| known.insert(path));
        named.retain(&mut is_new);
        let mut files = named.clone();
        let _ = without.iter().filter(|path| is_new(path)).count();
        if let Some(root) = root {
            files.extend(gram_files(root, &mut unreadable).into_iter().filter(is_new));
        }
        let mut contents = Vec::new();
        let mut selected = BTreeSet::new();
        for (index, path) in files.iter().enumerate() {
            match std::fs::read(path) {
                Ok(bytes) => {
                    if index < named.len() {
                        selected.insert(contents.len());
                    }
                    contents.push((path.display().to_string(), bytes));
                }
                Err(error) => unreadable.push((path.clone(), error)),
            }
        }
        Ok(Self { project: Project::read_dialect(contents, dialect), selected, unreadable })
    }
}

/// Finds the gram files that a path stands for: itself, or all `*.gram` below a folder, in a stable order.
///
/// Hidden files and what `.gitignore` names are passed over, and so is what is no file, such as a pipe. What cannot be
/// searched is added to `unreadable`.
pub fn gram_files(path: &Path, unreadable: &mut Vec<(PathBuf, io::Error)>) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let mut files = Vec::new();
    for entry in WalkBuilder::new(path).require_git(false).sort_by_file_name(OsStr::cmp).build() {
        match entry {
            Ok(entry) if entry.path().extension() == Some(OsStr::new("gram")) && entry.path().is_file() => {
                files.push(strip_dot(entry.into_path()));
            }
            Ok(_) => {}
            Err(error) => {
                let message = error.to_string();
                unreadable.push((path.to_owned(), error.into_io_error().unwrap_or_else(|| io::Error::other(message))));
            }
        }
    }
    files
}

/// Names files below the current folder without the `./` before them.
fn strip_dot(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}
