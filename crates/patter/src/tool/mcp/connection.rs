//! A connection to an MCP server, from the handshake to the end.

use super::auth::{AuthorizedClient, Credentials, Denial};
use super::body::Lines;
use super::error::{McpError, error_chain};
use super::failures::TransportFailures;
use super::http::SessionClient;
use super::listener::ServerListener;
use super::process::{ServerProcess, StderrTail};
use super::reconnect::{EventStreams, retry_policy};
use super::settings::{HttpProtocol, HttpTransport, ServerSettings, Transport};
use super::sse::SseTransport;
use crate::http::host_and_port;
use crate::tool::{BoxFuture, ToolContext};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use rmcp::model::{CancelledNotificationParam, ProgressToken, RequestId};
use rmcp::service::{ClientInitializeError, RunningService, RunningServiceCancellationToken};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{Peer, RoleClient, serve_client};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};

/// The time limit for closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The time limit for sending a notification.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a server.
pub(super) struct Connection {
    handle: ConnectionHandle,
    started: Instant,
    /// Resolves when the connection ends; nothing once it did.
    ended: Option<BoxFuture<'static, ()>>,
    cancel: RunningServiceCancellationToken,
    process: Option<ServerProcess>,
}

/// The parts of a connection that a caller needs.
#[derive(Clone)]
pub(super) struct ConnectionHandle {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: ServerListener,
    pub(super) failures: TransportFailures,
    /// The tokens that requests carry.
    pub(super) credentials: Option<Arc<Credentials>>,
    /// The number of the connection to the server.
    pub(super) generation: u64,
    stderr: Option<StderrTail>,
}

impl Connection {
    /// Connects to a server, and returns when it is ready.
    pub(super) async fn open(
        settings: &ServerSettings,
        client: &reqwest::Client,
        generation: u64,
        deadline: Instant,
    ) -> Result<Self, McpError> {
        let listener = ServerListener::new(settings);
        let failures = TransportFailures::default();
        let credentials = settings.credentials();
        let name = &settings.name;
        let (result, process) = match &settings.transport {
            Transport::Process { command, arguments, environment, folder, sandbox } => {
                if let Err(reason) = sandbox.policy.check(&sandbox.sandbox) {
                    return Err(McpError::cannot_start(name, command, &io::Error::other(reason)));
                }
                let folder = folder.as_deref();
                let (process, stdout, stdin) =
                    ServerProcess::start(command, arguments, environment, folder, sandbox, &settings.redactor)
                        .await
                        .map_err(|error| McpError::cannot_start(name, command, &error))?;
                let stdout = Lines::new(stdout, &failures);
                (timeout_at(deadline, serve_client(listener.clone(), (stdout, stdin))).await, Some(process))
            }
            Transport::Http(transport) => {
                let connect = connect(transport, client, &listener, &failures, credentials.as_ref());
                (timeout_at(deadline, connect).await, None)
            }
        };
        match result {
            Ok(Ok(running)) => Ok(Self::new(running, process, listener, failures, credentials, generation)),
            failed => {
                let exit = match process {
                    Some(process) => process.kill().await,
                    None => String::new(),
                };
                Err(match failed {
                    Ok(Err(error)) => initialize_error(settings, &error, &failures, credentials.as_deref(), &exit),
                    _ => McpError::slow_start(name, settings.start_timeout, exit),
                })
            }
        }
    }

    fn new(
        running: RunningService<RoleClient, ServerListener>,
        process: Option<ServerProcess>,
        listener: ServerListener,
        failures: TransportFailures,
        credentials: Option<Arc<Credentials>>,
        generation: u64,
    ) -> Self {
        let stderr = process.as_ref().map(|process| process.stderr().clone());
        let peer = running.peer().clone();
        let handle = ConnectionHandle { peer, listener, failures, credentials, generation, stderr };
        let cancel = running.cancellation_token();
        let ended: BoxFuture<'static, ()> = Box::pin(async move {
            let _ = running.waiting().await;
        });
        Self { handle, started: Instant::now(), ended: Some(ended), cancel, process }
    }

    /// Returns a handle, even if the connection may have ended.
    pub(super) fn handle(&self) -> ConnectionHandle {
        self.handle.clone()
    }

    /// Returns whether the connection has not ended.
    pub(super) fn is_open(&self) -> bool {
        !self.handle.peer.is_transport_closed()
    }

    pub(super) fn generation(&self) -> u64 {
        self.handle.generation
    }

    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits for the end of the connection.
    pub(super) async fn wait(&mut self) {
        if let Some(ended) = &mut self.ended {
            ended.await;
            self.ended = None;
        }
    }

    /// Ends a broken connection.
    pub(super) async fn discard(self) {
        if let Some(process) = self.disconnect().await {
            process.kill().await;
        }
    }

    /// Ends a working connection.
    pub(super) async fn close(self) {
        if let Some(process) = self.disconnect().await {
            process.terminate().await;
        }
    }

    async fn disconnect(self) -> Option<ServerProcess> {
        self.cancel.cancel();
        if let Some(ended) = self.ended {
            let _ = timeout(CLOSE_TIMEOUT, ended).await;
        }
        self.process
    }
}

impl ConnectionHandle {
    /// Adds the end of the server's stderr to a detail for the operator.
    pub(super) fn with_stderr(&self, mut detail: String) -> String {
        if let Some(stderr) = &self.stderr {
            stderr.append_to(&mut detail);
        }
        detail
    }
}

/// Connects to a server over HTTP. A server that rejects the first message may know only the older transport, unless the
/// settings say which one it knows.
async fn connect(
    transport: &HttpTransport,
    client: &reqwest::Client,
    listener: &ServerListener,
    failures: &TransportFailures,
    credentials: Option<&Arc<Credentials>>,
) -> Result<RunningService<RoleClient, ServerListener>, ClientInitializeError> {
    let HttpTransport { url, headers, protocol } = transport;
    let rejected = if *protocol == Some(HttpProtocol::Sse) {
        None
    } else {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
            .custom_headers(headers.iter().cloned().collect());
        config.retry_config = retry_policy();
        let client = SessionClient {
            client: client.clone(),
            listener: listener.clone(),
            failures: failures.clone(),
            streams: EventStreams::default(),
        };
        let client = AuthorizedClient { client, credentials: credentials.cloned() };
        let transport = StreamableHttpClientTransport::with_client(client, config);
        match serve_client(listener.clone(), transport).await {
            Err(error) if protocol.is_none() && failures.is_rejected() => Some(error),
            result => return result,
        }
    };
    let mut headers: HeaderMap = headers.iter().cloned().collect();
    let token = match credentials {
        Some(credentials) => credentials.header().await,
        None => None,
    };
    let has_token = token.is_some();
    headers.extend(token.map(|token| (AUTHORIZATION, token)));
    let opened = SseTransport::open(client, url, headers, failures).await;
    if let (Err(_), Some(401), Some(credentials)) = (&opened, failures.refusal(), credentials) {
        credentials.deny(if has_token { Denial::Rejected } else { Denial::LoggedOut });
    }
    match opened {
        Ok(transport) => serve_client(listener.clone(), transport).await,
        Err(error) => Err(rejected
            .unwrap_or_else(|| ClientInitializeError::transport::<SseTransport>(error, "open the stream of events"))),
    }
}

fn initialize_error(
    settings: &ServerSettings,
    error: &ClientInitializeError,
    failures: &TransportFailures,
    credentials: Option<&Credentials>,
    exit: &str,
) -> McpError {
    let detail = error_chain(error);
    let detail = if exit.is_empty() { detail } else { format!("{detail}; {exit}") };
    let name = &settings.name;
    if let Some(denial) = credentials.and_then(Credentials::take_denial) {
        return McpError::denied(name, &denial);
    }
    if let Some(status) = failures.refusal() {
        return McpError::unauthorized(name, status, detail);
    }
    match (error, &settings.transport) {
        (ClientInitializeError::JsonRpcError(error), _) => McpError::refused_start(name, &error.message, detail),
        (_, Transport::Process { .. }) => {
            McpError::early_exit(name, if exit.is_empty() { detail } else { exit.to_owned() })
        }
        (_, Transport::Http(HttpTransport { url, .. })) => {
            McpError::unreachable(name, &host_and_port(url), failures.take_cause(), detail)
        }
    }
}

/// A request that waits for its response. If it is dropped before, it is cancelled at the server.
pub(super) struct PendingRequest {
    peer: Peer<RoleClient>,
    listener: ServerListener,
    id: RequestId,
    token: ProgressToken,
    is_complete: bool,
    runtime: Handle,
}

impl PendingRequest {
    pub(super) fn new(
        connection: &ConnectionHandle,
        id: RequestId,
        token: ProgressToken,
        context: &ToolContext,
    ) -> Self {
        connection.listener.subscribe(token.clone(), context);
        Self {
            peer: connection.peer.clone(),
            listener: connection.listener.clone(),
            id,
            token,
            is_complete: false,
            runtime: Handle::current(),
        }
    }

    /// Notes that the response arrived.
    pub(super) fn complete(mut self) {
        self.is_complete = true;
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.listener.unsubscribe(&self.token);
        if !self.is_complete && !self.peer.is_transport_closed() {
            let peer = self.peer.clone();
            let reason = Some("the result is no longer needed".to_owned());
            let cancelled = CancelledNotificationParam::new(Some(self.id.clone()), reason);
            self.runtime.spawn(async move {
                let _ = timeout(NOTIFY_TIMEOUT, peer.notify_cancelled(cancelled)).await;
            });
        }
    }
}
