//! The Agent Client Protocol, over a stream of lines: an editor talks to the agents.
//!
//! The client is the user who started the program, so it may do everything. What it is sent is derived from the log of a
//! session; a connection only remembers which sessions are open, and which agent answers in each.

mod lines;
mod peer;
mod prompt;
mod session;

use crate::host::Host;
use crate::token::Access;
use lines::{Line, next_line};
use patter::tool::{BoxFuture, CancellationToken};
use patter_core::serve::acp::{
    ClientNotification, ClientRequest, InvalidMessage, RpcError, RpcMessage, ToolKind, initialize_result,
};
use peer::{Peer, write_lines};
use prompt::Prompt;
use serde_json::{Value as Json, json};
use session::OpenSessions;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// How many requests are under way at a time, if no fewer turns may be.
const MAX_REQUESTS: usize = 256;
/// How long a client that stopped sending may take to read what is left.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// A client that is connected.
pub(crate) struct Connection {
    host: Arc<Host>,
    access: Access,
    peer: Peer,
    sessions: OpenSessions,
    /// Whether the client shows notices.
    has_notices: AtomicBool,
    /// Cancelled when the client is gone, or the server stops.
    gone: CancellationToken,
    tasks: TaskTracker,
    permits: Arc<Semaphore>,
}

/// The result of a request.
type Response = BoxFuture<'static, Result<Json, RpcError>>;

/// Serves a client until it stops sending, or `stop` is cancelled. Its turns are then cancelled, except for those that wait for
/// an approval: they wait in the store.
pub(crate) async fn serve(
    host: Arc<Host>,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: &CancellationToken,
) -> io::Result<()> {
    let gone = stop.child_token();
    let closed = CancellationToken::new();
    let (peer, lines) = Peer::new(closed.clone());
    let writing = tokio::spawn(write_lines(lines, writer, gone.clone(), closed.clone()));
    let connection = Arc::new(Connection {
        host: Arc::clone(&host),
        access: Access::default(),
        peer,
        sessions: OpenSessions::default(),
        has_notices: AtomicBool::new(false),
        gone: gone.clone(),
        tasks: TaskTracker::new(),
        permits: Arc::new(Semaphore::new(host.settings.limits.max_turns.min(MAX_REQUESTS))),
    });
    let read = gone.run_until_cancelled(connection.read(BufReader::new(reader))).await;
    gone.cancel();
    connection.tasks.close();
    {
        let ending = async { tokio::join!(connection.tasks.wait(), host.drain()) };
        tokio::pin!(ending);
        if tokio::time::timeout(FLUSH_TIME, &mut ending).await.is_err() {
            closed.cancel();
            ending.await;
        }
    }
    // The last sender: the writer ends once everything is written.
    drop(connection);
    let _ = tokio::time::timeout(FLUSH_TIME, writing).await;
    closed.cancel();
    read.unwrap_or(Ok(()))
}

impl Connection {
    async fn read(self: &Arc<Self>, mut reader: BufReader<impl AsyncRead + Unpin>) -> io::Result<()> {
        let max = self.host.settings.limits.max_body;
        while let Some(line) = next_line(&mut reader, max).await? {
            let message = match line {
                Line::Text(line) if line.trim_ascii().is_empty() => continue,
                Line::Text(line) => RpcMessage::parse(&line),
                Line::TooLong => Err(InvalidMessage::too_long(max)),
            };
            match message {
                Ok(RpcMessage::Request { id, method, params }) => self.request(id, &method, &params).await,
                Ok(RpcMessage::Notification { method, params }) => self.notification(&method, &params),
                Ok(RpcMessage::Response { id, result }) => self.peer.receive(&id, result),
                Err(InvalidMessage { id, error }) => self.peer.respond(&id, &Err(error)).await,
            }
        }
        Ok(())
    }

    /// Handles a request, while others are read.
    async fn request(self: &Arc<Self>, id: Json, method: &str, params: &Json) {
        let request = match ClientRequest::parse(method, params) {
            Ok(request) => request,
            Err(error) => return self.peer.respond(&id, &Err(error)).await,
        };
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            let error = RpcError::new(RpcError::INTERNAL, "too many requests are under way");
            return self.peer.respond(&id, &Err(error)).await;
        };
        let response = self.handle(&id, request);
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let result = response.await;
            connection.peer.respond(&id, &result).await;
            drop(permit);
        });
    }

    /// Starts to handle a request. What later messages depend on has happened when this returns.
    fn handle(self: &Arc<Self>, id: &Json, request: ClientRequest) -> Response {
        let this = Arc::clone(self);
        match request {
            ClientRequest::Initialize { notices } => {
                self.has_notices.store(notices, Ordering::Relaxed);
                ready(Ok(initialize_result(env!("CARGO_PKG_VERSION"))))
            }
            ClientRequest::Authenticate => {
                ready(Err(RpcError::invalid_params("`methodId`: there are no authentication methods")))
            }
            ClientRequest::NewSession(setup) => {
                let opened = self.new_session();
                Box::pin(async move {
                    let (session, mut state) = opened?;
                    this.report_servers(&session, setup).await;
                    if let Some(state) = state.as_object_mut() {
                        state.insert("sessionId".to_owned(), session.as_str().into());
                    }
                    Ok(state)
                })
            }
            ClientRequest::LoadSession { session, setup } => {
                Box::pin(async move { this.load_session(&session, setup).await })
            }
            ClientRequest::ResumeSession { session, setup } => {
                Box::pin(async move { this.resume_session(&session, setup).await })
            }
            ClientRequest::ListSessions { cwd, offset } => {
                Box::pin(async move { this.list_sessions(cwd, offset).await })
            }
            ClientRequest::DeleteSession { session } => Box::pin(async move { this.delete_session(&session).await }),
            ClientRequest::CloseSession { session } => Box::pin(async move { this.close_session(&session).await }),
            ClientRequest::SetMode { session, agent } => {
                let chosen = self.choose_agent(&session, &agent);
                Box::pin(async move { this.mode_chosen(&session, &chosen?).await })
            }
            ClientRequest::SetAgentOption { session, agent } => {
                let chosen = self.choose_agent(&session, &agent);
                Box::pin(async move { this.option_chosen(&session, &chosen?).await })
            }
            ClientRequest::Prompt { session, input, contents } => match Prompt::begin(self, id, &session) {
                Ok(prompt) => Box::pin(async move { prompt.run(input, contents).await }),
                Err(error) => ready(Err(error)),
            },
        }
    }

    /// Handles a notification. Unknown ones are ignored.
    fn notification(&self, method: &str, params: &Json) {
        match ClientNotification::parse(method, params) {
            Some(ClientNotification::Cancel { session }) => self.sessions.cancel(&session),
            Some(ClientNotification::CancelRequest { id }) => self.sessions.cancel_request(&id),
            None => tracing::debug!(method, "ignored a notification"),
        }
    }

    /// Returns the kind of a tool of any agent of the project, whether it is served or only called by others.
    fn tool_kind(&self, agent: &str, tool: &str) -> ToolKind {
        let served = self.host.compile(agent).ok();
        let compiled = served.or_else(|| self.host.project.driver().compile_named(agent)?.ok());
        compiled.map_or(ToolKind::Other, |compiled| ToolKind::of(&compiled, tool))
    }
}

fn ready(result: Result<Json, RpcError>) -> Response {
    Box::pin(std::future::ready(result))
}

/// Returns the result of a request that has none.
fn done() -> Result<Json, RpcError> {
    Ok(json!({}))
}
