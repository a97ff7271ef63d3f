//! What the application that embeds the server adds to it.

use super::McpService;
use crate::token::Access;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientRequest, CompleteRequest, CompleteRequestParams, CompleteResult,
    ErrorCode, GetPromptRequest, GetPromptRequestParams, GetPromptResponse, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, ListToolsRequest, Prompt, ReadResourceRequest,
    ReadResourceRequestParams, ReadResourceResponse, Request, Resource, ResourceTemplate, ServerResult,
    SubscribeRequestParams, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{DynService, RequestContext, RoleServer};
use std::sync::Arc;

/// A handler of the application.
pub(crate) type McpHandler = Arc<dyn DynService<RoleServer>>;

/// Returns whether clients of the older protocol may subscribe to resources of a handler.
pub(super) fn subscribes(handler: &McpHandler) -> bool {
    handler.get_info().capabilities.resources.is_some_and(|resources| resources.subscribe == Some(true))
}

impl McpService {
    /// Passes a request on to the handler; `None` if there is none for the client, or if it does not know the method.
    async fn pass_on(
        &self,
        access: &Access,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Option<Result<ServerResult, ErrorData>> {
        let handler = self.host.mcp_handler.as_ref().filter(|_| access.may_reach_all())?;
        match handler.handle_request(request, context).await {
            Err(error) if error.code == ErrorCode::METHOD_NOT_FOUND => None,
            result => Some(result),
        }
    }

    pub(super) async fn extension_tools(
        &self,
        access: &Access,
        context: RequestContext<RoleServer>,
    ) -> Result<Vec<Tool>, ErrorData> {
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        match self.pass_on(access, request, context).await.transpose()? {
            Some(ServerResult::ListToolsResult(list)) => Ok(list.tools),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn call_extension(
        &self,
        access: &Access,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Option<Result<CallToolResponse, ErrorData>> {
        let request = ClientRequest::CallToolRequest(Request::new(request));
        Some(self.pass_on(access, request, context).await?.and_then(|result| match result {
            ServerResult::CallToolResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(unexpected()),
        }))
    }

    pub(super) async fn extension_prompts(
        &self,
        access: &Access,
        context: RequestContext<RoleServer>,
    ) -> Result<Vec<Prompt>, ErrorData> {
        let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::default());
        match self.pass_on(access, request, context).await.transpose()? {
            Some(ServerResult::ListPromptsResult(list)) => Ok(list.prompts),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn extension_prompt(
        &self,
        access: &Access,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Option<Result<GetPromptResponse, ErrorData>> {
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(request));
        Some(self.pass_on(access, request, context).await?.and_then(|result| match result {
            ServerResult::GetPromptResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(unexpected()),
        }))
    }

    pub(super) async fn extension_resources(
        &self,
        access: &Access,
        context: RequestContext<RoleServer>,
    ) -> Result<Vec<Resource>, ErrorData> {
        let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::default());
        match self.pass_on(access, request, context).await.transpose()? {
            Some(ServerResult::ListResourcesResult(list)) => Ok(list.resources),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn extension_templates(
        &self,
        access: &Access,
        context: RequestContext<RoleServer>,
    ) -> Result<Vec<ResourceTemplate>, ErrorData> {
        let request = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::default());
        match self.pass_on(access, request, context).await.transpose()? {
            Some(ServerResult::ListResourceTemplatesResult(list)) => Ok(list.resource_templates),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) async fn extension_resource(
        &self,
        access: &Access,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Option<Result<ReadResourceResponse, ErrorData>> {
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(request));
        Some(self.pass_on(access, request, context).await?.and_then(|result| match result {
            ServerResult::ReadResourceResult(result) => Ok(result.into()),
            ServerResult::InputRequiredResult(result) => Ok(result.into()),
            _ => Err(unexpected()),
        }))
    }

    pub(super) async fn extension_completion(
        &self,
        access: &Access,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let request = ClientRequest::CompleteRequest(CompleteRequest::new(request));
        match self.pass_on(access, request, context).await.transpose()? {
            Some(ServerResult::CompleteResult(result)) => Ok(result),
            _ => Ok(CompleteResult::default()),
        }
    }

    pub(super) async fn subscribe_to_extension(
        &self,
        access: &Access,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::SubscribeRequest(Request::new(request));
        match self.pass_on(access, request, context).await {
            Some(result) => result.map(drop),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "resources/subscribe", None)),
        }
    }

    pub(super) async fn unsubscribe_from_extension(
        &self,
        access: &Access,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let request = ClientRequest::UnsubscribeRequest(Request::new(request));
        match self.pass_on(access, request, context).await {
            Some(result) => result.map(drop),
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "resources/unsubscribe", None)),
        }
    }
}

fn unexpected() -> ErrorData {
    ErrorData::internal_error("the handler returned the result of another request", None)
}
