//! The tables of the database: how they are created, and brought up to date.

use super::locks::backend_id;
use super::mode::check_mode;
use super::server::Server;
use crate::store::error::StoreError;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

/// The version of the tables.
const VERSION: i32 = 4;
/// The advisory lock held while the tables are created: "Patr".
const SETUP_LOCK: i64 = 0x5061_7472;

/// What leads from a version to the next one. The first creates the tables.
const STEPS: [&str; VERSION as usize] = [SESSIONS, WORK, ATTACHMENTS, LEASES];

const SESSIONS: &str = r#"
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

const WORK: &str = r#"
    CREATE TABLE patter.workers (
        id TEXT COLLATE "C" PRIMARY KEY,
        about TEXT NOT NULL,
        started_ms BIGINT NOT NULL,
        seen_ms BIGINT NOT NULL
    );
    CREATE TABLE patter.work (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key TEXT COLLATE "C" NOT NULL UNIQUE,
        session TEXT COLLATE "C" NOT NULL,
        agent TEXT NOT NULL,
        tenant TEXT NOT NULL,
        task TEXT NOT NULL,
        state TEXT NOT NULL,
        due_ms BIGINT NOT NULL,
        created_ms BIGINT NOT NULL,
        changed_ms BIGINT NOT NULL,
        attempts BIGINT NOT NULL,
        worker TEXT COLLATE "C",
        reason TEXT
    );
    CREATE INDEX work_by_session ON patter.work (session);
    CREATE INDEX work_by_due ON patter.work (state, due_ms);
    CREATE INDEX work_by_worker ON patter.work (worker) WHERE worker IS NOT NULL;
    UPDATE patter.version SET version = 2;
"#;

const ATTACHMENTS: &str = r#"
    CREATE TABLE patter.attachments (
        session TEXT COLLATE "C" NOT NULL REFERENCES patter.sessions (id) ON DELETE CASCADE,
        sha256 TEXT COLLATE "C" NOT NULL,
        content BYTEA NOT NULL,
        PRIMARY KEY (session, sha256)
    );
    UPDATE patter.version SET version = 3;
"#;

/// Sessions of older databases are claimed by locks.
const LEASES: &str = r#"
    ALTER TABLE patter.sessions ADD COLUMN owner TEXT COLLATE "C", ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
    CREATE TABLE patter.leases (owner TEXT COLLATE "C" PRIMARY KEY, until_ms BIGINT NOT NULL);
    CREATE TABLE patter.settings (name TEXT COLLATE "C" PRIMARY KEY, value TEXT NOT NULL);
    INSERT INTO patter.settings VALUES ('claims', 'lock');
    CREATE TABLE patter.provider_limits (
        provider TEXT COLLATE "C" PRIMARY KEY,
        until_ms BIGINT NOT NULL,
        reason TEXT NOT NULL
    );
    UPDATE patter.version SET version = 4;
"#;

/// Connects, creates the tables if they are missing, brings them up to date, and checks that they are used as the address
/// says. Returns the connection with its id on the server.
pub(super) async fn prepare(server: &Server) -> Result<(PgConnection, i32), StoreError> {
    let mut connection = server.connect().await?;
    prepare_tables(server, &mut connection).await?;
    check_mode(server, &mut connection).await?;
    let connection_id = backend_id(&mut connection).await.map_err(|error| server.failed(&error))?;
    Ok((connection, connection_id))
}

/// Creates the tables if they are missing, and brings them up to date. Statements are not prepared, so that a pooler may be in
/// between.
pub(super) async fn prepare_tables(server: &Server, connection: &mut PgConnection) -> Result<(), StoreError> {
    let failed = |error: sqlx::Error| server.failed(&error);
    if find_version(server, connection).await? == VERSION {
        return Ok(());
    }
    let mut transaction = connection.begin().await.map_err(failed)?;
    let lock = AssertSqlSafe(format!("SELECT pg_advisory_xact_lock({SETUP_LOCK})::text"));
    sqlx::raw_sql(lock).execute(&mut *transaction).await.map_err(failed)?;
    let version = find_version(server, &mut transaction).await?;
    if version == 0 {
        // A user who may not create schemas can be given one.
        let schema = sqlx::raw_sql("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'patter'");
        if schema.fetch_optional(&mut *transaction).await.map_err(failed)?.is_none() {
            sqlx::raw_sql("CREATE SCHEMA patter").execute(&mut *transaction).await.map_err(failed)?;
        }
    }
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or_default()) {
        sqlx::raw_sql(*step).execute(&mut *transaction).await.map_err(failed)?;
    }
    if version == 0 {
        // Whoever creates the tables decides.
        let mode = server.claims.as_str();
        let update = AssertSqlSafe(format!("UPDATE patter.settings SET value = '{mode}' WHERE name = 'claims'"));
        sqlx::raw_sql(update).execute(&mut *transaction).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Returns the version of the tables: 0 if there are none.
async fn find_version(server: &Server, connection: &mut PgConnection) -> Result<i32, StoreError> {
    let failed = |error: sqlx::Error| server.failed(&error);
    // `to_regclass` may not see tables that another process has just created.
    const HAS_TABLES: &str = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'patter' AND tablename = 'version'";
    if sqlx::raw_sql(HAS_TABLES).fetch_optional(&mut *connection).await.map_err(failed)?.is_none() {
        return Ok(0);
    }
    let version = sqlx::raw_sql("SELECT max(version) FROM patter.version");
    let version = version.fetch_one(&mut *connection).await.and_then(|row| row.try_get(0)).map_err(failed)?;
    match version {
        version @ 1..=VERSION => Ok(version),
        _ => Err(StoreError::Unusable {
            message: format!("the session store `{}` was created by a newer version of Patter", server.address),
            hint: Some("update Patter, or use another database".to_owned()),
        }),
    }
}
