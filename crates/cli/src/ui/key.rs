//! Single keys as answers.

use super::terminal::KEYBOARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use std::io::{self, Stdin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;

/// The time between two checks whether the key is still needed, in nanoseconds.
const POLL_INTERVAL: i64 = 50_000_000;

/// Asks a question, and waits for one of the keys; returns nothing if the terminal is gone or Ctrl-D is pressed. What was
/// typed before the question does not answer it. Dropping the future releases the keyboard.
pub(crate) async fn key(keys: Vec<char>, ask: impl FnOnce() + Send + 'static) -> Option<char> {
    let (answer, answered) = oneshot::channel();
    let guard = CancelOnDrop::default();
    let is_cancelled = Arc::clone(&guard.0);
    std::thread::spawn(move || {
        // The receiver is gone if the future was dropped.
        let _ = answer.send(read(&keys, ask, &is_cancelled).ok().flatten());
    });
    answered.await.ok().flatten()
}

/// Tells the reading thread to stop when it is dropped.
#[derive(Default)]
pub(super) struct CancelOnDrop(pub(super) Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A terminal that passes on each key as it is pressed, without echo, until this is dropped. Ctrl-C is still a signal.
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
        // Nothing needs to be restored if the terminal is gone.
        let _ = tcsetattr(&self.stdin, OptionalActions::Now, &self.before);
    }
}

fn read(keys: &[char], ask: impl FnOnce(), is_cancelled: &AtomicBool) -> io::Result<Option<char>> {
    let _guard = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
    let terminal = Unbuffered::new()?;
    if is_cancelled.load(Ordering::Acquire) {
        return Ok(None);
    }
    ask();
    let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL };
    while !is_cancelled.load(Ordering::Acquire) {
        let mut descriptors = [PollFd::new(&terminal.stdin, PollFlags::IN)];
        match poll(&mut descriptors, Some(&interval)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        let read = rustix::io::read(&terminal.stdin, &mut bytes)?;
        let bytes = bytes.get(..read).unwrap_or_default();
        match single_key(bytes) {
            _ if read == 0 => return Ok(None),
            Some(END) => return Ok(None),
            Some(key) if keys.contains(&key) => return Ok(Some(key)),
            _ if bytes.contains(&ESCAPE) => drain(&terminal)?,
            _ => {}
        }
    }
    Ok(None)
}

/// The character of Ctrl-D.
const END: char = '\u{4}';
/// The first byte of keys such as the arrows.
const ESCAPE: u8 = 0x1b;

/// Returns the single key that was pressed, perhaps followed by Enter. Several bytes are a special key, such as an arrow
/// (`ESC [ A`, which is not an `a`), or pasted text.
fn single_key(bytes: &[u8]) -> Option<char> {
    match bytes {
        [key] | [key, b'\r' | b'\n'] => Some(char::from(*key).to_ascii_lowercase()),
        _ => None,
    }
}

/// Discards the remaining bytes of a special key.
fn drain(terminal: &Unbuffered) -> io::Result<()> {
    let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL };
    let mut descriptors = [PollFd::new(&terminal.stdin, PollFlags::IN)];
    match poll(&mut descriptors, Some(&interval)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Ok(_) => Ok(tcflush(&terminal.stdin, QueueSelector::IFlush)?),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_single_keys_are_answers() {
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
            assert_eq!(single_key(bytes), expected, "{bytes:?}");
        }
    }
}
