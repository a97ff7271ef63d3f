//! An MCP server, over HTTP and over stdio: agents as tools, and on request the tools of the library.
//!
//! Both generations of the protocol are served: the stateless one of 2026-07-28, in which a call that needs an approval
//! returns with the question and is sent again with the answer, and the older one, in which the server asks the client.

mod agent;
mod approval;
mod extension;
mod library;
mod open_call;
mod question;
mod report;
mod resource;
mod tool;

use crate::host::Host;
use crate::token::{Access, Scope};
use axum::http::request::Parts;
pub(crate) use extension::McpHandler;
use open_call::WaitingCalls;
use patter_core::serve::ApiError;
use patter_core::session::TraceParent;
use report::{Logging, Reporter};
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, DiscoverResult, ErrorCode,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscribeRequestParams, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::{Arc, Mutex, PoisonError};
use tool::{agent_tool, tool_agent};

/// The MCP server of a host, for one session if the client has one.
pub(crate) struct McpService {
    host: Arc<Host>,
    waiting: Arc<WaitingCalls>,
    /// Whether the client of the session asked for log messages.
    logging: Mutex<Logging>,
}

/// The service over HTTP.
pub(crate) type HttpService = StreamableHttpService<McpService, LocalSessionManager>;

impl McpService {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self::with_waiting(host, Arc::new(WaitingCalls::new()))
    }

    fn with_waiting(host: Arc<Host>, waiting: Arc<WaitingCalls>) -> Self {
        Self { host, waiting, logging: Mutex::default() }
    }

    /// Returns the service over HTTP. The guard in front of all routes has checked host, origin and token.
    pub(crate) fn over_http(host: &Arc<Host>) -> HttpService {
        let mut config = StreamableHttpServerConfig::default();
        config.sse_keep_alive = Some(host.settings.limits.keep_alive);
        config.cancellation_token = host.draining.child_token();
        config.max_request_body_bytes = host.settings.limits.max_body;
        config.allowed_hosts = Vec::new();
        let host = Arc::clone(host);
        let waiting = Arc::new(WaitingCalls::new());
        let service = move || Ok(Self::with_waiting(Arc::clone(&host), Arc::clone(&waiting)));
        StreamableHttpService::new(service, Arc::default(), config)
    }

    /// Returns what reports to the client of a request.
    fn reporter<'c>(&self, context: &'c RequestContext<RoleServer>) -> Reporter<'c> {
        let logging = match is_stateless(context) {
            true => context.meta.log_level().map(Logging::for_level).unwrap_or_default(),
            false => *self.logging.lock().unwrap_or_else(PoisonError::into_inner),
        };
        Reporter::new(context, logging)
    }

    fn capabilities(&self) -> ServerCapabilities {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().enable_completions();
        let mut capabilities = capabilities.build();
        capabilities.logging = Some(serde_json::Map::new());
        capabilities
    }
}

impl ServerHandler for McpService {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = self.capabilities();
        let subscribes = self.host.mcp_handler.as_ref().is_some_and(extension::subscribes);
        if let (Some(resources), true) = (&mut capabilities.resources, subscribes) {
            resources.subscribe = Some(true);
        }
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("patter", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "Each tool `ask_NAME` asks an agent. Pass the `session` of an earlier result to continue its conversation."
                .to_owned(),
        );
        info
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let mut info = self.get_info();
        // Subscriptions to resources are a stream in this version, which handlers cannot add to.
        info.capabilities = self.capabilities();
        let versions = ServerHandler::supported_protocol_versions(self).into_owned();
        Ok(DiscoverResult::from_server_info(versions, info))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        let agents = self.host.agents().into_iter().filter(|(name, _)| access.may_reach(name));
        let agents = agents.filter_map(|(name, _)| self.host.compile(&name).ok().map(|compiled| agent_tool(&compiled)));
        let mut tools: Vec<_> = agents.collect();
        tools.extend(self.library_tools(&access));
        tools.extend(self.extension_tools(&access, context).await?);
        // Of several tools of a name, the first is called.
        let mut names = std::collections::HashSet::new();
        tools.retain(|tool| names.insert(tool.name.clone()));
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let access = permitted(&context, Scope::Run)?;
        let agent = tool_agent(&request.name).and_then(|agent| self.host.compile_for(&access, agent).ok());
        if let Some(agent) = agent {
            return self.call_agent(&agent, request, &context).await;
        }
        if let Some(response) = self.call_library(&request, &context).await {
            return response;
        }
        let missing = || ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None);
        self.call_extension(&access, request.clone(), context).await.unwrap_or_else(|| Err(missing()))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        let mut prompts = resource::prompts(&self.host, &access);
        prompts.extend(self.extension_prompts(&access, context).await?);
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        match resource::prompt(&self.host, &access, &request) {
            Ok(prompt) => Ok(prompt.into()),
            Err(missing) => self.extension_prompt(&access, request, context).await.unwrap_or(Err(missing)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        let mut resources = resource::resources(&self.host, &access);
        resources.extend(self.extension_resources(&access, context).await?);
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        let mut templates = resource::templates();
        templates.extend(self.extension_templates(&access, context).await?);
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        if resource::is_own(&request.uri) {
            return resource::read(&self.host, &access, &request.uri).await.map(Into::into);
        }
        let missing = resource::missing(&request.uri);
        self.extension_resource(&access, request, context).await.unwrap_or(Err(missing))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        match resource::complete(&self.host, &access, &request).await {
            Some(completion) => Ok(completion),
            None => self.extension_completion(&access, request, context).await,
        }
    }

    #[expect(deprecated, reason = "clients of the older protocol ask for logs")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if is_stateless(&context) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "logging/setLevel", None));
        }
        *self.logging.lock().unwrap_or_else(PoisonError::into_inner) = Logging::for_level(request.level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        self.subscribe_to_extension(&access, request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let access = permitted(&context, Scope::Read)?;
        self.unsubscribe_from_extension(&access, request, context).await
    }
}

/// Returns what the sender may do. Over stdio, it is the user who started the program.
fn access(context: &RequestContext<RoleServer>) -> Access {
    let parts = context.extensions.get::<Parts>();
    parts.and_then(|parts| parts.extensions.get::<Access>()).cloned().unwrap_or_default()
}

/// Returns what the sender may do, or an error unless that includes a scope.
fn permitted(context: &RequestContext<RoleServer>, scope: Scope) -> Result<Access, ErrorData> {
    let access = access(context);
    access.require(scope).map_err(|error| mcp_error(&error))?;
    Ok(access)
}

/// Returns whether a request is of the stateless protocol, in which the server cannot ask the client.
fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Returns the span of the client that sent a request: in its metadata, or in the header. One that is not valid does not
/// count.
fn trace_parent(context: &RequestContext<RoleServer>) -> Option<TraceParent> {
    let parts = context.extensions.get::<Parts>();
    let header = || parts?.headers.get("traceparent")?.to_str().ok();
    context.meta.get_traceparent().or_else(header).and_then(|text| text.trim().parse().ok())
}

fn invalid(error: &impl ToString) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}

fn mcp_error(error: &ApiError) -> ErrorData {
    match error.status() {
        400..=499 => ErrorData::invalid_params(error.to_string(), None),
        _ => ErrorData::internal_error(error.to_string(), None),
    }
}
