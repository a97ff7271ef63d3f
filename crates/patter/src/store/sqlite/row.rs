//! Rows of a SQLite file.

use crate::store::row::{EntryRow, SummaryRow};
use rusqlite::{Row, Rows};

/// The length of the log of a session, to insert into a statement. The list of sessions may be a second behind while a run is
/// under way.
macro_rules! log_length {
    () => {
        "CASE state WHEN 'running' THEN coalesce((SELECT max(length) FROM logs WHERE session = id), 0) ELSE entries END"
    };
}
pub(super) use log_length;

/// Reads a row with the columns of `summary_columns!`.
pub(super) fn summary_row(row: &Row<'_>) -> rusqlite::Result<SummaryRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?, row.get(7)?))
}

/// Reads the entries in rows of a log, from a number on.
pub(super) fn entry_rows(mut rows: Rows<'_>, first: i64) -> rusqlite::Result<Vec<EntryRow>> {
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let length: i64 = row.get(0)?;
        let lines = row.get_ref(1)?.as_str()?;
        let begin = length.saturating_sub_unsigned(lines.split('\n').count() as u64);
        let numbered = (begin..).zip(lines.split('\n')).filter(|(number, _)| *number >= first);
        entries.extend(numbered.map(|(number, entry)| (number, entry.to_owned())));
    }
    Ok(entries)
}
