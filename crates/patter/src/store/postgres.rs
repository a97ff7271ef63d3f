//! Sessions in a PostgreSQL database.

use super::id::is_part;
use super::session::{Log, Row, summary, summary_columns};
use super::{CONNECT, CONNECTIONS, bounded, check, holder, missing, signed};
use super::{Claim, NewSession, PostgresUrl, SessionId, SessionState, Store, StoreError, Stored, Summary};
use crate::tool::BoxFuture;
use futures_util::TryStreamExt;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The version of the tables.
const VERSION: i32 = 1;
/// The lock that is held while tables are made: "Patr".
const SETUP: i64 = 0x5061_7472;
/// What the name of a connection begins with; who holds it follows.
const APPLICATION: &str = "patter: ";
/// The longest name that a connection can have.
const LONGEST_APPLICATION: usize = 63;
/// The pauses between tries to lock, in milliseconds. The server takes a moment to see that the last holder has gone.
const PAUSES: [u64; 6] = [5, 15, 40, 100, 240, 400];

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

/// Waits that end, and connections whose other end is gone: the server then gives back what they had locked.
const LIMITS: &str = "
    SET statement_timeout = '50s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET tcp_keepalives_idle = 30;
    SET tcp_keepalives_interval = 10;
    SET tcp_keepalives_count = 3;
";

/// A lock of the server, which ends with the connection.
const LOCK: &str = "SELECT pg_try_advisory_lock(hashtextextended('patter session ' || $1, 0))";
/// The same, which ends with the transaction.
const LOCK_FOR_NOW: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended('patter session ' || $1, 0))";
const HOLDER: &str = "
    WITH wanted AS (SELECT hashtextextended('patter session ' || $1, 0) AS key)
    SELECT activity.application_name
    FROM wanted, pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
    WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
      AND activity.datname = current_database()
      AND locks.classid::bigint = (wanted.key >> 32) & 4294967295
      AND locks.objid::bigint = wanted.key & 4294967295
    LIMIT 1";

/// A database with sessions, in its schema `patter`.
///
/// A claim is an advisory lock on a connection of its own, and what is appended goes over that very connection: who has
/// lost the lock has lost the connection too. (So between here and the server there can be no pool that gives a connection
/// to each transaction.)
pub(super) struct PostgresStore {
    options: PgConnectOptions,
    shown: String,
    /// For what needs no claim.
    pool: PgPool,
    /// The connection that the store was opened with, for the first claim.
    spare: Mutex<Option<PgConnection>>,
}

struct PostgresClaim {
    id: SessionId,
    next: u64,
    shown: String,
    connection: PgConnection,
}

impl PostgresStore {
    pub(super) async fn open(url: &PostgresUrl) -> Result<Self, StoreError> {
        let mut options = url.options()?.disable_statement_logging();
        if options.get_application_name().is_none() {
            let name: String = format!("{APPLICATION}{}", holder()).chars().take(LONGEST_APPLICATION).collect();
            options = options.application_name(&name);
        }
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(CONNECT);
        let pool = pool.after_connect(|connection, _| Box::pin(async move { limit(connection).await }));
        let pool = pool.connect_lazy_with(options.clone());
        let store = Self { options, shown: url.to_string(), pool, spare: Mutex::new(None) };
        let connection = bounded(store.prepare()).await?;
        *store.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(connection);
        Ok(store)
    }

    /// Connects, and makes the tables where they are missing.
    async fn prepare(&self) -> Result<PgConnection, StoreError> {
        let failed = |error: sqlx::Error| failed(&self.shown, &error);
        let mut connection = self.connect().await?;
        if self.is_ready(&mut connection).await? {
            return Ok(connection);
        }
        let mut transaction = connection.begin().await.map_err(failed)?;
        let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(SETUP);
        lock.execute(&mut *transaction).await.map_err(failed)?;
        if !self.is_ready(&mut transaction).await? {
            // Whoever may not make schemas can be given one.
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
        let failed = |error: sqlx::Error| failed(&self.shown, &error);
        // Not by `to_regclass`, which may not see what another process has just made.
        const MADE: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables \
                            WHERE schemaname = 'patter' AND tablename = 'version')";
        let made = sqlx::query_scalar::<_, bool>(MADE);
        if !made.fetch_one(&mut *connection).await.map_err(failed)? {
            return Ok(false);
        }
        let version = sqlx::query_scalar::<_, i32>("SELECT max(version) FROM patter.version");
        match version.fetch_one(&mut *connection).await.map_err(failed)? {
            VERSION => Ok(true),
            _ => Err(StoreError::Unusable {
                message: format!("the store of sessions `{}` is of a newer version of Patter", self.shown),
                hint: Some("update Patter, or name another database".to_owned()),
            }),
        }
    }

    async fn connect(&self) -> Result<PgConnection, StoreError> {
        let failed = |error: sqlx::Error| failed(&self.shown, &error);
        let connect = tokio::time::timeout(CONNECT, PgConnection::connect_with(&self.options)).await;
        let mut connection = connect.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map_err(failed)?;
        limit(&mut connection).await.map_err(failed)?;
        Ok(connection)
    }

    /// Returns a connection of one's own.
    async fn own(&self) -> Result<PgConnection, StoreError> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut spare) = spare
            && spare.ping().await.is_ok()
        {
            return Ok(spare);
        }
        self.connect().await
    }

    /// Takes the lock of a session.
    async fn lock(
        &self,
        connection: &mut PgConnection,
        statement: &'static str,
        id: &SessionId,
    ) -> Result<(), StoreError> {
        let failed = |error: sqlx::Error| failed(&self.shown, &error);
        for pause in PAUSES.into_iter().map(Some).chain([None]) {
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
        let holder = holder.map(|name| name.strip_prefix(APPLICATION).unwrap_or(&name).to_owned());
        Err(StoreError::Busy { id: id.clone(), holder: holder.filter(|name| !name.is_empty()) })
    }

    /// Claims a session over a connection, which becomes part of the claim.
    async fn claim_over(&self, mut connection: PgConnection, id: &SessionId) -> Result<Box<dyn Claim>, StoreError> {
        self.lock(&mut connection, LOCK, id).await?;
        let query = sqlx::query_scalar::<_, i64>("SELECT entries FROM patter.sessions WHERE id = $1").bind(id.as_str());
        let entries = query.fetch_optional(&mut connection).await.map_err(|error| failed(&self.shown, &error))?;
        match entries.and_then(|entries| u64::try_from(entries).ok()) {
            Some(next) => Ok(Box::new(PostgresClaim { id: id.clone(), next, shown: self.shown.clone(), connection })),
            None => Err(missing(self, id.as_str()).await),
        }
    }
}

impl Store for PostgresStore {
    fn create<'a>(&'a self, new: NewSession, now_ms: u64) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(bounded(async move {
            const CREATE: &str = "INSERT INTO patter.sessions (id, agent, title, created_ms, changed_ms, entries, state, \
                                  forked_from) VALUES ($1, $2, $3, $4, $4, 0, $5, $6) ON CONFLICT DO NOTHING";
            let mut connection = self.own().await?;
            let query = sqlx::query(CREATE).bind(new.id.as_str()).bind(new.agent()).bind(new.title());
            let query = query.bind(signed(now_ms)).bind(SessionState::Idle.as_str());
            let query = query.bind(new.forked_from.as_ref().map(SessionId::as_str));
            let done = query.execute(&mut connection).await.map_err(|error| failed(&self.shown, &error))?;
            match done.rows_affected() {
                0 => Err(StoreError::Exists { id: new.id }),
                _ => self.claim_over(connection, &new.id).await,
            }
        }))
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Box<dyn Claim>, StoreError>> {
        Box::pin(bounded(async move {
            let connection = self.own().await?;
            self.claim_over(connection, id).await
        }))
    }

    fn read<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<Stored, StoreError>> {
        Box::pin(bounded(async move {
            const MOMENT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            const SUMMARY: &str = concat!("SELECT ", summary_columns!(), " FROM patter.sessions WHERE id = $1");
            const ENTRIES: &str = "SELECT number, entry FROM patter.entries WHERE session = $1 ORDER BY number";
            let failed = |error: sqlx::Error| failed(&self.shown, &error);
            // Both are read in one transaction, so that they are of one moment.
            let mut transaction = self.pool.begin_with(MOMENT).await.map_err(failed)?;
            let query = sqlx::query_as::<_, Row>(SUMMARY).bind(id.as_str());
            let Some(row) = query.fetch_optional(&mut *transaction).await.map_err(failed)? else {
                drop(transaction);
                return Err(missing(self, id.as_str()).await);
            };
            let mut log = Log::new(summary(row)?);
            let mut rows = sqlx::query_as::<_, (i64, String)>(ENTRIES).bind(id.as_str()).fetch(&mut *transaction);
            while let Some(row) = rows.try_next().await.map_err(failed)? {
                log.push(row)?;
            }
            log.end()
        }))
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Summary>, StoreError>> {
        Box::pin(bounded(async move {
            const LIST: &str = concat!(
                "SELECT ",
                summary_columns!(),
                " FROM patter.sessions ORDER BY changed_ms DESC, id DESC LIMIT $1"
            );
            let query = sqlx::query_as::<_, Row>(LIST).bind(signed(limit as u64));
            let rows = query.fetch_all(&self.pool).await.map_err(|error| failed(&self.shown, &error))?;
            rows.into_iter().map(summary).collect()
        }))
    }

    fn ids<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<SessionId>, StoreError>> {
        Box::pin(bounded(async move {
            // `{` comes after all that ids are made of.
            const IDS: &str = "SELECT id FROM patter.sessions WHERE id >= $1 AND id < $1 || '{' ORDER BY id LIMIT $2";
            if !is_part(prefix) {
                return Ok(Vec::new());
            }
            let query = sqlx::query_scalar::<_, String>(IDS).bind(prefix).bind(signed(limit as u64));
            let ids = query.fetch_all(&self.pool).await.map_err(|error| failed(&self.shown, &error))?;
            ids.iter().map(|id| SessionId::parse(id)).collect()
        }))
    }

    fn remove<'a>(&'a self, id: &'a SessionId) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(bounded(async move {
            let failed = |error: sqlx::Error| failed(&self.shown, &error);
            let mut transaction = self.pool.begin().await.map_err(failed)?;
            self.lock(&mut transaction, LOCK_FOR_NOW, id).await?;
            let query = sqlx::query("DELETE FROM patter.sessions WHERE id = $1").bind(id.as_str());
            let done = query.execute(&mut *transaction).await.map_err(failed)?;
            transaction.commit().await.map_err(failed)?;
            match done.rows_affected() {
                0 => Err(missing(self, id.as_str()).await),
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
        Box::pin(bounded(async move {
            // One statement, so it is done or not, and one journey to the server.
            const APPEND: &str = "
                WITH moved AS (
                    UPDATE patter.sessions SET entries = entries + cardinality($3), state = $4, changed_ms = $5
                    WHERE id = $1 AND entries = $2 RETURNING id
                ), added AS (
                    INSERT INTO patter.entries (session, number, entry)
                    SELECT moved.id, $2 + new.place - 1, new.entry
                    FROM moved, unnest($3) WITH ORDINALITY AS new (entry, place)
                )
                SELECT id FROM moved";
            check(entries)?;
            let query = sqlx::query(APPEND).bind(self.id.as_str()).bind(signed(self.next)).bind(entries);
            let moved = query.bind(state.as_str()).bind(signed(now_ms)).fetch_optional(&mut self.connection).await;
            let is_conflict = match &moved {
                Ok(moved) => moved.is_none(),
                Err(error) => error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation),
            };
            if is_conflict {
                return Err(StoreError::Conflict { id: self.id.clone(), expected: self.next });
            }
            moved.map_err(|error| failed(&self.shown, &error))?;
            self.next += entries.len() as u64;
            Ok(())
        }))
    }
}

async fn limit(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(LIMITS).execute(connection).await.map(|_| ())
}

/// Puts a failure into words. The codes are those of the appendix of PostgreSQL's manual.
fn failed(shown: &str, error: &sqlx::Error) -> StoreError {
    let unusable = |message: String, hint: &str| StoreError::Unusable { message, hint: Some(hint.to_owned()) };
    let reach = |why: &dyn std::fmt::Display| {
        let message = format!("the store of sessions `{shown}` cannot be reached: {why}");
        unusable(message, "is the server running, and are its name and port right?")
    };
    let database = match error {
        sqlx::Error::Io(error) => return reach(error),
        sqlx::Error::Tls(error) => return reach(error),
        sqlx::Error::PoolTimedOut => return reach(&format!("no answer within {} s", CONNECT.as_secs())),
        other => other.as_database_error(),
    };
    let Some(database) = database else {
        return StoreError::Failed { message: format!("`{shown}`: {error}") };
    };
    let message = format!("the store of sessions `{shown}` refuses: {}", database.message());
    match database.code().as_deref() {
        Some("28P01" | "28000") => unusable(message, "check the user and the password of its address"),
        Some("3D000") => unusable(message, "make the database with `createdb`, or name another"),
        Some("42501") => unusable(message, "allow this user to create the schema `patter` and to write to its tables"),
        Some("25006") => unusable(message, "name the server that can be written to"),
        Some("53100") => unusable(message, "make room on the disk of the server"),
        _ => StoreError::Failed { message: format!("`{shown}`: {}", database.message()) },
    }
}
