//! Agents as tools of an MCP server, over HTTP and over stdio.
//!
//! Both generations of the protocol are served: the stateless one of 2026-07-28, in which a call that needs an approval
//! returns with the question and is sent again with the answer, and the older one, in which the server asks the client.

mod approval;
mod resource;
mod tool;

use crate::host::{Host, Lifetime, SessionChoice, TurnItem, TurnRequest, WhenBusy};
use crate::token::{Access, Scope};
use approval::{answers_of, approval_requests, supports_questions};
use axum::http::request::Parts;
use patter::drive::now_ms;
use patter::store::SessionId;
use patter_core::event::RunEventKind;
use patter_core::serve::{ApiError, ApiErrorKind, TurnEnd, TurnOutcome};
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams, GetPromptResponse,
    Implementation, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use tool::{agent_tool, tool_agent};

/// The MCP server of a host.
#[derive(Clone)]
pub(crate) struct McpService {
    host: Arc<Host>,
}

/// The service over HTTP.
pub(crate) type HttpService = StreamableHttpService<McpService, LocalSessionManager>;

impl McpService {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self { host }
    }

    /// Returns the service over HTTP. The guard in front of all routes has checked host, origin and token.
    pub(crate) fn over_http(host: &Arc<Host>) -> HttpService {
        let mut config = StreamableHttpServerConfig::default();
        config.sse_keep_alive = Some(host.settings.limits.keep_alive);
        config.cancellation_token = host.draining.child_token();
        config.max_request_body_bytes = host.settings.limits.max_body;
        config.allowed_hosts = Vec::new();
        let service = Self::new(Arc::clone(host));
        StreamableHttpService::new(move || Ok(service.clone()), Arc::default(), config)
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let access = access(context);
        access.require(Scope::Run).map_err(|error| mcp_error(&error))?;
        let agent = tool_agent(&request.name);
        let compiled = agent.and_then(|agent| self.host.compile_for(&access, agent).ok());
        let Some(compiled) = compiled else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let mut follower = match &request.request_state {
            Some(state) => {
                let session = SessionId::parse(state).map_err(|error| invalid(&error))?;
                access.require(Scope::Approve).map_err(|error| mcp_error(&error))?;
                let answers = answers_of(&self.host, &session, request.input_responses.unwrap_or_default()).await;
                let answers = answers.map_err(|error| mcp_error(&error))?;
                self.host.answer(&access, &session, answers, Lifetime::Attached).await
            }
            None => {
                let arguments = request.arguments.unwrap_or_default();
                let text = |name: &str| arguments.get(name).and_then(Json::as_str);
                let Some(input) = text("message").filter(|message| !message.trim().is_empty()) else {
                    return Err(ErrorData::invalid_params("`message` is missing", None));
                };
                let session = match text("session") {
                    Some(id) => SessionChoice::Named(SessionId::parse(id).map_err(|error| invalid(&error))?),
                    None => SessionChoice::New(SessionId::new(now_ms())),
                };
                let turn = TurnRequest {
                    agent: compiled.name().to_owned(),
                    session,
                    history: Vec::new(),
                    client: None,
                    input: input.to_owned(),
                    lifetime: Lifetime::Attached,
                    when_busy: WhenBusy::Enqueue,
                    parent: None,
                };
                self.host.start(&access, turn).await
            }
        }
        .map_err(|error| mcp_error(&error))?;
        loop {
            let session = follower.turn().session.clone();
            let end = self.follow(&mut follower, context).await.map_err(|error| mcp_error(&error))?;
            let asks = end.approvals().next().is_some() && access.require(Scope::Approve).is_ok();
            let (true, Some(id)) = (asks, session.clone()) else {
                return Ok(result(&end, session.as_ref()).into());
            };
            if context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28) {
                let requests = approval_requests(&end);
                return Ok(InputRequiredResult::new(Some(requests), Some(id.to_string())).into());
            }
            if !supports_questions(context) {
                return Ok(result(&end, session.as_ref()).into());
            }
            let answers = approval::ask(context, &end).await;
            let resumed = self.host.answer(&access, &id, answers, Lifetime::Attached).await;
            follower = resumed.map_err(|error| mcp_error(&error))?;
        }
    }

    /// Waits for the end of a turn, and reports its progress.
    async fn follow(
        &self,
        follower: &mut crate::host::Follower,
        context: &RequestContext<RoleServer>,
    ) -> Result<TurnEnd, ApiError> {
        let token = context.meta.get_progress_token();
        let mut steps = 0.0;
        loop {
            let item = tokio::select! {
                item = follower.next() => item,
                () = context.ct.cancelled() => return Err(ApiError::new(ApiErrorKind::Run, "the call was cancelled")),
            };
            match item {
                Some(TurnItem::End(end)) => return end,
                None => return Err(ApiError::new(ApiErrorKind::Server, "the turn ended without a result")),
                Some(TurnItem::Event(event)) => {
                    let message = match &event.kind {
                        RunEventKind::ModelCalled { number } => format!("{}: model call {number}", event.agent),
                        RunEventKind::ToolStarted { tool, .. } => format!("{}: calls {tool}", event.agent),
                        RunEventKind::ToolProgress { message, .. } => message.clone(),
                        _ => continue,
                    };
                    if let Some(token) = &token {
                        steps += 1.0;
                        let mut progress = ProgressNotificationParam::new(token.clone(), steps);
                        progress.message = Some(message);
                        let _ = context.peer.notify_progress(progress).await;
                    }
                }
            }
        }
    }
}

impl ServerHandler for McpService {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("patter", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(
            "Each tool asks an agent. Pass the `session` of an earlier result to continue its conversation.".to_owned(),
        );
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let access = access(&context);
        access.require(Scope::Read).map_err(|error| mcp_error(&error))?;
        let agents = self.host.agents().into_iter().filter(|(name, _)| access.may_reach(name));
        let tools = agents.filter_map(|(name, _)| self.host.compile(&name).ok().map(|compiled| agent_tool(&compiled)));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, &context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let access = access(&context);
        access.require(Scope::Read).map_err(|error| mcp_error(&error))?;
        Ok(ListPromptsResult::with_all_items(resource::prompts(&self.host, &access)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let access = access(&context);
        access.require(Scope::Read).map_err(|error| mcp_error(&error))?;
        resource::prompt(&self.host, &access, &request).map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let access = access(&context);
        access.require(Scope::Read).map_err(|error| mcp_error(&error))?;
        Ok(ListResourcesResult::with_all_items(resource::resources(&self.host, &access)))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        access(&context).require(Scope::Read).map_err(|error| mcp_error(&error))?;
        Ok(ListResourceTemplatesResult::with_all_items(resource::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let access = access(&context);
        access.require(Scope::Read).map_err(|error| mcp_error(&error))?;
        resource::read(&self.host, &access, &request.uri).await.map(Into::into)
    }
}

/// Returns the result of a call.
fn result(end: &TurnEnd, session: Option<&SessionId>) -> CallToolResult {
    let session = session.map(ToString::to_string);
    match &end.outcome {
        TurnOutcome::Answered { text, value, .. } => {
            let structured = match value {
                Some(value @ Json::Object(_)) => value.clone(),
                Some(value) => json!({"value": value, "session": session}),
                None => json!({"text": text, "session": session}),
            };
            let mut result = CallToolResult::structured(structured);
            result.content = vec![ContentBlock::text(text.clone())];
            result
        }
        TurnOutcome::Failed(failure) => CallToolResult::error(vec![ContentBlock::text(failure.to_string())]),
        TurnOutcome::Cancelled => CallToolResult::error(vec![ContentBlock::text("the run was cancelled")]),
        TurnOutcome::Waiting(calls) => {
            let lines: Vec<_> = calls.iter().map(patter_core::serve::Waiting::line).collect();
            let session = session.unwrap_or_default();
            let text = format!("the session `{session}` is {}", lines.join(", and "));
            CallToolResult::error(vec![ContentBlock::text(text)])
        }
    }
}

/// Returns what the sender may do. Over stdio, it is the user who started the program.
fn access(context: &RequestContext<RoleServer>) -> Access {
    let parts = context.extensions.get::<Parts>();
    parts.and_then(|parts| parts.extensions.get::<Access>()).cloned().unwrap_or_default()
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
