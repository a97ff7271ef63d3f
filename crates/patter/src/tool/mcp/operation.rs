//! What the tools of a server do: call one of its tools, or use its resources and prompts.

use super::content::{OutputForm, describe_content, describe_resource, limited};
use super::list::MAX_ITEMS;
use super::server::McpServer;
use crate::tool::{ToolContext, ToolFailure};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, JsonObject, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult, Tool as Listed, ToolAnnotations,
};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

/// What a tool of a server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Calls a tool of the server.
    Call,
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

/// The properties of resources and prompts that models read. Others are for the screens of other programs.
const SHOWN: [&str; 9] =
    ["uri", "uriTemplate", "name", "title", "description", "mimeType", "size", "arguments", "required"];

impl Operation {
    /// Describes the operation like a tool of a server.
    pub(super) fn describe(self) -> Listed {
        let text = |description: &str| json!({"type": "string", "description": description});
        let object = |properties: Json, required: &[&str]| {
            let schema = json!({"type": "object", "properties": properties, "required": required});
            schema.as_object().cloned().unwrap_or_default()
        };
        let (name, description, schema) = match self {
            Operation::Call => ("", "", Map::new()),
            Operation::ListResources => (
                "list_resources",
                "Lists the resources of the server, and templates for the URIs of more",
                object(json!({}), &[]),
            ),
            Operation::ReadResource => (
                "read_resource",
                "Reads a resource of the server",
                object(json!({"uri": text("URI of the resource")}), &["uri"]),
            ),
            Operation::ListPrompts => {
                ("list_prompts", "Lists the prompts of the server, with their arguments", object(json!({}), &[]))
            }
            Operation::GetPrompt => {
                let arguments = json!({
                    "type": "object",
                    "description": "Arguments of the prompt",
                    "additionalProperties": {"type": "string"},
                });
                let properties = json!({"name": text("Name of the prompt"), "arguments": arguments});
                ("get_prompt", "Returns the messages of a prompt of the server", object(properties, &["name"]))
            }
        };
        let hints = ToolAnnotations::new().read_only(true);
        Listed::new(name, description, schema).with_annotations(hints)
    }

    /// Performs an operation that is not a call.
    pub(super) async fn perform(
        self,
        server: &McpServer,
        mut arguments: JsonObject,
        context: &ToolContext,
    ) -> Result<Json, ToolFailure> {
        let settings = server.settings();
        let text = |name: &str| arguments.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
        let value = match self {
            Operation::Call => return Err(server.unexpected_result()),
            Operation::ListResources => {
                let resources = list(server, context, resources_page).await?;
                // Servers without templates may not know the request.
                let templates = list(server, context, templates_page).await.unwrap_or_default();
                json!({"resources": resources, "templates": templates})
            }
            Operation::ListPrompts => Json::Array(list(server, context, prompts_page).await?),
            Operation::ReadResource => {
                let params = ReadResourceRequestParams::new(text("uri"));
                let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
                let ServerResult::ReadResourceResult(result) = server.request(request, context).await? else {
                    return Err(server.unexpected_result());
                };
                let parts: Vec<_> =
                    result.contents.iter().map(|part| describe_resource(part, &settings.redactor)).collect();
                match <[Json; 1]>::try_from(parts) {
                    Ok([part]) => part,
                    Err(parts) => Json::Array(parts),
                }
            }
            Operation::GetPrompt => {
                let mut params = GetPromptRequestParams::new(text("name"));
                params.arguments = match arguments.remove("arguments") {
                    Some(Json::Object(arguments)) => Some(arguments),
                    _ => None,
                };
                let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
                let ServerResult::GetPromptResult(result) = server.request(request, context).await? else {
                    return Err(server.unexpected_result());
                };
                let messages = result.messages.iter().map(|message| {
                    json!({"role": message.role, "content": describe_content(&message.content, &settings.redactor)})
                });
                json!({"description": result.description, "messages": messages.collect::<Vec<_>>()})
            }
        };
        limited(settings, value, OutputForm::Free)
    }
}

/// A page of a list, and the cursor of the next one.
type Page = (Vec<Json>, Option<String>);

/// Lists something page by page.
async fn list(
    server: &McpServer,
    context: &ToolContext,
    page: impl Fn(PaginatedRequestParams) -> (ClientRequest, fn(ServerResult) -> Option<Page>),
) -> Result<Vec<Json>, ToolFailure> {
    let mut items = Vec::new();
    let mut cursor = None;
    while items.len() < MAX_ITEMS {
        let (request, read) = page(PaginatedRequestParams::default().with_cursor(cursor));
        let read = read(server.request(request, context).await?);
        let (more, next) = read.ok_or_else(|| server.unexpected_result())?;
        // A page without items would be read for ever.
        cursor = next.filter(|_| !more.is_empty());
        items.extend(more);
        if cursor.is_none() {
            break;
        }
    }
    items.truncate(MAX_ITEMS);
    Ok(items)
}

fn resources_page(params: PaginatedRequestParams) -> (ClientRequest, fn(ServerResult) -> Option<Page>) {
    let request = ListResourcesRequest { params: Some(params), ..ListResourcesRequest::default() };
    (ClientRequest::ListResourcesRequest(request), |result| match result {
        ServerResult::ListResourcesResult(page) => Some((shown(&page.resources), page.next_cursor)),
        _ => None,
    })
}

fn templates_page(params: PaginatedRequestParams) -> (ClientRequest, fn(ServerResult) -> Option<Page>) {
    let request = ListResourceTemplatesRequest { params: Some(params), ..ListResourceTemplatesRequest::default() };
    (ClientRequest::ListResourceTemplatesRequest(request), |result| match result {
        ServerResult::ListResourceTemplatesResult(page) => Some((shown(&page.resource_templates), page.next_cursor)),
        _ => None,
    })
}

fn prompts_page(params: PaginatedRequestParams) -> (ClientRequest, fn(ServerResult) -> Option<Page>) {
    let request = ListPromptsRequest { params: Some(params), ..ListPromptsRequest::default() };
    (ClientRequest::ListPromptsRequest(request), |result| match result {
        ServerResult::ListPromptsResult(page) => Some((shown(&page.prompts), page.next_cursor)),
        _ => None,
    })
}

/// Returns the properties of items that models read.
fn shown<T: Serialize>(items: &[T]) -> Vec<Json> {
    let values = items.iter().map(|item| serde_json::to_value(item).unwrap_or_default());
    let shown = values.map(|mut value| {
        if let Json::Object(entries) = &mut value {
            entries.retain(|key, _| SHOWN.contains(&key.as_str()));
        }
        value
    });
    shown.collect()
}
