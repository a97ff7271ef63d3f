//! The statements of the thread that writes. They are prepared once, because looking them up costs as much as small ones do.

use super::attachment;
use super::writer::{Change, IsMade, SessionUpdate};
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use rusqlite::{Connection, OptionalExtension, Statement, params};

const CREATE: &str = "INSERT INTO sessions (id, agent, title, created_ms, changed_ms, entries, state, forked_from) \
                      VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE sessions SET entries = ?1, state = ?2, changed_ms = ?3 WHERE id = ?4 AND entries <= ?5";
/// A statement that read and changed the table would need a temporary copy of what it read.
const LENGTH: &str = "SELECT (SELECT length FROM logs WHERE session = id ORDER BY length DESC LIMIT 1) FROM sessions \
                      WHERE id = ?1";
const INSERT: &str = "INSERT INTO logs (session, length, entries) VALUES (?1, ?2, ?3)";
const REMOVE_LOG: &str = "DELETE FROM logs WHERE session = ?1";
const REMOVE: &str = "DELETE FROM sessions WHERE id = ?1";

/// Prepared statements.
pub(super) struct Statements<'c> {
    pub(super) begin: Statement<'c>,
    pub(super) commit: Statement<'c>,
    create: Statement<'c>,
    update: Statement<'c>,
    length: Statement<'c>,
    insert: Statement<'c>,
    remove_log: Statement<'c>,
    remove: Statement<'c>,
    /// For what is rare.
    connection: &'c Connection,
}

impl<'c> Statements<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> rusqlite::Result<Self> {
        // Every change makes sure itself that entries have a session, which is cheaper than a check of each entry.
        connection.execute_batch("PRAGMA foreign_keys = OFF")?;
        Ok(Self {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            create: connection.prepare(CREATE)?,
            update: connection.prepare(UPDATE)?,
            length: connection.prepare(LENGTH)?,
            insert: connection.prepare(INSERT)?,
            remove_log: connection.prepare(REMOVE_LOG)?,
            remove: connection.prepare(REMOVE)?,
            connection,
        })
    }

    /// Makes a change, as part of a transaction.
    pub(super) fn apply(&mut self, change: &Change) -> rusqlite::Result<IsMade> {
        match change {
            Change::Create { new, now_ms } => {
                let length = to_i64(new.entries.len() as u64);
                let from = new.forked_from.as_ref().map(SessionId::as_str);
                let state = new.state.as_str();
                let values = params![new.id.as_str(), new.agent(), new.title(), to_i64(*now_ms), length, state, from];
                if self.create.execute(values)? != 1 {
                    return Ok(false);
                }
                if !new.entries.is_empty() {
                    self.insert.execute(params![new.id.as_str(), length, new.entries.join("\n")])?;
                }
                for (sha256, content) in new.attachments.iter() {
                    attachment::insert(self.connection, &new.id, sha256, content)?;
                }
                Ok(true)
            }
            Change::Append { id, first, length, lines, update } => {
                let first = to_i64(*first);
                let length = to_i64(*length);
                let found = self.length.query_row([id.as_str()], |row| row.get::<_, Option<i64>>(0)).optional()?;
                if found.map(Option::unwrap_or_default) != Some(first) {
                    return Ok(false);
                }
                if let Some(SessionUpdate { state, now_ms }) = update {
                    let values = params![length, state.as_str(), to_i64(*now_ms), id.as_str(), first];
                    if self.update.execute(values)? != 1 {
                        return Ok(false);
                    }
                }
                if length > first {
                    self.insert.execute(params![id.as_str(), length, lines])?;
                }
                Ok(true)
            }
            Change::Attach { id, sha256, content } => attachment::insert(self.connection, id, sha256, content),
            Change::Remove { id } => {
                attachment::remove(self.connection, id)?;
                self.remove_log.execute([id.as_str()])?;
                Ok(self.remove.execute([id.as_str()])? == 1)
            }
        }
    }
}
