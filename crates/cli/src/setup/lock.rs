//! Whether a project must be as `patter.lock` records it.

use crate::error::{CommandError, ErrorKind};
use clap::Args;
use patter::compile::Drift;
use patter::project::{ACCEPT_HINT, ProjectLock, ProjectLockError, Tools};
use std::path::Path;
use std::sync::Arc;

/// The kind of errors about the lock.
const LOCK_ERROR: ErrorKind = ErrorKind::named("LockError");

/// Whether the project must be as it is locked.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct LockOption {
    /// Refuse to run anything that differs from patter.lock; default if CI=true and the file exists
    #[arg(long)]
    locked: bool,

    /// Whether the lock is ignored whatever the environment says.
    #[arg(skip)]
    is_ignored: bool,
}

impl LockOption {
    /// Ignores the lock, for commands that run no agents.
    pub(crate) const NEVER: Self = Self { locked: false, is_ignored: true };

    /// Returns whether `--locked` is given.
    pub(crate) fn is_given(self) -> bool {
        self.locked
    }

    /// Always checks the lock.
    pub(crate) const ALWAYS: Self = Self { locked: true, is_ignored: false };

    /// Returns the lock that agents must match, if there is one, after checking the settings and servers of the project.
    /// Nothing may be started before that.
    pub(super) fn read(self, root: Option<&Path>, tools: &Tools) -> Result<Option<Arc<ProjectLock>>, CommandError> {
        let is_default = is_ci() && ProjectLock::path(root).exists();
        if self.is_ignored || !(self.locked || is_default) {
            return Ok(None);
        }
        let lock = ProjectLock::read(root)?;
        lock.check_project(tools)?;
        Ok(Some(Arc::new(lock)))
    }
}

/// Returns whether this is a job of a continuous integration: all services set `CI`.
fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}

impl CommandError {
    /// Returns the error about differences from the lock.
    pub(crate) fn drift(message: String, drift: &[Drift]) -> Self {
        let details = drift.iter().map(|one| Self::new(LOCK_ERROR, one.to_string()));
        Self::new(LOCK_ERROR, message).with_hint(ACCEPT_HINT).with_details(details)
    }
}

impl From<ProjectLockError> for CommandError {
    fn from(error: ProjectLockError) -> Self {
        match &error {
            ProjectLockError::Drift(drift) => Self::drift(error.to_string(), drift),
            _ => Self::new(LOCK_ERROR, error.to_string()).with_hint(error.hint()),
        }
    }
}
