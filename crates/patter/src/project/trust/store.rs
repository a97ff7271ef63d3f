//! What a user has trusted, outside of all projects.

use super::{Definition, Untrusted};
use crate::os_error::describe;
use patter_core::types::definition::hash;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The folder in which a user's trust is stored: a file for each project. Other users of the machine can neither read nor
/// change it.
///
/// ```
/// use patter::project::{Definition, DefinitionKind, TrustStore};
/// # let folder = tempfile::tempdir().unwrap();
/// # let project = folder.path().to_owned();
/// let store = TrustStore::new(folder.path().join("trust"));
/// let words = Definition::new(DefinitionKind::Command, "text/words", "wc -w", &"wc -w");
/// assert_eq!(store.read(&project)?.untrusted([&words]).len(), 1);
/// store.add(&project, [&words])?;
/// assert!(store.read(&project)?.untrusted([&words]).is_empty());
/// # Ok::<(), patter::project::TrustError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustStore {
    folder: PathBuf,
}

/// What is trusted in a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    version: u32,
    /// The folder of the project.
    pub root: PathBuf,
    /// The trusted definitions.
    pub definitions: Vec<Definition>,
}

/// An error with the store.
#[derive(Debug, Error)]
pub enum TrustError {
    /// A file cannot be read or written.
    #[error("cannot access `{}`: {}", path.display(), describe(error))]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file was written by another program or version.
    #[error("`{}` does not say what is trusted", .0.display())]
    Malformed(PathBuf),
    /// A file could have been written by someone else.
    #[error("`{}` belongs to another user, or others can write it", .0.display())]
    Foreign(PathBuf),
}

const VERSION: u32 = 1;
const ENDING: &str = "json";

impl TrustStore {
    /// Uses a folder, which is created when something is trusted.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the store of the user: the folder that `PATTER_TRUST_DIR` names, or `patter/trust` in `XDG_STATE_HOME` or
    /// `~/.local/state`. The file `.env` of a project has no say in it.
    pub fn of_user() -> Option<Self> {
        let named = absolute_variable("PATTER_TRUST_DIR");
        named.or_else(|| Some(state_folder()?.join("trust"))).map(Self::new)
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns what is trusted in a project: nothing, if the user never agreed to anything.
    pub fn read(&self, root: &Path) -> Result<TrustRecord, TrustError> {
        let root = canonical(root);
        match read_record(&self.file(&root)) {
            Ok(Some(record)) if record.root == root => Ok(record),
            Ok(_) => Ok(TrustRecord { version: VERSION, root, definitions: Vec::new() }),
            Err(error) => Err(error),
        }
    }

    /// Trusts more definitions of a project.
    pub fn add<'d>(
        &self,
        root: &Path,
        definitions: impl IntoIterator<Item = &'d Definition>,
    ) -> Result<(), TrustError> {
        let mut record = self.read(root)?;
        for definition in definitions {
            if !record.definitions.contains(definition) {
                record.definitions.push(definition.clone());
            }
        }
        self.write(&record)
    }

    /// Trusts these definitions of a project, and no others.
    pub fn replace(&self, root: &Path, definitions: Vec<Definition>) -> Result<(), TrustError> {
        self.write(&TrustRecord { version: VERSION, root: canonical(root), definitions })
    }

    /// Forgets what was trusted in a project. Returns whether there was anything.
    pub fn revoke(&self, root: &Path) -> Result<bool, TrustError> {
        let path = self.file(&canonical(root));
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(TrustError::File { path, error }),
        }
    }

    /// Returns the projects in which something is trusted, by their folders.
    pub fn list(&self) -> Result<Vec<TrustRecord>, TrustError> {
        let failed = |error| TrustError::File { path: self.folder.clone(), error };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut records = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|ending| ending == ENDING) {
                records.extend(read_record(&path)?);
            }
        }
        records.sort_by(|a, b| a.root.cmp(&b.root));
        Ok(records)
    }

    fn file(&self, root: &Path) -> PathBuf {
        self.folder.join(hash(root.as_os_str().as_bytes())).with_extension(ENDING)
    }

    fn write(&self, record: &TrustRecord) -> Result<(), TrustError> {
        let path = self.file(&record.root);
        let failed = |error| TrustError::File { path: path.clone(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let text = serde_json::to_string_pretty(record).map_err(|error| failed(error.into()))?;
        let temporary = path.with_extension(format!("{}.new", std::process::id()));
        let written = (|| {
            // A file that a crash left behind.
            let _ = fs::remove_file(&temporary);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        })();
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            failed(error)
        })
    }
}

impl TrustRecord {
    /// Returns the definitions that are not trusted as they are.
    pub fn untrusted<'d>(&'d self, definitions: impl IntoIterator<Item = &'d Definition>) -> Vec<Untrusted<'d>> {
        let is_new = |definition: &&Definition| !self.definitions.contains(definition);
        let untrusted = definitions.into_iter().filter(is_new).map(|definition| {
            let before = self.definitions.iter().rfind(|known| known.has_name_of(definition));
            Untrusted { definition, before: before.map(|known| known.detail.as_str()) }
        });
        untrusted.collect()
    }
}

impl TrustError {
    /// Returns advice on how to fix the error.
    pub fn hint(&self) -> &'static str {
        match self {
            TrustError::File { .. } => "set PATTER_TRUST_DIR to a folder of yours",
            TrustError::Malformed(_) | TrustError::Foreign(_) => "remove it, and trust the project again",
        }
    }
}

/// Returns the folder in which Patter keeps what is not part of a project.
pub(in crate::project) fn state_folder() -> Option<PathBuf> {
    let home = || Some(absolute_variable("HOME")?.join(".local/state"));
    absolute_variable("XDG_STATE_HOME").or_else(home).map(|state| state.join("patter"))
}

/// Returns the path in a variable of the process. A relative one would depend on the current folder, which may be foreign.
fn absolute_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn canonical(root: &Path) -> PathBuf {
    root.canonicalize().or_else(|_| std::path::absolute(root)).unwrap_or_else(|_| root.to_owned())
}

fn read_record(path: &Path) -> Result<Option<TrustRecord>, TrustError> {
    let failed = |error| TrustError::File { path: path.to_owned(), error };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o022 != 0 {
        return Err(TrustError::Foreign(path.to_owned()));
    }
    let text = fs::read(path).map_err(failed)?;
    let record: TrustRecord = serde_json::from_slice(&text).map_err(|_| TrustError::Malformed(path.to_owned()))?;
    if record.version == VERSION { Ok(Some(record)) } else { Err(TrustError::Malformed(path.to_owned())) }
}
