//! Lock files, each of which one process holds at a time.

use super::holder::holder;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many times to retry when the file at a path changes meanwhile.
const ATTEMPTS: usize = 100;
/// The maximum number of bytes to read of the holder named in the file.
const MAX_HOLDER_BYTES: u64 = 512;

/// The lock files of a store. They are links to one locked file, so that any number of them needs one descriptor.
///
/// The system releases the lock of the file when the process ends, however it ends: the lock files that are left behind
/// are free, and the next one who wants a lock removes its file. A holder removes a file when it releases the lock. So a
/// file that was just locked may already be removed, while someone else has a new one at the same path; comparing the file
/// with the one at the path detects that.
#[derive(Clone, Default)]
pub(super) struct LockFiles(Arc<Mutex<SharedFile>>);

/// The locked file that lock files are links to.
#[derive(Default)]
struct SharedFile {
    file: Option<File>,
    paths: BTreeSet<PathBuf>,
}

/// A lock, held until it is dropped.
pub(super) struct LockFile {
    path: PathBuf,
    /// The file of its own, where files cannot be linked.
    own: Option<File>,
    files: LockFiles,
}

/// The result of trying to lock a file.
pub(super) enum LockAttempt {
    Acquired(LockFile),
    /// Someone else holds the lock, and may have named themselves.
    Busy(Option<String>),
}

impl LockFiles {
    /// Locks a file unless someone holds it, in this process or another.
    pub(super) fn acquire(&self, path: &Path) -> io::Result<LockAttempt> {
        for _ in 0..ATTEMPTS {
            if let Some(lock) = self.create(path)? {
                return Ok(LockAttempt::Acquired(lock));
            }
            let mut file = match OpenOptions::new().read(true).write(true).open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                opened => opened?,
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(LockAttempt::Busy(read_holder(&mut file))),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Left behind by a process that was killed. Only who locked the file removes it.
            if is_at(&file, path)? {
                fs::remove_file(path)?;
            }
        }
        Ok(LockAttempt::Busy(None))
    }

    /// Creates a lock file. Returns `None` if there is one.
    fn create(&self, path: &Path) -> io::Result<Option<LockFile>> {
        let mut shared = self.shared();
        let lock = |own| LockFile { path: path.to_owned(), own, files: self.clone() };
        if let (Some(file), Some(other)) = (&shared.file, shared.paths.first()) {
            match fs::hard_link(other, path) {
                Ok(()) if is_at(file, path)? => {
                    shared.paths.insert(path.to_owned());
                    return Ok(Some(lock(None)));
                }
                // Someone removed our lock file, and created another.
                Ok(()) => fs::remove_file(path)?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
                // The file system has no links, or no more for this file: use another one.
                Err(_) => {}
            }
        }
        let mut options = OpenOptions::new();
        let file = match options.read(true).write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) if is_at(&file, path)? => {}
            // Someone took the new file for one that was left behind.
            Ok(()) | Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Naming the holder is a courtesy, and must not fail on a full disk.
        let _ = (&file).write_all(holder().as_bytes());
        if shared.file.is_some() {
            return Ok(Some(lock(Some(file))));
        }
        shared.file = Some(file);
        shared.paths.insert(path.to_owned());
        Ok(Some(lock(None)))
    }

    fn shared(&self) -> MutexGuard<'_, SharedFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let mut shared = self.files.shared();
        let _ = fs::remove_file(&self.path);
        let is_shared = shared.paths.remove(&self.path);
        let is_last = is_shared && shared.paths.is_empty();
        let file = self.own.take().or_else(|| if is_last { shared.file.take() } else { None });
        // Closing the file is not enough: a child process between fork and exec still has it open.
        let _ = file.map(|file| file.unlock());
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(other) => Ok((ours.dev(), ours.ino()) == (other.dev(), other.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_HOLDER_BYTES).read_to_string(&mut text).ok()?;
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    Some(text).filter(|text| !text.is_empty())
}
