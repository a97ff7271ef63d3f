//! `readFile`: the lines of a text file, or an image or a document as a whole.

use super::action::{ActionContext, ToolText};
use crate::tool::{Access, ToolFailure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cap_std::fs::File;
use patter_core::message::attachment::MediaKind;
use patter_core::message::media::Media;
use patter_core::text::with_article;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, Read, Take};

pub(super) const DEFINITION: ToolText = ToolText {
    name: "readFile",
    description: "Reads lines of a text file, and returns whether there are more. An image or a PDF document is shown as a whole",
    signature: "(path::Text {description: 'A path in the project'})\
     ==>(fromLine::Int {description: 'The first line to read', range: 1..., default: 1})\
     ==>(lines::Int {description: 'The number of lines to read', range: 1..10000, default: 2000})\
     ==>(::Object {fields: [{name: 'content', type: 'Text'}, {name: 'fromLine', type: 'Int'}, {name: 'toLine', type: 'Int'}, \
     {name: 'hasMore', type: 'Bool'}, {name: 'bytes', type: 'Int'}, {name: 'media', type: 'Any', optional: true}]})",
};

/// The number of bytes that are returned by one call.
const MAX_BYTES: usize = 256 * 1024;
/// The number of bytes that are returned of a line.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// The maximum size of an image or a document, in bytes.
const MAX_MEDIA_BYTES: u64 = 3 << 20;
/// The offset up to which a file is read, in bytes.
const MAX_OFFSET: u64 = 256 * 1024 * 1024;

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

pub(super) fn read(context: &ActionContext, arguments: &Arguments) -> Result<Json, ToolFailure> {
    let place = context.roots.resolve(&arguments.path)?;
    let (file, metadata) = place.open()?;
    if !context.permits_opened(&file, Access::Named) {
        return Err(place.excluded_failure());
    }
    let failed = |error| place.explain(&error);
    let mut lines = LineReader { reader: BufReader::with_capacity(64 * 1024, file.take(MAX_OFFSET)), is_binary: false };
    let start = lines.reader.fill_buf().map_err(failed)?;
    if let Some((kind @ (MediaKind::Image | MediaKind::Document), mime_type)) = MediaKind::of_content(start) {
        if metadata.len() > MAX_MEDIA_BYTES {
            let given = place.given();
            let what = with_article(if kind == MediaKind::Image { "image" } else { "document" });
            let limit = MAX_MEDIA_BYTES >> 20;
            return Err(ToolFailure::new(format!("`{given}` is {what} of more than {limit} MiB")));
        }
        let mut content = Vec::new();
        lines.reader.read_to_end(&mut content).map_err(failed)?;
        let data = STANDARD.encode(&content);
        return Ok(json!({
            "content": "",
            "fromLine": 1,
            "toLine": 0,
            "hasMore": false,
            "bytes": content.len(),
            "media": Media { kind, mime_type, data: &data }.to_json(),
        }));
    }
    for line in 1..arguments.from_line {
        if context.cancellation.is_cancelled() || lines.next(&mut Vec::new()).map_err(failed)? == 0 {
            let given = place.given();
            return Err(ToolFailure::new(match lines.is_at_limit() {
                true => format!("`{given}` is too large: only the first {MAX_OFFSET} bytes can be read"),
                false => format!("`{given}` has only {} lines", line - 1),
            }));
        }
    }
    let mut content = Vec::new();
    let mut read = 0;
    let mut is_truncated = false;
    while read < arguments.lines && content.len() < MAX_BYTES {
        let mut line = Vec::new();
        let length = lines.next(&mut line).map_err(failed)?;
        if length == 0 {
            break;
        }
        if length > line.len() {
            is_truncated = true;
            let more = length - line.len();
            line.extend_from_slice(format!(" … [{more} more bytes in this line]\n").as_bytes());
        }
        content.append(&mut line);
        read += 1;
    }
    if lines.is_binary {
        return Err(ToolFailure::new(format!("`{}` is a binary file of {} bytes", place.given(), metadata.len())));
    }
    if is_truncated {
        context.call.progress(None, "long lines were truncated");
    }
    let content = String::from_utf8(content).unwrap_or_else(|error| {
        context.call.progress(None, "the file is not UTF-8; invalid bytes are replaced by `\u{fffd}`");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    let has_more = !lines.reader.fill_buf().map_err(failed)?.is_empty() || lines.is_at_limit();
    Ok(json!({
        "content": content,
        "fromLine": arguments.from_line,
        "toLine": (arguments.from_line + read).saturating_sub(1),
        "hasMore": has_more,
        "bytes": metadata.len(),
    }))
}

/// A reader of lines with bounded memory.
struct LineReader {
    reader: BufReader<Take<File>>,
    /// Whether a NUL byte was read.
    is_binary: bool,
}

impl LineReader {
    /// Reads the start of the next line, including the newline, and returns the length of the whole line. Reading stops
    /// at the first NUL byte.
    fn next(&mut self, line: &mut Vec<u8>) -> std::io::Result<usize> {
        let mut length = 0;
        loop {
            let bytes = self.reader.fill_buf()?;
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            self.is_binary |= piece.contains(&0);
            line.extend(piece.iter().take(MAX_LINE_BYTES.saturating_sub(line.len())));
            let read = piece.len();
            self.reader.consume(read);
            length += read;
            if end.is_some() || read == 0 || self.is_binary {
                return Ok(length);
            }
        }
    }

    fn is_at_limit(&self) -> bool {
        self.reader.get_ref().limit() == 0
    }
}
