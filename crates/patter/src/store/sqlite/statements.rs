//! The statements of the thread that writes. They are prepared once, because looking them up costs as much as small ones do.

use super::attachment;
use super::writer::{Change, IsMade};
use crate::store::id::SessionId;
use crate::store::row::to_i64;
use crate::store::session::SessionState;
use rusqlite::{Connection, Statement, params};

const CREATE: &str = "INSERT INTO sessions (id, agent, title, created_ms, changed_ms, entries, state, forked_from) \
                      VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING";
const UPDATE: &str = "UPDATE sessions SET entries = ?1, state = ?2, changed_ms = ?3 WHERE id = ?4 AND entries = ?5";
/// Sessions are listed by the time of their last change, so a new time moves an entry of that index. That is not worth it for
/// every step of a run.
const UPDATE_LENGTH: &str =
    "UPDATE sessions SET entries = ?1 WHERE id = ?4 AND entries = ?5 AND state = ?2 AND changed_ms > ?3 - 1000";
const INSERT: &str = "INSERT INTO entries (session, number, entry) VALUES (?1, ?2, ?3)";
const REMOVE_ENTRIES: &str = "DELETE FROM entries WHERE session = ?1";
const REMOVE: &str = "DELETE FROM sessions WHERE id = ?1";

/// Prepared statements.
pub(super) struct Statements<'c> {
    pub(super) begin: Statement<'c>,
    pub(super) commit: Statement<'c>,
    create: Statement<'c>,
    update: Statement<'c>,
    update_length: Statement<'c>,
    insert: Statement<'c>,
    remove_entries: Statement<'c>,
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
            update_length: connection.prepare(UPDATE_LENGTH)?,
            insert: connection.prepare(INSERT)?,
            remove_entries: connection.prepare(REMOVE_ENTRIES)?,
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
                if self.create.execute(values)? != 1 || !self.insert_entries(&new.id, 0, &new.entries)? {
                    return Ok(false);
                }
                for (sha256, content) in new.attachments.iter() {
                    attachment::insert(self.connection, &new.id, sha256, content)?;
                }
                Ok(true)
            }
            Change::Append { id, first, entries, state, now_ms } => {
                let length = to_i64(first + entries.len() as u64);
                let values = params![length, state.as_str(), to_i64(*now_ms), id.as_str(), to_i64(*first)];
                let is_running = *state == SessionState::Running;
                let is_updated =
                    (is_running && self.update_length.execute(values)? == 1) || self.update.execute(values)? == 1;
                Ok(is_updated && self.insert_entries(id, *first, entries)?)
            }
            Change::Attach { id, sha256, content } => attachment::insert(self.connection, id, sha256, content),
            Change::Remove { id } => {
                attachment::remove(self.connection, id)?;
                self.remove_entries.execute([id.as_str()])?;
                Ok(self.remove.execute([id.as_str()])? == 1)
            }
        }
    }

    fn insert_entries(&mut self, id: &SessionId, first: u64, entries: &[String]) -> rusqlite::Result<IsMade> {
        for (number, entry) in (first..).zip(entries) {
            self.insert.execute(params![id.as_str(), to_i64(number), entry])?;
        }
        Ok(true)
    }
}
