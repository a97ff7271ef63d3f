//! The tables of the database: how they are created, and brought up to date.

use super::claims::backend_id;
use super::server::Server;
use crate::store::error::StoreError;
use sqlx::{Connection, PgConnection};

/// The version of the tables.
const VERSION: i32 = 3;
/// The advisory lock held while the tables are created: "Patr".
const SETUP_LOCK: i64 = 0x5061_7472;

/// What leads from a version to the next one. The first creates the tables.
const STEPS: [&str; VERSION as usize] = [SESSIONS, WORK, ATTACHMENTS];

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

/// Connects, creates the tables if they are missing, and brings them up to date. Returns the connection with its id on the
/// server.
pub(super) async fn prepare(server: &Server) -> Result<(PgConnection, i32), StoreError> {
    let failed = |error: sqlx::Error| server.failed(&error);
    let mut connection = server.connect().await?;
    let connection_id = backend_id(&mut connection).await.map_err(failed)?;
    if find_version(server, &mut connection).await? == VERSION {
        return Ok((connection, connection_id));
    }
    let mut transaction = connection.begin().await.map_err(failed)?;
    let lock = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(SETUP_LOCK);
    lock.execute(&mut *transaction).await.map_err(failed)?;
    let version = find_version(server, &mut transaction).await?;
    if version == 0 {
        // A user who may not create schemas can be given one.
        let schema = sqlx::query("SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'patter'");
        if schema.fetch_optional(&mut *transaction).await.map_err(failed)?.is_none() {
            sqlx::query("CREATE SCHEMA patter").execute(&mut *transaction).await.map_err(failed)?;
        }
    }
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or_default()) {
        sqlx::raw_sql(*step).execute(&mut *transaction).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)?;
    Ok((connection, connection_id))
}

/// Returns the version of the tables: 0 if there are none.
async fn find_version(server: &Server, connection: &mut PgConnection) -> Result<i32, StoreError> {
    let failed = |error: sqlx::Error| server.failed(&error);
    // `to_regclass` may not see tables that another process has just created.
    const HAS_TABLES: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables \
                        WHERE schemaname = 'patter' AND tablename = 'version')";
    let has_tables = sqlx::query_scalar::<_, bool>(HAS_TABLES);
    if !has_tables.fetch_one(&mut *connection).await.map_err(failed)? {
        return Ok(0);
    }
    let version = sqlx::query_scalar::<_, i32>("SELECT max(version) FROM patter.version");
    match version.fetch_one(&mut *connection).await.map_err(failed)? {
        version @ 1..=VERSION => Ok(version),
        _ => Err(StoreError::Unusable {
            message: format!("the session store `{}` was created by a newer version of Patter", server.address),
            hint: Some("update Patter, or use another database".to_owned()),
        }),
    }
}
