//! Measures what it costs to append to sessions in SQLite, and to wait for the disk; with the address of a PostgreSQL database,
//! what it costs there, compared with a bare `INSERT`.
//!
//! ```text
//! cargo bench -p patter --bench store
//! cargo bench -p patter --bench store -- postgres:///postgres
//! ```
#![allow(clippy::print_stdout, reason = "a benchmark")]

use patter::store::{self, Claim, NewSession, SessionId, SessionState, Store, StoreError, StoreLocation};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::error::Error;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

/// The number of appends of each measurement.
const APPENDS: usize = 400;
/// The size of an entry, in bytes.
const ENTRY: usize = 500;
/// How often each is compared.
const ROUNDS: usize = 5;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Cargo adds an option.
    match std::env::args().skip(1).find(|argument| argument.starts_with("postgres")) {
        Some(address) => measure_postgres(&address).await,
        None => measure_sqlite().await,
    }
}

async fn measure_sqlite() -> Result<(), Box<dyn Error>> {
    // In the current folder, because a temporary one may be in memory.
    let folder = tempfile::tempdir_in(".")?;
    let store = store::open(&StoreLocation::Sqlite(folder.path().join("sessions.db"))).await?;
    for (sessions, syncs) in [(1, false), (1, true), (64, false), (64, true)] {
        let each_ms = measure_appends(&store, sessions, syncs).await?;
        let sync = if syncs { "with a sync" } else { "without a sync" };
        println!("{sessions:>2} at once, {sync}: {each_ms:.3} ms per append");
    }
    Ok(())
}

/// Compares appends with inserts into a table that has nothing but a key and the entry. Both wait for the disk.
async fn measure_postgres(address: &str) -> Result<(), Box<dyn Error>> {
    let store = store::open(&StoreLocation::parse(address)?).await?;
    let mut connection = PgConnectOptions::from_str(address)?.disable_statement_logging().connect().await?;
    sqlx::raw_sql(
        "CREATE SCHEMA IF NOT EXISTS bench; DROP TABLE IF EXISTS bench.entries;
         CREATE TABLE bench.entries (session TEXT, number BIGINT, entry TEXT, PRIMARY KEY (session, number))",
    )
    .execute(&mut connection)
    .await?;
    for sessions in [1, 64] {
        let mut appends = Vec::new();
        let mut inserts = Vec::new();
        for round in 0..ROUNDS {
            inserts.push(measure_inserts(&mut connection, (sessions * ROUNDS + round) * APPENDS).await?);
            appends.push(measure_appends(&store, sessions, false).await?);
        }
        let append = median(appends);
        let insert = median(inserts);
        println!(
            "PostgreSQL, {sessions:>2} at once: {append:.3} ms per append, {insert:.3} ms per bare INSERT, ratio {:.2}",
            append / insert
        );
    }
    connection.close().await?;
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Inserts rows one after the other, and returns the milliseconds of each.
async fn measure_inserts(connection: &mut PgConnection, first: usize) -> Result<f64, Box<dyn Error>> {
    const INSERT: &str = "INSERT INTO bench.entries (session, number, entry) VALUES ('session', $1, $2)";
    let entry = "x".repeat(ENTRY);
    let start = Instant::now();
    for number in first..first + APPENDS {
        sqlx::query(INSERT).bind(i64::try_from(number)?).bind(&entry).execute(&mut *connection).await?;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / APPENDS as f64)
}

/// Appends to a number of sessions at once, and returns the milliseconds of each append.
async fn measure_appends(store: &Arc<dyn Store>, sessions: usize, syncs: bool) -> Result<f64, Box<dyn Error>> {
    let mut claims = Vec::new();
    for _ in 0..sessions {
        let id = SessionId::unique(patter::drive::now_ms());
        claims.push(store.create(NewSession::new(id, "agent", "title"), 1).await?);
    }
    let start = Instant::now();
    let each = APPENDS / sessions;
    let tasks: Vec<_> = claims.into_iter().map(|claim| tokio::spawn(append(claim, each, syncs))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(start.elapsed().as_secs_f64() * 1e3 / (each * sessions) as f64)
}

async fn append(mut claim: Box<dyn Claim>, times: usize, syncs: bool) -> Result<(), StoreError> {
    let entry = ["x".repeat(ENTRY)];
    for _ in 0..times {
        claim.append(&entry, SessionState::Running, 1).await?;
        if syncs {
            claim.sync().await?;
        }
    }
    Ok(())
}
