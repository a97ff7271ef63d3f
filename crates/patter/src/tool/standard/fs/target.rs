//! The file that a call writes. All tools that write go through it, so that the same checks apply to all of them.

use super::action::ActionContext;
use super::guard::is_secret_name;
use super::root::{ScopedPath, open_nonblocking, real_path};
use crate::tool::{Access, ToolFailure};
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions};
use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The size limit of a file that is written, in bytes.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The number of links that are followed.
const MAX_LINKS: usize = 40;

/// A file that a call writes, or will create. As long as it exists, no other call of this program writes the file.
pub(super) struct WriteTarget<'r> {
    place: ScopedPath<'r>,
    folder: Dir,
    name: PathBuf,
    /// The file, if it exists.
    found: Option<Metadata>,
    _lock: FileLock,
}

impl<'r> WriteTarget<'r> {
    /// Finds the file and waits for other calls that write it. Missing folders are created.
    pub(super) fn open(context: &'r ActionContext, path: &str) -> Result<Self, ToolFailure> {
        let place = context.roots.resolve(path)?;
        let failed = |error: io::Error| place.explain(&error);
        let target = follow_links(&place)?;
        let Some(name) = target.file_name().filter(|_| !path.ends_with('/')) else {
            return Err(ToolFailure::new(format!("`{path}` is not a file path")));
        };
        let name = PathBuf::from(name);
        place.check_target(&target)?;
        let folder = open_parent(&place, &target).map_err(failed)?;
        // The folder may have been replaced by a link since the path was checked.
        if let Some(real) = real_path(&folder) {
            if let Some(inside) = place.inside_root(&real) {
                place.check_target(&inside.join(&name))?;
            }
            if context.call.has_rules() && !context.permits(&real.join(&name), Access::Named) {
                return Err(place.excluded_failure());
            }
        }
        let lock = FileLock::wait(&folder, &name, context).map_err(failed)?;
        let found = match folder.symlink_metadata(&name) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        match &found {
            Some(metadata) => place.check_file(metadata)?,
            None if is_secret_name(name.as_os_str()) => return Err(place.secret_failure()),
            None => {}
        }
        match &found {
            // It replaced the file just now.
            Some(metadata) if metadata.is_symlink() => return Err(place.changed_failure()),
            Some(metadata) if !metadata.is_file() => return Err(place.not_a_file(metadata)),
            _ => {}
        }
        Ok(Self { place, folder, name, found, _lock: lock })
    }

    /// Returns whether the file exists.
    pub(super) fn exists(&self) -> bool {
        self.found.is_some()
    }

    /// Reads the whole file, which must not be too large, and returns what identifies this version of it.
    pub(super) fn read(&self) -> Result<(Vec<u8>, FileVersion), ToolFailure> {
        let mut options = OpenOptions::new();
        let file =
            open_nonblocking(&self.folder, &self.name, options.read(true)).map_err(|error| self.failed(&error))?;
        let metadata = self.check_opened(&file)?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| self.failed(&error))?;
        if bytes.len() > MAX_BYTES {
            let given = self.place.given();
            return Err(ToolFailure::new(format!(
                "`{given}` is too large: only files of up to {MAX_BYTES} bytes can be edited"
            )));
        }
        Ok((bytes, FileVersion::new(&metadata)))
    }

    /// Creates the file.
    pub(super) fn create(&self, content: &[u8]) -> Result<(), ToolFailure> {
        let create = || {
            let mut file = self.folder.open_with(&self.name, OpenOptions::new().write(true).create_new(true))?;
            // A partial file would be mistaken for a complete one.
            file.write_all(content).inspect_err(|_| {
                self.folder.remove_file(&self.name).ok();
            })
        };
        create().map_err(|error| self.failed(&error))
    }

    /// Replaces the content atomically: readers see the old content or the new. If a version is given, the file must not
    /// have changed since.
    pub(super) fn replace(&self, content: &[u8], version: Option<FileVersion>) -> Result<(), ToolFailure> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut temporary = OsString::from(".");
        temporary.push(&self.name);
        temporary.push(format!(".{}-{}.new", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        let temporary = PathBuf::from(temporary);
        let replace = || {
            let mut file = self.folder.open_with(&temporary, OpenOptions::new().write(true).create_new(true))?;
            if let Some(metadata) = &self.found {
                file.set_permissions(metadata.permissions())?;
            }
            file.write_all(content)?;
            file.sync_all()?;
            let now = self.folder.symlink_metadata(&self.name).ok().map(|metadata| FileVersion::new(&metadata));
            if version.is_some() && now != version {
                return Ok(false);
            }
            self.folder.rename(&temporary, &self.folder, &self.name).map(|()| true)
        };
        let replaced = replace();
        let is_ours = !matches!(&replaced, Err(error) if error.kind() == ErrorKind::AlreadyExists);
        if !matches!(replaced, Ok(true)) && is_ours {
            self.folder.remove_file(&temporary).ok();
        }
        match replaced {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.place.changed_failure()),
            Err(error) => Err(self.failed(&error)),
        }
    }

    /// Adds to the end of the file, and creates it if it is missing.
    pub(super) fn append(&self, content: &[u8]) -> Result<(), ToolFailure> {
        let mut options = OpenOptions::new();
        let options = options.append(true).create(true);
        let mut file = open_nonblocking(&self.folder, &self.name, options).map_err(|error| self.failed(&error))?;
        self.check_opened(&file)?;
        file.write_all(content).map_err(|error| self.failed(&error))
    }

    /// Checks an opened file: its name may have become that of another file since it was checked.
    fn check_opened(&self, file: &File) -> Result<Metadata, ToolFailure> {
        let metadata = file.metadata().map_err(|error| self.failed(&error))?;
        if !metadata.is_file() {
            return Err(self.place.not_a_file(&metadata));
        }
        self.place.check_file(&metadata)?;
        let expected = real_path(&self.folder).map(|folder| folder.join(&self.name));
        match (real_path(file), expected) {
            (Some(found), Some(expected)) if found != expected => Err(self.place.changed_failure()),
            _ => Ok(metadata),
        }
    }

    fn failed(&self, error: &io::Error) -> ToolFailure {
        self.place.explain(error)
    }
}

/// What identifies a version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileVersion {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl FileVersion {
    fn new(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Follows the links at the end of a path, so that they are not replaced by files. The system follows those before.
fn follow_links(place: &ScopedPath<'_>) -> Result<PathBuf, ToolFailure> {
    let failed = |error: io::Error| place.explain(&error);
    let mut path = place.path.clone();
    for count in 0..MAX_LINKS {
        match place.dir.symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {}
            Ok(_) => return Ok(path),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            Err(_) if count == 0 => return Ok(path),
            Err(_) => return Err(dangling_link(place)),
        }
        let link = place.dir.read_link(&path).map_err(failed)?;
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(failed(rustix::io::Errno::LOOP.into()))
}

fn dangling_link(place: &ScopedPath<'_>) -> ToolFailure {
    ToolFailure::new(format!("`{}` is a link to a file that does not exist", place.given()))
}

/// Opens the folder of a file, and creates it if it is missing.
fn open_parent(place: &ScopedPath<'_>, path: &Path) -> io::Result<Dir> {
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => {
            place.dir.create_dir_all(parent)?;
            place.dir.open_dir(parent)
        }
        None => place.dir.try_clone(),
    }
}

/// A file by its folder and its name in lowercase, since some file systems ignore case.
type FileKey = (u64, u64, OsString);

/// The files that calls of this program are writing.
static WRITTEN: LazyLock<Mutex<HashSet<FileKey>>> = LazyLock::new(Mutex::default);
/// Notified when a call has written a file.
static RELEASED: Condvar = Condvar::new();
/// The time between two checks whether a call that waits was cancelled.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The right to write a file, until it is dropped.
struct FileLock(FileKey);

impl FileLock {
    fn wait(folder: &Dir, name: &Path, context: &ActionContext) -> io::Result<Self> {
        let metadata = folder.dir_metadata()?;
        let key = (metadata.dev(), metadata.ino(), name.as_os_str().to_ascii_lowercase());
        let mut written = written();
        while written.contains(&key) {
            if context.cancellation.is_cancelled() {
                return Err(io::Error::other("the call was cancelled"));
            }
            let waited = RELEASED.wait_timeout(written, CHECK_INTERVAL);
            written = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        written.insert(key.clone());
        Ok(Self(key))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        written().remove(&self.0);
        RELEASED.notify_all();
    }
}

fn written() -> MutexGuard<'static, HashSet<FileKey>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}
