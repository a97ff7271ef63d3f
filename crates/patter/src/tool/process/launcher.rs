//! Starting a command through a supervisor.

use super::command::{ProcessCommand, StdinSource};
use super::descendants::kill_session;
use super::launch::ARGUMENT;
use super::leader::{Leader, process_id};
use super::registry::{Control, GroupKind, REGISTRY};
use super::request::{Report, encode, encode_length};
use rustix::cmsg_space;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

/// This program, even if its file was replaced since it was started.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// The time that a supervisor has to start a command.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The connection to the supervisor of a command.
pub(super) struct Supervision {
    stream: BlockingStream,
    /// What arrived together with the report of the start.
    received: Vec<u8>,
    /// The process group of the command, until nothing of it is left.
    command: Option<Pid>,
    is_crowded: bool,
}

/// A supervisor that was asked to start a command.
pub(super) struct Launching {
    pub(super) child: Child,
    pub(super) leader: Option<Pid>,
    pub(super) stdin: Option<ChildStdin>,
    stream: UnixStream,
    request: Vec<u8>,
}

impl Launching {
    /// Starts the supervisor, and registers it.
    pub(super) fn start(command: &ProcessCommand, kind: GroupKind) -> io::Result<Self> {
        let request = encode(command)?;
        let (ours, theirs) = BlockingStream::pair()?;
        let (source, stdin) = match command.stdin {
            StdinSource::Null => (OwnedFd::from(File::open("/dev/null")?), None),
            StdinSource::Pipe => {
                let (reader, writer) = io::pipe()?;
                (reader.into(), Some(std::process::ChildStdin::from(OwnedFd::from(writer))))
            }
        };
        // The socket takes the place of the supervisor's stdin, so that of the command has to be sent.
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = [source.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&passed));
        sendmsg(&ours, &[IoSlice::new(&encode_length(&request)?)], &mut control, SendFlags::empty())?;
        ours.set_nonblocking(true)?;
        let mut supervisor = Command::new(OWN_PROGRAM);
        // Variables such as LD_PRELOAD are for the command, not for us.
        supervisor.arg(ARGUMENT).env_clear().current_dir("/");
        supervisor.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, leader) = REGISTRY.start(kind, || {
            let child = supervisor.spawn()?;
            let leader = process_id(&child);
            Ok((child, leader, Control::Supervisor(ours.try_clone()?)))
        })?;
        let stdin = stdin.map(ChildStdin::from_std).transpose()?;
        Ok(Self { child, leader, stdin, stream: UnixStream::from_std(ours)?, request })
    }

    /// Waits until the command was started.
    pub(super) async fn finish(self) -> io::Result<(Leader, Option<ChildStdin>)> {
        let Self { mut child, leader, stdin, stream, request } = self;
        let mut stream = BufReader::with_capacity(512, stream);
        let mut line = Vec::new();
        let exchange = async {
            stream.write_all(&request).await?;
            stream.read_until(b'\n', &mut line).await
        };
        match timeout(START_LIMIT, exchange).await {
            Ok(Ok(1..)) => {}
            Ok(Ok(0)) => {
                // A command may kill its supervisor before that reports it. Otherwise the supervisor could not work.
                let status = timeout(START_LIMIT, child.wait()).await??;
                if status.signal().is_none() {
                    return Err(io::Error::other("the supervisor of the command exited early"));
                }
                if let Some(session) = leader {
                    kill_session(session);
                }
                return Ok((Leader::new(child), stdin));
            }
            Ok(Err(error)) => return Err(io::Error::other(format!("the supervisor of the command failed: {error}"))),
            Err(_) => return Err(io::Error::other("the supervisor of the command did not start in time")),
        }
        match serde_json::from_slice(&line).map_err(io::Error::other)? {
            Report::Started(id) => {
                // A command that ended at once has been reported already.
                let received = stream.buffer().to_vec();
                let stream = stream.into_inner().into_std()?;
                let supervision = Supervision { stream, received, command: Pid::from_raw(id), is_crowded: false };
                Ok((Leader::supervised(child, supervision), stdin))
            }
            Report::Failed(errno) => Err(io::Error::from_raw_os_error(errno)),
            Report::Refused(reason) => Err(io::Error::other(reason)),
            Report::Exited(_) | Report::Crowded => Err(io::Error::other("the supervisor of the command failed")),
        }
    }
}

impl Supervision {
    /// Returns how the command ended, after its supervisor ended with a status.
    pub(super) fn ended(&mut self, supervisor: ExitStatus) -> ExitStatus {
        let mut text = std::mem::take(&mut self.received);
        // All of it has arrived, so an error means that there is no more.
        let _ = self.stream.read_to_end(&mut text);
        let mut status = None;
        for line in text.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Report::Exited(raw)) => status = Some(ExitStatus::from_raw(raw)),
                Ok(Report::Crowded) => self.is_crowded = true,
                _ => {}
            }
        }
        if status.is_none() {
            // Somebody killed the supervisor.
            self.kill_command();
        }
        self.command = None;
        status.unwrap_or(supervisor)
    }

    /// Kills the process group of the command, for lack of a supervisor that does more.
    pub(super) fn kill_command(&mut self) {
        if let Some(command) = self.command.take() {
            kill_process_group(command, Signal::KILL).ok();
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }
}
