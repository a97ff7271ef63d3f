//! Measures what it costs to append to sessions in SQLite, and to wait for the disk.
//!
//! ```text
//! cargo bench -p patter --bench store
//! ```
#![allow(clippy::print_stdout, reason = "a benchmark")]

use patter::store::{self, Claim, NewSession, SessionId, SessionState, StoreError, StoreLocation};
use std::error::Error;
use std::time::Instant;

/// The number of appends of each measurement.
const APPENDS: usize = 400;
/// The size of an entry, in bytes.
const ENTRY: usize = 500;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // In the current folder, because a temporary one may be in memory.
    let folder = tempfile::tempdir_in(".")?;
    let store = store::open(&StoreLocation::Sqlite(folder.path().join("sessions.db"))).await?;
    for (sessions, syncs) in [(1, false), (1, true), (64, false), (64, true)] {
        let mut claims = Vec::new();
        for number in 0..sessions {
            let id = SessionId::parse(&format!("s{sessions}-{number}-{syncs}"))?;
            claims.push(store.create(NewSession::new(id, "agent", "title"), 1).await?);
        }
        let start = Instant::now();
        let each = APPENDS / sessions;
        let tasks: Vec<_> = claims.into_iter().map(|claim| tokio::spawn(append(claim, each, syncs))).collect();
        for task in tasks {
            task.await??;
        }
        let each_ms = start.elapsed().as_secs_f64() * 1e3 / (each * sessions) as f64;
        let sync = if syncs { "with a sync" } else { "without a sync" };
        println!("{sessions:>2} at once, {sync}: {each_ms:.3} ms per append");
    }
    Ok(())
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
