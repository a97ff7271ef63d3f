//! Process groups.

use super::registry::{GroupKind, REGISTRY};
use rustix::process::{Pid, test_kill_process_group};
use std::io;
use std::time::Duration;
use tokio::process::{Child, Command};

/// The time between two checks whether a group is empty: nothing reports the end of processes that are not our children.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The process group of a child process: the child and everything it starts. It is killed when dropped.
#[derive(Default)]
pub(crate) struct ProcessGroup {
    /// The leader, until the group was killed: afterwards its id may be that of another process.
    leader: Option<Pid>,
}

impl ProcessGroup {
    /// Spawns a process as the leader of a new group.
    pub(crate) fn spawn(command: &mut Command, kind: GroupKind) -> io::Result<(Child, Self)> {
        let (child, leader) = REGISTRY.start(kind, || {
            let child = command.process_group(0).spawn()?;
            let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            Ok((child, leader))
        })?;
        Ok((child, Self { leader }))
    }

    /// Asks the processes of the group to exit.
    pub(crate) fn terminate(&self) {
        if let Some(leader) = self.leader {
            REGISTRY.terminate(leader);
        }
    }

    /// Waits until no process is left in the group. Its leader must have been waited for.
    pub(crate) async fn wait_until_empty(&self) {
        let Some(leader) = self.leader else { return };
        while test_kill_process_group(leader).is_ok() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Kills the processes of the group, once.
    pub(crate) fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            REGISTRY.kill(leader);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
