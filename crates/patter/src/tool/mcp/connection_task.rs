//! The task that owns the connection to an MCP server.

use super::connection::{Connection, ConnectionHandle};
use super::error::{McpError, Reconnect};
use super::settings::ServerSettings;
use crate::http::jittered;
use crate::tool::process::REGISTRY;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// The number of failures in a row after which a server is left alone for a while.
const MAX_FAILURES: u32 = 4;
/// The time for which a failing server is left alone.
const QUIET_TIME: Duration = Duration::from_secs(10);
/// The age from which a connection counts as working.
const STABLE_AGE: Duration = Duration::from_secs(10);
/// The longest pause before the first retry. It doubles with each retry.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// A message to the task.
pub(super) enum TaskMessage {
    /// Return the connection, or connect.
    Connect(oneshot::Sender<Result<ConnectionHandle, McpError>>),
    /// The connection of this generation is broken.
    Broken(u64),
}

/// Owns the connection to a server: connects on demand, and reconnects after failures.
pub(super) struct ConnectionTask {
    settings: ServerSettings,
    client: reqwest::Client,
    connection: Option<Connection>,
    generation: u64,
    /// The number of failures in a row: attempts, and connections that did not last.
    failures: u32,
    /// The last failure, and its time.
    last_failure: Option<(McpError, Instant)>,
}

impl ConnectionTask {
    pub(super) fn new(settings: ServerSettings, client: reqwest::Client) -> Self {
        Self { settings, client, connection: None, generation: 0, failures: 0, last_failure: None }
    }

    /// Handles messages until all senders are gone, or all servers are stopped.
    pub(super) async fn run(mut self, mut messages: mpsc::Receiver<TaskMessage>) {
        let stop = REGISTRY.stop_servers();
        // A session over HTTP is deleted before the program ends.
        let _registered = REGISTRY.register_connection();
        loop {
            let next = async {
                match &mut self.connection {
                    None => messages.recv().await,
                    Some(connection) => tokio::select! {
                        message = messages.recv() => message,
                        () = connection.wait() => Some(TaskMessage::Broken(connection.generation())),
                    },
                }
            };
            match stop.run_until_cancelled(next).await.flatten() {
                None => break,
                Some(TaskMessage::Connect(reply)) if reply.is_closed() => {}
                Some(TaskMessage::Connect(reply)) => match stop.run_until_cancelled(self.connect()).await {
                    Some(result) => drop(reply.send(result)),
                    None => break,
                },
                Some(TaskMessage::Broken(generation)) => {
                    if let Some(broken) = self.connection.take_if(|current| current.generation() == generation) {
                        self.discard(broken).await;
                    }
                }
            }
        }
        if let Some(connection) = self.connection {
            tracing::debug!(server = &*self.settings.name, "stopping the MCP server");
            connection.close().await;
        }
    }

    /// Returns the connection, or connects. All attempts together take at most the time limit for a start.
    async fn connect(&mut self) -> Result<ConnectionHandle, McpError> {
        if let Some(connection) = self.connection.as_ref().filter(|connection| connection.is_open()) {
            return Ok(connection.handle());
        }
        if let Some(broken) = self.connection.take() {
            self.discard(broken).await;
        }
        if let Some((error, _)) = self.last_failure.as_ref().filter(|(_, when)| self.is_quiet(*when)) {
            return Err(error.clone());
        }
        // After the quiet time there is a single attempt.
        self.failures = self.failures.min(MAX_FAILURES - 1);
        let start = Instant::now();
        let deadline = start + self.settings.start_timeout;
        let server = &*self.settings.name;
        loop {
            if self.failures > 0 {
                let pause = pause(self.failures);
                tracing::debug!(server, failures = self.failures, ?pause, "restarting the MCP server");
                sleep(pause).await;
            }
            self.generation += 1;
            match Connection::open(&self.settings, &self.client, self.generation, deadline).await {
                // If it is broken already, its user will notice.
                Ok(connection) => {
                    tracing::debug!(server, connection = self.generation, duration = ?start.elapsed(), "MCP server ready");
                    return Ok(self.connection.insert(connection).handle());
                }
                Err(error) => {
                    let failure = error.failure(&self.settings.redactor);
                    tracing::debug!(server, error = failure.message(), detail = failure.detail(), "MCP server failed");
                    self.failures = if error.retry == Reconnect::Soon { self.failures + 1 } else { MAX_FAILURES };
                    self.last_failure = Some((error.clone(), Instant::now()));
                    if self.failures >= MAX_FAILURES || Instant::now() >= deadline {
                        return Err(error);
                    }
                }
            }
        }
    }

    fn is_quiet(&self, since: Instant) -> bool {
        self.failures >= MAX_FAILURES && since.elapsed() < QUIET_TIME
    }

    /// Ends a broken connection.
    async fn discard(&mut self, connection: Connection) {
        let age = connection.age();
        tracing::debug!(server = &*self.settings.name, ?age, "lost the connection to the MCP server");
        if age >= STABLE_AGE {
            self.failures = 0;
        } else {
            self.failures += 1;
            self.last_failure = Some((McpError::unstable(&self.settings.name), Instant::now()));
        }
        connection.discard().await;
    }
}

/// Returns the pause before an attempt after some failures.
fn pause(failures: u32) -> Duration {
    jittered(FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(6)))
}
