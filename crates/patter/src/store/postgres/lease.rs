//! The lease of a process: a row with a time, which all its claims share. As long as it is renewed, nobody else may take the
//! sessions that it owns.

use super::server::Server;
use crate::store::row::to_i64;
use patter_core::text::milliseconds;
use sqlx::PgConnection;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

const RENEW: &str = "
    UPDATE patter.leases SET until_ms = (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $2 WHERE owner = $1
    RETURNING owner";

/// A lease, as long as this process may rely on it.
#[derive(Debug)]
pub(super) struct Lease {
    /// Its name in the database: what others call this process, and what makes it unique.
    pub(super) owner: String,
    /// Cancelled a while before others may take the sessions.
    pub(super) lost: CancellationToken,
}

impl Lease {
    pub(super) fn is_lost(&self) -> bool {
        self.lost.is_cancelled()
    }
}

/// What proves that a session is claimed: it has the same epoch in the database until somebody else claims it.
#[derive(Debug)]
pub(super) struct Fence(Mutex<(Arc<Lease>, i64)>);

impl Fence {
    pub(super) fn new(lease: Arc<Lease>, epoch: i64) -> Self {
        Self(Mutex::new((lease, epoch)))
    }

    pub(super) fn lease(&self) -> Arc<Lease> {
        Arc::clone(&self.current().0)
    }

    pub(super) fn epoch(&self) -> i64 {
        self.current().1
    }

    /// Sets what a session was claimed with again that nobody else had claimed.
    pub(super) fn renew(&self, lease: Arc<Lease>, epoch: i64) {
        *self.current() = (lease, epoch);
    }

    fn current(&self) -> MutexGuard<'_, (Arc<Lease>, i64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Renews a lease until this is dropped.
pub(super) struct Renewal(JoinHandle<()>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Renewal {
    /// Renews a lease that was registered at a moment, with a connection of its own: statements of others may take long.
    pub(super) fn start(server: Arc<Server>, lease: Arc<Lease>, length: Duration, since: Instant) -> Self {
        Self(tokio::spawn(async move {
            let lost = lease.lost.clone();
            keep(&server, &lease.owner, length, since).await;
            tracing::warn!("the claims on sessions could not be renewed in time");
            lost.cancel();
        }))
    }
}

/// Renews a lease, three times in its length. Returns when it is lost, or soon will be.
async fn keep(server: &Server, owner: &str, length: Duration, mut since: Instant) {
    let mut connection = None;
    let mut pause = length / 3;
    loop {
        sleep(pause).await;
        let sent = Instant::now();
        // What runs needs a moment to stop.
        let deadline = since + length * 5 / 6;
        match timeout_at(deadline, renew(server, &mut connection, owner, length)).await {
            Ok(Ok(true)) => {
                since = sent;
                pause = length / 3;
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot renew the claims on sessions");
                connection = None;
                pause = length / 30;
            }
            // Somebody found it expired; or there is no time left.
            Ok(Ok(false)) | Err(_) => return,
        }
    }
}

/// Renews a lease. Returns whether it existed.
async fn renew(
    server: &Server,
    connection: &mut Option<PgConnection>,
    owner: &str,
    length: Duration,
) -> Result<bool, sqlx::Error> {
    let open = match connection.take() {
        Some(open) => open,
        None => server.reconnect().await?,
    };
    let open = connection.insert(open);
    let mut transaction = super::pool::begin(open).await?;
    let query = sqlx::query(RENEW).bind(owner).bind(to_i64(milliseconds(length))).persistent(false);
    let renewed = query.fetch_optional(&mut *transaction).await?.is_some();
    transaction.commit().await?;
    Ok(renewed)
}
