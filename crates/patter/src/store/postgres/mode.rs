//! Which way of claiming sessions a database is used with. Locks and leases do not exclude each other, so the database says
//! which of them holds for everyone.

use super::pool::begin;
use super::server::Server;
use super::setup::prepare_tables;
use crate::store::error::StoreError;
use crate::store::location::{ClaimMode, PostgresUrl};
use sqlx::{PgConnection, Row};

/// Reads the mode while it cannot change: whoever claims by locks shares the advisory lock "PatM" as long as it is connected.
const HOLD_MODE: &str =
    "SELECT pg_advisory_lock_shared(1348564045)::text; SELECT value FROM patter.settings WHERE name = 'claims'";
const READ_MODE: &str = "SELECT value FROM patter.settings WHERE name = 'claims'";
/// Locks out all that claim by locks, until the transaction ends.
const LOCK_MODE: &str = "SELECT pg_try_advisory_xact_lock(1348564045)";

/// How recently a worker must have reported that it is alive, in milliseconds.
const ALIVE_MS: i64 = 60_000;

/// Checks that the database is used as an address says, and that it stays so while this connection exists or has a lease.
pub(super) async fn check_mode(server: &Server, connection: &mut PgConnection) -> Result<(), StoreError> {
    let statement = if server.claims == ClaimMode::Lock { HOLD_MODE } else { READ_MODE };
    let mode = read(connection, statement).await.map_err(|error| server.failed(&error))?;
    if mode == server.claims.as_str() { Ok(()) } else { Err(other_mode(server)) }
}

/// Holds the mode again after the connection was lost. Fails if it has changed.
pub(super) async fn hold_mode(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    match read(connection, HOLD_MODE).await?.as_str() {
        "lock" => Ok(()),
        mode => Err(sqlx::Error::Configuration(format!("sessions are now claimed by `claims={mode}`").into())),
    }
}

async fn read(connection: &mut PgConnection, statement: &'static str) -> Result<String, sqlx::Error> {
    let rows = sqlx::raw_sql(statement).fetch_all(connection).await?;
    rows.last().ok_or(sqlx::Error::RowNotFound)?.try_get(0)
}

/// Returns the error that others claim sessions in the other way.
pub(super) fn other_mode(server: &Server) -> StoreError {
    let address = &server.address;
    let message = match server.claims {
        ClaimMode::Lock => format!("the sessions of `{address}` are claimed by leases"),
        ClaimMode::Lease(_) => format!("the sessions of `{address}` are claimed by locks"),
    };
    let same = match server.claims {
        ClaimMode::Lock => "add `claims=lease` to the address",
        ClaimMode::Lease(_) => "remove `claims=lease` from the address",
    };
    let hint = format!("{same}; or stop everything that uses the database, and run `patter store claims`");
    StoreError::Unusable { message, hint: Some(hint) }
}

/// Makes the way of claiming that an address names that of its database. Returns whether it was another one. Fails if the
/// database is in use.
pub(in crate::store) async fn change_mode(url: &PostgresUrl) -> Result<bool, StoreError> {
    const LEASES: &str = "
        SELECT (SELECT count(*) FROM patter.leases WHERE until_ms > now.ms)
            + (SELECT count(*) FROM patter.workers WHERE seen_ms > now.ms - $1)
        FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) AS now";
    // Whoever had a lease and wakes up later must not append.
    const END_LEASES: &str = "DELETE FROM patter.leases";
    const FREE: &str = "UPDATE patter.sessions SET owner = NULL, epoch = epoch + 1 WHERE owner IS NOT NULL";
    let server = Server::new(url)?;
    let failed = |error: sqlx::Error| server.failed(&error);
    let mut connection = server.connect().await?;
    prepare_tables(&server, &mut connection).await?;
    let mut transaction = begin(&mut connection).await.map_err(failed)?;
    // In this order nobody can register, and whoever claims by locks cannot connect.
    let lock = sqlx::raw_sql("LOCK TABLE patter.leases, patter.settings IN EXCLUSIVE MODE");
    lock.execute(&mut *transaction).await.map_err(failed)?;
    let mode = read(&mut transaction, READ_MODE).await.map_err(failed)?;
    if mode == server.claims.as_str() {
        return Ok(false);
    }
    let is_free: bool =
        sqlx::query_scalar(LOCK_MODE).persistent(false).fetch_one(&mut *transaction).await.map_err(failed)?;
    let alive = sqlx::query_scalar::<_, i64>(LEASES).bind(ALIVE_MS).persistent(false);
    if !is_free || alive.fetch_one(&mut *transaction).await.map_err(failed)? > 0 {
        return Err(StoreError::Unusable {
            message: format!("the session store `{}` is in use", server.address),
            hint: Some("stop all workers and programs that use it, wait a minute, and try again".to_owned()),
        });
    }
    for statement in [END_LEASES, FREE] {
        sqlx::raw_sql(statement).execute(&mut *transaction).await.map_err(failed)?;
    }
    let update = sqlx::query("UPDATE patter.settings SET value = $1 WHERE name = 'claims'");
    let update = update.bind(server.claims.as_str()).persistent(false);
    update.execute(&mut *transaction).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)?;
    Ok(true)
}
