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
        let mut bytes = [0; 64];
        let read = rustix::io::read(&terminal.stdin, &mut bytes)?;
        let bytes = bytes.get(..read).unwrap_or_default();
        match pressed(bytes) {
            _ if read == 0 => return Ok(None),
            Some(END) => return Ok(None),
            Some(key) if keys.contains(&key) => return Ok(Some(key)),
            _ if bytes.contains(&ESCAPE) => drain(&terminal)?,
            _ => {}
        }
    }
    Ok(None)
}

/// What Ctrl-D gives, and what keys such as the arrows begin with.
const END: char = '\u{4}';
const ESCAPE: u8 = 0x1b;

/// Returns the one key that was pressed, perhaps with Enter. What comes as several bytes is another key, such as an arrow
/// (`ESC [ A`, which is no `a`), or was pasted.
fn pressed(bytes: &[u8]) -> Option<char> {
    match bytes {
        [key] | [key, b'\r' | b'\n'] => Some(char::from(*key).to_ascii_lowercase()),
        _ => None,
    }
}

/// Drops what else belongs to a key that is sent as several bytes.
fn drain(terminal: &Unbuffered) -> io::Result<()> {
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK };
    let mut waiting = [PollFd::new(&terminal.stdin, PollFlags::IN)];
    match poll(&mut waiting, Some(&look)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Ok(_) => Ok(tcflush(&terminal.stdin, QueueSelector::IFlush)?),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_one_answer() {
        let table: [(&[u8], Option<char>); 7] = [
            (b"y", Some('y')),
            (b"Y\r", Some('y')),
            (b"\x04", Some(END)),
            (b"\x1b[A", None),
            (b"[A", None),
            (b"yes", None),
            ("é".as_bytes(), None),
        ];
        for (bytes, expected) in table {
            assert_eq!(pressed(bytes), expected, "{bytes:?}");
        }
    }
}
