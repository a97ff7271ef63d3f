//! Replacing logs by such without contents.

use super::PostgresStore;
use crate::store::error::StoreError;
use crate::store::id::SessionId;
use crate::store::row::{check_entries, to_i64};
use patter_core::message::redact::REDACTED;

/// Work that is parked is only waiting for somebody to look at it.
const WORK: &str = "SELECT count(*) FROM patter.work WHERE session = $1 AND state <> 'parked'";
const SESSION: &str = "UPDATE patter.sessions SET title = $2, entries = $3 WHERE id = $1 AND entries = $4";
const ENTRIES: &str = "
    INSERT INTO patter.entries (session, number, entry)
    SELECT $1, new.number - 1, new.entry FROM unnest($2::text[]) WITH ORDINALITY AS new (entry, number)";

impl PostgresStore {
    /// Replaces the log of a session.
    pub(super) async fn replace_entries(
        &self,
        id: &SessionId,
        expected: u64,
        entries: Vec<String>,
    ) -> Result<(), StoreError> {
        check_entries(&entries)?;
        let failed = |error: sqlx::Error| self.server.failed(&error);
        let mut statements = self.pool.begin().await.map_err(failed)?;
        self.server.lock(&mut statements, id).await?;
        let named = statements.named;
        let work = sqlx::query_scalar::<_, i64>(WORK).bind(id.as_str()).persistent(named);
        if work.fetch_one(statements.on()).await.map_err(failed)? > 0 {
            return Err(StoreError::Busy {
                id: id.clone(),
                holder: Some("the queue, which has work for it".to_owned()),
            });
        }
        let update = sqlx::query(SESSION).bind(id.as_str()).bind(REDACTED).bind(to_i64(entries.len() as u64));
        let update = update.bind(to_i64(expected)).persistent(named);
        if update.execute(statements.on()).await.map_err(failed)?.rows_affected() == 0 {
            statements.commit().await.map_err(failed)?;
            return match self.find_length(id).await? {
                Some(_) => Err(StoreError::Conflict { id: id.clone(), expected }),
                None => Err(StoreError::not_found(id)),
            };
        }
        for statement in [
            "DELETE FROM patter.entries WHERE session = $1",
            "DELETE FROM patter.attachments WHERE session = $1",
            "DELETE FROM patter.work WHERE session = $1",
        ] {
            let delete = sqlx::query(statement).bind(id.as_str()).persistent(named);
            delete.execute(statements.on()).await.map_err(failed)?;
        }
        let insert = sqlx::query(ENTRIES).bind(id.as_str()).bind(entries).persistent(named);
        insert.execute(statements.on()).await.map_err(failed)?;
        statements.commit().await.map_err(failed)
    }

    async fn find_length(&self, id: &SessionId) -> Result<Option<i64>, StoreError> {
        let query = sqlx::query_scalar("SELECT entries FROM patter.sessions WHERE id = $1").bind(id.as_str());
        Ok(super::fetch_all!(self, query).into_iter().next())
    }
}
