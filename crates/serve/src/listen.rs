//! Accepts connections, within bounds.

use crate::settings::Limits;
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use patter::tool::CancellationToken;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 64 << 10;
/// How many headers a request may have.
const MAX_HEADERS: usize = 100;

/// Serves connections until `stop` is cancelled. Then no new ones are accepted, and the future returns once all requests are
/// answered, or when `drain` is done.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
    drain: impl Future<Output = ()>,
) -> io::Result<()> {
    let permits = Arc::new(Semaphore::new(limits.max_connections));
    let connections = GracefulShutdown::new();
    loop {
        let permit = Arc::clone(&permits).acquire_owned();
        let Some(Ok(permit)) = stop.run_until_cancelled(permit).await else { break };
        match stop.run_until_cancelled(listener.accept()).await {
            None => break,
            Some(Ok((stream, _))) => serve_connection(stream, router.clone(), limits, permit, &connections),
            // The limit of open files, for example: it passes.
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    drain.await;
    let _ = tokio::time::timeout(Duration::from_secs(5), connections.shutdown()).await;
    Ok(())
}

fn serve_connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    permit: OwnedSemaphorePermit,
    connections: &GracefulShutdown,
) {
    // Pieces of streams are sent as they arrive.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write_timeout));
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router));
    let connection = connections.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke off");
        }
        drop(permit);
    });
}
