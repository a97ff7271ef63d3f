//! The process that we wait for.

use rustix::process::Pid;
use std::io;
use std::process::ExitStatus;
use tokio::process::Child;

#[cfg(target_os = "linux")]
use super::launcher::Supervision;

/// The command itself, or its supervisor, whose end means that nothing of the command is left.
pub(crate) struct Leader {
    child: Child,
    #[cfg(target_os = "linux")]
    supervision: Option<Supervision>,
    /// How the command ended, once that is known.
    status: Option<ExitStatus>,
}

impl Leader {
    /// Creates the leader of a group.
    pub(super) fn new(child: Child) -> Self {
        Self {
            child,
            #[cfg(target_os = "linux")]
            supervision: None,
            status: None,
        }
    }

    /// Creates the supervisor of a command.
    #[cfg(target_os = "linux")]
    pub(super) fn supervised(child: Child, supervision: Supervision) -> Self {
        Self { child, supervision: Some(supervision), status: None }
    }

    /// Waits for the end of the command.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = self.child.wait().await?;
        Ok(self.ended(status))
    }

    /// Returns how the command ended, if it did.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        let status = self.child.try_wait()?;
        Ok(status.map(|status| self.ended(status)))
    }

    /// Kills the leader itself, for a supervisor that does not react.
    pub(crate) fn kill_stuck(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(supervision) = &mut self.supervision {
            supervision.kill_command();
        }
        self.child.start_kill().ok();
    }

    /// Returns whether the command was killed because it started too many processes.
    pub(super) fn is_crowded(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.supervision.as_ref().is_some_and(Supervision::is_crowded);
        #[cfg(not(target_os = "linux"))]
        false
    }

    fn ended(&mut self, status: ExitStatus) -> ExitStatus {
        #[cfg(target_os = "linux")]
        let status = self.supervision.as_mut().map_or(status, |supervision| supervision.ended(status));
        *self.status.insert(status)
    }
}

/// Returns the process id of a child.
pub(super) fn process_id(child: &Child) -> Option<Pid> {
    child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}
