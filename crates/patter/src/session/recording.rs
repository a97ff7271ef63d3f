//! Recordings: the log of a session as a file, with the pieces that replies came in.

use super::kept::text;
use super::{Entry, Log};
use crate::drive::JournalError;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The version of the form in which recordings are written.
const VERSION: u64 = 1;

/// Writes a recording: JSON lines, of which the first says what the file is.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: File,
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
    /// It was written by another version of Patter.
    #[error("the recording has version {0}, and only version {VERSION} can be read")]
    Version(u64),
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
}

impl Recorder {
    /// Begins a recording in a new file; one that is there is overwritten.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, JournalError> {
        let path = path.into();
        let file = File::create(&path).map_err(|error| failed(&path, &error))?;
        let mut recorder = Self { path, file };
        recorder.line(&format!("{{\"patter_recording\":{VERSION}}}"))?;
        Ok(recorder)
    }

    /// Writes what was said before: a recording begins with a conversation, if there is one.
    pub(super) fn write_log(&mut self, log: &Log) -> Result<(), JournalError> {
        if let Some(source) = log.source() {
            self.write(&Entry::Opened { source: source.clone() })?;
        }
        let messages = log.conversation().to_vec();
        if messages.is_empty() { Ok(()) } else { self.write(&Entry::Forked { from: String::new(), messages }) }
    }

    pub(super) fn write(&mut self, entry: &Entry) -> Result<(), JournalError> {
        self.line(&text(entry)?)
    }

    fn line(&mut self, text: &str) -> Result<(), JournalError> {
        self.file.write_all(format!("{text}\n").as_bytes()).map_err(|error| failed(&self.path, &error))
    }
}

impl Recording {
    /// Returns the text of a recording with the log of a session. Pieces of replies are not kept in logs.
    pub fn of_log(entries: &[String]) -> String {
        let header = format!("{{\"patter_recording\":{VERSION}}}");
        let lines = std::iter::once(header.as_str()).chain(entries.iter().map(String::as_str));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Reads a recording from a file.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| RecordingError::File { path: path.to_owned(), error })?;
        Self::parse(&text)
    }

    /// Reads the text of a recording. What a program wrote when it was ended, and what is cut off, is left out.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text.split_inclusive('\n').enumerate();
        let header = lines.next().and_then(|(_, line)| serde_json::from_str::<Header>(line).ok());
        match header {
            None => return Err(RecordingError::NoRecording),
            Some(Header { patter_recording: VERSION }) => {}
            Some(Header { patter_recording }) => return Err(RecordingError::Version(patter_recording)),
        }
        let mut entries = Vec::new();
        for (index, line) in lines {
            match serde_json::from_str(line) {
                Ok(entry) => entries.push(entry),
                Err(_) if line.trim().is_empty() => {}
                // The program was ended while it wrote the last line.
                Err(_) if !line.ends_with('\n') => {}
                Err(error) => return Err(RecordingError::Line { line: index + 1, message: error.to_string() }),
            }
        }
        Ok(Self { entries })
    }
}

fn failed(path: &Path, error: &io::Error) -> JournalError {
    JournalError(format!("cannot write `{}`: {error}", path.display()))
}
