//! Statements without a claim: with connections of our own, or through a pooler.
//!
//! A pooler that assigns a connection per transaction keeps nothing that outlives one: neither settings nor prepared
//! statements. So everything is a transaction there, its settings too, and statements have no names.

use super::server::{Server, configure};
use crate::store::limit::CONNECT_TIMEOUT;
use crate::store::location::ClaimMode;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection, Postgres, Transaction};

/// The maximum number of connections for operations without a claim. With that of the claims, and the one that waits for
/// work, a process has at most four.
const MAX_POOL: u32 = 2;

/// The settings of a transaction: those of [`configure`] that are not about a connection.
macro_rules! local_settings {
    () => {
        "; SET LOCAL statement_timeout = '50s'; SET LOCAL lock_timeout = '10s'; \
         SET LOCAL idle_in_transaction_session_timeout = '60s'; \
         SELECT set_config('synchronous_commit', 'local', true) WHERE current_setting('synchronous_commit') = 'off'"
    };
}
/// Starts a transaction through a pooler.
const BEGIN: &str = concat!("BEGIN", local_settings!());
const BEGIN_SNAPSHOT: &str = concat!("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", local_settings!());

/// The connections for operations without a claim.
#[derive(Clone)]
pub(super) struct Pool {
    pool: PgPool,
    is_pooled: bool,
}

/// A connection for some statements.
pub(super) struct Statements {
    connection: Reserved,
    /// Whether statements are prepared for the next time, as a parameter of `persistent`.
    pub(super) named: bool,
}

enum Reserved {
    Connection(PoolConnection<Postgres>),
    Transaction(Transaction<'static, Postgres>),
}

impl Pool {
    pub(super) fn new(server: &Server) -> Self {
        let is_pooled = server.claims != ClaimMode::Lock;
        let pool = PgPoolOptions::new().max_connections(MAX_POOL).acquire_timeout(CONNECT_TIMEOUT);
        let pool = match is_pooled {
            true => pool,
            false => pool.after_connect(|connection, _| Box::pin(configure(connection))),
        };
        Self { pool: pool.connect_lazy_with(server.options.clone()), is_pooled }
    }

    /// Returns a connection for one statement, or for several that need not be consistent.
    pub(super) async fn get(&self) -> Result<Statements, sqlx::Error> {
        match self.is_pooled {
            true => self.begin().await,
            false => Ok(self.statements(Reserved::Connection(self.pool.acquire().await?))),
        }
    }

    /// Starts a transaction.
    pub(super) async fn begin(&self) -> Result<Statements, sqlx::Error> {
        let begin = if self.is_pooled { BEGIN } else { "BEGIN" };
        Ok(self.statements(Reserved::Transaction(self.pool.begin_with(begin).await?)))
    }

    /// Starts a transaction that reads as of one moment.
    pub(super) async fn snapshot(&self) -> Result<Statements, sqlx::Error> {
        const DIRECT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        let begin = if self.is_pooled { BEGIN_SNAPSHOT } else { DIRECT };
        Ok(self.statements(Reserved::Transaction(self.pool.begin_with(begin).await?)))
    }

    fn statements(&self, connection: Reserved) -> Statements {
        Statements { connection, named: !self.is_pooled }
    }
}

impl Statements {
    /// Returns the connection.
    pub(super) fn on(&mut self) -> &mut PgConnection {
        match &mut self.connection {
            Reserved::Connection(connection) => connection,
            Reserved::Transaction(transaction) => transaction,
        }
    }

    /// Makes changes permanent, if they are not yet. A transaction that is dropped instead changed nothing.
    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        match self.connection {
            Reserved::Connection(_) => Ok(()),
            Reserved::Transaction(transaction) => transaction.commit().await,
        }
    }
}

/// Starts a transaction through a pooler.
pub(super) async fn begin(connection: &mut PgConnection) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
    connection.begin_with(BEGIN).await
}
