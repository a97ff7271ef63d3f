//! What to start.

use super::confine::Confinement;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// A program to start, with everything that it gets from us: no variable is inherited by itself.
#[derive(Clone)]
pub(crate) struct ProcessCommand {
    pub(super) program: OsString,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) folder: PathBuf,
    pub(super) stdin: StdinSource,
    pub(super) confinement: Confinement,
}

/// What a process reads from its stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdinSource {
    /// Nothing.
    Null,
    /// What we write to a pipe.
    Pipe,
}

impl ProcessCommand {
    /// Creates a command with an empty environment and an empty stdin.
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdin: StdinSource::Null,
            confinement: Confinement::default(),
        }
    }

    /// Returns the file of a program that a project names: relative to a folder if the name has a `/`; others are looked up in
    /// `PATH`.
    pub(crate) fn program_file(root: &Path, program: &str) -> PathBuf {
        if !program.contains('/') {
            return PathBuf::from(program);
        }
        let path = root.join(program);
        // A relative path would be looked up in the working folder.
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Adds arguments.
    #[must_use]
    pub(crate) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Adds environment variables. A later value replaces an earlier one.
    #[must_use]
    pub(crate) fn envs(mut self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        let owned = variables.into_iter().map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()));
        self.environment.extend(owned);
        self
    }

    /// Sets the working folder, which is ours by default.
    #[must_use]
    pub(crate) fn folder(mut self, folder: &Path) -> Self {
        // The supervisor runs in another folder.
        self.folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        self
    }

    /// Sets what the process reads from its stdin.
    #[must_use]
    pub(crate) fn stdin(mut self, stdin: StdinSource) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets what the process may do.
    #[must_use]
    pub(crate) fn confined(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }

    /// Returns the command that starts the program as the leader of a process group.
    pub(super) fn direct(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().process_group(0).current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(match self.stdin {
            StdinSource::Null => Stdio::null(),
            StdinSource::Pipe => Stdio::piped(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
