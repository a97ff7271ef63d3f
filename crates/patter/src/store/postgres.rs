//! Sessions in a PostgreSQL database.

use super::backend::{Claim, Store};
use super::error::StoreError;
use super::find::not_found;
use super::holder::holder;
use super::id::{SessionId, is_id_text};
use super::limit::{CONNECT_TIMEOUT, MAX_CONNECTIONS, with_timeout};
use super::location::PostgresUrl;
use super::row::{
    EntryRow, SummaryRow, check_entries, is_unique_violation, session_ids, stored_session, summaries, summary_columns,
    to_i64,
};
use super::session::{NewSession, SessionState, SessionSummary, StoredSession};
use crate::tool::BoxFuture;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The version of the tables.
const VERSION: i32 = 1;
/// The advisory lock held while the tables are created: "Patr".
const SETUP_LOCK: i64 = 0x5061_7472;
/// The prefix of the name of a connection, followed by its holder.
const APPLICATION_PREFIX: &str = "patter: ";
/// The maximum length of the name of a connection.
const MAX_APPLICATION_NAME: usize = 63;
/// The pauses between attempts to lock, in milliseconds: the server needs a moment to notice that the last holder has gone.
const LOCK_PAUSES_MS: [u64; 6] = [5, 15, 40, 100, 240, 400];

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

/// Time limits for waiting, and for connections whose other end is gone, so that the server releases their locks.
const LIMITS: &str = "
    SET statement_timeout = '50s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET tcp_keepalives_idle = 30;
    SET tcp_keepalives_interval = 10;
    SET tcp_keepalives_count = 3;
";

/// An advisory lock that ends with the connection.
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('patter session ' || $1, 0))";
/// The same lock, which ends with the transaction.
const LOCK_IN_TRANSACTION: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended('patter session ' || $1, 0))";
const HOLDER: &str = "
    WITH wanted AS (SELECT hashtextextended('patter session ' || $1, 0) AS key)
    SELECT activity.application_name
    FROM wanted, pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
    WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
      AND activity.datname = current_database()
      AND locks.classid::bigint = (wanted.key >> 32) & 4294967295
      AND locks.objid::bigint = wanted.key & 4294967295
    LIMIT 1";

/// A session store in the schema `patter` of a PostgreSQL database.
///
/// A claim is an advisory lock on its own connection, which also carries the appends: whoever lost the lock has lost the
/// connection too. (So a pooler that assigns a connection per transaction cannot be used.)
pub(super) struct PostgresStore {
    options: PgConnectOptions,
    /// The address without secrets.
    address: String,
    /// For operations without a claim.
    pool: PgPool,
    /// The connection that opened the store, reused for the first claim.
    spare: Mutex<Option<PgConnection>>,
}

struct PostgresClaim {
    id: SessionId,
    next: u64,
    address: String,
    connection: PgConnection,
}

impl PostgresStore {
    pub(super) async fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        let mut options = url.options()?.disable_statement_logging();
        if options.get_application_name().is_none() {
            let name: String = format!("{APPLICATION_PREFIX}{}", holder()).chars().take(MAX_APPLICATION_NAME).collect();
            options = options.application_name(&name);
        }
        let pool = PgPoolOptions::new().max_connections(MAX_CONNECTIONS).acquire_timeout(CONNECT_TIMEOUT);
        let pool = pool.after_connect(|connection, _| Box::pin(async move { set_limits(connection).await }));
        let pool = pool.connect_lazy_with(options.clone());
        let store = Self { options, address: url.to_string(), pool, spare: Mutex::new(None) };
        let connection = with_timeout(store.prepare()).await?;
        *store.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(store)
    }

    /// Connects, and creates the tables if they are missing.
    async fn prepare(&self) -> Result<PgConnection, StoreError> {
        let failed = |error: sqlx::Error| failed(&self.address, &error);
        let mut connection = self.connect().await?;
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
        let failed = |error: sqlx::Error| failed(&self.address, &error);
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
                message: format!("the session store `{}` was created by a newer version of Patter", self.address),
                hint: Some("update Patter, or use another database".to_owned()),
            }),
        }
    }

    async fn connect(&self) -> Result<PgConnection, StoreError> {
        let failed = |error: sqlx::Error| failed(&self.address, &error);
        let connect = tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(&self.options)).await;
        let mut connection = connect.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(failed)?;
        set_limits(&mut connection).await.map_err(failed)?;
        Ok(connection)
    }

    /// Returns a dedicated connection.
    async fn dedicated_connection(&self) -> Result<PgConnection, StoreError> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut spare) = spare
            && spare.ping().await.is_ok()
        {
            return Ok(spare);
        }
        self.connect().await
    }

    /// Locks a session.
    async fn lock(
        &self,
        connection: &mut PgConnection,
        statement: &'static str,
        id: &SessionId,
    ) -> Result<(), StoreError> {
        let failed = |error: sqlx::Error| failed(&self.address, &error);
        for pause in LOCK_PAUSES_MS.into_iter().map(Some).chain([None]) {
            let locked = sqlx::query_scalar::<_, bool>(statement).bind(id.as_str());
            if locked.fetch_one(&mut *connection).await.map_err(failed)? {
                return Ok(());
            }
            if let Some(pause) = pause {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
        let holder = sqlx::query_scalar::<_, Option<String>>(HOLDER).bind(id.as_str());
        let holder = holder.fetch_optional(&mut *connection).await.ok().flatten().flatten();
        let holder = holder.map(|name| name.strip_prefix(APPLICATION_PREFIX).unwrap_or(&name).to_owned());
        Err(StoreError::Busy { id: id.clone(), holder: holder.filter(|name| !name.is_empty()) })
    }

    /// Claims a session with a connection, which becomes part of the claim.
    async fn claim_with(&self, mut connection: PgConnection, id: &SessionId) -> Result<Box<dyn Claim>, StoreError> {
        self.lock(&mut connection, LOCK, id).await?;
        let query = sqlx::query_scalar::<_, i64>("SELECT entries FROM patter.sessions WHERE id = $1").bind(id.as_str());
        let entries = query.fetch_optional(&mut connection).await.map_err(|error| failed(&self.address, &error))?;
        let Some(next) = entries.and_then(|entries| u64::try_from(entries).ok()) else {
            return Err(not_found(self, id.as_str()).await);
        };
        tracing::debug!(session = %id, entries = next, "session claimed");
        Ok(Box::new(PostgresClaim { id: id.clone(), next, address: self.address.clone(), connection }))
    }
}

impl Store for PostgresStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            const CREATE: &str = "INSERT INTO patter.sessions (id, agent, title, created_ms, changed_ms, entries, state, \
                                  forked_from) VALUES ($1, $2, $3, $4, $4, 0, $5, $6) ON CONFLICT DO NOTHING";
            let mut connection = self.dedicated_connection().await?;
            let query = sqlx::query(CREATE).bind(new.id.as_str()).bind(new.agent()).bind(new.title());
            let query = query.bind(to_i64(now_ms)).bind(SessionState::Idle.as_str());
            let query = query.bind(new.forked_from.as_ref().map(SessionId::as_str));
            let done = query.execute(&mut connection).await.map_err(|error| failed(&self.address, &error))?;
            match done.rows_affected() {
                0 => Err(StoreError::Exists { id: new.id }),
                _ => self.claim_with(connection, &new.id).await,
            }
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(with_timeout(async move {
            let connection = self.dedicated_connection().await?;
            self.claim_with(connection, id).await
        }))
    }

    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<StoredSession, StoreError>> {
        Box::pin(with_timeout(async move {
            const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            const SUMMARY: &str = concat!("SELECT ", summary_columns!(), " FROM patter.sessions WHERE id = $1");
            const ENTRIES: &str = "SELECT number, entry FROM patter.entries WHERE session = $1 ORDER BY number";
            let failed = |error: sqlx::Error| failed(&self.address, &error);
            // One transaction, so that summary and entries are consistent.
            let mut transaction = self.pool.begin_with(SNAPSHOT).await.map_err(failed)?;
            let query = sqlx::query_as::<_, SummaryRow>(SUMMARY).bind(id.as_str());
            let Some(row) = query.fetch_optional(&mut *transaction).await.map_err(failed)? else {
                drop(transaction);
                return Err(not_found(self, id.as_str()).await);
            };
            let rows = sqlx::query_as::<_, EntryRow>(ENTRIES).bind(id.as_str()).fetch(&mut *transaction);
            stored_session(row, rows, failed).await
        }))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, StoreError>> {
        Box::pin(with_timeout(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!(),
                " FROM patter.sessions ORDER BY changed_ms DESC, id DESC LIMIT $1"
            );
            let query = sqlx::query_as::<_, SummaryRow>(LIST).bind(to_i64(limit as u64));
            let rows = query.fetch_all(&self.pool).await.map_err(|error| failed(&self.address, &error))?;
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
            let ids = query.fetch_all(&self.pool).await.map_err(|error| failed(&self.address, &error))?;
            session_ids(&ids)
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(with_timeout(async move {
            let failed = |error: sqlx::Error| failed(&self.address, &error);
            let mut transaction = self.pool.begin().await.map_err(failed)?;
            self.lock(&mut transaction, LOCK_IN_TRANSACTION, id).await?;
            let query = sqlx::query("DELETE FROM patter.sessions WHERE id = $1").bind(id.as_str());
            let done = query.execute(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            match done.rows_affected() {
                0 => Err(not_found(self, id.as_str()).await),
                _ => Ok(()),
            }
        }))
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
            // One statement, so it is atomic, and takes one round trip.
            const APPEND: &str = "
                WITH updated AS (
                    UPDATE patter.sessions SET entries = entries + cardinality($3), state = $4, changed_ms = $5
                    WHERE id = $1 AND entries = $2 RETURNING id
                ), inserted AS (
                    INSERT INTO patter.entries (session, number, entry)
                    SELECT updated.id, $2 + new.position - 1, new.entry
                    FROM updated, unnest($3) WITH ORDINALITY AS new (entry, position)
                )
                SELECT id FROM updated";
            check_entries(entries)?;
            let query = sqlx::query(APPEND).bind(self.id.as_str()).bind(to_i64(self.next)).bind(entries);
            let updated = query.bind(state.as_str()).bind(to_i64(now_ms)).fetch_optional(&mut self.connection).await;
            let is_conflict = match &updated {
                Ok(updated) => updated.is_none(),
                Err(error) => is_unique_violation(error),
            };
            if is_conflict {
                return Err(StoreError::Conflict { id: self.id.clone(), expected: self.next });
            }
            updated.map_err(|error| failed(&self.address, &error))?;
            self.next += entries.len() as u64;
            Ok(())
        }))
    }
}

async fn set_limits(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(LIMITS).execute(connection).await.map(|_| ())
}

/// Translates an error. See the appendix of PostgreSQL's manual for the codes.
fn failed(address: &str, error: &sqlx::Error) -> StoreError {
    let unusable = |message: String, hint: &str| StoreError::Unusable { message, hint: Some(hint.to_owned()) };
    let unreachable = |reason: &dyn std::fmt::Display| {
        let message = format!("cannot connect to the session store `{address}`: {reason}");
        unusable(message, "check that the server is running, and that its host and port are correct")
    };
    let database = match error {
        sqlx::Error::Io(error) => return unreachable(error),
        sqlx::Error::Tls(error) => return unreachable(error),
        sqlx::Error::PoolTimedOut => return unreachable(&format!("no answer within {} s", CONNECT_TIMEOUT.as_secs())),
        other => other.as_database_error(),
    };
    let Some(database) = database else {
        return StoreError::Failed { message: format!("`{address}`: {error}") };
    };
    let message = format!("cannot use the session store `{address}`: {}", database.message());
    match database.code().as_deref() {
        Some("28P01" | "28000") => unusable(message, "check the user and the password in its address"),
        Some("3D000") => unusable(message, "create the database with `createdb`, or use another one"),
        Some("42501") => unusable(message, "allow this user to create the schema `patter` and to write to its tables"),
        Some("25006") => unusable(message, "use a server that accepts writes"),
        Some("53100") => unusable(message, "free some disk space on the server"),
        _ => StoreError::Failed { message: format!("`{address}`: {}", database.message()) },
    }
}
