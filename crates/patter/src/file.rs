//! Reading files that others may have prepared: nothing waits for a pipe or reads without end.

use patter_core::message::attachment::MAX_FILE_BYTES;
use patter_core::types::definition::hash;
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The maximum size of a file with settings, in bytes.
const MAX_SETTINGS: u64 = 16 << 20;
/// The maximum size of any other file, in bytes.
const MAX_SOURCE: u64 = 512 << 20;

/// Reads a file that a person named, which may also be a pipe, as in `patter check <(generate)`.
pub fn read_source(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(File::open(path)?, MAX_SOURCE)
}

/// Reads a file that a project names. A project may come from anywhere, and a link in it may lead to a pipe or to
/// `/dev/zero`, so only files are read.
pub fn read_project_file(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(open_file(path)?, MAX_SOURCE)
}

/// Reads a file of settings, such as `.env`. See [`read_project_file`].
pub fn read_settings(path: &Path) -> io::Result<String> {
    let bytes = read_up_to(open_file(path)?, MAX_SETTINGS)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads a file that is attached to a message. See [`read_project_file`].
pub fn read_attachment(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(open_file(path)?, MAX_FILE_BYTES as u64)
}

/// Returns a hash of the content of a file. Its path does not matter: a revision is checked out to another folder each time.
pub(crate) fn file_hash(path: &Path) -> String {
    read_project_file(path).map_or_else(|error| error.kind().to_string(), |bytes| hash(&bytes))
}

fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok(file) } else { Err(not_a_file(metadata.is_dir())) }
}

/// Returns the error of something that is not a file.
pub(crate) fn not_a_file(is_folder: bool) -> io::Error {
    match is_folder {
        true => ErrorKind::IsADirectory.into(),
        false => io::Error::new(ErrorKind::InvalidInput, "it is a device, a pipe or a socket, not a file"),
    }
}

fn read_up_to(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os_error::describe;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_files_of_a_project_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("a"), "text").unwrap();
        symlink("/dev/zero", path("zero")).unwrap();
        symlink("a", path("link")).unwrap();
        let fifo = rustix::fs::CWD;
        rustix::fs::mkfifoat(fifo, path("pipe"), rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(read_settings(&path("a")).unwrap(), "text");
        assert_eq!(read_project_file(&path("link")).unwrap(), b"text");
        for name in ["zero", "pipe"] {
            let error = read_settings(&path(name)).unwrap_err();
            assert_eq!(describe(&error), "it is a device, a pipe or a socket, not a file");
            assert!(read_project_file(&path(name)).is_err());
        }
        assert_eq!(describe(&read_settings(folder.path()).unwrap_err()), "it is a folder");
        let error = read_up_to(File::open("/dev/zero").unwrap(), 1 << 20).unwrap_err();
        assert_eq!(describe(&error), "it is larger than 1 MiB");
    }
}
