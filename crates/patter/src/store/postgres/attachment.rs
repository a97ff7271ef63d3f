//! The contents of attachments.

use crate::store::id::SessionId;
use sqlx::PgPool;

/// Adds a content. Returns whether there is such a session.
pub(super) async fn insert(pool: &PgPool, id: &SessionId, sha256: &str, content: &[u8]) -> Result<bool, sqlx::Error> {
    const INSERT: &str = "
        WITH wanted AS (SELECT id FROM patter.sessions WHERE id = $1), inserted AS (
            INSERT INTO patter.attachments (session, sha256, content) SELECT id, $2, $3 FROM wanted
            ON CONFLICT DO NOTHING
        )
        SELECT id FROM wanted";
    let query = sqlx::query(INSERT).bind(id.as_str()).bind(sha256).bind(content);
    Ok(query.fetch_optional(pool).await?.is_some())
}

/// Returns a content.
pub(super) async fn find(pool: &PgPool, id: &SessionId, sha256: &str) -> Result<Option<Vec<u8>>, sqlx::Error> {
    const FIND: &str = "SELECT content FROM patter.attachments WHERE session = $1 AND sha256 = $2";
    sqlx::query_scalar(FIND).bind(id.as_str()).bind(sha256).fetch_optional(pool).await
}

/// Returns the hashes of the contents of a session, sorted.
pub(super) async fn list(pool: &PgPool, id: &SessionId) -> Result<Vec<String>, sqlx::Error> {
    const LIST: &str = "SELECT sha256 FROM patter.attachments WHERE session = $1 ORDER BY sha256";
    sqlx::query_scalar(LIST).bind(id.as_str()).fetch_all(pool).await
}
