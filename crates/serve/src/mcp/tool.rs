//! Agents as tools.

use patter_core::compile::CompiledAgent;
use patter_core::serve::mcp::value_schema;
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// What the names of these tools start with.
const PREFIX: &str = "ask_";

/// Returns the tool that asks an agent.
pub(super) fn agent_tool(compiled: &CompiledAgent) -> Tool {
    let name = compiled.name();
    let description = compiled.declaration().description();
    let description = description.map_or_else(|| format!("Asks the agent {name}"), std::borrow::Cow::into_owned);
    let input = json!({
        "type": "object",
        "properties": {
            "message": {"type": "string", "description": "What to ask, with everything the agent needs to know"},
            "session": {"type": "string", "description": "The session of an earlier result, to continue its conversation"},
        },
        "required": ["message"],
        "additionalProperties": false,
    });
    let output = match compiled.returns() {
        Some(schema) if schema.get("type").and_then(Json::as_str) == Some("object") => schema.clone(),
        Some(schema) => answer_schema("value", schema),
        None => answer_schema("text", &json!({"type": "string"})),
    };
    let mut tool = Tool::new(format!("{PREFIX}{name}"), description, object(input));
    tool.output_schema = Some(object(output));
    tool
}

/// Returns the agent that a tool asks.
pub(super) fn tool_agent(tool: &str) -> Option<&str> {
    tool.strip_prefix(PREFIX)
}

/// Returns the schema of an answer that is not an object.
fn answer_schema(name: &str, schema: &Json) -> Json {
    let mut root = value_schema(name, schema);
    if let Some(properties) = root.get_mut("properties").and_then(Json::as_object_mut) {
        properties.insert("session".to_owned(), json!({"type": ["string", "null"]}));
    }
    root
}

fn object(schema: Json) -> Arc<JsonObject> {
    match schema {
        Json::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
