//! Recordings: the log of a session as a file, with the pieces that replies came in.

use super::log::text;
use super::{Entry, Log};
use crate::drive::JournalError;
use crate::store::SessionId;
use patter_core::message::request::Delta;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The version of the form in which recordings are written.
const VERSION: u64 = 1;
/// The most that a recording may have, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// How many pieces of a reply are written at a time, at most.
const MOST_PIECES: usize = 256;

/// Writes a recording: JSON lines, of which the first says what the file is. Nothing is written before something happens.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: Option<File>,
    session: Option<String>,
    /// What was said before.
    before: Vec<Entry>,
    /// The pieces of a reply that were not written yet: those of one run that come one after the other are one entry.
    pieces: Option<(patter_core::session::RunPath, Vec<Delta>)>,
}

/// A recording that was read.
///
/// ```
/// use patter::session::Recording;
/// let recording = Recording::parse("{\"patter_recording\": 1}\n").unwrap();
/// assert!(recording.entries.is_empty());
/// let error = Recording::parse("{}").unwrap_err();
/// assert_eq!(error.to_string(), "this is no recording: its first line does not say so");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// The session, if it was kept.
    pub session: Option<String>,
    /// Whether the end is cut off: the program was ended while it wrote.
    pub is_cut: bool,
    /// What happened, in order.
    pub entries: Vec<Entry>,
}

/// Why a recording cannot be read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot read `{}`: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The first line is not that of a recording.
    #[error("this is no recording: its first line does not say so")]
    NoRecording,
    /// It is too large.
    #[error("the recording has more than {} MiB", MOST_BYTES >> 20)]
    TooLarge,
    /// It was written by another version of Patter.
    #[error("the recording has version {0}, and only version {VERSION} can be read")]
    Version(String),
    /// A line is damaged.
    #[error("line {line} of the recording cannot be read: {message}")]
    Line {
        /// Which line, counted from 1.
        line: usize,
        /// What is wrong.
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
    /// Begins a recording in a new file. One that is there is an error: nothing that was recorded is lost.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        if path.exists() {
            return Err(failed(&path, &io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        Ok(Self { path, file: None, session: None, before: Vec::new(), pieces: None })
    }

    /// Sets which session is recorded.
    pub(super) fn of(mut self, session: Option<&SessionId>) -> Self {
        self.session = session.map(ToString::to_string);
        self
    }

    /// Sets what was said before: a recording begins with a conversation, if there is one.
    pub(super) fn after(mut self, log: &Log) -> Self {
        self.before.extend(log.source().map(|source| Entry::Opened { source: source.clone() }));
        self.before.extend(match log.run() {
            Some(run) => Some(Entry::Restored {
                run: Vec::new(),
                frame: log.frame(&run.spec().agent).cloned(),
                bindings: String::new(),
                saved: Box::new(run.clone()),
            }),
            None if log.conversation().is_empty() => None,
            None => Some(Entry::Forked { from: String::new(), messages: log.conversation().to_vec() }),
        });
        self
    }

    pub(super) fn write(&mut self, entry: &Entry) -> Result<(), JournalError> {
        if let Entry::Streamed { run, pieces } = entry {
            if self.pieces.as_ref().is_some_and(|(other, pieces)| other != run || pieces.len() >= MOST_PIECES) {
                self.flush()?;
            }
            let (_, waiting) = self.pieces.get_or_insert_with(|| (run.clone(), Vec::new()));
            waiting.extend(pieces.iter().cloned());
            return Ok(());
        }
        self.flush()?;
        self.line(&text(entry)?)
    }

    /// Writes the pieces that were not written yet.
    fn flush(&mut self) -> Result<(), JournalError> {
        match self.pieces.take() {
            Some((run, pieces)) => self.line(&text(&Entry::Streamed { run, pieces })?),
            None => Ok(()),
        }
    }

    fn line(&mut self, text: &str) -> Result<(), JournalError> {
        let mut lines = Vec::new();
        if self.file.is_none() {
            lines.push(header(self.session.take()));
            for entry in std::mem::take(&mut self.before) {
                lines.push(super::log::text(&entry)?);
            }
        }
        lines.push(text.to_owned());
        let lines: String = lines.into_iter().map(|line| line + "\n").collect();
        let file = match &mut self.file {
            Some(file) => Ok(file),
            None => File::create_new(&self.path).map(|file| self.file.insert(file)),
        };
        file.and_then(|file| file.write_all(lines.as_bytes())).map_err(|error| failed(&self.path, &error))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A reply that was under way is as far as it came; nobody is left to be told that it cannot be written.
        let _ = self.flush();
    }
}

impl Recording {
    /// Returns the text of a recording with the log of a session. Pieces of replies are not kept in logs.
    pub fn of_log(session: &SessionId, entries: &[String]) -> String {
        let header = header(Some(session.to_string()));
        let lines = std::iter::once(header.as_str()).chain(entries.iter().map(String::as_str));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Reads a recording from a file.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let failed = |error| RecordingError::File { path: path.to_owned(), error };
        let mut bytes = Vec::new();
        File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(RecordingError::TooLarge);
        }
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Reads the text of a recording. What a program wrote when it was ended, and what is cut off, is left out.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text.split_inclusive('\n').enumerate();
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Json>(line).ok());
        match header.as_ref().and_then(|header| header.get("patter_recording")) {
            None => return Err(RecordingError::NoRecording),
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => return Err(RecordingError::Version(version.to_string())),
        }
        let header: Option<Header> = header.and_then(|header| serde_json::from_value(header).ok());
        let mut recording =
            Self { session: header.and_then(|header| header.session), is_cut: false, entries: Vec::new() };
        for (index, line) in lines {
            match serde_json::from_str(line) {
                Ok(entry) => recording.entries.push(entry),
                Err(_) if line.trim().is_empty() => {}
                // The program was ended while it wrote the last line.
                Err(_) if !line.ends_with('\n') => recording.is_cut = true,
                Err(error) => return Err(RecordingError::Line { line: index + 1, message: error.to_string() }),
            }
        }
        Ok(recording)
    }
}

fn header(session: Option<String>) -> String {
    json!(Header { patter_recording: VERSION, session }).to_string()
}

fn failed(path: &Path, error: &io::Error) -> JournalError {
    JournalError(format!("cannot write `{}`: {error}", path.display()))
}
