//! A lock file, which one process holds at a time.

use super::holder::holder;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How many times to retry when the file is removed between being opened and being locked.
const ATTEMPTS: usize = 100;
/// The maximum number of bytes to read of the holder named in the file.
const MAX_HOLDER_BYTES: u64 = 512;

/// A locked file that names its holder. The system releases the lock when the process ends, however it ends.
///
/// The holder removes the file when it releases the lock. So a file that was just locked may already be removed, while
/// someone else holds a new one at the same path; comparing the file with the one at the path detects that.
pub(super) struct LockFile {
    file: File,
    path: PathBuf,
}

/// The result of trying to lock a file.
pub(super) enum LockAttempt {
    Acquired(LockFile),
    /// Someone else holds the lock, and may have named themselves.
    Busy(Option<String>),
}

impl LockFile {
    /// Locks a file unless someone holds it, in this process or another.
    pub(super) fn acquire(path: &Path) -> io::Result<LockAttempt> {
        for _ in 0..ATTEMPTS {
            let mut options = OpenOptions::new();
            let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(LockAttempt::Busy(read_holder(&mut file))),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if !is_at(&file, path)? {
                continue;
            }
            let lock = Self { file, path: path.to_owned() };
            // Naming the holder is a courtesy, and must not fail on a full disk.
            let _ = lock.file.set_len(0).and_then(|()| (&lock.file).write_all(holder().as_bytes()));
            return Ok(LockAttempt::Acquired(lock));
        }
        Ok(LockAttempt::Busy(None))
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // Closing the file is not enough: a child process between fork and exec still has it open.
        let _ = self.file.unlock();
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(other) => Ok((ours.dev(), ours.ino()) == (other.dev(), other.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn read_holder(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_HOLDER_BYTES).read_to_string(&mut text).ok()?;
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    Some(text).filter(|text| !text.is_empty())
}
