//! All process groups of this program, so that none outlives it.

use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The process groups of this program.
pub(crate) static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::default);

/// The process groups that were started and have not been killed.
#[derive(Default)]
pub(crate) struct Registry {
    /// Whether no more processes are started. Locked for reading during a start, so that no group is missed.
    is_closed: RwLock<bool>,
    groups: Mutex<HashMap<Pid, GroupState>>,
    /// The number of tasks that own a connection to a server, with or without a process.
    connections: AtomicUsize,
    /// Notified when a group was removed, or a task ended.
    removed: Notify,
    /// Cancelled to ask the owners of servers to stop them.
    stop_servers: Mutex<CancellationToken>,
}

/// What is known about a group.
struct GroupState {
    kind: GroupKind,
    control: Control,
    /// Whether it was asked to exit. It is asked once, because a second signal may interrupt its cleanup.
    is_terminated: bool,
}

/// The way to end a group.
pub(super) enum Control {
    /// By signals to the process group.
    Signals,
    /// By asking the supervisor of the command.
    #[cfg(target_os = "linux")]
    Supervisor(std::os::unix::net::UnixStream),
}

/// Who ends a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// The call of a tool.
    Call,
    /// The task that owns the connection to a server: it closes the connection first.
    Server,
}

/// Ends all processes that tools and MCP servers started, and the sessions with other servers: asks them to exit, waits for
/// them, and kills those that are left after the grace period. Call it before the runtime that they belong to is dropped, which would kill them at once.
pub async fn end_processes(grace: Duration) {
    let registry = &*REGISTRY;
    std::mem::take(&mut *lock(&registry.stop_servers)).cancel();
    registry.terminate_calls();
    let _ = tokio::time::timeout(grace, registry.wait_until_empty()).await;
    registry.kill_all();
}

/// Kills all processes that tools and MCP servers started, and starts no more. For programs that exit at once, without
/// dropping what they use.
pub fn kill_processes() {
    *REGISTRY.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    REGISTRY.kill_all();
}

impl Registry {
    /// Starts a process that leads a group, and registers the group.
    pub(super) fn start<T>(
        &self,
        kind: GroupKind,
        start: impl FnOnce() -> io::Result<(T, Option<Pid>, Control)>,
    ) -> io::Result<(T, Option<Pid>)> {
        let is_closed = self.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *is_closed {
            return Err(io::Error::other("the program is about to exit"));
        }
        let (started, leader, control) = start()?;
        if let Some(leader) = leader {
            lock(&self.groups).insert(leader, GroupState { kind, control, is_terminated: false });
        }
        Ok((started, leader))
    }

    /// Asks a group to exit, unless it was asked already.
    pub(super) fn terminate(&self, leader: Pid) {
        if let Some(group) = lock(&self.groups).get_mut(&leader) {
            group.terminate(leader);
        }
    }

    /// Kills a group, once. That fails if no process is left, which is fine.
    ///
    /// The leader may have been waited for: its id is not reused as long as other processes are in the group.
    pub(super) fn kill(&self, leader: Pid) {
        let group = lock(&self.groups).remove(&leader);
        if let Some(group) = group {
            group.control.kill(leader);
        }
        self.removed.notify_waiters();
    }

    /// Returns the token that is cancelled when servers are to be stopped.
    pub(crate) fn stop_servers(&self) -> CancellationToken {
        lock(&self.stop_servers).clone()
    }

    /// Registers a task that owns a connection to a server, until the value is dropped.
    pub(crate) fn register_connection(&'static self) -> RegisteredConnection {
        self.connections.fetch_add(1, Ordering::AcqRel);
        RegisteredConnection(self)
    }

    fn terminate_calls(&self) {
        for (leader, group) in lock(&self.groups).iter_mut().filter(|(_, group)| group.kind == GroupKind::Call) {
            group.terminate(*leader);
        }
    }

    fn kill_all(&self) {
        for (leader, group) in lock(&self.groups).drain() {
            group.control.kill(leader);
        }
        self.removed.notify_waiters();
    }

    async fn wait_until_empty(&self) {
        loop {
            let removed = self.removed.notified();
            if lock(&self.groups).is_empty() && self.connections.load(Ordering::Acquire) == 0 {
                return;
            }
            removed.await;
        }
    }
}

/// A registered task that owns a connection to a server.
pub(crate) struct RegisteredConnection(&'static Registry);

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
        self.0.removed.notify_waiters();
    }
}

impl GroupState {
    fn terminate(&mut self, leader: Pid) {
        if !std::mem::replace(&mut self.is_terminated, true) {
            self.control.terminate(leader);
        }
    }
}

impl Control {
    fn terminate(&self, leader: Pid) {
        match self {
            Control::Signals => {
                kill_process_group(leader, Signal::TERM).ok();
            }
            #[cfg(target_os = "linux")]
            Control::Supervisor(stream) => ask(stream, leader, super::request::TERMINATE),
        }
    }

    fn kill(&self, leader: Pid) {
        match self {
            Control::Signals => {
                kill_process_group(leader, Signal::KILL).ok();
            }
            #[cfg(target_os = "linux")]
            Control::Supervisor(stream) => ask(stream, leader, super::request::KILL),
        }
    }
}

/// Sends a byte to a supervisor. That fails if it has ended, and everything of its command with it.
#[cfg(target_os = "linux")]
fn ask(mut stream: &std::os::unix::net::UnixStream, supervisor: Pid, request: u8) {
    use std::io::Write;
    if stream.write(&[request]).is_ok() {
        // The command may have stopped it.
        rustix::process::kill_process(supervisor, Signal::CONT).ok();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
