//! Process groups.

use super::command::ProcessCommand;
use super::confine::confine_thread;
use super::leader::{Leader, process_id};
use super::registry::{Control, GroupKind, REGISTRY};
use rustix::process::{Pid, test_kill_process_group};
use std::io;
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;

/// The time between two checks whether a group is empty: nothing reports the end of processes that are not our children.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The process group of a child process: the child and everything it starts. It is killed when dropped.
#[derive(Default)]
pub(crate) struct ProcessGroup {
    /// The leader, until the group was killed: afterwards its id may be that of another process.
    leader: Option<Pid>,
}

/// A process that was started, and its pipes.
pub(crate) struct StartedProcess {
    pub(crate) leader: Leader,
    pub(crate) group: ProcessGroup,
    /// Missing if its stdin is empty.
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl ProcessGroup {
    /// Starts a command as the leader of a new group, with a supervisor where that is possible.
    pub(crate) async fn spawn(command: &ProcessCommand, kind: GroupKind) -> io::Result<StartedProcess> {
        #[cfg(target_os = "linux")]
        if super::launch::can_supervise() {
            match super::launcher::Launching::start(command, kind) {
                Ok(mut launching) => {
                    let group = Self { leader: launching.leader };
                    let stdout = launching.child.stdout.take();
                    let stderr = launching.child.stderr.take();
                    let (leader, stdin) = launching.finish().await?;
                    return Ok(StartedProcess { leader, group, stdin, stdout, stderr });
                }
                Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => return Err(error),
                Err(error) => tracing::warn!(%error, "commands run without a supervisor"),
            }
        }
        let (mut child, leader) = REGISTRY.start(kind, || {
            let child = spawn_confined(command)?;
            let leader = process_id(&child);
            Ok((child, leader, Control::Signals))
        })?;
        let group = Self { leader };
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        Ok(StartedProcess { leader: Leader::new(child), group, stdin, stdout, stderr })
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

/// Starts a command from a thread that has given up what the command may not do: its children inherit that.
fn spawn_confined(command: &ProcessCommand) -> io::Result<Child> {
    if command.confinement.is_open() {
        return command.direct().spawn();
    }
    let runtime = Handle::try_current().map_err(io::Error::other)?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _context = runtime.enter();
            confine_thread(&command.confinement).map_err(io::Error::other)?;
            command.direct().spawn()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the command failed")))
    })
}
