//! An MCP server as callers see it: a handle, and the one task that owns the connection.

use super::connection::{Connection, Lease, Pending};
use super::content;
use super::settings::Settings;
use super::trouble::{Again, Trouble};
use crate::tool::{Failure, ToolContext};
use patter_core::text::nearest;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, PaginatedRequestParams,
    ServerResult, Tool as Listed,
};
use rmcp::service::PeerRequestOptions;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};

/// How many commands may wait for the owner.
const QUEUE: usize = 64;
/// How many failures in a row it takes until the server is left alone for a while.
const MOST_STRIKES: u32 = 4;
/// How long a server is left alone that keeps failing.
const QUIET: Duration = Duration::from_secs(10);
/// How long a connection must last to count as one that works.
const STABLE: Duration = Duration::from_secs(10);
/// The first wait before another attempt; each one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// How many tools a server may have, and on how many pages.
pub(super) const MOST_TOOLS: usize = 1000;
const MOST_PAGES: usize = 100;

/// An MCP server. Cheap to clone; the server is started when it is first needed, and ended with the last handle.
///
/// One task owns the connection. It connects again after the server died or the connection broke: a few times at
/// once, longer and longer apart, then only after a quiet time.
///
/// ```no_run
/// use patter::tool::mcp::{McpServer, ServerConfig, http_client};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let config: ServerConfig = toml::from_str("command = 'mcp-server-filesystem'\nargs = ['/srv/data']")?;
/// let settings = config.settings("files", "patter.toml".as_ref(), &|name| std::env::var(name).ok())?;
/// let server = McpServer::new(settings, http_client()?);
/// for tool in server.tools().await.map_err(|failure| failure.message().to_owned())?.tools {
///     println!("{}", tool.definition);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct McpServer {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    client: reqwest::Client,
    /// The way to the owner, once there is one.
    owner: Mutex<Option<mpsc::Sender<Command>>>,
    /// The names of the tools, and the connection that listed them.
    known: Mutex<Option<(u64, BTreeSet<String>)>>,
}

enum Command {
    Connect(oneshot::Sender<Result<Lease, Trouble>>),
    /// The connection of this generation is of no use any more.
    Broken(u64),
}

impl McpServer {
    /// Returns a handle. Nothing is started yet. The client is for servers that are reached by their address.
    pub fn new(settings: Settings, client: reqwest::Client) -> Self {
        Self { shared: Arc::new(Shared { settings, client, owner: Mutex::default(), known: Mutex::default() }) }
    }

    /// Returns the name of the server, which is the namespace of its tools.
    pub fn name(&self) -> &str {
        &self.shared.settings.name
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Lists the tools, as the server tells them. Returns whether there were more than are taken, too.
    pub(super) async fn list(&self) -> Result<(Vec<Listed>, bool), Failure> {
        let lease = self.lease().await?;
        self.list_over(&lease).await.map_err(|error| self.failed(&lease, &error))
    }

    /// Calls a tool. The call is cancelled at the server if the future is dropped.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: &ToolContext,
    ) -> Result<CallToolResult, Failure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let lease = self.lease().await?;
        let answer = self.call_over(&lease, params, context).await;
        match answer.map_err(|error| self.failed(&lease, &error))? {
            None => Err(self.vanished(tool)),
            Some(ServerResult::CallToolResult(result)) => Ok(result),
            Some(ServerResult::InputRequiredResult(_)) => Err(content::wants_input(self.name())),
            Some(_) => Err(self.failed(&lease, &ServiceError::UnexpectedResponse)),
        }
    }

    async fn list_over(&self, lease: &Lease) -> Result<(Vec<Listed>, bool), ServiceError> {
        // What changes from here on makes the list stale again.
        lease.listener.take_stale();
        let limit = self.settings().timeout;
        let listed = timeout(limit, pages(lease)).await.unwrap_or(Err(ServiceError::Timeout { timeout: limit }));
        let (tools, is_cut) = listed.inspect_err(|_| lease.listener.set_stale())?;
        let names = tools.iter().map(|tool| tool.name.to_string()).collect();
        *self.known() = Some((lease.generation, names));
        Ok((tools, is_cut))
    }

    /// Makes a call. Returns nothing if the server has no such tool; it is asked if the list may have changed.
    async fn call_over(
        &self,
        lease: &Lease,
        params: CallToolRequestParams,
        context: &ToolContext,
    ) -> Result<Option<ServerResult>, ServiceError> {
        let is_listed = self.known().as_ref().is_some_and(|(generation, _)| *generation == lease.generation);
        if !is_listed || lease.listener.take_stale() {
            self.list_over(lease).await?;
        }
        if !self.known().as_ref().is_some_and(|(_, names)| names.contains(params.name.as_ref())) {
            return Ok(None);
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let limit = self.settings().timeout;
        let answer = timeout(limit, async {
            let sent = lease.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
            let pending = Pending::new(lease, sent.id, sent.progress_token, context);
            let answer = sent.rx.await.unwrap_or(Err(ServiceError::TransportClosed));
            pending.answered();
            answer
        });
        answer.await.unwrap_or(Err(ServiceError::Timeout { timeout: limit })).map(Some)
    }

    fn known(&self) -> MutexGuard<'_, Option<(u64, BTreeSet<String>)>> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The failure of a tool that was there once.
    fn vanished(&self, tool: &str) -> Failure {
        let known = self.known();
        let names = known.iter().flat_map(|(_, names)| names.iter().map(String::as_str));
        let gone = format!("the MCP server `{}` no longer has the tool `{tool}`", self.name());
        Failure::new(match nearest(tool, names.clone()) {
            Some(near) => format!("{gone}; did you mean `{near}`?"),
            None => gone,
        })
        .with_detail(format_args!("it has {}", names.collect::<Vec<_>>().join(", ")))
    }

    /// Tells what happened to a request, and lets go of a connection that broke.
    fn failed(&self, lease: &Lease, error: &ServiceError) -> Failure {
        let trouble = match error {
            ServiceError::Timeout { timeout } => Trouble::timed_out(self.name(), *timeout),
            error => Trouble::of_request(self.name(), error),
        };
        if matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) {
            // If there is no room the owner finds out by itself, or from the next one who fails.
            let _ = self.owner().try_send(Command::Broken(lease.generation));
        }
        trouble.map_detail(|detail| lease.last_words(detail)).failure(&self.settings().secrets)
    }

    /// Returns a connection that works, as far as is known.
    async fn lease(&self) -> Result<Lease, Failure> {
        let (reply, answer) = oneshot::channel();
        let gone = || Failure::new(format!("the MCP server `{}` is being shut down", self.name()));
        self.owner().send(Command::Connect(reply)).await.map_err(|_| gone())?;
        let lease = answer.await.map_err(|_| gone())?;
        lease.map_err(|trouble| trouble.failure(&self.settings().secrets))
    }

    /// Returns the way to the owner. One is made if there is none, or if the runtime of the last one is gone.
    fn owner(&self) -> mpsc::Sender<Command> {
        let mut owner = self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner);
        match &*owner {
            Some(commands) if !commands.is_closed() => commands.clone(),
            _ => {
                let (commands, queue) = mpsc::channel(QUEUE);
                // It counts connections from the beginning.
                *self.known() = None;
                let state = Owner::new(self.shared.settings.clone(), self.shared.client.clone());
                tokio::spawn(state.run(queue));
                owner.insert(commands).clone()
            }
        }
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpServer({})", self.name())
    }
}

async fn pages(lease: &Lease) -> Result<(Vec<Listed>, bool), ServiceError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    for _ in 0..MOST_PAGES {
        let page = lease.peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if tools.len() > MOST_TOOLS {
            tools.truncate(MOST_TOOLS);
            return Ok((tools, true));
        }
        if cursor.is_none() {
            return Ok((tools, false));
        }
    }
    Ok((tools, true))
}

/// The one who connects and lets go.
struct Owner {
    settings: Settings,
    client: reqwest::Client,
    connection: Option<Connection>,
    generation: u64,
    /// Failures in a row: attempts, and connections that did not last.
    strikes: u32,
    /// The last failure, and when it was.
    last: Option<(Trouble, Instant)>,
}

impl Owner {
    fn new(settings: Settings, client: reqwest::Client) -> Self {
        Self { settings, client, connection: None, generation: 0, strikes: 0, last: None }
    }

    /// Works until the last handle is gone.
    async fn run(mut self, mut queue: mpsc::Receiver<Command>) {
        loop {
            let command = match &mut self.connection {
                None => queue.recv().await,
                Some(connection) => tokio::select! {
                    command = queue.recv() => command,
                    () = connection.ended() => Some(Command::Broken(connection.generation())),
                },
            };
            match command {
                None => break,
                Some(Command::Connect(reply)) if reply.is_closed() => {}
                Some(Command::Connect(reply)) => {
                    let _ = reply.send(self.connect().await);
                }
                Some(Command::Broken(generation)) => {
                    if let Some(broken) = self.connection.take_if(|current| current.generation() == generation) {
                        self.let_go(broken).await;
                    }
                }
            }
        }
        if let Some(connection) = self.connection {
            connection.close().await;
        }
    }

    /// Returns the connection, or makes one. All attempts together take no longer than a start may take.
    async fn connect(&mut self) -> Result<Lease, Trouble> {
        if let Some(lease) = self.connection.as_ref().and_then(Connection::lease) {
            return Ok(lease);
        }
        if let Some(broken) = self.connection.take() {
            self.let_go(broken).await;
        }
        if let Some((trouble, _)) = self.last.as_ref().filter(|(_, when)| self.is_quiet(*when)) {
            return Err(trouble.clone());
        }
        // After the quiet time there is one attempt, and not at once many.
        self.strikes = self.strikes.min(MOST_STRIKES - 1);
        let deadline = Instant::now() + self.settings.start_timeout;
        loop {
            if self.strikes > 0 {
                sleep(wait_before(self.strikes)).await;
            }
            self.generation += 1;
            match Connection::open(&self.settings, &self.client, self.generation, deadline).await {
                // If it broke already, whoever uses it will find out.
                Ok(connection) => return Ok(self.connection.insert(connection).any_lease()),
                Err(trouble) => {
                    self.strikes = if trouble.again == Again::Soon { self.strikes + 1 } else { MOST_STRIKES };
                    self.last = Some((trouble.clone(), Instant::now()));
                    if self.strikes >= MOST_STRIKES || Instant::now() >= deadline {
                        return Err(trouble);
                    }
                }
            }
        }
    }

    fn is_quiet(&self, since: Instant) -> bool {
        self.strikes >= MOST_STRIKES && since.elapsed() < QUIET
    }

    /// Ends a connection that broke.
    async fn let_go(&mut self, connection: Connection) {
        if connection.age() >= STABLE {
            self.strikes = 0;
        } else {
            self.strikes += 1;
            self.last = Some((Trouble::unstable(&self.settings.name), Instant::now()));
        }
        connection.discard().await;
    }
}

/// Returns how long to wait after some failures: twice as long each time, give or take a half, so that many who wait
/// for the same server do not come back at once.
fn wait_before(strikes: u32) -> Duration {
    let chance = RandomState::new().build_hasher().finish() % 1000;
    let doubled = FIRST_WAIT.saturating_mul(1 << strikes.saturating_sub(1).min(6));
    doubled.mul_f64(0.5 + chance as f64 / 1000.0)
}
