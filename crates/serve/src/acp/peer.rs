//! The client: what is sent to it, and its responses to requests of the agent.

use patter::tool::CancellationToken;
use patter_core::serve::acp::{RpcError, notification_line, request_line, response_line};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

/// How many messages wait for a slow client. After that, runs wait for it.
const MAX_QUEUE: usize = 64;

type Answers = HashMap<u64, oneshot::Sender<Result<Json, RpcError>>>;

/// The client.
pub(super) struct Peer {
    queue: mpsc::Sender<String>,
    /// Cancelled when nothing can be sent any more.
    closed: CancellationToken,
    answers: Mutex<Answers>,
    next: AtomicU64,
}

/// A request whose response is not needed any more once this is dropped.
struct OpenRequest<'p> {
    peer: &'p Peer,
    id: u64,
}

impl Peer {
    /// Returns a client, and the lines to be written for it.
    pub(super) fn new(closed: CancellationToken) -> (Self, mpsc::Receiver<String>) {
        let (queue, lines) = mpsc::channel(MAX_QUEUE);
        (Self { queue, closed, answers: Mutex::default(), next: AtomicU64::new(0) }, lines)
    }

    /// Sends a line. Waits while too many are unread.
    pub(super) async fn send(&self, line: String) {
        let _ = self.closed.run_until_cancelled(self.queue.send(line)).await;
    }

    /// Sends an update of a session.
    pub(super) async fn update(&self, session: &str, update: &Json) {
        self.send(notification_line("session/update", &json!({"sessionId": session, "update": update}))).await;
    }

    /// Sends the response to a request of the client.
    pub(super) async fn respond(&self, id: &Json, result: &Result<Json, RpcError>) {
        self.send(response_line(id, result)).await;
    }

    /// Sends a request, and waits for its response. Never returns once the client is gone.
    pub(super) async fn request(&self, method: &str, params: &Json) -> Result<Json, RpcError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        self.answers().insert(id, answer);
        let _open = OpenRequest { peer: self, id };
        self.send(request_line(id, method, params)).await;
        match answered.await {
            Ok(result) => result,
            Err(_) => std::future::pending().await,
        }
    }

    /// Passes on a response of the client. One that nobody waits for is ignored.
    pub(super) fn receive(&self, id: &Json, result: Result<Json, RpcError>) {
        let answer = id.as_u64().and_then(|id| self.answers().remove(&id));
        if let Some(answer) = answer {
            let _ = answer.send(result);
        }
    }

    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        self.peer.answers().remove(&self.id);
    }
}

/// Writes lines until there are no more. A client that does not read is gone.
pub(super) async fn write_lines(
    mut lines: mpsc::Receiver<String>,
    mut writer: impl AsyncWrite + Unpin,
    gone: CancellationToken,
    closed: CancellationToken,
) {
    let writing = async {
        while let Some(line) = lines.recv().await {
            writer.write_all(line.as_bytes()).await?;
            // Lines that wait already are flushed together.
            while let Ok(line) = lines.try_recv() {
                writer.write_all(line.as_bytes()).await?;
            }
            writer.flush().await?;
        }
        std::io::Result::Ok(())
    };
    if let Some(Err(error)) = closed.run_until_cancelled(writing).await {
        tracing::debug!(%error, "the client is gone");
    }
    gone.cancel();
    closed.cancel();
}
