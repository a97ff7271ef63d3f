//! Connections to a PostgreSQL server, and what its errors mean.

use super::pool::Statements;
use crate::os_error::describe;
use crate::store::error::StoreError;
use crate::store::holder::holder;
use crate::store::id::SessionId;
use crate::store::limit::{
    CONNECT_TIMEOUT, LOCK_PAUSES_MS, RETRY_PAUSE, has_no_descriptors, is_out_of_descriptors, out_of_descriptors,
};
use crate::store::location::{ClaimMode, PostgresUrl};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The prefix of the name of a connection, followed by its holder, and what makes it unique.
const APPLICATION_PREFIX: &str = "patter: ";
const APPLICATION_SUFFIX: &str = " #";
/// The maximum length of the name of a connection.
const MAX_APPLICATION_NAME: usize = 63;

/// Settings of a connection. Time limits for waiting, and for connections whose other end is gone, so that the server
/// releases their locks. A commit waits for the disk, also on servers where that is turned off.
const SETTINGS: &str = "
    SET statement_timeout = '50s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET tcp_keepalives_idle = 30;
    SET tcp_keepalives_interval = 10;
    SET tcp_keepalives_count = 3;
    SELECT set_config('synchronous_commit', 'local', false) WHERE current_setting('synchronous_commit') = 'off';
";

/// An advisory lock on a session that ends with the transaction.
const LOCK: &str = "SELECT pg_try_advisory_xact_lock(hashtextextended('patter session ' || $1, 0))";
/// Locks the row of a session until the transaction or its savepoint ends.
const LOCK_ROW: &str = "SELECT FROM patter.sessions WHERE id = $1 FOR UPDATE";
/// Whether nobody has a lease of a session. A statement after the lock, since one sees only what was committed before it started.
const IS_FREE: &str = "
    SELECT NOT EXISTS (
        SELECT FROM patter.leases
        WHERE owner = session.owner AND until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
    FROM patter.sessions AS session WHERE id = $1";
const OWNER: &str = "
    SELECT leases.owner FROM patter.sessions AS session JOIN patter.leases ON leases.owner = session.owner
    WHERE session.id = $1";
/// Ends the connection with an id, if it has the lock of a session.
const END: &str = "
    WITH wanted AS (SELECT hashtextextended('patter session ' || $1, 0) AS key)
    SELECT pg_terminate_backend(locks.pid)
    FROM wanted, pg_locks AS locks
    WHERE locks.pid = $2 AND locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
      AND locks.classid::bigint = (wanted.key >> 32) & 4294967295
      AND locks.objid::bigint = wanted.key & 4294967295";
const HOLDER: &str = "
    WITH wanted AS (SELECT hashtextextended('patter session ' || $1, 0) AS key)
    SELECT activity.application_name
    FROM wanted, pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
    WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 1
      AND activity.datname = current_database()
      AND locks.classid::bigint = (wanted.key >> 32) & 4294967295
      AND locks.objid::bigint = wanted.key & 4294967295
    LIMIT 1";

/// A PostgreSQL server.
pub(super) struct Server {
    pub(super) options: PgConnectOptions,
    /// The address without secrets.
    pub(super) address: String,
    pub(super) claims: ClaimMode,
}

impl Server {
    pub(super) fn new(url: &PostgresUrl) -> Result<Self, StoreError> {
        let mut options = url.options()?.disable_statement_logging();
        if options.get_application_name().is_none() {
            options = options.application_name(&application_name(&holder()));
        }
        if url.claims != ClaimMode::Lock {
            // A setting that poolers do not know.
            options = options.extra_float_digits(None).statement_cache_capacity(0);
        }
        Ok(Self { options, address: url.to_string(), claims: url.claims })
    }

    /// Returns the name of the connections, if nobody else's have the same: those of a pooler are everyone's.
    pub(super) fn unique_name(&self) -> Option<&str> {
        if self.claims != ClaimMode::Lock {
            return None;
        }
        let name = self.options.get_application_name()?;
        (name.starts_with(APPLICATION_PREFIX) && name.contains(APPLICATION_SUFFIX)).then_some(name)
    }

    /// Connects. Waits for a server that starts or has no connections left, and for free descriptors.
    pub(super) async fn connect(&self) -> Result<PgConnection, StoreError> {
        self.connect_unless(|error| !is_temporary(error)).await.map_err(|error| self.failed(&error))
    }

    /// Connects again after the connection was lost. Waits for a server that restarts.
    pub(super) async fn reconnect(&self) -> Result<PgConnection, sqlx::Error> {
        self.connect_unless(|error| !is_temporary(error) && !is_connection_lost(error)).await
    }

    async fn connect_unless(&self, is_final: impl Fn(&sqlx::Error) -> bool) -> Result<PgConnection, sqlx::Error> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        loop {
            let connect = async {
                let mut connection = PgConnection::connect_with(&self.options).await?;
                if self.claims == ClaimMode::Lock {
                    configure(&mut connection).await?;
                }
                Ok(connection)
            };
            match timeout_at(deadline, connect).await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) {
                Ok(connection) => return Ok(connection),
                Err(error) if is_final(&error) || Instant::now() + RETRY_PAUSE >= deadline => {
                    return Err(error);
                }
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }

    /// Makes sure that nobody claims a session until the transaction ends. Waits a moment for a holder that was just killed.
    pub(super) async fn lock(&self, statements: &mut Statements, id: &SessionId) -> Result<(), StoreError> {
        for pause in LOCK_PAUSES_MS.into_iter().map(Some).chain([None]) {
            let locked = match self.claims {
                ClaimMode::Lock => {
                    let query = sqlx::query_scalar(LOCK).bind(id.as_str()).persistent(statements.named);
                    query.fetch_one(statements.on()).await
                }
                ClaimMode::Lease(_) => lock_row(statements.on(), id).await,
            };
            if locked.map_err(|error| self.failed(&error))? {
                return Ok(());
            }
            if let Some(pause) = pause {
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
        Err(self.busy(statements, id).await)
    }

    /// Returns the error that somebody else has a session, and who.
    pub(super) async fn busy(&self, statements: &mut Statements, id: &SessionId) -> StoreError {
        let statement = if self.claims == ClaimMode::Lock { HOLDER } else { OWNER };
        let holder = sqlx::query_scalar::<_, Option<String>>(statement).bind(id.as_str()).persistent(statements.named);
        let holder = holder.fetch_optional(statements.on()).await.ok().flatten().flatten();
        let holder = holder.map(|name| {
            let (name, _) = name.rsplit_once(APPLICATION_SUFFIX).unwrap_or((&name, ""));
            name.strip_prefix(APPLICATION_PREFIX).unwrap_or(name).to_owned()
        });
        StoreError::Busy { id: id.clone(), holder: holder.filter(|name| !name.is_empty()) }
    }

    /// Ends a connection of ours that was lost, if the server has not noticed yet that it is gone: it has the lock of the
    /// session.
    pub(super) async fn end_lost(&self, connection: &mut PgConnection, lost: i32, id: &SessionId) {
        let ended = sqlx::query(END).bind(id.as_str()).bind(lost).execute(connection).await;
        if let Err(error) = ended {
            tracing::debug!(session = %id, %error, "cannot end the lost connection");
        }
    }

    /// Translates an error. See the appendix of PostgreSQL's manual for the codes.
    pub(super) fn failed(&self, error: &sqlx::Error) -> StoreError {
        let address = &self.address;
        let unusable = |message: String, hint: &str| StoreError::Unusable { message, hint: Some(hint.to_owned()) };
        let unreachable = |reason: &dyn Display| {
            let message = format!("cannot connect to the session store `{address}`: {reason}");
            unusable(message, "check that the server is running, and that its host and port are correct")
        };
        let database = match error {
            sqlx::Error::Io(error) if is_out_of_descriptors(error) => return out_of_descriptors(address),
            error if is_closed_early(error) => return unreachable(&"the server closed the connection"),
            sqlx::Error::Io(error) => return unreachable(&describe(error)),
            sqlx::Error::Tls(error) => return unreachable(error),
            sqlx::Error::PoolTimedOut if has_no_descriptors() => return out_of_descriptors(address),
            sqlx::Error::PoolTimedOut => {
                return unreachable(&format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()));
            }
            other => other.as_database_error(),
        };
        let Some(database) = database else {
            return StoreError::Failed { message: format!("`{address}`: {error}") };
        };
        let message = format!("cannot use the session store `{address}`: {}", database.message());
        match database.code().as_deref() {
            Some("28P01" | "28000") => unusable(message, "check the user and the password in its address"),
            Some("3D000") => unusable(message, "create the database with `createdb`, or use another one"),
            Some("42501") => {
                unusable(message, "allow this user to create the schema `patter` and to write to its tables")
            }
            Some("25006") => unusable(message, "use a server that accepts writes"),
            Some("53100") => unusable(message, "free some disk space on the server"),
            Some("53300") => unusable(
                message,
                "raise `max_connections` of the server, or run fewer at once: each needs a connection",
            ),
            Some("55P03" | "57014") => unusable(message, "try again when the server has less to do"),
            Some("57P01" | "57P02" | "57P03") => unusable(message, "try again when the server is running"),
            _ => StoreError::Failed { message: format!("`{address}`: {}", database.message()) },
        }
    }
}

/// Returns a new name for the connections of a process.
fn application_name(holder: &str) -> String {
    let unique = format!("{APPLICATION_SUFFIX}{:08x}", RandomState::new().hash_one(holder) >> 32);
    let most = MAX_APPLICATION_NAME - unique.len();
    let name: String = format!("{APPLICATION_PREFIX}{holder}").chars().filter(char::is_ascii).take(most).collect();
    name + &unique
}

/// Returns a new name for a lease of this process.
pub(super) fn unique_owner() -> String {
    let random = |part: &str| RandomState::new().hash_one(part);
    format!("{}{APPLICATION_SUFFIX}{:016x}{:016x}", holder(), random("high"), random("low"))
}

pub(super) async fn configure(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(SETTINGS).execute(connection).await.map(|_| ())
}

/// Returns whether the connection is gone, and with it the locks.
pub(super) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) => true,
        // The last one is how PgBouncer reports that a connection behind it broke.
        error => has_code(error, &["57P01", "57P02", "57P05", "25P03", "08000", "08003", "08006", "08P01"]),
    }
}

/// Returns whether a statement failed only because of others, and did nothing.
pub(super) fn is_serialization_failure(error: &sqlx::Error) -> bool {
    has_code(error, &["40001", "40P01"])
}

/// Returns whether a row exists already.
pub(super) fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// Returns whether connecting may succeed a moment later.
fn is_temporary(error: &sqlx::Error) -> bool {
    match error {
        // A proxy closes connections while the server behind it starts.
        error if is_closed_early(error) => true,
        sqlx::Error::Io(error) => is_out_of_descriptors(error),
        error => has_code(error, &["53300", "57P03"]),
    }
}

/// Returns whether the other end accepted a connection and closed it before it said anything.
fn is_closed_early(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => {
            matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
        }
        // The first byte of an answer that never came.
        sqlx::Error::Protocol(message) => message.contains("unexpected response from SSLRequest: 0x00"),
        _ => false,
    }
}

fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.contains(&&*code))
}

/// Locks a session that nobody has a lease of. Otherwise it is not locked, so that its holder can append to it and release it.
async fn lock_row(connection: &mut PgConnection, id: &SessionId) -> Result<bool, sqlx::Error> {
    let mut savepoint = connection.begin().await?;
    sqlx::query(LOCK_ROW).bind(id.as_str()).persistent(false).execute(&mut *savepoint).await?;
    let query = sqlx::query_scalar(IS_FREE).bind(id.as_str()).persistent(false);
    // A session that does not exist has no row.
    let is_free = query.fetch_optional(&mut *savepoint).await?.unwrap_or(true);
    match is_free {
        true => savepoint.commit().await?,
        false => savepoint.rollback().await?,
    }
    Ok(is_free)
}
