//! Finding and reading the files of a project.

use crate::file::{not_a_file, read_project_file, read_source};
use ignore::{DirEntry, WalkBuilder};
use patter_core::declare::project::Project;
use patter_core::gram::Dialect;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// The name of the configuration file, which marks the root of a project.
pub const CONFIG: &str = "patter.toml";

/// A project read from disk.
#[derive(Debug)]
pub struct LoadedProject {
    /// The files, read together.
    pub project: Project,
    /// The requested files, by their index in the project.
    pub selected: BTreeSet<usize>,
    /// The files and folders that could not be read.
    pub unreadable: Vec<(PathBuf, io::Error)>,
}

/// An error while reading a project.
#[derive(Debug, Error)]
pub enum LoadError {
    /// `patter.toml` is malformed.
    #[error("cannot read `{}`: {message}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
        /// What to write instead, if that is known.
        hint: Option<String>,
    },
    /// A folder has no gram files.
    #[error("no *.gram files in `{}`", .0.display())]
    Empty(PathBuf),
}

/// Finds the root of the current folder's project: the nearest folder with a `patter.toml`, starting with the current
/// folder. The current folder is returned as `.`, so that its files have short names.
pub fn find_root() -> Option<PathBuf> {
    if Path::new(CONFIG).is_file() {
        return Some(PathBuf::from("."));
    }
    let current = std::env::current_dir().ok()?;
    current.ancestors().find(|folder| folder.join(CONFIG).is_file()).map(Path::to_owned)
}

/// Finds the root of the project that a file belongs to, or that of the current folder if it belongs to none.
///
/// An agent runs under the rules of its own project, whatever the current folder is.
pub fn find_root_of(path: &Path) -> Option<PathBuf> {
    let full = path.canonicalize().ok();
    let found = full.as_deref().and_then(|full| full.ancestors().find(|folder| folder.join(CONFIG).is_file()));
    let current = find_root();
    match (found, current) {
        (Some(found), Some(current)) if current.canonicalize().is_ok_and(|current| current == found) => Some(current),
        (Some(found), _) => Some(found.to_owned()),
        (None, current) => current,
    }
}

impl LoadedProject {
    /// Reads files and folders. Within a project (a folder with a `patter.toml`) all its files are read, since they may
    /// refer to one another; otherwise only the given ones.
    pub fn read(paths: &[PathBuf], root: Option<&Path>, dialect: Dialect) -> Result<Self, LoadError> {
        Self::read_excluding(paths, root, dialect, &[])
    }

    /// Reads files and folders like [`LoadedProject::read`], but without some files of the project around them.
    pub fn read_excluding(
        paths: &[PathBuf],
        root: Option<&Path>,
        dialect: Dialect,
        excluded: &[PathBuf],
    ) -> Result<Self, LoadError> {
        let mut unreadable = Vec::new();
        let mut named = Vec::new();
        for path in paths {
            let before = unreadable.len();
            let found = gram_files(path, &mut unreadable);
            // A folder that cannot be searched may contain files.
            if found.is_empty() && path.is_dir() && unreadable.len() == before {
                return Err(LoadError::Empty(path.clone()));
            }
            named.extend(found);
        }
        // A file may be given twice, also through links; it is read once.
        let mut known = BTreeSet::new();
        let mut is_new = |path: &PathBuf| path.canonicalize().map_or(true, |path| known.insert(path));
        named.retain(&mut is_new);
        let mut files = named.clone();
        let _ = excluded.iter().filter(|path| is_new(path)).count();
        if let Some(root) = root {
            files.extend(gram_files(root, &mut unreadable).into_iter().filter(is_new));
        }
        let mut contents = Vec::new();
        let mut selected = BTreeSet::new();
        for (index, path) in files.iter().enumerate() {
            let is_named = index < named.len();
            match if is_named { read_source(path) } else { read_project_file(path) } {
                Ok(bytes) => {
                    if is_named {
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

/// Finds the gram files of a path: the file itself, or all `*.gram` files below a folder, in a stable order.
///
/// Hidden files, files that `.gitignore` excludes and special files such as pipes are skipped. Folders that cannot be
/// searched are added to `unreadable`.
pub fn gram_files(path: &Path, unreadable: &mut Vec<(PathBuf, io::Error)>) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let found = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(problem) = found.ancestors().find_map(bad_ignore_file) {
        unreadable.push(problem);
        return Vec::new();
    }
    let problems = Arc::new(Mutex::new(Vec::new()));
    let skipped = Arc::clone(&problems);
    let is_readable = move |entry: &DirEntry| {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let problem = is_folder.then(|| bad_ignore_file(entry.path())).flatten();
        let is_readable = problem.is_none();
        skipped.lock().unwrap_or_else(PoisonError::into_inner).extend(problem);
        is_readable
    };
    let mut files = Vec::new();
    let mut walk = WalkBuilder::new(path);
    walk.require_git(false).sort_by_file_name(OsStr::cmp).filter_entry(is_readable);
    for entry in walk.build() {
        match entry {
            Ok(entry) if entry.path().extension() == Some(OsStr::new("gram")) && entry.path().is_file() => {
                files.push(strip_dot(entry.into_path()));
            }
            Ok(_) => {}
            Err(error) => {
                let place = error_path(&error).unwrap_or(path).to_owned();
                // The message of an error while walking repeats the path.
                let reason = match error.io_error() {
                    Some(error) => error.kind().into(),
                    None => io::Error::other(error.to_string()),
                };
                unreadable.push((place, reason));
            }
        }
    }
    unreadable.append(&mut problems.lock().unwrap_or_else(PoisonError::into_inner));
    files
}

/// The files in a folder that say which others to ignore.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// The maximum size of such a file, in bytes.
const MAX_IGNORE_FILE: u64 = 1 << 20;

/// Returns the file of a folder that says which others to ignore, if it cannot be read to its end: the walker would wait for
/// a pipe, and read a link to `/dev/zero` until no memory is left.
fn bad_ignore_file(folder: &Path) -> Option<(PathBuf, io::Error)> {
    IGNORE_FILES.into_iter().map(|name| folder.join(name)).find_map(|path| {
        let metadata = path.metadata().ok()?;
        let error = match metadata.is_file() {
            true if metadata.len() <= MAX_IGNORE_FILE => return None,
            true => io::Error::new(io::ErrorKind::FileTooLarge, "it is larger than 1 MiB"),
            // Git ignores a folder of that name too.
            false if metadata.is_dir() => return None,
            false => not_a_file(false),
        };
        Some((strip_dot(path), error))
    })
}

/// Returns the file or folder that an error is about.
fn error_path(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => error_path(err),
        _ => None,
    }
}

/// Removes the leading `./` from a path.
pub(super) fn strip_dot(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}
