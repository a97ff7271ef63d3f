//! Recordings: the log of a session as a file, including the pieces of streamed replies.

use super::entry::to_json;
use crate::drive::JournalError;
use crate::os_error::describe;
use crate::store::SessionId;
use patter_core::message::request::Delta;
use patter_core::session::{Log, LogEntry, RunPath};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The version of the file format.
const VERSION: u64 = 1;
/// The maximum size of a recording in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// The maximum number of pieces of a reply in one entry.
const MAX_PIECES: usize = 256;

/// Writes a recording: a header line, then one JSON document per line. The file is created with the first entry.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: Option<File>,
    session: Option<String>,
    /// The state of the session when the recording starts.
    preamble: Vec<LogEntry>,
    /// Pieces of a reply that are not written yet. Consecutive pieces of one run form one entry.
    pieces: Option<(RunPath, Vec<Delta>)>,
}

/// A recording, parsed from a file.
///
/// ```
/// use patter::session::Recording;
/// let recording = Recording::parse("{\"patter_recording\": 1}\n").unwrap();
/// assert!(recording.entries.is_empty());
/// let error = Recording::parse("{}").unwrap_err();
/// assert_eq!(error.to_string(), "not a Patter recording: the header line is missing");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The session, if it was saved.
    pub session: Option<String>,
    /// Whether the last line is incomplete, because the process ended while writing it.
    pub is_truncated: bool,
    /// The entries, in order.
    pub entries: Vec<LogEntry>,
}

/// An error reading a recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {}", path.display(), describe(error))]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The file is not a recording.
    #[error("not a Patter recording: the header line is missing")]
    NotARecording,
    /// The file is too large.
    #[error("the recording is larger than {} MiB", MAX_BYTES >> 20)]
    TooLarge,
    /// The recording has an unsupported version.
    #[error("the recording has version {0}, but only version {VERSION} is supported")]
    Version(String),
    /// A line is damaged.
    #[error("line {line} of the recording is damaged: {message}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    patter_recording: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
}

impl Recorder {
    /// Starts a recording in a new file. An existing file is an error, so that no recording is overwritten.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        if path.exists() {
            return Err(write_error(&path, &io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        Ok(Self { path, file: None, session: None, preamble: Vec::new(), pieces: None })
    }

    /// Sets the session to name in the header.
    pub(super) fn with_session(mut self, session: Option<&SessionId>) -> Self {
        self.session = session.map(ToString::to_string);
        self
    }

    /// Starts the recording with the current state of a session: its source, and its conversation or unfinished run.
    pub(super) fn continuing(mut self, log: &Log) -> Self {
        self.preamble.extend(log.selection().map(|source| LogEntry::Opened { selection: source.clone() }));
        self.preamble.extend(match log.open_run() {
            Some(run) => Some(LogEntry::RunRestored {
                run: Vec::new(),
                frame: log.frame(&run.spec().agent).cloned(),
                bindings: String::new(),
                snapshot: Box::new(run.clone()),
            }),
            None if log.conversation().is_empty() => None,
            None => Some(LogEntry::Forked { from: String::new(), messages: log.conversation().to_vec() }),
        });
        self
    }

    pub(super) fn write(&mut self, entry: &LogEntry) -> Result<(), JournalError> {
        if let LogEntry::ReplyStreamed { run, pieces } = entry {
            if self.pieces.as_ref().is_some_and(|(other, pieces)| other != run || pieces.len() >= MAX_PIECES) {
                self.flush()?;
            }
            let (_, waiting) = self.pieces.get_or_insert_with(|| (run.clone(), Vec::new()));
            waiting.extend(pieces.iter().cloned());
            return Ok(());
        }
        self.flush()?;
        self.write_line(&to_json(entry)?)
    }

    /// Writes the pending pieces.
    fn flush(&mut self) -> Result<(), JournalError> {
        match self.pieces.take() {
            Some((run, pieces)) => self.write_line(&to_json(&LogEntry::ReplyStreamed { run, pieces })?),
            None => Ok(()),
        }
    }

    fn write_line(&mut self, line: &str) -> Result<(), JournalError> {
        let mut lines = Vec::new();
        if self.file.is_none() {
            lines.push(header(self.session.take()));
            for entry in std::mem::take(&mut self.preamble) {
                lines.push(to_json(&entry)?);
            }
        }
        lines.push(line.to_owned());
        let lines: String = lines.into_iter().map(|line| line + "\n").collect();
        let file = match &mut self.file {
            Some(file) => Ok(file),
            None => create_private(&self.path).map(|file| self.file.insert(file)),
        };
        file.and_then(|file| file.write_all(lines.as_bytes())).map_err(|error| write_error(&self.path, &error))
    }
}

/// Creates a file that only its owner can read: a recording contains whole conversations.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The pieces of an unfinished reply. Nobody is left to report an error to.
        let _ = self.flush();
    }
}

impl Recording {
    /// Returns the text of a recording made from the log of a session, which does not have the pieces of replies.
    pub fn from_log(session: &SessionId, entries: &[String]) -> String {
        let header = header(Some(session.to_string()));
        let lines = std::iter::once(header.as_str()).chain(entries.iter().map(String::as_str));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Reads a recording from a file.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let failed = |error| RecordingError::File { path: path.to_owned(), error };
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(RecordingError::TooLarge);
        }
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Parses a recording. An incomplete last line is skipped.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text.split_inclusive('\n').enumerate();
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Json>(line).ok());
        match header.as_ref().and_then(|header| header.get("patter_recording")) {
            None => return Err(RecordingError::NotARecording),
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(RecordingError::Version(version.to_string())),
        }
        let header: Option<Header> = header.and_then(|header| serde_json::from_value(header).ok());
        let mut recording =
            Self { session: header.and_then(|header| header.session), is_truncated: false, entries: Vec::new() };
        for (index, line) in lines {
            match serde_json::from_str(line) {
                Ok(entry) => recording.entries.push(entry),
                Err(_) if line.trim().is_empty() => {}
                // The process ended while writing the last line.
                Err(_) if !line.ends_with('\n') => recording.is_truncated = true,
                Err(error) => return Err(RecordingError::Line { line: index + 1, message: error.to_string() }),
            }
        }
        Ok(recording)
    }
}

fn header(session: Option<String>) -> String {
    json!(Header { patter_recording: VERSION, session }).to_string()
}

fn write_error(path: &Path, error: &io::Error) -> JournalError {
    let path = path.display();
    JournalError::new(match error.kind() {
        io::ErrorKind::AlreadyExists => format!("`{path}` already exists"),
        _ => format!("cannot write `{path}`: {}", describe(error)),
    })
}
