//! One connection to an MCP server, from the handshake to the end.

use super::http::{Refusal, Sessions};
use super::process::{Process, Tail};
use super::settings::{Reach, Settings};
use super::trouble::{Trouble, causes};
use crate::tool::secrets::Secrets;
use crate::tool::{BoxFuture, ToolContext};
use rmcp::model::{
    CancelledNotificationParam, ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam,
    ProgressToken, RequestId,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, RequestContext, RunningService, RunningServiceCancellationToken,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, Peer, RoleClient, serve_client};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout, timeout_at};

/// How long the end of a connection may take.
const CLOSING: Duration = Duration::from_secs(3);
/// How long a notification may take to be sent.
const NOTIFYING: Duration = Duration::from_secs(5);
/// How much of a message of progress is passed on.
const LONGEST_PROGRESS: usize = 500;

/// A connection to a server.
pub(super) struct Connection {
    lease: Lease,
    started: Instant,
    /// Resolves when the connection is at its end; none if it did.
    ended: Option<BoxFuture<'static, ()>>,
    cancel: RunningServiceCancellationToken,
    process: Option<Process>,
}

/// What a caller needs of a connection.
#[derive(Clone)]
pub(super) struct Lease {
    pub(super) peer: Peer<RoleClient>,
    pub(super) listener: Listener,
    /// Counts the connections to the server.
    pub(super) generation: u64,
    tail: Option<Tail>,
}

impl Connection {
    /// Connects to a server, and returns when it is ready.
    pub(super) async fn open(
        settings: &Settings,
        client: &reqwest::Client,
        generation: u64,
        deadline: Instant,
    ) -> Result<Self, Trouble> {
        let listener = Listener::new(&settings.secrets);
        let refusal = Refusal::default();
        let name = &settings.name;
        let (served, process) = match &settings.reach {
            Reach::Process { command, arguments, environment, folder } => {
                let (process, stdout, stdin) =
                    Process::start(command, arguments, environment, folder.as_deref(), &settings.secrets)
                        .map_err(|error| Trouble::unstartable(name, command, &error))?;
                (timeout_at(deadline, serve_client(listener.clone(), (stdout, stdin))).await, Some(process))
            }
            Reach::Http { url, headers } => {
                let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                    .custom_headers(headers.iter().cloned().collect());
                let client = Sessions { client: client.clone(), listener: listener.clone(), refusal: refusal.clone() };
                let transport = StreamableHttpClientTransport::with_client(client, config);
                (timeout_at(deadline, serve_client(listener.clone(), transport)).await, None)
            }
        };
        match served {
            Ok(Ok(running)) => Ok(Self::of(running, process, listener, generation)),
            failed => {
                let ending = match process {
                    Some(process) => process.end().await,
                    None => String::new(),
                };
                Err(match failed {
                    Ok(Err(error)) => not_ready(settings, &error, refusal.status(), &ending),
                    _ => Trouble::slow_start(name, settings.start_timeout, ending),
                })
            }
        }
    }

    fn of(
        running: RunningService<RoleClient, Listener>,
        process: Option<Process>,
        listener: Listener,
        generation: u64,
    ) -> Self {
        let tail = process.as_ref().map(|process| process.tail().clone());
        let lease = Lease { peer: running.peer().clone(), listener, generation, tail };
        let cancel = running.cancellation_token();
        let ended: BoxFuture<'static, ()> = Box::pin(async move {
            let _ = running.waiting().await;
        });
        Self { lease, started: Instant::now(), ended: Some(ended), cancel, process }
    }

    /// Returns what a caller needs, unless the connection is at its end.
    pub(super) fn lease(&self) -> Option<Lease> {
        (!self.lease.peer.is_transport_closed()).then(|| self.any_lease())
    }

    /// Returns what a caller needs, even if it may be of no use any more.
    pub(super) fn any_lease(&self) -> Lease {
        self.lease.clone()
    }

    pub(super) fn generation(&self) -> u64 {
        self.lease.generation
    }

    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Resolves when the connection is at its end.
    pub(super) async fn ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            ended.await;
            self.ended = None;
        }
    }

    /// Ends a connection that is of no use any more.
    pub(super) async fn discard(self) {
        if let Some(process) = self.disconnect().await {
            process.end().await;
        }
    }

    /// Ends a connection that works.
    pub(super) async fn close(self) {
        if let Some(process) = self.disconnect().await {
            process.end_gently().await;
        }
    }

    async fn disconnect(self) -> Option<Process> {
        self.cancel.cancel();
        if let Some(ended) = self.ended {
            let _ = timeout(CLOSING, ended).await;
        }
        self.process
    }
}

impl Lease {
    /// Returns what the process of the server said last, for the operator.
    pub(super) fn last_words(&self, mut told: String) -> String {
        if let Some(tail) = &self.tail {
            tail.add_to(&mut told);
        }
        told
    }
}

fn not_ready(settings: &Settings, error: &ClientInitializeError, refusal: Option<u16>, ending: &str) -> Trouble {
    let detail = causes(error);
    let detail = if ending.is_empty() { detail } else { format!("{detail}; {ending}") };
    let name = &settings.name;
    if let Some(status) = refusal {
        return Trouble::unauthorized(name, status, detail);
    }
    match (error, &settings.reach) {
        (ClientInitializeError::JsonRpcError(error), _) => Trouble::refused_start(name, &error.message, detail),
        (_, Reach::Process { .. }) => Trouble::ended_early(name, detail),
        (_, Reach::Http { .. }) => Trouble::unreachable(name, detail),
    }
}

/// Hears what a server says without being asked, and declines what it asks for.
#[derive(Clone)]
pub(super) struct Listener {
    secrets: Arc<Secrets>,
    progress: Arc<Mutex<HashMap<ProgressToken, Heard>>>,
    stale: Arc<AtomicBool>,
}

/// Who hears of the progress of a call, and how far it was.
struct Heard {
    context: ToolContext,
    last: f64,
}

impl Listener {
    fn new(secrets: &Arc<Secrets>) -> Self {
        Self { secrets: Arc::clone(secrets), progress: Arc::default(), stale: Arc::default() }
    }

    /// Tells whether the list of tools has changed since this was last asked.
    pub(super) fn take_stale(&self) -> bool {
        self.stale.swap(false, Ordering::AcqRel)
    }

    /// Remembers that the list of tools has changed.
    pub(super) fn set_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        // No capabilities: nothing is sampled, elicited or shown here.
        let this = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
    }

    // Sampling and elicitation are declined without our doing; roots would be answered with an empty list.
    #[expect(deprecated, reason = "servers of today ask for roots")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListRootsRequestMethod>())
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(heard) = progress.get_mut(&params.progress_token) else { return };
        // Notifications may overtake one another on their way here; progress never goes back.
        if params.progress <= heard.last {
            return;
        }
        heard.last = params.progress;
        let fraction = params.total.filter(|total| *total > 0.0).map(|total| (params.progress / total).clamp(0.0, 1.0));
        let message = self.secrets.redact(&params.message.unwrap_or_default());
        let message: String = message.chars().take(LONGEST_PROGRESS).collect();
        heard.context.progress(fraction, message);
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.set_stale();
    }
}

/// A request that waits for its answer. One that is dropped before is cancelled at the server.
pub(super) struct Pending {
    peer: Peer<RoleClient>,
    listener: Listener,
    id: RequestId,
    token: ProgressToken,
    is_answered: bool,
    runtime: Handle,
}

impl Pending {
    pub(super) fn new(lease: &Lease, id: RequestId, token: ProgressToken, context: &ToolContext) -> Self {
        let heard = Heard { context: context.clone(), last: f64::NEG_INFINITY };
        lease.listener.progress.lock().unwrap_or_else(PoisonError::into_inner).insert(token.clone(), heard);
        let (peer, listener) = (lease.peer.clone(), lease.listener.clone());
        Self { peer, listener, id, token, is_answered: false, runtime: Handle::current() }
    }

    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.listener.progress.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.token);
        if !self.is_answered && !self.peer.is_transport_closed() {
            let (peer, id) = (self.peer.clone(), self.id.clone());
            let reason = Some("nobody waits for the result any more".to_owned());
            self.runtime.spawn(async move {
                let cancelled = CancelledNotificationParam::new(Some(id), reason);
                let _ = timeout(NOTIFYING, peer.notify_cancelled(cancelled)).await;
            });
        }
    }
}
