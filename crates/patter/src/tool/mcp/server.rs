//! An MCP server as callers see it: a handle to the task that owns the connection.

use super::connection::{ConnectionHandle, PendingRequest};
use super::connection_task::{ConnectionTask, TaskMessage};
use super::content;
use super::error::McpError;
use super::list::{ToolList, list_tools};
use super::requests::{RequiredPage, required_pages};
use super::settings::ServerSettings;
use super::tasks;
use crate::tool::{CallHost, ToolContext, ToolFailure, idempotency};
use patter_core::text::nearest;
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, RequestMetaObject, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The number of messages that may wait for the connection task.
const QUEUE_LENGTH: usize = 64;

/// An MCP server. Cheap to clone; the server is started on demand, and stopped with the last handle.
///
/// One task owns the connection. It reconnects when the server crashed or the connection broke: a few times with
/// growing pauses, then only after a quiet time.
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
    shared: Arc<ServerState>,
}

/// The state that the handles of a server share.
struct ServerState {
    settings: ServerSettings,
    client: reqwest::Client,
    /// The channel to the connection task, once it was started.
    task: Mutex<Option<mpsc::Sender<TaskMessage>>>,
    /// The names of the tools, and the generation of the connection that listed them.
    known_tools: Mutex<Option<(u64, BTreeSet<String>)>>,
}

impl McpServer {
    /// Creates a handle without starting the server. The client is used for servers with a URL.
    pub fn new(settings: ServerSettings, client: reqwest::Client) -> Self {
        let shared = ServerState { settings, client, task: Mutex::default(), known_tools: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the name of the server, which is the namespace of its tools.
    pub fn name(&self) -> &str {
        &self.shared.settings.name
    }

    /// Returns a warning about what the system does not enforce of the server's sandbox.
    pub(crate) fn sandbox_warning(&self) -> Option<String> {
        let process = self.settings().sandbox()?;
        process.policy.check(&process.sandbox).ok().flatten()
    }

    /// Returns the host and the port of a server with a URL, or the program of one that is started.
    pub fn address(&self) -> String {
        self.settings().address()
    }

    /// Returns whether the server may have a tool with this name, as far as its settings tell.
    pub(crate) fn may_have(&self, tool: &str) -> bool {
        self.settings().filter.may_allow(tool)
    }

    pub(super) fn settings(&self) -> &ServerSettings {
        &self.shared.settings
    }

    pub(super) fn http_client(&self) -> &reqwest::Client {
        &self.shared.client
    }

    /// Lists the tools as the server describes them.
    pub(super) async fn list(&self) -> Result<ToolList, ToolFailure> {
        let connection = self.connect().await?;
        self.list_over(&connection).await.map_err(|error| self.request_failure(&connection, &error))
    }

    /// Calls a tool. The call is cancelled at the server if the future is dropped.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: &ToolContext,
    ) -> Result<CallToolResult, ToolFailure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let connection = self.connect().await?;
        let mut result = self.call_over(&connection, params.clone(), context).await;
        if let Some(pages) = result.as_ref().err().and_then(required_pages) {
            let host = context.state::<CallHost>().map(|host| (*host).clone());
            if !connection.listener.requests().open_pages(host, &pages).await {
                return Err(self.pages_required(&pages));
            }
            result = self.call_over(&connection, params, context).await;
            if let Some(pages) = result.as_ref().err().and_then(required_pages) {
                return Err(self.pages_required(&pages));
            }
        }
        match result.map_err(|error| self.request_failure(&connection, &error))? {
            None => Err(self.missing_tool(tool)),
            Some(ServerResult::CallToolResult(result)) => Ok(result),
            Some(ServerResult::InputRequiredResult(_)) => Err(content::input_required(self.name())),
            Some(_) => Err(self.request_failure(&connection, &ServiceError::UnexpectedResponse)),
        }
    }

    async fn list_over(&self, connection: &ConnectionHandle) -> Result<ToolList, ServiceError> {
        // Changes from here on make the list stale again.
        connection.listener.take_stale();
        let limit = self.settings().timeout;
        let listed =
            timeout(limit, list_tools(connection)).await.unwrap_or(Err(ServiceError::Timeout { timeout: limit }));
        let listed = listed.inspect_err(|_| connection.listener.set_stale())?;
        let names = listed.tools.iter().map(|tool| tool.name.to_string()).collect();
        *self.known_tools() = Some((connection.generation, names));
        Ok(listed)
    }

    /// Makes a call. Returns nothing if the server has no such tool. The tools are listed again if they may have changed.
    async fn call_over(
        &self,
        connection: &ConnectionHandle,
        params: CallToolRequestParams,
        context: &ToolContext,
    ) -> Result<Option<ServerResult>, ServiceError> {
        let is_listed = self.known_tools().as_ref().is_some_and(|(generation, _)| *generation == connection.generation);
        if !is_listed || connection.listener.take_stale() {
            self.list_over(connection).await?;
        }
        if !self.known_tools().as_ref().is_some_and(|(_, names)| names.contains(params.name.as_ref())) {
            return Ok(None);
        }
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.send(connection, request, context).await.map(Some)
    }

    /// Makes a request other than a call. It is cancelled at the server if the future is dropped.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        context: &ToolContext,
    ) -> Result<ServerResult, ToolFailure> {
        let connection = self.connect().await?;
        let result = self.send(&connection, request, context).await;
        result.map_err(|error| self.request_failure(&connection, &error))
    }

    /// Returns the failure of a request whose result is of another kind than the protocol prescribes.
    pub(super) fn unexpected_result(&self) -> ToolFailure {
        McpError::from_request(self.name(), &ServiceError::UnexpectedResponse, None).failure(&self.settings().redactor)
    }

    async fn send(
        &self,
        connection: &ConnectionHandle,
        request: ClientRequest,
        context: &ToolContext,
    ) -> Result<ServerResult, ServiceError> {
        let limit = self.settings().timeout;
        let _call = connection.listener.open_call(context);
        let response = connection.listener.requests().clock().timeout(limit, async {
            let sent = connection.peer.send_request_with_option(request, request_options(context)).await?;
            let pending = PendingRequest::new(connection, sent.id, sent.progress_token, context);
            let response = sent.rx.await.unwrap_or(Err(ServiceError::TransportClosed));
            // A server may report progress and ask questions until a task ends.
            let response = match response {
                Ok(ServerResult::CreateTaskResult(task)) => {
                    tasks::result(connection, task, context).await.map(ServerResult::CallToolResult)
                }
                response => response,
            };
            pending.complete();
            response
        });
        response.await.unwrap_or(Err(ServiceError::Timeout { timeout: limit }))
    }

    fn known_tools(&self) -> MutexGuard<'_, Option<(u64, BTreeSet<String>)>> {
        self.shared.known_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the failure of a tool that the server no longer has.
    fn missing_tool(&self, tool: &str) -> ToolFailure {
        let known = self.known_tools();
        let names = known.iter().flat_map(|(_, names)| names.iter().map(String::as_str));
        let message = format!("the MCP server `{}` no longer has the tool `{tool}`", self.name());
        ToolFailure::new(match nearest(tool, names.clone()) {
            Some(near) => format!("{message}; did you mean `{near}`?"),
            None => message,
        })
        .with_detail(format_args!("available tools: {}", names.collect::<Vec<_>>().join(", ")))
    }

    /// Returns the failure of a call that requires a person to open pages first. Their addresses are for the person, not for
    /// the model.
    fn pages_required(&self, pages: &[RequiredPage]) -> ToolFailure {
        let message = format!("the MCP server `{}` requires that a person opens a page before this call", self.name());
        let urls: Vec<_> = pages.iter().map(|page| page.url.as_str()).collect();
        let failure = ToolFailure::new(message);
        match urls.is_empty() {
            true => failure.with_detail("the server names no `https` page"),
            false => {
                let hint = format!("open {}, then make the call again", urls.join(" and "));
                failure.with_detail(self.settings().redactor.redact(&hint))
            }
        }
    }

    /// Returns the failure of a request, and reports a broken connection to the task.
    fn request_failure(&self, connection: &ConnectionHandle, error: &ServiceError) -> ToolFailure {
        if let Some(denial) = connection.credentials.as_ref().and_then(|credentials| credentials.take_denial()) {
            return McpError::denied(self.name(), &denial).failure(&self.settings().redactor);
        }
        if matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_)) {
            // If the queue is full, the task notices by itself, or from the next caller.
            let _ = self.task().try_send(TaskMessage::Broken(connection.generation));
        }
        let error = McpError::from_request(self.name(), error, connection.failures.take_cause());
        error.map_detail(|detail| connection.with_stderr(detail)).failure(&self.settings().redactor)
    }

    /// Returns a connection that works, as far as is known.
    async fn connect(&self) -> Result<ConnectionHandle, ToolFailure> {
        let (reply, result) = oneshot::channel();
        let stopped = || ToolFailure::new(format!("the MCP server `{}` is shutting down", self.name()));
        self.task().send(TaskMessage::Connect(reply)).await.map_err(|_| stopped())?;
        let result = result.await.map_err(|_| stopped())?;
        result.map_err(|error| error.failure(&self.settings().redactor))
    }

    /// Returns the channel to the task, which is started if there is none, or if the runtime of the last one is gone.
    fn task(&self) -> mpsc::Sender<TaskMessage> {
        let mut task = self.shared.task.lock().unwrap_or_else(PoisonError::into_inner);
        match &*task {
            Some(messages) if !messages.is_closed() => messages.clone(),
            _ => {
                let (messages, queue) = mpsc::channel(QUEUE_LENGTH);
                // A new task counts generations from the start.
                *self.known_tools() = None;
                let state = ConnectionTask::new(self.shared.settings.clone(), self.shared.client.clone());
                tokio::spawn(state.run(queue));
                task.insert(messages).clone()
            }
        }
    }
}

/// Returns the options of a request: it refers to the span of the call, if the call is traced, and has the key of the call.
fn request_options(context: &ToolContext) -> PeerRequestOptions {
    let mut meta = RequestMetaObject::default();
    if let Some(parent) = context.traceparent() {
        meta.set_traceparent(parent.to_string());
    }
    if let Some(key) = context.idempotency_key() {
        meta.insert(idempotency::META.to_owned(), key.as_ref().into());
    }
    let options = PeerRequestOptions::no_options();
    if meta.is_empty() { options } else { options.with_meta(meta) }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "McpServer({})", self.name())
    }
}
