//! What the scenarios ask for that a project does not have: resources and prompts of an application, and requests that tools
//! of Patter do not make (for the roots of a client, and in an outdated form).

use super::tools::PNG;
use patter_serve::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitResult, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, SubscribeRequestParams,
    UnsubscribeRequestParams,
};
use patter_serve::rmcp::service::{RequestContext, RoleServer};
use patter_serve::rmcp::{ErrorData, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

const ENUMS: &str = "test_elicitation_sep1330_enums";
const ROOTS: &str = "test_input_required_result_list_roots";
const SEVERAL: &str = "test_input_required_result_multiple_inputs";

pub(super) struct Handler;

fn read<T: DeserializeOwned>(value: Json) -> T {
    serde_json::from_value(value).unwrap()
}

fn name_request() -> Json {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Name?", "requestedSchema": schema}})
}

/// Returns what a tool requires of the client.
fn requests(tool: &str) -> Json {
    let roots = json!({"method": "roots/list", "params": {}});
    if tool == ROOTS {
        return json!({"client_roots": roots});
    }
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "Generate a greeting"}}]);
    let greeting = json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 50}});
    json!({"user_name": name_request(), "greeting": greeting, "client_roots": roots})
}

async fn ask_for_choices(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    let titled = json!([{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    let schema = json!({"type": "object", "properties": properties});
    let params = read(json!({"mode": "form", "message": "Choose", "requestedSchema": schema}));
    let answer: ElicitResult = context.peer.create_elicitation(params).await.unwrap();
    Ok(CallToolResult::success(vec![ContentBlock::text(format!("Elicitation completed: {answer:?}"))]).into())
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_resources().enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name| json!({"name": name, "description": "Asks", "inputSchema": {"type": "object"}});
        let tools = [ENUMS, ROOTS, SEVERAL].map(tool);
        Ok(read(json!({ "tools": tools })))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match (&*request.name, request.input_responses) {
            (ENUMS, _) => ask_for_choices(&context).await,
            (ROOTS | SEVERAL, Some(answers)) => {
                Ok(CallToolResult::success(vec![ContentBlock::text(format!("{answers:?}"))]).into())
            }
            (tool @ (ROOTS | SEVERAL), None) => {
                Ok(InputRequiredResult::new(Some(read(requests(tool))), Some("state".to_owned())).into())
            }
            (name, _) => Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None)),
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource = |name: &str| json!({"uri": format!("test://{name}"), "name": name, "description": "A resource"});
        let resources = ["static-text", "static-binary", "watched-resource"].map(resource);
        Ok(read(json!({ "resources": resources })))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(read(json!({"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "data"}]})))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let content = match (uri.as_str(), id) {
            ("test://static-text" | "test://watched-resource", _) => {
                json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."})
            }
            ("test://static-binary", _) => json!({"mimeType": "image/png", "blob": PNG}),
            (_, Some(id)) => json!({"mimeType": "application/json", "text": json!({"id": id}).to_string()}),
            _ => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))),
        };
        let mut content = content;
        content["uri"] = uri.into();
        Ok(read::<ReadResourceResult>(json!({"resultType": "complete", "contents": [content]})).into())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(&self, _: UnsubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |(name, arguments): (&str, &[&str])| -> Prompt {
            let argument = |name: &&str| json!({"name": name, "description": "An argument", "required": true});
            let arguments: Vec<_> = arguments.iter().map(argument).collect();
            read(json!({"name": name, "description": "A prompt", "arguments": arguments}))
        };
        let prompts: [(&str, &[&str]); 5] = [
            ("test_simple_prompt", &[]),
            ("test_prompt_with_arguments", &["arg1", "arg2"]),
            ("test_prompt_with_embedded_resource", &["resourceUri"]),
            ("test_prompt_with_image", &[]),
            ("test_input_required_result_prompt", &[]),
        ];
        Ok(ListPromptsResult::with_all_items(prompts.into_iter().map(prompt).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let argument = |name: &str| arguments.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        let text = |text: String| json!({"type": "text", "text": text});
        let contents = match (request.name.as_str(), request.input_responses) {
            ("test_simple_prompt", _) => vec![text("This is a simple prompt for testing.".to_owned())],
            ("test_prompt_with_arguments", _) => {
                let one = argument("arg1");
                let two = argument("arg2");
                vec![text(format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
            }
            ("test_prompt_with_embedded_resource", _) => {
                let resource =
                    json!({"uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded resource."});
                vec![
                    json!({"type": "resource", "resource": resource}),
                    text("Please process the embedded resource above.".to_owned()),
                ]
            }
            ("test_prompt_with_image", _) => vec![
                json!({"type": "image", "data": PNG, "mimeType": "image/png"}),
                text("Please analyze the image above.".to_owned()),
            ],
            ("test_input_required_result_prompt", Some(answers)) => vec![text(format!("{answers:?}"))],
            ("test_input_required_result_prompt", None) => {
                let requests = read(json!({"user_context": name_request()}));
                return Ok(InputRequiredResult::from_input_requests(requests).into());
            }
            (name, _) => return Err(ErrorData::invalid_params(format!("there is no prompt `{name}`"), None)),
        };
        let messages: Vec<_> =
            contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
        Ok(read::<GetPromptResult>(json!({"resultType": "complete", "messages": messages})).into())
    }
}
