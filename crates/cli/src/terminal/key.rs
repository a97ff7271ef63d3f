//! Single keys, pressed in answer to a question.

use super::KEYBOARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use std::io::{self, Stdin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;

/// How often is looked whether somebody still waits for the key, in nanoseconds.
const LOOK: i64 = 50_000_000;

/// Asks something, and waits for one of these keys; nothing if the terminal is gone, or Ctrl-D is pressed. What was typed
/// before the question does not answer it. Whoever drops this gives the keyboard back.
pub(crate) async fn key(keys: Vec<char>, ask: impl FnOnce() + Send + 'static) -> Option<char> {
    let (answer, answered) = oneshot::channel();
    let unwanted = Unwanted::default();
    let is_unwanted = Arc::clone(&unwanted.0);
    std::thread::spawn(move || {
        // Nobody listens any more if the question was dropped.
        let _ = answer.send(read(&keys, ask, &is_unwanted).ok().flatten());
    });
    answered.await.ok().flatten()
}

/// Tells the thread that nobody waits any more.
#[derive(Default)]
struct Unwanted(Arc<AtomicBool>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A terminal that gives each key as it is pressed, without showing it, until this is dropped. Ctrl-C is still a signal.
struct Unbuffered {
    stdin: Stdin,
    before: Termios,
}

impl Unbuffered {
    fn new() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut modes = before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        tcflush(&stdin, QueueSelector::IFlush)?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Unbuffered {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}

fn read(keys: &[char], ask: impl FnOnce(), is_unwanted: &AtomicBool) -> io::Result<Option<char>> {
    let _held = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
    let terminal = Unbuffered::new()?;
    if is_unwanted.load(Ordering::Acquire) {
        return Ok(None);
    }
    ask();
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK };
    while !is_unwanted.load(Ordering::Acquire) {
        let mut waiting = [PollFd::new(&terminal.stdin, PollFlags::IN)];
        match poll(&mut waiting, Some(&look)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut byte = [0];
        let read = rustix::io::read(&terminal.stdin, &mut byte)?;
        let [pressed] = byte;
        let pressed = char::from(pressed).to_ascii_lowercase();
        match pressed {
            _ if read == 0 => return Ok(None),
            '\u{4}' => return Ok(None),
            _ if keys.contains(&pressed) => return Ok(Some(pressed)),
            _ => {}
        }
    }
    Ok(None)
}
