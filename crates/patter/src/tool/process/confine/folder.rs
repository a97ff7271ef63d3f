//! The temporary folder of a confined command.

use super::Confinement;
use crate::tool::process::command::ProcessCommand;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The number of names that are tried.
const ATTEMPTS: u32 = 100;

/// A folder for temporary files, which only one command may use. It is removed when dropped.
pub(in super::super) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Creates the folder of a command, unless the command may use the folder that all share.
    pub(in super::super) fn create(command: &ProcessCommand) -> io::Result<Option<Self>> {
        let Confinement { rules: Some(_) } = &command.confinement else { return Ok(None) };
        let shared = command.environment.iter().rfind(|(name, _)| name == "TMPDIR");
        let shared = shared.map_or_else(|| PathBuf::from("/tmp"), |(_, value)| value.into());
        let id = std::process::id();
        for attempt in 0..ATTEMPTS {
            let path = shared.join(format!("patter-{id}-{attempt}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Some(Self { path })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The command may not need one.
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    pub(in super::super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
