//! Where text comes from: files, folders of files, stdin.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
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

/// Finds the gram files that a path stands for: itself, or all `*.gram` below a folder, in a stable order. What cannot
/// be searched is returned beside them.
///
/// Hidden files and what `.gitignore` names are passed over, and so is what is no file, such as a pipe.
pub(crate) fn gram_files(path: &Path) -> (Vec<PathBuf>, Vec<ignore::Error>) {
    if !path.is_dir() {
        return (vec![path.to_owned()], Vec::new());
    }
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    let walk = ignore::WalkBuilder::new(path).require_git(false).sort_by_file_name(OsStr::cmp).build();
    for entry in walk {
        match entry {
            Ok(entry) if entry.path().extension() == Some(OsStr::new("gram")) && entry.path().is_file() => {
                files.push(strip_dot(entry.into_path()));
            }
            Ok(_) => {}
            Err(error) => errors.push(error),
        }
    }
    (files, errors)
}

/// Names files below the current folder without the `./` before them.
fn strip_dot(path: PathBuf) -> PathBuf {
    path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
}
