//! Reading and writing files, and stdin.

use crate::error::CommandError;
use crate::place::Place;
use crate::ui;
use patter::file::read_source;
use patter::os_error::describe;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file, folder or stdin, as named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// `-`.
    Stdin,
    /// A file or a folder.
    Path(PathBuf),
}

impl From<OsString> for Input {
    fn from(argument: OsString) -> Self {
        if argument == "-" { Input::Stdin } else { Input::Path(argument.into()) }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Stdin => f.write_str("<stdin>"),
            Input::Path(path) => path.display().fmt(f),
        }
    }
}

/// The contents of a file or of stdin.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Source {
    pub(crate) fn read(input: &Input) -> Result<Self, CommandError> {
        let read = match input {
            Input::Stdin => return Ok(Self { name: input.to_string(), bytes: read_stdin("the text", MAX_SOURCE)? }),
            Input::Path(path) => read_source(path),
        };
        match read {
            Ok(bytes) => Ok(Self { name: input.to_string(), bytes }),
            Err(error) => Err(unreadable(input, &error)),
        }
    }
}

/// The maximum length of a file from stdin, in bytes: that of a gram file.
const MAX_SOURCE: u64 = u32::MAX as u64;

/// Reads all of stdin, up to a limit in bytes. A person at a terminal learns what is expected, and how to end it.
pub(crate) fn read_stdin(what: &str, limit: u64) -> Result<Vec<u8>, CommandError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        ui::status(&format!("type {what}, and end it with Ctrl-D on an empty line"))?;
    }
    let mut bytes = Vec::new();
    stdin.lock().take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&Input::Stdin, &error))?;
    if bytes.len() as u64 > limit {
        return Err(CommandError::failure(format!("stdin is longer than {} MiB", limit >> 20)));
    }
    Ok(bytes)
}

/// Returns the error that an input cannot be read.
pub(crate) fn unreadable(input: &Input, cause: &io::Error) -> CommandError {
    let reason = match cause.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        _ => describe(cause),
    };
    let error =
        CommandError::failure(format!("cannot read `{input}`: {reason}")).with_place(Place::file(input.to_string()));
    match (cause.kind(), input) {
        (ErrorKind::IsADirectory, Input::Path(path)) => {
            error.with_hint(format!("name a file in it, such as {}", path.join("agent.gram").display()))
        }
        (ErrorKind::NotFound, Input::Path(path)) => error.with_hint_if(similar_file(path)),
        _ => error,
    }
}

/// The maximum number of files in a hint.
const MAX_FILES: usize = 5;

/// Returns a hint at the file that was meant instead of one that does not exist.
fn similar_file(path: &Path) -> Option<String> {
    let text = path.display().to_string();
    if ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Some(format!("this is an address: download the file first, as in `curl -fLO {text}`"));
    }
    if let Some((file, _)) = text.split_once('#').filter(|(file, _)| Path::new(file).is_file()) {
        return Some(format!("name only the file here: `{file}`"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(folder.unwrap_or(Path::new("."))) else {
        return folder.map(|folder| format!("the folder `{}` does not exist", folder.display()));
    };
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let shown = |name: &str| folder.unwrap_or(Path::new("")).join(name).display().to_string();
    let wanted = path.file_name()?.to_string_lossy();
    if let Some(near) = patter::text::nearest(&wanted, names.iter().map(String::as_str)) {
        return Some(format!("did you mean `{}`?", shown(near)));
    }
    let has_ending = |name: &&String| Path::new(name).extension() == path.extension() && path.extension().is_some();
    let others: Vec<_> =
        names.iter().filter(has_ending).take(MAX_FILES).map(|name| format!("`{}`", shown(name))).collect();
    (!others.is_empty()).then(|| format!("this folder has {}", others.join(", ")))
}

/// Fails if some of the files of a project cannot be read.
pub(crate) fn check_readable(unreadable: &[(PathBuf, io::Error)]) -> Result<(), CommandError> {
    let errors: Vec<_> =
        unreadable.iter().map(|(path, error)| self::unreadable(&Input::Path(path.clone()), error)).collect();
    if errors.is_empty() { Ok(()) } else { Err(CommandError::combine("some files cannot be read", errors)) }
}

/// What to do with a file that already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Keep it, and fail.
    Keep,
    /// Replace it.
    Replace,
}

/// Writes a file in one step, so that it is never half written.
pub(crate) fn write_atomically(path: &Path, text: &str, existing: Existing) -> io::Result<()> {
    write_file(path, text.as_bytes(), existing, 0o666)
}

/// Writes a file that only its owner can read, in one step: it contains conversations.
pub(crate) fn write_private(path: &Path, content: impl AsRef<[u8]>, existing: Existing) -> io::Result<()> {
    write_file(path, content.as_ref(), existing, 0o600)
}

fn write_file(path: &Path, content: &[u8], existing: Existing, mode: u32) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".patter-")
        .make_in(folder, |path| std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path))?;
    file.write_all(content)?;
    let written = match existing {
        Existing::Keep => file.persist_noclobber(path),
        Existing::Replace => file.persist(path),
    };
    written.map(drop).map_err(|error| error.error)
}

/// Replaces a file in one step, so that it is never half written. Permissions and links are preserved.
pub(crate) fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let path = path.canonicalize()?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".patter-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(path.metadata()?.permissions())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

/// Returns the error that a file cannot be written.
pub(crate) fn unwritable(path: &Path, cause: &io::Error) -> CommandError {
    let place = Place::file(path.display().to_string());
    let error = |reason: &str| {
        CommandError::failure(format!("cannot write `{}`: {reason}", path.display())).with_place(place.clone())
    };
    match cause.kind() {
        ErrorKind::AlreadyExists => error("the file already exists").with_hint("remove the file, or name another"),
        ErrorKind::NotFound => error("its folder does not exist").with_hint("create the folder first"),
        _ => error(&describe(cause)),
    }
}
