//! Where text comes from: files, folders of files, stdin.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read};
use std::path::PathBuf;

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
