//! Where text comes from, files, folders of files and stdin, and where it goes.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// What a user named on the command line.
#[derive(Clone, PartialEq, Eq)]
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

/// A text that was read, with the name to call it by.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Source {
    pub(crate) fn read(input: &Input) -> io::Result<Self> {
        let bytes = match input {
            Input::Stdin => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes)?;
                bytes
            }
            Input::Path(path) => std::fs::read(path)?,
        };
        Ok(Self { name: input.to_string(), bytes })
    }
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and nothing is written.
    Kept,
    /// Another takes its place.
    Replaced,
}

/// Writes a file in one step, so that it is never half written.
pub(crate) fn write_whole(path: &Path, text: &str, existing: Existing) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A temporary file is for its owner alone; this one is like any other.
    let mut file = tempfile::Builder::new()
        .prefix(".patter-")
        .make_in(folder, |path| std::fs::OpenOptions::new().write(true).create_new(true).open(path))?;
    file.write_all(text.as_bytes())?;
    let written = match existing {
        Existing::Kept => file.persist_noclobber(path),
        Existing::Replaced => file.persist(path),
    };
    written.map(drop).map_err(|error| error.error)
}
