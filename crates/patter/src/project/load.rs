//! Finding and reading the files of a project.

use crate::file::{not_a_file, read_project_file, read_source};
use ignore::{DirEntry, WalkBuilder};
use patter_core::declare::project::{File, Project};
use patter_core::gram::Dialect;
use patter_core::parallel::map_batches;
use std::collections::{BTreeSet, HashMap, HashSet};
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
            let found = find_files(path, &mut unreadable);
            // A folder that cannot be searched may contain files.
            if found.is_empty() && path.is_dir() && unreadable.len() == before {
                return Err(LoadError::Empty(path.clone()));
            }
            named.extend(found);
        }
        // A file may be given twice, also through links; it is read once.
        let mut known = KnownFiles::default();
        named.retain(|file| known.is_new(file));
        for path in excluded {
            known.is_new(&FoundFile::new(path.clone()));
        }
        named.iter_mut().for_each(|file| file.is_named = true);
        let mut files = named;
        // A folder that was searched need not be searched again as the root.
        if let Some(root) = root.filter(|root| !paths.iter().any(|path| path == root)) {
            files.extend(find_files(root, &mut unreadable).into_iter().filter(|file| known.is_new(file)));
        }
        let mut contents = Vec::with_capacity(files.len());
        let mut selected = BTreeSet::new();
        for (file, result) in files.iter().zip(read_files(&files, dialect)) {
            match result {
                Ok(parsed) => {
                    if file.is_named {
                        selected.insert(contents.len());
                    }
                    contents.push(parsed);
                }
                Err(error) => unreadable.push((file.path.clone(), error)),
            }
        }
        Ok(Self { project: Project::from_files(contents), selected, unreadable })
    }
}

/// Reads and parses files, on several threads if there are many.
fn read_files(files: &[FoundFile], dialect: Dialect) -> Vec<io::Result<File>> {
    /// The number of files that a thread takes at once.
    const BATCH: usize = 32;
    let read = |file: &FoundFile| {
        let bytes = if file.is_named { read_source(&file.path) } else { read_project_file(&file.path) }?;
        Ok(File::read(file.path.display().to_string(), bytes, dialect))
    };
    let batches = map_batches(files.len(), BATCH, |range| {
        files.get(range).unwrap_or_default().iter().map(read).collect::<Vec<_>>()
    });
    batches.into_iter().flatten().collect()
}

/// A file to read.
struct FoundFile {
    path: PathBuf,
    /// Whether it was found in a folder, where it is not a link.
    is_in_folder: bool,
    /// Whether it, or a folder around it, was asked for. The others are only read because they are part of the project.
    is_named: bool,
}

impl FoundFile {
    fn new(path: PathBuf) -> Self {
        Self { path, is_in_folder: false, is_named: false }
    }
}

/// The files found so far, to recognise those that are given twice.
#[derive(Default)]
struct KnownFiles {
    files: HashSet<PathBuf>,
    /// The real paths of folders. Most files have one in common, and resolving a path takes several calls to the system.
    folders: HashMap<PathBuf, Option<PathBuf>>,
}

impl KnownFiles {
    /// Adds a file. Returns whether it was not known.
    fn is_new(&mut self, file: &FoundFile) -> bool {
        self.real_path(file).is_none_or(|path| self.files.insert(path))
    }

    fn real_path(&mut self, file: &FoundFile) -> Option<PathBuf> {
        let (true, Some(folder), Some(name)) = (file.is_in_folder, file.path.parent(), file.path.file_name()) else {
            return file.path.canonicalize().ok();
        };
        if let Some(folder) = self.folders.get(folder) {
            return folder.as_ref().map(|folder| folder.join(name));
        }
        let shown = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let real = shown.canonicalize().ok();
        let path = real.as_ref().map(|folder| folder.join(name));
        self.folders.insert(folder.to_owned(), real);
        path
    }
}

/// Finds the gram files of a path: the file itself, or all `*.gram` files below a folder, in a stable order.
///
/// Hidden files, files that `.gitignore` excludes and special files such as pipes are skipped. Folders that cannot be
/// searched are added to `unreadable`.
pub fn gram_files(path: &Path, unreadable: &mut Vec<(PathBuf, io::Error)>) -> Vec<PathBuf> {
    find_files(path, unreadable).into_iter().map(|file| file.path).collect()
}

fn find_files(path: &Path, unreadable: &mut Vec<(PathBuf, io::Error)>) -> Vec<FoundFile> {
    if !path.is_dir() {
        return vec![FoundFile::new(path.to_owned())];
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
            Ok(entry) if entry.path().extension() == Some(OsStr::new("gram")) => {
                let is_in_folder = entry.file_type().is_some_and(|kind| kind.is_file());
                if is_in_folder || entry.path().is_file() {
                    files.push(FoundFile { is_in_folder, ..FoundFile::new(strip_dot(entry.into_path())) });
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn names(loaded: &LoadedProject) -> Vec<&str> {
        let files = loaded.project.files().iter();
        files.map(|file| file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path)).collect()
    }

    #[test]
    fn many_files_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let expected: Vec<_> = (100..300).map(|index| format!("{index}.gram")).collect();
        for (index, name) in expected.iter().enumerate() {
            fs::write(folder.path().join(name), format!("[a{index}:Agent]")).unwrap();
        }
        let path = folder.path().to_owned();
        let loaded = LoadedProject::read(std::slice::from_ref(&path), Some(&path), Dialect::Patter).unwrap();
        assert_eq!(names(&loaded), expected);
        assert_eq!(loaded.selected, (0..200).collect());
        let agents: Vec<_> = loaded.project.declarations().iter().map(|one| one.name.as_str()).collect();
        assert_eq!(agents.first().zip(agents.last()), Some((&"a0", &"a199")));
    }

    #[test]
    fn a_file_is_read_once_however_it_is_given() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).unwrap();
        fs::write(at("a.gram"), "[a:Agent]").unwrap();
        fs::write(at("inner/b.gram"), "[b:Agent]").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(at("a.gram"), at("inner/link.gram")).unwrap();
            std::os::unix::fs::symlink(at("inner"), at("linked")).unwrap();
        }
        let paths = [at("inner/../a.gram"), at("inner"), at("linked"), at("inner/b.gram")];
        let paths: Vec<_> = paths.into_iter().filter(|path| path.exists()).collect();
        let loaded = LoadedProject::read(&paths, Some(folder.path()), Dialect::Patter).unwrap();
        assert_eq!(names(&loaded), ["a.gram", "b.gram"]);
    }
}
