//! A process in a group of its own, which ends as a whole.

use rustix::process::{Pid, Signal, kill_process_group};
use std::future::pending;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long a group may take to end by itself once it was told to.
const GRACE: Duration = Duration::from_secs(2);
/// How long to read what a program that has ended left in its pipes: a process that it left behind may hold them open.
const DRAIN: Duration = Duration::from_millis(500);
/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// A running process, and all that it starts. Dropped, it is told to end, and is killed if it does not.
pub(crate) struct Group {
    /// The leader, until it has been waited for.
    child: Option<Child>,
    id: Option<Pid>,
    /// The ends that are read stay with the group, so that a program that is told to end may still say something.
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    on_drop: OnDrop,
}

/// What becomes of a group that is dropped before its leader has ended.
enum OnDrop {
    /// It is told to end, and killed a while later.
    End,
    /// It is killed at once.
    Kill,
}

/// How a run ended.
pub(crate) enum Ended {
    /// It wrote more than it may, and was killed.
    Flooded { stderr: Tail },
    /// By itself.
    Finished(Finished),
}

/// What a run left.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Tail,
    /// Whether a process that left the group still holds the pipes.
    pub(crate) is_held_open: bool,
}

/// The last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail {
    pub(crate) bytes: Vec<u8>,
    /// Whether there were more before.
    pub(crate) is_cut: bool,
}

/// More was written than may be.
struct Flooded;

impl Group {
    /// Starts a process as the leader of a group. Its stdout and stderr are read by [`Group::run`].
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Self> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Self { child: Some(child), id, stdout, stderr, on_drop: OnDrop::End })
    }

    /// Feeds the process, reads what it writes and waits for its end, all at once. Of stdout no more is held than `most`
    /// bytes and a chunk, of stderr the last `tail` bytes and as many again.
    pub(crate) async fn run(mut self, stdin: Vec<u8>, most: usize, tail: usize) -> io::Result<Ended> {
        let (id, Some(child)) = (self.id, &mut self.child) else {
            return Err(io::Error::other("the process has been waited for"));
        };
        let (to, from, from_err) = (child.stdin.take(), &mut self.stdout, &mut self.stderr);
        let (mut stdout, mut stderr) = (Vec::new(), Tail::default());
        let mut is_held_open = false;
        let status = {
            let mut pipes = Box::pin(async {
                let (reading, telling) = (read_all(from, &mut stdout, most), read_tail(from_err, &mut stderr, tail));
                tokio::try_join!(reading, telling, feed(to, stdin)).map(|_| ())
            });
            tokio::select! {
                status = child.wait() => {
                    // Whoever is left of the group would hold the pipes open.
                    signal(id, Signal::KILL);
                    match timeout(DRAIN, pipes).await {
                        Ok(Ok(())) => Ok(status?),
                        Ok(Err(flooded)) => Err(flooded),
                        Err(_) => {
                            is_held_open = true;
                            Ok(status?)
                        }
                    }
                }
                piped = pipes.as_mut() => match piped {
                    Ok(()) => Ok(child.wait().await?),
                    Err(flooded) => Err(flooded),
                },
            }
        };
        signal(id, Signal::KILL);
        if status.is_err() {
            timeout(GRACE, child.wait()).await.ok();
        }
        self.child = None;
        Ok(match status {
            Ok(status) => Ended::Finished(Finished { status, stdout, stderr, is_held_open }),
            Err(Flooded) => Ended::Flooded { stderr },
        })
    }

    /// Ends the group with grace, and waits for its leader, so that it is no zombie.
    async fn end(mut self) {
        signal(self.id, Signal::TERM);
        if let Some(child) = &mut self.child {
            let last_words =
                async { tokio::join!(ignore(&mut self.stdout), ignore(&mut self.stderr), pending::<()>()) };
            tokio::select! {
                _ = timeout(GRACE, child.wait()) => {}
                _ = last_words => {}
            }
            signal(self.id, Signal::KILL);
            timeout(GRACE, child.wait()).await.ok();
        }
        self.child = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        match (&self.on_drop, Handle::try_current()) {
            (OnDrop::End, Ok(runtime)) => {
                let (id, stdout, stderr) = (self.id, self.stdout.take(), self.stderr.take());
                // A runtime that shuts down drops this at once, or later; then the group is killed.
                runtime.spawn(Self { child: Some(child), id, stdout, stderr, on_drop: OnDrop::Kill }.end());
            }
            (OnDrop::End | OnDrop::Kill, _) => {
                signal(self.id, Signal::KILL);
                // Nobody is there to wait for it later, and it takes no more than a moment now.
                for _ in 0..100 {
                    if !matches!(child.try_wait(), Ok(None)) {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
}

/// Sends a signal to a group. That fails where nobody is left, which is as well.
///
/// The leader may have been waited for a moment ago. Its number is not given away as long as others are in the group.
fn signal(group: Option<Pid>, signal: Signal) {
    if let Some(group) = group {
        kill_process_group(group, signal).ok();
    }
}

/// Writes all of stdin. A process that reads no more of it is right to.
async fn feed(pipe: Option<ChildStdin>, bytes: Vec<u8>) -> Result<(), Flooded> {
    if let Some(mut pipe) = pipe {
        pipe.write_all(&bytes).await.ok();
    }
    Ok(())
}

async fn read_all(pipe: &mut Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>, most: usize) -> Result<(), Flooded> {
    let Some(pipe) = pipe else { return Ok(()) };
    while bytes.len() <= most {
        bytes.reserve(CHUNK);
        // A pipe that cannot be read has no more to say.
        if pipe.read_buf(bytes).await.unwrap_or(0) == 0 {
            return Ok(());
        }
    }
    Err(Flooded)
}

async fn read_tail(pipe: &mut Option<impl AsyncRead + Unpin>, tail: &mut Tail, most: usize) -> Result<(), Flooded> {
    let Some(pipe) = pipe else { return Ok(()) };
    loop {
        tail.bytes.reserve(CHUNK);
        let read = pipe.read_buf(&mut tail.bytes).await.unwrap_or(0);
        let surplus = tail.bytes.len().saturating_sub(most);
        // Moving the bytes is worth it once there are many to forget.
        if surplus > most || (read == 0 && surplus > 0) {
            tail.bytes.drain(..surplus);
            tail.is_cut = true;
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// Reads and forgets.
async fn ignore(pipe: &mut Option<impl AsyncRead + Unpin>) {
    if let Some(pipe) = pipe {
        tokio::io::copy(pipe, &mut tokio::io::sink()).await.ok();
    }
}
