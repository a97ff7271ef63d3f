//! Accepts connections of Restate, within bounds.

use crate::step::Steps;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use patter::tool::CancellationToken;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::hyper::HyperEndpoint;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many connections there are at a time. Restate needs few.
const MAX_CONNECTIONS: usize = 256;
/// How often to check that Restate is still there, and how long to wait for its answer.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long connections have to end after the last step.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How a worker serves connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenSettings {
    /// How many invocations a connection has at a time. Restate opens another one for more, which a load balancer may pass to
    /// another worker.
    pub streams_per_connection: u32,
    /// How long steps under way have to end when the worker stops.
    pub drain_timeout: Duration,
}

/// Serves connections until `stop` is cancelled. Then no new step is taken, and those under way have some time to end.
pub async fn serve(
    listener: TcpListener,
    endpoint: Endpoint,
    steps: &Steps,
    settings: ListenSettings,
    stop: &CancellationToken,
) {
    let endpoint = HyperEndpoint::new(endpoint);
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = GracefulShutdown::new();
    loop {
        let permit = Arc::clone(&permits).acquire_owned();
        let Some(Ok(permit)) = stop.run_until_cancelled(permit).await else { break };
        match stop.run_until_cancelled(listener.accept()).await {
            None => break,
            Some(Ok((stream, _))) => {
                serve_connection(stream, endpoint.clone(), settings, permit, &connections);
            }
            // The limit of open files, for example: it passes.
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(settings.drain_timeout, steps.drain()).await.is_err() {
        tracing::warn!("steps were interrupted, because the worker stops");
    }
    // Turns that wait for a step of another worker end with their connections, and continue elsewhere.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, connections.shutdown()).await;
}

fn serve_connection(
    stream: TcpStream,
    endpoint: HyperEndpoint,
    settings: ListenSettings,
    permit: OwnedSemaphorePermit,
    connections: &GracefulShutdown,
) {
    let _ = stream.set_nodelay(true);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(settings.streams_per_connection)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .serve_connection(TokioIo::new(stream), endpoint);
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke off");
        }
        drop(permit);
    });
}
