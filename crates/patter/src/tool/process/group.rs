//! Process groups.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use tokio::process::{Child, Command};

/// The process group of a child process: the child and everything it starts. It is killed when dropped.
#[derive(Default)]
pub(crate) struct ProcessGroup {
    /// The leader, until the group was killed: afterwards its id may be that of another process.
    leader: Option<Pid>,
}

impl ProcessGroup {
    /// Spawns a process as the leader of a new group.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok((child, Self { leader }))
    }

    /// Asks the processes of the group to exit.
    pub(crate) fn terminate(&self) {
        if let Some(leader) = self.leader {
            kill_process_group(leader, Signal::TERM).ok();
        }
    }

    /// Kills the processes of the group, once. That fails if none is left, which is fine.
    ///
    /// The leader may have been waited for: its id is not reused as long as other processes are in the group.
    pub(crate) fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
