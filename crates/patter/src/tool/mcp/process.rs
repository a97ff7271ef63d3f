//! The process of an MCP server.

use super::settings::ServerSandbox;
use crate::tool::process::{
    Confinement, GroupKind, Leader, OutputTail, Places, ProcessCommand, ProcessGroup, StartedProcess, StdinSource,
    read_chunks,
};
use crate::tool::redact::Redactor;
use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The number of bytes at the end of stderr that are shown.
const STDERR_BYTES: usize = 4096;
/// The time that a server has to exit after its stdin is closed.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
/// The time that a server has to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// The time that a server has to exit after it closed its stdout.
const EXIT_DELAY: Duration = Duration::from_millis(200);
/// The variables of our environment that a server gets, apart from `LC_*`. The others may be secret.
const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR", "USER", "SHELL"];

/// A server process in a group of its own, which is killed with this value: launchers such as `npx` start the server as
/// a child, and would leave it behind.
pub(super) struct ServerProcess {
    leader: Leader,
    group: ProcessGroup,
    reader: JoinHandle<()>,
    stderr: StderrTail,
}

/// The end of a server's stderr.
#[derive(Clone)]
pub(super) struct StderrTail {
    tail: Arc<Mutex<OutputTail>>,
    redactor: Arc<Redactor>,
}

impl ServerProcess {
    /// Starts a server.
    pub(super) async fn start(
        program: &str,
        arguments: &[String],
        environment: &[(String, String)],
        folder: Option<&Path>,
        sandbox: &ServerSandbox,
        redactor: &Arc<Redactor>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let is_inherited = |name: &str| INHERITED.contains(&name) || name.starts_with("LC_");
        let mut command = ProcessCommand::new(program)
            .args(arguments)
            .envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_inherited)))
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(StdinSource::Pipe)
            .confined(Confinement::new(
                &sandbox.sandbox,
                &Places {
                    root: &sandbox.root,
                    folder: folder.unwrap_or(Path::new(".")),
                    program: program.contains('/').then_some(Path::new(program)),
                    search_path: std::env::var("PATH").ok(),
                    home: std::env::home_dir(),
                },
            ));
        if let Some(folder) = folder {
            command = command.folder(folder);
        }
        let started = ProcessGroup::spawn(&command, GroupKind::Server).await?;
        let StartedProcess { leader, group, stdin, stdout, stderr } = started;
        let pipes = stdout.zip(stdin).zip(stderr);
        let ((stdout, stdin), pipe) = pipes.ok_or_else(|| io::Error::other("the pipes are missing"))?;
        let stderr = StderrTail::new(redactor);
        let reader = tokio::spawn(stderr.clone().read(pipe));
        Ok((Self { leader, group, reader, stderr }, stdout, stdin))
    }

    pub(super) fn stderr(&self) -> &StderrTail {
        &self.stderr
    }

    /// Waits for a process whose stdin is closed, terminates it if it does not exit, and kills its group.
    pub(super) async fn terminate(mut self) {
        if timeout(CLOSE_GRACE, self.leader.wait()).await.is_err() {
            self.group.terminate();
            let exit = async {
                let _ = self.leader.wait().await;
                self.group.wait_until_empty().await;
            };
            let _ = timeout(GRACE, exit).await;
        }
        self.kill().await;
    }

    /// Kills the process and its descendants. Returns how it exited and the end of its stderr, for the operator.
    pub(super) async fn kill(mut self) -> String {
        let status = timeout(EXIT_DELAY, self.leader.wait()).await;
        self.group.kill();
        let mut exit = match status {
            Ok(Ok(status)) => status.to_string(),
            _ => {
                if timeout(GRACE, self.leader.wait()).await.is_err() {
                    self.leader.kill_stuck();
                }
                "it did not exit and was killed".to_owned()
            }
        };
        // The pipe is closed when the last process that has it is gone.
        let _ = timeout(EXIT_DELAY, &mut self.reader).await;
        self.stderr.append_to(&mut exit);
        exit
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // A process that left the group may keep the pipe open for ever.
        self.reader.abort();
    }
}

impl StderrTail {
    fn new(redactor: &Arc<Redactor>) -> Self {
        // A secret may be cut in two, so more is kept than is shown.
        let tail = OutputTail::new(STDERR_BYTES + redactor.margin());
        Self { tail: Arc::new(Mutex::new(tail)), redactor: Arc::clone(redactor) }
    }

    /// Appends the end of stderr to a text, without secrets.
    pub(super) fn append_to(&self, text: &mut String) {
        let stderr = self.lock().text(&self.redactor);
        if !stderr.is_empty() {
            let separator = if text.is_empty() { "" } else { "; " };
            let _ = write!(text, "{separator}stderr: {stderr}");
        }
    }

    async fn read(self, mut pipe: ChildStderr) {
        read_chunks(&mut pipe, |chunk| self.lock().push(chunk)).await;
    }

    fn lock(&self) -> MutexGuard<'_, OutputTail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
