//! Entries as JSON text, as stores and recordings hold them.

use crate::drive::JournalError;
use patter_core::session::LogEntry;

/// The size of most entries.
const USUAL_BYTES: usize = 512;

pub(super) fn to_json(entry: &LogEntry) -> Result<String, JournalError> {
    let mut json = Vec::with_capacity(USUAL_BYTES);
    serde_json::to_writer(&mut json, entry).map_err(|error| JournalError::new(error.to_string()))?;
    String::from_utf8(json).map_err(|error| JournalError::new(error.to_string()))
}
