//! A file that one process has at a time.

use super::holder;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How often a file may vanish between being opened and being locked.
const TRIES: usize = 100;
/// How much is read of what a file says about its holder.
const LONGEST_HOLDER: u64 = 512;

/// The lock on a file, which says who has it. The system takes it back when the process ends, however it ends.
///
/// Whoever has the lock removes the file when giving it back. So one that was just locked may be one that was removed,
/// while another has the new one; that is seen by comparing it with what is at the path.
pub(super) struct Hold {
    file: File,
    path: PathBuf,
}

/// What came of trying to take a hold.
pub(super) enum Taken {
    Held(Hold),
    /// Somebody else has it, who may have said who that is.
    Busy(Option<String>),
}

impl Hold {
    /// Takes a hold unless somebody has it, in this process or another.
    pub(super) fn take(path: &Path) -> io::Result<Taken> {
        for _ in 0..TRIES {
            let mut options = OpenOptions::new();
            let mut file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(Taken::Busy(said(&mut file))),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if !is_at(&file, path)? {
                continue;
            }
            let hold = Self { file, path: path.to_owned() };
            // To say who has it is a courtesy, and no reason to fail on a full disk.
            let _ = hold.file.set_len(0).and_then(|()| (&hold.file).write_all(holder().as_bytes()));
            return Ok(Taken::Held(hold));
        }
        Ok(Taken::Busy(None))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // A process that is just being started has the file too, until it runs its program; closing it here is not enough.
        let _ = self.file.unlock();
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let (ours, there) = (file.metadata()?, fs::metadata(path));
    match there {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn said(file: &mut File) -> Option<String> {
    let mut text = String::new();
    file.take(LONGEST_HOLDER).read_to_string(&mut text).ok()?;
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    Some(text).filter(|text| !text.is_empty())
}
