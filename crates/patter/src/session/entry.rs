//! Entries as JSON text, as stores and recordings hold them.

use crate::drive::JournalError;
use patter_core::session::LogEntry;

pub(super) fn to_json(entry: &LogEntry) -> Result<String, JournalError> {
    serde_json::to_string(entry).map_err(|error| JournalError::new(error.to_string()))
}
