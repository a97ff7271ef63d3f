//! Replacing logs by such without contents.

use super::attachment;
use super::file::SqliteFile;
use super::row::log_length;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use patter_core::message::redact::REDACTED;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

/// Whether a log was replaced.
pub(super) enum Replaced {
    Yes,
    /// There is no such session.
    Missing,
    /// It has another number of entries.
    Conflict,
    /// There is work for it.
    HasWork,
}

/// Replaces the log of a session. The old one is overwritten in the file.
pub(super) fn replace_log(
    file: &SqliteFile,
    id: &SessionId,
    expected: u64,
    entries: &[String],
) -> Result<Replaced, StoreError> {
    let replace = || {
        let mut connection = file.connect()?;
        connection.execute_batch("PRAGMA secure_delete = ON")?;
        let replaced = replace_in(&mut connection, id, expected, entries)?;
        // The log of writes has the old pages until it is empty.
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(replaced)
    };
    replace().map_err(|error| file.failed(&error))
}

fn replace_in(
    connection: &mut Connection,
    session: &SessionId,
    expected: u64,
    entries: &[String],
) -> rusqlite::Result<Replaced> {
    const WORK: &str = "SELECT count(*) FROM work WHERE session = ?1 AND state <> 'parked'";
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let id = session.as_str();
    let length = concat!("SELECT ", log_length!(), " FROM sessions WHERE id = ?1");
    let length: Option<i64> = transaction.query_row(length, [id], |row| row.get(0)).optional()?;
    match length {
        None => return Ok(Replaced::Missing),
        Some(length) if length != to_i64(expected) => return Ok(Replaced::Conflict),
        Some(_) => {}
    }
    if transaction.query_row(WORK, [id], |row| row.get::<_, i64>(0))? > 0 {
        return Ok(Replaced::HasWork);
    }
    for statement in ["DELETE FROM logs WHERE session = ?1", "DELETE FROM work WHERE session = ?1"] {
        transaction.execute(statement, [id])?;
    }
    attachment::remove(&transaction, session)?;
    let update = "UPDATE sessions SET title = ?2, entries = ?3 WHERE id = ?1";
    transaction.execute(update, (id, REDACTED, to_i64(entries.len() as u64)))?;
    let mut insert = transaction.prepare("INSERT INTO logs (session, length, entries) VALUES (?1, ?2, ?3)")?;
    for (length, entry) in (1_i64..).zip(entries) {
        insert.execute((id, length, entry))?;
    }
    drop(insert);
    transaction.commit()?;
    Ok(Replaced::Yes)
}
