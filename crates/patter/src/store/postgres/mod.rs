//! Sessions in a PostgreSQL database.

mod server;

use self::server::{
    APPLICATION_PREFIX, LOCK, LOCK_IN_TRANSACTION, Server, configure, is_connection_lost, is_serialization_failure,
    is_unique_violation,
};
use super::backend::{Claim, Store};
use super::care::StoreUsage;
use super::error::StoreError;
use super::find::not_found;
use super::holder::holder;
use super::id::{SessionId, is_id_text};
use super::limit::{CONNECT_TIMEOUT, MAX_CONNECTIONS, with_timeout};
use super::location::PostgresUrl;
use super::row::{
    EntryRow, SummaryRow, UsageRow, check_entries, session_ids, stored_session, summaries, summary_columns, to_i64,
    usage,
};
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use crate::tool::BoxFuture;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The version of the tables.
const VERSION: i32 = 1;
/// The advisory lock held while the tables are created: "Patr".
const SETUP_LOCK: i64 = 0x5061_7472;
/// The maximum length of the name of a connection.
const MAX_APPLICATION_NAME: usize = 63;
/// How many times to repeat a statement that others prevented.
const ATTEMPTS: usize = 10;

const TABLES: &str = r#"
    CREATE TABLE patter.version (version INTEGER NOT NULL);
    CREATE TABLE patter.sessions (
        id TEXT COLLATE "C" PRIMARY KEY,
        agent TEXT NOT NULL,
        title TEXT NOT NULL,
        created_ms BIGINT NOT NULL,
        changed_ms BIGINT NOT NULL,
        entries BIGINT NOT NULL,
        state TEXT NOT NULL,
        forked_from TEXT
    );
    CREATE INDEX sessions_by_change ON patter.sessions (changed_ms, id);
    CREATE TABLE patter.entries (
        session TEXT COLLATE "C" NOT NULL REFERENCES patter.sessions (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (session, number)
    );
    INSERT INTO patter.version VALUES (1);
"#;

/// A session store in the schema `patter` of a PostgreSQL database.
///
/// A claim is an advisory lock on its own connection, which also carries the appends: whoever lost the lock has lost the
/// connection too. (So a pooler that assigns a connection per transaction cannot be used.)
pub(super) struct PostgresStore {
    server: Arc<Server>,
    /// For operations without a claim.
    pool: PgPool,
    /// The connection that opened the store, reused for the first claim.
    spare: Mutex<Option<PgConnection>>,
}

struct PostgresClaim {
    id: SessionId,
    next: u64,
    server: Arc<Server>,
    connection: PgConnection,
    /// The id of the connection on the server.
    connection_id: i32,
}

impl PostgresStore {
    pub(super) async fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        let mut options = url.options()?.disable_statement_logging();
        if options.get_application_name().is_none() {
            let name: String = format!("{APPLICATION_PREFIX}{}", holder()).chars().take(MAX_APPLICATION_NAME).collect();
            options = options.application_name(&name);
        }
        let pool = PgPoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
        let pool = pool.after_connect(|connection, _| Box::pin(configure(connection)));
        let pool = pool.connect_lazy_with(options.clone());
        let server = Arc::new(Server { options, address: url.to_string() });
        let store = Self { server, pool, spare: Mutex::new(None) };
        let connection = with_timeout(store.prepare()).await?;
        *store.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(store)
    }

    /// Connects, and creates the tables if they are missing.
    async fn prepare(&self) -> Result<PgConnection, StoreError> {
        let failed = |error: sqlx::Error| self.server.failed(&error);
        let mut connection = self.server.connect().await?;
        if self.is_ready(&mut connection).await? {
            return Ok(connection);
        }
        let mut transaction = connection.begin().await.map_err(failed)?;
        let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(SETUP_LOCK);
        lock.execute(&mut *transaction).await.map_err(failed)?;
        if !self.is_ready(&mut transaction).await? {
            // A user who may not create schemas can be given one.
            let schema = sqlx::query("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'patter'");
            if schema.fetch_optional(&mut *transaction).await.map_err(failed)?.is_none() {
                sqlx::query("CREATE SCHEMA patter").execute(&mut *transaction).await.map_err(failed)?;
            }
            sqlx::raw_sql(TABLES).execute(&mut *transaction).await.map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)?;
        Ok(connection)
    }

    async fn is_ready(&self, connection: &mut PgConnection) -> Result<bool, StoreError> {
        let failed = |error: sqlx::Error| self.server.failed(&error);
        // `to_regclass` may not see tables that another process has just created.
        const HAS_TABLES: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables \
                            WHERE schemaname = 'patter' AND tablename = 'version')";
        let has_tables = sqlx::query_scalar::<_, bool>(HAS_TABLES);
        if !has_tables.fetch_one(&mut *connection).await.map_err(failed)? {
            return Ok(false);
        }
        let version = sqlx::query_scalar::<_, i32>("SELECT max(version) FROM patter.version");
        match version.fetch_one(&mut *connection).await.map_err(failed)? {
            VERSION => Ok(true),
            _ => Err(StoreError::Unusable {
                message: format!(
                    "the session store `{}` was created by a newer version of Patter",
                    self.server.address
                ),
                hint: Some("update Patter, or use another database".to_owned()),
            }),
        }
    }

    /// Returns a dedicated connection.
    async fn dedicated_connection(&self) -> Result<PgConnection, StoreError> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut spare) = spare
            && spare.ping().await.is_ok()
        {
            return Ok(spare);
        }
        self.server.connect().await
    }

    /// Claims a session with a connection, which becomes part of the claim.
    async fn claim_with(&self, mut connection: PgConnection, id: &SessionId) -> Result<Box<dyn Claim>, StoreError> {
        self.server.lock(&mut connection, LOCK, id).await?;
        const LENGTH: &str = "SELECT entries, pg_backend_pid() FROM patter.sessions WHERE id = $1";
        let query = sqlx::query_as::<_, (i64, i32)>(LENGTH).bind(id.as_str());
        let found = query.fetch_optional(&mut connection).await.map_err(|error| self.server.failed(&error))?;
        let Some((entries, connection_id)) = found else { return Err(not_found(self, id.as_str()).await) };
        Ok(self.claimed(connection, connection_id, id.clone(), u64::try_from(entries).unwrap_or_default()))
    }

    fn claimed(&self, connection: PgConnection, connection_id: i32, id: SessionId, next: u64) -> Box<dyn Claim> {
        tracing::debug!(session = %id, entries = next, "session claimed");
        Box::new(PostgresClaim { id, next, server: Arc::clone(&self.server), connection, connection_id })
    }
}

impl Store for PostgresStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            // One statement, so it is atomic. The session is locked before anyone else can see it.
            const CREATE: &str = "
                WITH created AS (
                    INSERT INTO patter.sessions (id, agent, title, created_ms, changed_ms, entries, state, forked_from)
                    VALUES ($1, $2, $3, $4, $4, cardinality($5), $6, $7) ON CONFLICT DO NOTHING RETURNING id
                ), inserted AS (
                    INSERT INTO patter.entries (session, number, entry)
                    SELECT created.id, new.position - 1, new.entry
                    FROM created, unnest($5) WITH ORDINALITY AS new (entry, position)
                )
                SELECT pg_try_advisory_lock(hashtextextended('patter session ' || id, 0)), pg_backend_pid() FROM created";
            check_entries(&new.entries)?;
            let mut connection = self.dedicated_connection().await?;
            let query = sqlx::query_as::<_, (bool, i32)>(CREATE).bind(new.id.as_str()).bind(new.agent());
            let query = query.bind(new.title());
            let query = query.bind(to_i64(now_ms)).bind(&new.entries).bind(new.state.as_str());
            let query = query.bind(new.forked_from.as_ref().map(SessionId::as_str));
            match query.fetch_optional(&mut connection).await.map_err(|error| self.server.failed(&error))? {
                Some((true, connection_id)) => {
                    Ok(self.claimed(connection, connection_id, new.id, new.entries.len() as u64))
                }
                // The lock of a holder that was just killed.
                Some((false, _)) => self.claim_with(connection, &new.id).await,
                None => Err(StoreError::Exists { id: new.id }),
            }
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            let connection = self.dedicated_connection().await?;
            self.claim_with(connection, id).await
        }))
    }

    fn read_from<'a>(&'a self, id: &'a SessionId, first: u64) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        Box::pin(with_timeout(async move {
            const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            const SUMMARY: &str = concat!("SELECT ", summary_columns!(), " FROM patter.sessions WHERE id = $1");
            const ENTRIES: &str =
                "SELECT number, entry FROM patter.entries WHERE session = $1 AND number >= $2 ORDER BY number";
            let failed = |error: sqlx::Error| self.server.failed(&error);
            // One transaction, so that summary and entries are consistent.
            let mut transaction = self.pool.begin_with(SNAPSHOT).await.map_err(failed)?;
            let query = sqlx::query_as::<_, SummaryRow>(SUMMARY).bind(id.as_str());
            let Some(row) = query.fetch_optional(&mut *transaction).await.map_err(failed)? else {
                drop(transaction);
                return Err(not_found(self, id.as_str()).await);
            };
            let query = sqlx::query_as::<_, EntryRow>(ENTRIES).bind(id.as_str()).bind(to_i64(first));
            stored_session(row, first, query.fetch_all(&mut *transaction).await.map_err(failed)?)
        }))
    }

    fn list_in_state(
        &self,
        state: Option<SessionState>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!(),
                " FROM patter.sessions WHERE $2::text IS NULL OR state = $2 ORDER BY changed_ms DESC, id DESC LIMIT $1"
            );
            let query = sqlx::query_as::<_, SummaryRow>(LIST).bind(to_i64(limit as u64));
            let query = query.bind(state.map(SessionState::as_str));
            let rows = query.fetch_all(&self.pool).await.map_err(|error| self.server.failed(&error))?;
            summaries(rows)
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
            let ids = query.fetch_all(&self.pool).await.map_err(|error| self.server.failed(&error))?;
            session_ids(&ids)
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut transaction = self.pool.begin().await.map_err(failed)?;
            self.server.lock(&mut transaction, LOCK_IN_TRANSACTION, id).await?;
            let query = sqlx::query("DELETE FROM patter.sessions WHERE id = $1").bind(id.as_str());
            let done = query.execute(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            match done.rows_affected() {
                0 => Err(not_found(self, id.as_str()).await),
                _ => Ok(()),
            }
        }))
    }

    fn list_unchanged_since(&self, moment_ms: u64) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!(),
                " FROM patter.sessions WHERE changed_ms < $1 ORDER BY changed_ms, id"
            );
            let query = sqlx::query_as::<_, SummaryRow>(LIST).bind(to_i64(moment_ms));
            summaries(query.fetch_all(&self.pool).await.map_err(|error| self.server.failed(&error))?)
        }))
    }

    fn usage(&self) -> BoxFuture<'_, Result<StoreUsage, StoreError>> {
        Box::pin(with_timeout(async move {
            const USAGE: &str = "SELECT count(*), coalesce(sum(entries), 0)::bigint, min(changed_ms), \
                pg_total_relation_size('patter.sessions') + pg_total_relation_size('patter.entries'), 0::bigint FROM patter.sessions";
            let query = sqlx::query_as::<_, UsageRow>(USAGE);
            Ok(usage(query.fetch_one(&self.pool).await.map_err(|error| self.server.failed(&error))?))
        }))
    }

    fn compact(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let failed = |error: sqlx::Error| self.server.failed(&error);
            let mut connection = self.server.connect().await?;
            // It takes as long as the tables are large, so it has no time limit but Ctrl-C.
            sqlx::query("SET statement_timeout = 0").execute(&mut connection).await.map_err(failed)?;
            sqlx::query("VACUUM patter.sessions, patter.entries").execute(&mut connection).await.map_err(failed)?;
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
            for attempt in 1.. {
                let error = match self.try_append(entries, state, now_ms).await {
                    Ok(true) => break,
                    Ok(false) => return Err(self.conflict()),
                    Err(error) => error,
                };
                if attempt < ATTEMPTS && is_serialization_failure(&error) {
                    continue;
                }
                if is_unique_violation(&error) {
                    return Err(self.conflict());
                }
                if attempt == ATTEMPTS || !is_connection_lost(&error) {
                    return Err(self.server.failed(&error));
                }
                tracing::debug!(session = %self.id, %error, "reconnecting to the session store");
                if self.claim_again(entries).await? {
                    break;
                }
            }
            self.next += entries.len() as u64;
            Ok(())
        }))
    }
}

impl PostgresClaim {
    /// Appends entries. Returns whether the log was as long as expected.
    async fn try_append(&mut self, entries: &[String], state: SessionState, now_ms: u64) -> Result<bool, sqlx::Error> {
        // One statement, so it is atomic, and takes one round trip. As long as the time stays the same, no index changes.
        const APPEND: &str = "
            WITH updated AS (
                UPDATE patter.sessions SET entries = entries + cardinality($3), state = $4, changed_ms =
                    CASE WHEN state = $4 AND $4 = $6 AND changed_ms > $5 - 1000 THEN changed_ms ELSE $5 END
                WHERE id = $1 AND entries = $2 RETURNING id
            ), inserted AS (
                INSERT INTO patter.entries (session, number, entry)
                SELECT updated.id, $2 + new.position - 1, new.entry
                FROM updated, unnest($3) WITH ORDINALITY AS new (entry, position)
            )
            SELECT id FROM updated";
        let query = sqlx::query(APPEND).bind(self.id.as_str()).bind(to_i64(self.next)).bind(entries);
        let query = query.bind(state.as_str()).bind(to_i64(now_ms)).bind(SessionState::Running.as_str());
        Ok(query.fetch_optional(&mut self.connection).await?.is_some())
    }

    /// Connects and locks the session again after the connection was lost while entries were appended. Returns whether they
    /// were appended. Fails if anyone else has the session, or changed it.
    async fn claim_again(&mut self, entries: &[String]) -> Result<bool, StoreError> {
        const TAIL: &str = "
            SELECT entries, ARRAY(SELECT entry FROM patter.entries WHERE session = $1 AND number >= $2 ORDER BY number),
                pg_backend_pid()
            FROM patter.sessions WHERE id = $1";
        let mut connection = self.server.reconnect().await?;
        self.server.end_lost(&mut connection, self.connection_id, &self.id).await;
        self.server.lock(&mut connection, LOCK, &self.id).await?;
        let query = sqlx::query_as::<_, (i64, Vec<String>, i32)>(TAIL).bind(self.id.as_str()).bind(to_i64(self.next));
        let found = query.fetch_optional(&mut connection).await.map_err(|error| self.server.failed(&error))?;
        let Some((length, tail, connection_id)) = found else { return Err(self.conflict()) };
        self.connection = connection;
        self.connection_id = connection_id;
        let added = u64::try_from(length).ok().and_then(|length| length.checked_sub(self.next));
        match added {
            Some(0) => Ok(false),
            Some(_) if tail == entries => Ok(true),
            _ => Err(self.conflict()),
        }
    }

    fn conflict(&self) -> StoreError {
        StoreError::Conflict { id: self.id.clone(), expected: self.next }
    }
}
