//! What is piped in beside a prompt.

use super::Message;
use crate::error::CommandError;
use crate::file::{Input, unreadable};
use crate::ui;
use crate::ui::style::DIM;
use patter::message::attachment::{Attachment, MediaKind};
use patter::text::format_size;
use rustix::fs::{FileType, SeekFrom, fstat, seek};
use std::io::{self, Read};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How long to wait for the first byte. A pipe that nobody writes to is often inherited by accident.
const FIRST_BYTE: Duration = Duration::from_secs(3);
/// How long to wait for more.
const NEXT_BYTE: Duration = Duration::from_secs(60);
/// The size of a piece that is read at once.
const PIECE: usize = 64 * 1024;

/// Adds what is piped in to a message: text to its text, and an image or a document as an attachment. Only pipes, sockets and
/// files that nobody has read from are read, so that a loop such as `while read` keeps its list.
pub(crate) fn piped_input(message: &mut Message, limit: usize) -> Result<(), CommandError> {
    if !is_readable()? {
        return Ok(());
    }
    let content = read(limit)?;
    if content.is_empty() {
        return Ok(());
    }
    let size = format_size(content.len() as u64);
    let note = format!("{DIM}added {size} from stdin to the prompt (`< /dev/null` prevents that){DIM:#}");
    let kind = Attachment::new("stdin", &content).ok().and_then(|attachment| attachment.kind());
    match (kind, String::from_utf8(content)) {
        (Some(MediaKind::Text), Ok(text)) => {
            let text = text.trim_end_matches('\n');
            if text.trim().is_empty() {
                return Ok(());
            }
            message.input.append(text.into());
        }
        (_, Ok(text)) => message.attach("stdin", text.into_bytes())?,
        (_, Err(error)) => message.attach("stdin", error.into_bytes())?,
    }
    Ok(ui::status(&note)?)
}

/// Returns whether stdin is something that was meant for this program.
fn is_readable() -> io::Result<bool> {
    let stdin = io::stdin();
    // A closed stdin has nothing to read.
    let Ok(stat) = fstat(&stdin) else { return Ok(false) };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket => Ok(true),
        FileType::RegularFile if seek(&stdin, SeekFrom::Current(0)) == Ok(0) => Ok(true),
        FileType::RegularFile if stat.st_size > 0 => {
            let note = "stdin is not added to the prompt, because something else reads from it";
            ui::status(&format!("{DIM}{note}{DIM:#}"))?;
            Ok(false)
        }
        _ => Ok(false),
    }
}

/// Reads stdin to its end. A thread of its own reads, because a pipe may never end.
fn read(limit: usize) -> Result<Vec<u8>, CommandError> {
    let (sender, pieces) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut piece = vec![0; PIECE];
            let read = match stdin.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read,
            };
            let is_last = !matches!(read, Ok(1..));
            let read = read.map(|length| {
                piece.truncate(length);
                piece
            });
            if sender.send(read).is_err() || is_last {
                return;
            }
        }
    });
    let mut content: Vec<u8> = Vec::new();
    loop {
        let wait = if content.is_empty() { FIRST_BYTE } else { NEXT_BYTE };
        match pieces.recv_timeout(wait) {
            Ok(Ok(piece)) if piece.is_empty() => return Ok(content),
            Ok(Ok(piece)) => content.extend(piece),
            Ok(Err(error)) => return Err(unreadable(&Input::Stdin, &error)),
            Err(RecvTimeoutError::Timeout) if content.is_empty() => {
                let wait = FIRST_BYTE.as_secs();
                ui::warning(&format!(
                    "nothing arrived on stdin within {wait} s, so only the prompt is sent; `< /dev/null` avoids the wait, and \
                     `-` as the prompt waits for stdin"
                ))?;
                return Ok(Vec::new());
            }
            Err(RecvTimeoutError::Timeout) => {
                let size = format_size(content.len() as u64);
                let message = format!("stdin did not end: {size} arrived, and nothing for {} s", NEXT_BYTE.as_secs());
                return Err(
                    CommandError::failure(message).with_hint("end the pipe, or write its output to a file first")
                );
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(content),
        }
        if content.len() > limit {
            return Err(CommandError::failure(format!("stdin is longer than {} MiB", limit >> 20))
                .with_hint("put it into a file that the agent reads with a tool"));
        }
    }
}
