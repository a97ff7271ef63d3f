//! The supervisor of a command: a process between the program and the command, which leaves nothing behind.
//!
//! The kernel gives it every orphan below it, so that a process cannot leave by starting another one and exiting, or by
//! starting a session. It ends all of them when the command exits, when the program asks it to, and when the socket to the
//! program closes, which happens even if the program is killed.

use super::command::ProcessCommand;
use super::confine::{PrivateFolder, confine_thread};
use super::descendants::{descendants, signal_descendants};
use super::request::{KILL, Report, TERMINATE, decode, decode_length};
use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, setsid, wait, waitid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a command has to exit after SIGTERM if the program is gone. A program that is there decides itself.
const GRACE: Duration = Duration::from_secs(2);
/// The time for killing what is left. Afterwards, something does not react even to SIGKILL.
const KILL_LIMIT: Duration = Duration::from_millis(1500);
/// The maximum number of processes of a command at a time. More of them would take the machine down.
const MAX_PROCESSES: usize = 2000;
/// The number of new processes on the machine after which those of the command are counted.
const GROWTH: usize = MAX_PROCESSES / 10;
/// The time between two looks at the number of processes: a command that forks without end makes thousands per second.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The state that the threads of the supervisor share. It is locked while processes are waited for or signalled, so that
/// no id is that of a later process.
struct Supervised {
    command: Pid,
    /// Whether it was asked to exit. It is asked once, because a second signal may interrupt its cleanup.
    is_terminated: bool,
    /// Whether everything that is left is killed.
    is_ending: bool,
    /// Whether there were too many processes.
    is_crowded: bool,
    /// How the command ended.
    status: Option<i32>,
}

/// Runs a supervisor whose stdin is the socket to the program. Returns its exit code.
pub(super) fn run() -> i32 {
    close_inherited();
    super::launch::forbid_inspection();
    // Without a terminal, a command can neither read what the user types nor type for them.
    setsid().ok();
    if set_child_subreaper(Some(getpid())).is_err() {
        return 1;
    }
    match start() {
        Ok(Some((socket, command, folder))) => {
            supervise(&Arc::new(socket), command);
            // Only now that nothing uses it.
            drop(folder);
            0
        }
        Ok(None) => 1,
        Err(error) => {
            let _ = writeln!(io::stderr(), "the supervisor of a command cannot be started by hand: {error}");
            2
        }
    }
}

/// Closes the descriptors that whoever started the program left open, such as those of a shell or of a CI runner: they are
/// not for commands. Nothing of ours is open yet but the standard streams.
fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let descriptors: Vec<RawFd> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in descriptors.into_iter().filter(|descriptor| *descriptor > 2) {
        // The one that listed them is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}

/// Receives a command and starts it. Returns nothing if that failed, after it was reported.
fn start() -> io::Result<Option<(UnixStream, Pid, Option<PrivateFolder>)>> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (mut command, stdin) = receive(&socket)?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    let started = prepare(&mut command).and_then(|folder| Ok((spawn(&command, stdin)?, folder)));
    // The command alone decides when its output ends.
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    match started {
        Ok((id, folder)) => {
            report(&socket, &Report::Started(id.as_raw_nonzero().get()));
            Ok(Some((socket, id, folder)))
        }
        Err(error) => {
            report(
                &socket,
                &match error.raw_os_error() {
                    Some(errno) => Report::Failed(errno),
                    None => Report::Refused(error.to_string()),
                },
            );
            Ok(None)
        }
    }
}

/// Receives a command and its stdin.
fn receive(mut socket: &UnixStream) -> io::Result<(ProcessCommand, OwnedFd)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let received = recvmsg(socket, &mut [IoSliceMut::new(&mut length)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let stdin = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let stdin = stdin.filter(|_| received.bytes == length.len()).ok_or(io::ErrorKind::InvalidData)?;
    let mut bytes = vec![0; decode_length(length)?];
    socket.read_exact(&mut bytes)?;
    Ok((decode(&bytes)?, stdin))
}

/// Creates the folder for temporary files of a command that may not use the shared one.
fn prepare(command: &mut ProcessCommand) -> io::Result<Option<PrivateFolder>> {
    let Some(folder) = PrivateFolder::create(command)? else { return Ok(None) };
    command.environment.push(("TMPDIR".into(), folder.path().into()));
    command.confinement.add_writable(folder.path());
    Ok(Some(folder))
}

/// Starts a command from a thread that has given up what the command may not do: its children inherit that.
fn spawn(command: &ProcessCommand, stdin: OwnedFd) -> io::Result<Pid> {
    let mut process = Command::new(&command.program);
    process.args(&command.arguments).env_clear().process_group(0).current_dir(&command.folder);
    process.envs(command.environment.iter().map(|(name, value)| (name, value))).stdin(Stdio::from(stdin));
    let child = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            confine_thread(&command.confinement).map_err(io::Error::other)?;
            process.spawn()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the command failed")))
    })?;
    Ok(Pid::from_child(&child))
}

/// Waits for the end of a command and of everything it started, and reports it.
fn supervise(socket: &Arc<UnixStream>, command: Pid) {
    let state = Arc::new(Mutex::new(Supervised::new(command)));
    let other_socket = Arc::clone(socket);
    let other_state = Arc::clone(&state);
    // It ends with this process at the latest.
    thread::spawn(move || obey(&other_socket, &other_state));
    // Does not reap, so that ids stay valid until the lock is held.
    while !matches!(waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT), Err(Errno::CHILD)) {
        let mut supervised = lock(&state);
        supervised.reap();
        if supervised.is_ending {
            break;
        }
    }
    end(&state);
    let supervised = lock(&state);
    if supervised.is_crowded {
        report(socket, &Report::Crowded);
    }
    if let Some(status) = supervised.status {
        report(socket, &Report::Exited(status));
    }
}

/// Does what the program asks for, and ends the command if the program is gone or if there are too many processes.
fn obey(mut socket: &UnixStream, state: &Mutex<Supervised>) {
    let interval = Timespec { tv_sec: 0, tv_nsec: LOOK_INTERVAL.subsec_nanos().into() };
    let mut crowd = Crowd::default();
    loop {
        let mut descriptors = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut descriptors, Some(&interval)) == Ok(0) {
            if crowd.has_grown() {
                let mut supervised = lock(state);
                if supervised.is_too_large() {
                    supervised.is_crowded = true;
                    return supervised.kill();
                }
            }
            continue;
        }
        let mut request = [0];
        match socket.read(&mut request) {
            Ok(1..) if request == [TERMINATE] => lock(state).terminate(),
            Ok(1..) if request == [KILL] => return lock(state).kill(),
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => {
                let mut supervised = lock(state);
                if supervised.is_ending {
                    return;
                }
                supervised.terminate();
                drop(supervised);
                thread::sleep(GRACE);
                return lock(state).kill();
            }
        }
    }
}

/// Kills what is left until there is nothing, or until the time is up.
fn end(state: &Mutex<Supervised>) {
    let started = Instant::now();
    let mut pause = Duration::from_micros(200);
    while started.elapsed() < KILL_LIMIT {
        let mut supervised = lock(state);
        supervised.is_ending = true;
        if supervised.reap() {
            return;
        }
        supervised.kill();
        drop(supervised);
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// The number of processes and threads of the machine, which the kernel has at hand: counting our own takes time that a
/// command which forks without end does not leave.
#[derive(Default)]
struct Crowd {
    before: Option<usize>,
}

impl Crowd {
    /// Returns whether so many were added since the last time it was true that the command may have too many.
    fn has_grown(&mut self) -> bool {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let total = load.split([' ', '/']).nth(4).and_then(|total| total.parse().ok());
        let Some(total) = total else { return false };
        let before = *self.before.get_or_insert(total);
        let has_grown = total > before + GROWTH;
        if has_grown || total < before {
            self.before = Some(total);
        }
        has_grown
    }
}

impl Supervised {
    /// Returns whether there are too many processes. The command is stopped meanwhile, so that it can be counted.
    fn is_too_large(&self) -> bool {
        self.signal(Signal::STOP);
        let is_too_large = descendants().len() > MAX_PROCESSES;
        if !is_too_large {
            self.signal(Signal::CONT);
        }
        is_too_large
    }

    fn new(command: Pid) -> Self {
        Self { command, is_terminated: false, is_ending: false, is_crowded: false, status: None }
    }

    fn terminate(&mut self) {
        if !std::mem::replace(&mut self.is_terminated, true) {
            self.signal(Signal::TERM);
        }
    }

    fn kill(&mut self) {
        self.is_ending = true;
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        // The id of a command that was waited for may be that of another process.
        signal_descendants(self.status.is_none().then_some(self.command), signal);
    }

    /// Waits for children that have ended. Returns whether there are none left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((id, status))) if id == self.command => {
                    self.status = Some(status.as_raw());
                    // A command that ends by itself leaves nothing behind.
                    self.is_ending |= !self.is_terminated;
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}

fn lock(state: &Mutex<Supervised>) -> MutexGuard<'_, Supervised> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports to the program, if it is still there.
fn report(mut socket: &UnixStream, report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = socket.write_all(&line);
    }
}
