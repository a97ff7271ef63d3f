//! The contents of attachments.

use super::lease::Fence;
use super::pool::{Pool, Statements};
use crate::store::id::SessionId;

/// Adds a content. Returns whether there is such a session, and this process has it.
pub(super) async fn insert(
    pool: &Pool,
    id: &SessionId,
    sha256: &str,
    content: &[u8],
    fence: Option<&Fence>,
) -> Result<bool, sqlx::Error> {
    const INSERT: &str = "
        WITH wanted AS (
            SELECT id FROM patter.sessions WHERE id = $1 AND ($4::bigint IS NULL OR epoch = $4) FOR SHARE
        ), inserted AS (
            INSERT INTO patter.attachments (session, sha256, content) SELECT id, $2, $3 FROM wanted
            ON CONFLICT DO NOTHING
        )
        SELECT id FROM wanted";
    let mut statements = pool.get().await?;
    let query = sqlx::query(INSERT).bind(id.as_str()).bind(sha256).bind(content).bind(fence.map(Fence::epoch));
    let is_added = query.persistent(statements.named).fetch_optional(statements.on()).await?.is_some();
    statements.commit().await?;
    Ok(is_added)
}

/// Returns a content.
pub(super) async fn find(
    statements: &mut Statements,
    id: &SessionId,
    sha256: &str,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    const FIND: &str = "SELECT content FROM patter.attachments WHERE session = $1 AND sha256 = $2";
    let query = sqlx::query_scalar(FIND).bind(id.as_str()).bind(sha256).persistent(statements.named);
    query.fetch_optional(statements.on()).await
}

/// Returns the hashes of the contents of a session, sorted.
pub(super) async fn list(statements: &mut Statements, id: &SessionId) -> Result<Vec<String>, sqlx::Error> {
    const LIST: &str = "SELECT sha256 FROM patter.attachments WHERE session = $1 ORDER BY sha256";
    let query = sqlx::query_scalar(LIST).bind(id.as_str()).persistent(statements.named);
    query.fetch_all(statements.on()).await
}
