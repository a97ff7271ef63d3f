//! Processes that run to their end, with bounded output.

use super::group::StartedProcess;
use super::{GroupKind, Leader, OutputTail, ProcessCommand, ProcessGroup, read_chunks};
use std::future::pending;
use std::io;
use std::mem;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The time that a group has to exit after SIGTERM.
const GRACE: Duration = Duration::from_secs(2);
/// The time for reading the rest of the output after a program exited: a process that it left behind may keep the pipes
/// open.
const DRAIN: Duration = Duration::from_millis(500);
/// The number of bytes to make room for before each read.
const CHUNK: usize = 16 * 1024;

/// A running process and everything it starts. Dropping it terminates the group, and kills it after a grace period.
pub(crate) struct RunningProcess {
    /// The leader, until it was waited for.
    leader: Option<Leader>,
    group: ProcessGroup,
    stdin: Option<ChildStdin>,
    /// The pipes stay open until the end, so that a program can write while it terminates.
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    on_drop: OnDrop,
}

/// The way to end a group that is dropped before its leader exited.
enum OnDrop {
    /// It is terminated, and killed after a grace period.
    Terminate,
    /// It is killed at once.
    Kill,
}

/// The outcome of a process.
pub(crate) enum ProcessOutcome {
    /// It exited.
    Exited(ProcessOutput),
    /// It wrote more than the limit, and was killed.
    OutputLimit {
        /// The end of its stderr.
        stderr: OutputTail,
    },
}

/// The output of a process that exited.
pub(crate) struct ProcessOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: OutputTail,
    /// Whether a process that left the group still keeps the pipes open.
    pub(crate) is_held_open: bool,
    /// Whether it was killed because it started too many processes.
    pub(crate) is_crowded: bool,
}

/// The marker of an output that exceeds its limit.
struct OutputLimitExceeded;

impl RunningProcess {
    /// Starts a command. [`RunningProcess::run`] reads its stdout and stderr.
    pub(crate) async fn spawn(command: &ProcessCommand) -> io::Result<Self> {
        let command = command.clone();
        // In a task of its own: if nobody waits for it any more, a process that has just started is terminated like any
        // other, and not killed while it starts.
        let start = tokio::spawn(async move {
            let StartedProcess { leader, group, stdin, stdout, stderr } =
                ProcessGroup::spawn(&command, GroupKind::Call).await?;
            Ok(Self { leader: Some(leader), group, stdin, stdout, stderr, on_drop: OnDrop::Terminate })
        });
        start.await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Writes stdin, reads the output and waits for the end, concurrently. Stdout may have at most `max_stdout` bytes;
    /// of stderr the last `stderr_tail` bytes are kept.
    pub(crate) async fn run(
        mut self,
        stdin: Vec<u8>,
        max_stdout: usize,
        stderr_tail: usize,
    ) -> io::Result<ProcessOutcome> {
        let Some(leader) = &mut self.leader else {
            return Err(io::Error::other("the process has been waited for"));
        };
        let stdin_pipe = self.stdin.take();
        let mut stdout = Vec::new();
        let mut stderr = OutputTail::new(stderr_tail);
        let mut is_held_open = false;
        let status = {
            let mut pipes = Box::pin(async {
                let output = read_limited(&mut self.stdout, &mut stdout, max_stdout);
                let errors = read_tail(&mut self.stderr, &mut stderr);
                tokio::try_join!(output, errors, write_all(stdin_pipe, stdin)).map(|_| ())
            });
            tokio::select! {
                status = leader.wait() => {
                    // Processes that are left in the group would keep the pipes open.
                    self.group.kill();
                    match timeout(DRAIN, pipes).await {
                        Ok(Ok(())) => Ok(status?),
                        Ok(Err(exceeded)) => Err(exceeded),
                        Err(_) => {
                            is_held_open = true;
                            Ok(status?)
                        }
                    }
                }
                read = pipes.as_mut() => match read {
                    Ok(()) => Ok(leader.wait().await?),
                    Err(exceeded) => Err(exceeded),
                },
            }
        };
        self.group.kill();
        if status.is_err() {
            reap(leader).await;
        }
        let is_crowded = leader.is_crowded();
        self.leader = None;
        Ok(match status {
            Ok(status) => ProcessOutcome::Exited(ProcessOutput { status, stdout, stderr, is_held_open, is_crowded }),
            Err(OutputLimitExceeded) => ProcessOutcome::OutputLimit { stderr },
        })
    }

    /// Terminates the group, kills what is left of it, and waits for the leader, so that it does not become a zombie.
    async fn terminate(mut self) {
        self.group.terminate();
        if let Some(leader) = &mut self.leader {
            let output = async { tokio::join!(discard(&mut self.stdout), discard(&mut self.stderr), pending::<()>()) };
            // A shell exits before the programs that it started.
            let exit = async {
                leader.wait().await.ok();
                self.group.wait_until_empty().await;
            };
            tokio::select! {
                _ = timeout(GRACE, exit) => {}
                _ = output => {}
            }
            self.group.kill();
            reap(leader).await;
        }
        self.leader = None;
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        let Some(mut leader) = self.leader.take() else { return };
        match (&self.on_drop, Handle::try_current()) {
            (OnDrop::Terminate, Ok(runtime)) => {
                let process = Self {
                    leader: Some(leader),
                    group: mem::take(&mut self.group),
                    stdin: self.stdin.take(),
                    stdout: self.stdout.take(),
                    stderr: self.stderr.take(),
                    // A runtime that shuts down drops the task, at once or later.
                    on_drop: OnDrop::Kill,
                };
                runtime.spawn(process.terminate());
            }
            (OnDrop::Terminate | OnDrop::Kill, _) => {
                self.group.kill();
                // No task can wait for the leader later, and its end takes only a moment.
                for _ in 0..100 {
                    if !matches!(leader.try_wait(), Ok(None)) {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
}

/// Waits for a leader that was killed, so that it does not become a zombie.
async fn reap(leader: &mut Leader) {
    if timeout(GRACE, leader.wait()).await.is_err() {
        leader.kill_stuck();
        timeout(GRACE, leader.wait()).await.ok();
    }
}

/// Writes all of stdin. A process need not read it.
async fn write_all(pipe: Option<ChildStdin>, bytes: Vec<u8>) -> Result<(), OutputLimitExceeded> {
    if let Some(mut pipe) = pipe {
        pipe.write_all(&bytes).await.ok();
    }
    Ok(())
}

async fn read_limited(
    pipe: &mut Option<impl AsyncRead + Unpin>,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> Result<(), OutputLimitExceeded> {
    let Some(pipe) = pipe else { return Ok(()) };
    while bytes.len() <= limit {
        bytes.reserve(CHUNK);
        // A pipe that cannot be read counts as closed.
        if pipe.read_buf(bytes).await.unwrap_or(0) == 0 {
            return Ok(());
        }
    }
    Err(OutputLimitExceeded)
}

async fn read_tail(
    pipe: &mut Option<impl AsyncRead + Unpin>,
    tail: &mut OutputTail,
) -> Result<(), OutputLimitExceeded> {
    if let Some(pipe) = pipe {
        read_chunks(pipe, |chunk| tail.push(chunk)).await;
    }
    Ok(())
}

async fn discard(pipe: &mut Option<impl AsyncRead + Unpin>) {
    if let Some(pipe) = pipe {
        read_chunks(pipe, |_| {}).await;
    }
}
