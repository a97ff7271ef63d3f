//! The process of an MCP server that is started here.

use crate::tool::secrets::Secrets;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How much of what a server writes to its standard error is kept.
const TAIL: usize = 4096;
/// How long a server may take to end once its input is closed, and again once it was asked to.
const GRACE: Duration = Duration::from_secs(1);
/// How long a server that closed its output may take to end by itself.
const PARTING: Duration = Duration::from_millis(200);
/// What a server sees of our environment, beside `LC_*`. The rest may hold secrets that are not for it.
const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL"];

/// A server process. It has a process group of its own, which dies with this value: programs such as `npx` start the
/// server as a process of its own, and would leave it behind.
pub(super) struct Process {
    child: Child,
    group: Group,
    stderr: JoinHandle<()>,
    tail: Tail,
}

/// The end of what a process wrote to its standard error, without secrets.
#[derive(Clone)]
pub(super) struct Tail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    secrets: Arc<Secrets>,
}

impl Process {
    /// Starts a server.
    pub(super) fn start(
        command: &str,
        arguments: &[String],
        environment: &[(String, String)],
        folder: Option<&Path>,
        secrets: &Arc<Secrets>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut program = Command::new(command);
        let is_inherited = |name: &str| INHERITED.contains(&name) || name.starts_with("LC_");
        program.args(arguments).env_clear();
        program.envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)));
        program.envs(environment.iter().map(|(name, value)| (name, value)));
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        if let Some(folder) = folder {
            program.current_dir(folder);
        }
        #[cfg(unix)]
        program.process_group(0);
        let mut child = program.spawn()?;
        let group = Group::of(&child);
        let pipes = child.stdout.take().zip(child.stdin.take()).zip(child.stderr.take());
        let ((stdout, stdin), stderr) = pipes.ok_or_else(|| io::Error::other("the pipes are gone"))?;
        let tail = Tail { kept: Arc::default(), secrets: Arc::clone(secrets) };
        let stderr = tokio::spawn(tail.clone().keep(stderr));
        Ok((Self { child, group, stderr, tail }, stdout, stdin))
    }

    pub(super) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Waits until the process ends by itself, since its input is closed; then makes it end.
    pub(super) async fn end_gently(mut self) {
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.group.terminate();
            let _ = timeout(GRACE, self.child.wait()).await;
        }
        self.end().await;
    }

    /// Makes the process and its descendants end. Returns how it ended and what it said last, for the operator.
    pub(super) async fn end(mut self) -> String {
        let status = timeout(PARTING, self.child.wait()).await;
        self.group.kill();
        let mut told = match status {
            Ok(Ok(status)) => status.to_string(),
            _ => {
                let _ = timeout(GRACE, self.child.wait()).await;
                "it did not end by itself".to_owned()
            }
        };
        // The pipe ends when the last process that holds it is gone.
        let _ = timeout(PARTING, &mut self.stderr).await;
        self.tail.add_to(&mut told);
        told
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that left the group may hold the pipe for ever.
        self.stderr.abort();
    }
}

impl Tail {
    /// Adds what the process said last to a text.
    pub(super) fn add_to(&self, told: &mut String) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = kept.len() >= self.limit();
        let text = String::from_utf8_lossy(kept.make_contiguous());
        let text = if is_cut { self.secrets.redact_tail(&text) } else { self.secrets.redact(&text) };
        if !text.trim().is_empty() {
            let _ = write!(told, "{}stderr: {}", if told.is_empty() { "" } else { "; " }, text.trim());
        }
    }

    /// Returns how much is kept: some more than is shown, since a secret may be cut in two.
    fn limit(&self) -> usize {
        TAIL + self.secrets.margin()
    }

    async fn keep(self, mut stderr: ChildStderr) {
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(buffer.iter().take(read));
            let surplus = kept.len().saturating_sub(self.limit());
            kept.drain(..surplus);
        }
    }
}

/// The process group of a server. It is killed with this value.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.and_then(rustix::process::Pid::from_raw) }
    }

    fn terminate(&self) {
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::TERM);
        }
    }

    /// Kills the group, once: afterwards its number may be that of another.
    fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(not(unix))]
impl Group {
    fn of(_: &Child) -> Self {
        Self {}
    }

    fn terminate(&self) {}

    fn kill(&mut self) {}
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
