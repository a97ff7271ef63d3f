//! `readFile`: the lines of a text.

use super::{Constant, Scene};
use crate::tool::Failure;
use cap_std::fs::File;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read, Take};

pub(super) const DEFINITION: Constant = (
    "readFile",
    "Reads the lines of a text file. Says whether there is more",
    "(path::Text {description: 'A path in the project'})\
     ==>(fromLine::Int {description: 'The first line to read', range: 1..., default: 1})\
     ==>(lines::Int {description: 'How many lines to read', range: 1..10000, default: 2000})\
     ==>(::Object {fields: {content: 'Text', fromLine: 'Int', toLine: 'Int', hasMore: 'Bool', bytes: 'Int'}})",
);

/// How much of a file is given at once, in bytes.
const MOST: usize = 256 * 1024;
/// How much of a line is given, in bytes.
const LONGEST_LINE: usize = 16 * 1024;
/// How far into a file lines are counted, in bytes.
const FARTHEST: u64 = 256 * 1024 * 1024;

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    #[serde(rename = "fromLine", default = "one")]
    from_line: u64,
    #[serde(default = "two_thousand")]
    lines: u64,
}

fn one() -> u64 {
    1
}

fn two_thousand() -> u64 {
    2000
}

pub(super) fn read(scene: &Scene, arguments: &Arguments) -> Result<Json, Failure> {
    let place = scene.roots.place(&arguments.path)?;
    let (file, metadata) = place.open()?;
    let failed = |error| place.explain(&error);
    let mut lines = Lines { reader: BufReader::with_capacity(64 * 1024, file.take(FARTHEST)), is_binary: false };
    for line in 1..arguments.from_line {
        if scene.given_up.is_cancelled() || lines.next(&mut Vec::new()).map_err(failed)? == 0 {
            let (given, last) = (place.given(), line - 1);
            return Err(Failure::new(match lines.is_at_the_limit() {
                true => format!("`{given}` is too large: nothing after its first {FARTHEST} bytes is read"),
                false => format!("`{given}` has only {last} lines"),
            }));
        }
    }
    let mut content = Vec::new();
    let mut read = 0;
    let mut is_cut = false;
    while read < arguments.lines && content.len() < MOST {
        let mut line = Vec::new();
        let length = lines.next(&mut line).map_err(failed)?;
        if length == 0 {
            break;
        }
        if length > line.len() {
            is_cut = true;
            let more = length - line.len();
            line.extend_from_slice(format!(" … [{more} more bytes in this line]\n").as_bytes());
        }
        content.append(&mut line);
        read += 1;
    }
    if lines.is_binary {
        return Err(Failure::new(format!("`{}` is no text, but binary, with {} bytes", place.given(), metadata.len())));
    }
    if is_cut {
        scene.context.progress(None, "a line is too long to be read as a whole");
    }
    let content = String::from_utf8(content).unwrap_or_else(|error| {
        scene.context.progress(None, "the file is not UTF-8; what cannot be read is replaced by `\u{fffd}`");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    let has_more = !lines.reader.fill_buf().map_err(failed)?.is_empty() || lines.is_at_the_limit();
    let (from, to) = (arguments.from_line, (arguments.from_line + read).saturating_sub(1));
    Ok(json!({
        "content": content,
        "fromLine": from,
        "toLine": to,
        "hasMore": has_more,
        "bytes": metadata.len(),
    }))
}

/// The lines of a file, in bounded space however long they are.
struct Lines {
    reader: BufReader<Take<File>>,
    /// Whether a NUL was among what was read.
    is_binary: bool,
}

impl Lines {
    /// Reads the beginning of the next line, newline included. Returns the length of all of the line. What is binary has
    /// no lines.
    fn next(&mut self, line: &mut Vec<u8>) -> std::io::Result<usize> {
        let mut length = 0;
        loop {
            let bytes = self.reader.fill_buf()?;
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            self.is_binary |= piece.contains(&0);
            line.extend(piece.iter().take(LONGEST_LINE.saturating_sub(line.len())));
            let read = piece.len();
            self.reader.consume(read);
            length += read;
            if end.is_some() || read == 0 || self.is_binary {
                return Ok(length);
            }
        }
    }

    fn is_at_the_limit(&self) -> bool {
        self.reader.get_ref().limit() == 0
    }
}
