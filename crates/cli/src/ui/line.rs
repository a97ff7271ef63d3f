//! Short texts as answers.

use super::key::CancelOnDrop;
use super::terminal::KEYBOARD;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::oneshot;

/// The time between two checks whether the answer is still needed, in nanoseconds.
const POLL_INTERVAL: i64 = 50_000_000;
/// The maximum length of an answer, in bytes.
const MAX_LENGTH: usize = 4096;

/// Asks a question, and waits for a line; returns nothing if the terminal is gone or Ctrl-D is pressed. Dropping the future
/// releases the keyboard.
pub(crate) async fn line(ask: impl FnOnce() + Send + 'static) -> Option<String> {
    let (answer, answered) = oneshot::channel();
    let guard = CancelOnDrop::default();
    let is_cancelled = Arc::clone(&guard.0);
    std::thread::spawn(move || {
        // The receiver is gone if the future was dropped.
        let _ = answer.send(read(ask, &is_cancelled).ok().flatten());
    });
    answered.await.ok().flatten()
}

/// Reads a line that the terminal edits and echoes.
fn read(ask: impl FnOnce(), is_cancelled: &AtomicBool) -> io::Result<Option<String>> {
    let _guard = KEYBOARD.lock().unwrap_or_else(PoisonError::into_inner);
    let stdin = io::stdin();
    ask();
    let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL };
    let mut bytes = Vec::new();
    while !is_cancelled.load(Ordering::Acquire) {
        let mut descriptors = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut descriptors, Some(&interval)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; MAX_LENGTH];
        let read = rustix::io::read(&stdin, &mut buffer)?;
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
        if read == 0 && bytes.is_empty() {
            return Ok(None);
        }
        if read == 0 || bytes.ends_with(b"\n") || bytes.len() >= MAX_LENGTH {
            return Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()));
        }
    }
    Ok(None)
}
