//! The table with the contents of attachments. It is created with the first of them, so that files without any stay as they
//! were.

use crate::store::id::SessionId;
use rusqlite::{Connection, OptionalExtension, params};

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS attachments (
        session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
        sha256 TEXT NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (session, sha256)
    ) STRICT;
";
const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'attachments')";
const INSERT: &str = "INSERT INTO attachments (session, sha256, content) SELECT id, ?2, ?3 FROM sessions WHERE id = ?1 \
                      ON CONFLICT DO NOTHING";
const HAS: &str = "SELECT 1 FROM attachments WHERE session = ?1 AND sha256 = ?2";

/// Adds a content. Returns whether the session has it now: it does not if there is no such session.
pub(super) fn insert(connection: &Connection, id: &SessionId, sha256: &str, content: &[u8]) -> rusqlite::Result<bool> {
    connection.execute_batch(TABLE)?;
    let is_new = connection.prepare_cached(INSERT)?.execute(params![id.as_str(), sha256, content])? == 1;
    Ok(is_new || connection.prepare_cached(HAS)?.exists([id.as_str(), sha256])?)
}

/// Removes the contents of a session.
pub(super) fn remove(connection: &Connection, id: &SessionId) -> rusqlite::Result<()> {
    if exists(connection)? {
        connection.execute("DELETE FROM attachments WHERE session = ?1", [id.as_str()])?;
    }
    Ok(())
}

/// Removes the contents of sessions that are gone: earlier versions of Patter removed sessions without them.
pub(super) fn remove_orphans(connection: &Connection) -> rusqlite::Result<()> {
    if exists(connection)? {
        connection.execute("DELETE FROM attachments WHERE session NOT IN (SELECT id FROM sessions)", [])?;
    }
    Ok(())
}

/// Returns a content.
pub(super) fn find(connection: &Connection, id: &str, sha256: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    if !exists(connection)? {
        return Ok(None);
    }
    const FIND: &str = "SELECT content FROM attachments WHERE session = ?1 AND sha256 = ?2";
    connection.prepare_cached(FIND)?.query_row([id, sha256], |row| row.get(0)).optional()
}

/// Returns the hashes of the contents of a session, sorted.
pub(super) fn list(connection: &Connection, id: &str) -> rusqlite::Result<Vec<String>> {
    if !exists(connection)? {
        return Ok(Vec::new());
    }
    let mut query = connection.prepare_cached("SELECT sha256 FROM attachments WHERE session = ?1 ORDER BY sha256")?;
    query.query_map([id], |row| row.get(0))?.collect()
}

fn exists(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached(EXISTS)?.query_row([], |row| row.get(0))
}
