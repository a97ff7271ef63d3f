//! Reading and writing files, and stdin.

use crate::error::CommandError;
use crate::place::Place;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
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
            Input::Stdin => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
            }
            Input::Path(path) => std::fs::read(path),
        };
        match read {
            Ok(bytes) => Ok(Self { name: input.to_string(), bytes }),
            Err(error) => Err(unreadable(input, &error)),
        }
    }
}

/// Returns the error that an input cannot be read.
pub(crate) fn unreadable(input: &Input, cause: &io::Error) -> CommandError {
    let reason = match cause.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => cause.to_string(),
    };
    let error =
        CommandError::failure(format!("cannot read `{input}`: {reason}")).with_place(Place::file(input.to_string()));
    match (cause.kind(), input) {
        (ErrorKind::IsADirectory, Input::Path(path)) => {
            error.with_hint(format!("name a file in it, such as {}", path.join("agent.gram").display()))
        }
        _ => error,
    }
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
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Temporary files are readable only by their owner; this one gets the usual permissions.
    let mut file = tempfile::Builder::new()
        .prefix(".patter-")
        .make_in(folder, |path| std::fs::OpenOptions::new().write(true).create_new(true).open(path))?;
    file.write_all(text.as_bytes())?;
    let written = match existing {
        Existing::Keep => file.persist_noclobber(path),
        Existing::Replace => file.persist(path),
    };
    written.map(drop).map_err(|error| error.error)
}

/// Returns the error that a file cannot be written.
pub(crate) fn unwritable(path: &Path, cause: &io::Error) -> CommandError {
    let place = Place::file(path.display().to_string());
    let error = |reason: &str| {
        CommandError::failure(format!("cannot write `{}`: {reason}", path.display())).with_place(place.clone())
    };
    match cause.kind() {
        ErrorKind::AlreadyExists => error("the file already exists"),
        ErrorKind::NotFound => error("its folder does not exist").with_hint("create the folder first"),
        _ => error(&cause.to_string()),
    }
}
