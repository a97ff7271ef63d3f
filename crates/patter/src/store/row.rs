//! Rows of the databases: how sessions and entries are stored, whichever the database.

use super::care::StoreUsage;
use super::error::StoreError;
use super::id::SessionId;
use super::session::{SessionState, SessionSummary, StoredSession};

/// A row with the metadata of a session, as [`summary_columns!`] selects it.
pub(super) type SummaryRow = (String, String, String, i64, i64, i64, String, Option<String>);

/// A row with the number of an entry, and the entry.
pub(super) type EntryRow = (i64, String);

/// The columns of a [`SummaryRow`], to insert into a statement, with an expression for the length of the log.
macro_rules! summary_columns {
    ($($length:tt)+) => {
        concat!("id, agent, title, created_ms, changed_ms, ", $($length)+, ", state, forked_from")
    };
}
pub(super) use summary_columns;

/// Converts rows to the metadata of sessions.
pub(super) fn summaries(rows: Vec<SummaryRow>) -> Result<Vec<SessionSummary>, StoreError> {
    rows.into_iter().map(summary).collect()
}

/// A row with the number of sessions, of entries, the earliest change, the size and the unused part of it.
pub(super) type UsageRow = (i64, i64, Option<i64>, i64, i64);

/// Converts a row to what a store contains.
pub(super) fn usage(row: UsageRow) -> StoreUsage {
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let (sessions, entries, oldest_ms, bytes, unused_bytes) = row;
    StoreUsage {
        sessions: number(sessions),
        entries: number(entries),
        bytes: number(bytes),
        unused_bytes: number(unused_bytes),
        oldest_ms: oldest_ms.map(number),
    }
}

/// Converts rows to ids.
pub(super) fn session_ids(rows: &[String]) -> Result<Vec<SessionId>, StoreError> {
    Ok(rows.iter().map(|id| SessionId::parse(id)).collect::<Result<_, _>>()?)
}

/// Converts rows to a session with its entries from a number on, and checks that none is missing.
pub(super) fn stored_session(row: SummaryRow, first: u64, rows: Vec<EntryRow>) -> Result<StoredSession, StoreError> {
    let summary = summary(row)?;
    let mut entries = Vec::with_capacity(rows.len());
    let missing = |number: u64| {
        let id = &summary.id;
        StoreError::Failed { message: format!("the log of session `{id}` is damaged: entry {number} is missing") }
    };
    for (number, entry) in rows {
        let next = first + entries.len() as u64;
        if number != to_i64(next) {
            return Err(missing(next));
        }
        entries.push(entry);
    }
    let next = first + entries.len() as u64;
    if next != summary.entries.max(first) {
        return Err(missing(next));
    }
    Ok(StoredSession { summary, entries })
}

/// Converts a row to the metadata of a session.
pub(super) fn summary(row: SummaryRow) -> Result<SessionSummary, StoreError> {
    let (id, agent, title, created_ms, changed_ms, entries, state, forked_from) = row;
    let damaged = || StoreError::Failed { message: format!("the record of session `{id}` is damaged") };
    let number = |number: i64| u64::try_from(number).map_err(|_| damaged());
    Ok(SessionSummary {
        created_ms: number(created_ms)?,
        changed_ms: number(changed_ms)?,
        entries: number(entries)?,
        state: SessionState::parse(&state).ok_or_else(damaged)?,
        forked_from: forked_from.as_deref().map(SessionId::parse).transpose()?,
        id: SessionId::parse(&id)?,
        agent,
        title,
    })
}

/// Checks that both databases accept entries: PostgreSQL refuses NUL characters, which JSON text never contains, and SQLite has
/// one entry per line.
pub(super) fn check_entries(entries: &[String]) -> Result<(), StoreError> {
    // Bytes are found several times as fast as characters.
    let is_wrong = |entry: &String| entry.as_bytes().contains(&b'\0') || entry.as_bytes().contains(&b'\n');
    match entries.iter().position(is_wrong) {
        Some(index) => Err(StoreError::Entry { index }),
        None => Ok(()),
    }
}

/// Converts a number to the integers of databases.
pub(super) fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
