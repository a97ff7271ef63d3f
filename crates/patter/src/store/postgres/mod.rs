//! Sessions in a PostgreSQL database.

mod attachment;
mod batch;
mod claims;
mod lease;
mod leases;
mod locks;
mod mode;
mod pool;
mod queue;
mod redact;
mod server;
mod setup;

pub(super) use self::claims::pending;
pub(super) use self::mode::change_mode;

use self::claims::{Claimed, Claims, PendingRelease};
use self::lease::Fence;
use self::pool::Pool;
use self::queue::Wakeups;
use self::server::{Server, is_connection_lost};
use self::setup::prepare;
use super::backend::{Claim, Store};
use super::care::StoreUsage;
use super::error::StoreError;
use super::id::{SessionId, is_id_text};
use super::limit::{LOCK_PAUSES_MS, with_timeout};
use super::location::{ClaimMode, PostgresUrl};
use super::row::{
    EntryRow, SummaryRow, UsageRow, check_entries, session_ids, stored_session, summaries, summary_columns, to_i64,
    usage,
};
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use super::work::WorkQueue;
use crate::tool::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Executes a statement, and returns all its rows.
macro_rules! fetch_all {
    ($store:expr, $query:expr) => {{
        let failed = |error: sqlx::Error| $store.server.failed(&error);
        let mut statements = $store.pool.get().await.map_err(failed)?;
        let rows = $query.persistent(statements.named).fetch_all(statements.on()).await.map_err(failed)?;
        statements.commit().await.map_err(failed)?;
        rows
    }};
}
use fetch_all;

/// A session store in the schema `patter` of a PostgreSQL database.
///
/// A claim is an advisory lock. All claims of a process share one connection, which also carries their appends: whoever lost
/// the lock has lost the connection too. A pooler that assigns a connection per transaction keeps no locks: behind it, claims
/// are leases.
pub(super) struct PostgresStore {
    server: Arc<Server>,
    /// For operations without a claim.
    pool: Pool,
    claims: Claims,
    wakeups: Wakeups,
}

struct PostgresClaim {
    id: SessionId,
    next: u64,
    server: Arc<Server>,
    pool: Pool,
    claims: Claims,
    /// `None` if claims are locks.
    fence: Option<Arc<Fence>>,
}

impl PostgresStore {
    pub(super) async fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        let server = Arc::new(Server::new(url)?);
        let pool = Pool::new(&server);
        let (connection, connection_id) = with_timeout(prepare(&server)).await?;
        let claims = match url.claims {
            ClaimMode::Lock => locks::start(Arc::clone(&server), connection, connection_id),
            ClaimMode::Lease(length) => leases::start(Arc::clone(&server), length)?,
        };
        Ok(Self { server, pool, claims, wakeups: Wakeups::default() })
    }

    /// Claims a session. Waits a moment for a holder that was just killed.
    async fn claim_free(&self, id: &SessionId) -> Result<Box<dyn Claim>, StoreError> {
        for pause in LOCK_PAUSES_MS.into_iter().map(Some).chain([None]) {
            match self.claims.claim(id).await? {
                Claimed::Yes(entries, fence) => return Ok(self.claimed(id.clone(), entries, fence)),
                Claimed::No => return Err(StoreError::not_found(id)),
                Claimed::BusyHere => break,
                Claimed::Busy => {}
            }
            if let Some(pause) = pause {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
        Err(busy(&self.server, &self.pool, id).await)
    }

    fn claimed(&self, id: SessionId, next: u64, fence: Option<Arc<Fence>>) -> Box<dyn Claim> {
        tracing::debug!(session = %id, entries = next, "session claimed");
        let server = Arc::clone(&self.server);
        Box::new(PostgresClaim { id, next, server, pool: self.pool.clone(), claims: self.claims.clone(), fence })
    }
}

impl Store for PostgresStore {
    fn queue(&self) -> Option<&dyn WorkQueue> {
        Some(self)
    }

    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            check_entries(&new.entries)?;
            let id = new.id.clone();
            let expected = new.entries.len() as u64;
            match self.claims.create(new, now_ms).await? {
                Claimed::Yes(entries, fence) => Ok(self.claimed(id, entries, fence)),
                // It exists now, but somebody else has its lock: a holder of the same id that was just killed, or whoever looked
                // for it. Whoever saw it since may have continued it.
                Claimed::Busy => {
                    let claim = self.claim_free(&id).await?;
                    match claim.entries() == expected {
                        true => Ok(claim),
                        false => Err(StoreError::Conflict { id, expected }),
                    }
                }
                Claimed::No | Claimed::BusyHere => Err(StoreError::Exists { id }),
            }
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(self.claim_free(id)))
    }

    fn read_from<'a>(&'a self, id: &'a SessionId, first: u64) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        Box::pin(with_timeout(async move {
            const SUMMARY: &str =
                concat!("SELECT ", summary_columns!("entries"), " FROM patter.sessions WHERE id = $1");
            const ENTRIES: &str =
                "SELECT number, entry FROM patter.entries WHERE session = $1 AND number >= $2 ORDER BY number";
            let failed = |error: sqlx::Error| self.server.failed(&error);
            // One transaction, so that summary and entries are consistent.
            let mut statements = self.pool.snapshot().await.map_err(failed)?;
            let query = sqlx::query_as::<_, SummaryRow>(SUMMARY).bind(id.as_str()).persistent(statements.named);
            let Some(row) = query.fetch_optional(statements.on()).await.map_err(failed)? else {
                statements.commit().await.map_err(failed)?;
                return Err(StoreError::not_found(id));
            };
            let query = sqlx::query_as::<_, EntryRow>(ENTRIES).bind(id.as_str()).bind(to_i64(first));
            let rows = query.persistent(statements.named).fetch_all(statements.on()).await.map_err(failed)?;
            statements.commit().await.map_err(failed)?;
            stored_session(row, first, rows)
        }))
    }

    fn attachment<'a>(
        &'a self,
        id: &'a SessionId,
        sha256: &'a str,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut statements = self.pool.get().await.map_err(failed)?;
            let found = attachment::find(&mut statements, id, sha256).await.map_err(failed)?;
            statements.commit().await.map_err(failed)?;
            Ok(found)
        }))
    }

    fn attachments<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut statements = self.pool.get().await.map_err(failed)?;
            let found = attachment::list(&mut statements, id).await.map_err(failed)?;
            statements.commit().await.map_err(failed)?;
            Ok(found)
        }))
    }

    fn list_page<'a>(
        &'a self,
        state: Option<SessionState>,
        after: Option<&'a SessionSummary>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!("entries"),
                " FROM patter.sessions WHERE ($2::text IS NULL OR state = $2)
                  AND ($3::bigint IS NULL OR (changed_ms, id) < ($3, $4)) ORDER BY changed_ms DESC, id DESC LIMIT $1"
            );
            let query = sqlx::query_as::<_, SummaryRow>(LIST).bind(to_i64(limit as u64));
            let query = query.bind(state.map(SessionState::as_str));
            let query = query.bind(after.map(|last| to_i64(last.changed_ms))).bind(after.map(|last| last.id.as_str()));
            summaries(fetch_all!(self, query))
        }))
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(with_timeout(async move {
            // `{` sorts after every character of ids.
            const IDS: &str = "SELECT id FROM patter.sessions WHERE id >= $1 AND id < $1 || '{' ORDER BY id LIMIT $2";
            if !is_id_text(prefix) {
                return Ok(Vec::new());
            }
            let query = sqlx::query_scalar::<_, String>(IDS).bind(prefix).bind(to_i64(limit as u64));
            session_ids(&fetch_all!(self, query))
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut statements = self.pool.begin().await.map_err(failed)?;
            self.server.lock(&mut statements, id).await?;
            let query = sqlx::query("DELETE FROM patter.sessions WHERE id = $1").bind(id.as_str());
            let done = query.persistent(statements.named).execute(statements.on()).await.map_err(failed)?;
            statements.commit().await.map_err(failed)?;
            match done.rows_affected() {
                0 => Err(StoreError::not_found(id)),
                _ => Ok(()),
            }
        }))
    }

    fn replace_log<'a>(
        &'a self,
        id: &'a SessionId,
        expected: u64,
        entries: Vec<String>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(self.replace_entries(id, expected, entries)))
    }

    fn list_unchanged_since(&self, moment_ms: u64) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!("entries"),
                " FROM patter.sessions WHERE changed_ms < $1 ORDER BY changed_ms, id"
            );
            let query = sqlx::query_as::<_, SummaryRow>(LIST).bind(to_i64(moment_ms));
            summaries(fetch_all!(self, query))
        }))
    }

    fn shared_secret<'a>(&'a self, new: &'a str) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(with_timeout(async move {
            const ADD: &str = "INSERT INTO patter.settings (name, value) VALUES ('secret', $1) ON CONFLICT DO NOTHING";
            const SECRET: &str = "SELECT value FROM patter.settings WHERE name = 'secret'";
            fetch_all!(self, sqlx::query(ADD).bind(new));
            Ok(fetch_all!(self, sqlx::query_scalar::<_, String>(SECRET)).pop())
        }))
    }

    fn usage(&self) -> BoxFuture<'_, Result<StoreUsage, StoreError>> {
        Box::pin(with_timeout(async move {
            const USAGE: &str = "SELECT count(*), coalesce(sum(entries), 0)::bigint, min(changed_ms), \
                pg_total_relation_size('patter.sessions') + pg_total_relation_size('patter.entries') \
                + pg_total_relation_size('patter.attachments'), 0::bigint FROM patter.sessions";
            let query = sqlx::query_as::<_, UsageRow>(USAGE);
            let row = fetch_all!(self, query).into_iter().next();
            Ok(row.map(usage).unwrap_or_default())
        }))
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut connection = self.server.connect().await?;
            // It takes as long as the tables are large, so it has no time limit but Ctrl-C.
            if self.server.claims == ClaimMode::Lock {
                sqlx::raw_sql("SET statement_timeout = 0").execute(&mut connection).await.map_err(failed)?;
            }
            let vacuum = sqlx::raw_sql("VACUUM patter.sessions, patter.entries, patter.attachments");
            vacuum.execute(&mut connection).await.map_err(failed)?;
            Ok(())
        })
    }

    fn back_up<'a>(&'a self, _: &'a Path) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async {
            Err(StoreError::Unusable {
                message: format!("the session store `{}` is a PostgreSQL database", self.server.address),
                hint: Some("back it up with `pg_dump --schema=patter`".to_owned()),
            })
        })
    }
}

impl Claim for PostgresClaim {
    fn id(&self) -> &SessionId {
        &self.id
    }

    fn entries(&self) -> u64 {
        self.next
    }

    fn append<'a>(
        &'a mut self,
        entries: &'a [String],
        state: SessionState,
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            check_entries(entries)?;
            for pause in LOCK_PAUSES_MS.into_iter().map(Some).chain([None]) {
                match (self.claims.append(&self.id, self.next, entries, state, now_ms).await, pause) {
                    (Ok(()), _) => break,
                    // The claim was lost with the connection, and somebody else may have given it back just now.
                    (Err(StoreError::Busy { .. }), Some(pause)) => {
                        tokio::time::sleep(Duration::from_millis(pause)).await;
                    }
                    (Err(StoreError::Busy { .. }), None) => return Err(busy(&self.server, &self.pool, &self.id).await),
                    (Err(error), _) => return Err(error),
                }
            }
            self.next += entries.len() as u64;
            Ok(())
        }))
    }

    fn attach<'a>(&'a mut self, sha256: &'a str, content: Arc<[u8]>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            // Adding a content twice changes nothing, so it is repeated if the connection broke.
            let fence = self.fence.as_deref();
            let mut added = attachment::insert(&self.pool, &self.id, sha256, &content, fence).await;
            if added.as_ref().is_err_and(is_connection_lost) {
                added = attachment::insert(&self.pool, &self.id, sha256, &content, fence).await;
            }
            match added.map_err(|error| self.server.failed(&error))? {
                true => Ok(()),
                false => Err(StoreError::Conflict { id: self.id.clone(), expected: self.next }),
            }
        }))
    }

    fn lost(&self) -> Option<CancellationToken> {
        self.fence.as_ref().map(|fence| fence.lease().lost.clone())
    }
}

impl Drop for PostgresClaim {
    fn drop(&mut self) {
        // A lock ends with the process; a lease does not.
        let pending = self.fence.as_ref().map(|_| PendingRelease::new());
        self.claims.release(self.id.clone(), pending);
    }
}

/// Returns the error that somebody else has a session, and who.
async fn busy(server: &Server, pool: &Pool, id: &SessionId) -> StoreError {
    let Ok(mut statements) = pool.get().await else { return StoreError::Busy { id: id.clone(), holder: None } };
    let error = server.busy(&mut statements, id).await;
    let _ = statements.commit().await;
    error
}
