//! What requests of several protocols have in common: tools, contents, and what is expected of the answer.

use super::ApiError;
use super::read::Fields;
use crate::message::conversation::{Message, ToolCall};
use crate::run::ClientTool;
use crate::types::compatibility::is_subtype;
use crate::types::signature::Signature;
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// What a client expects of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerSchema {
    /// Any JSON object.
    Object,
    /// A value that matches a schema.
    Schema(Json),
}

impl AnswerSchema {
    /// Reads the format of an answer. `schema` finds the schema, if there has to be one.
    pub(super) fn read<'j>(
        format: &Fields<'j>,
        schema: impl FnOnce() -> Result<&'j Json, ApiError>,
    ) -> Result<Option<Self>, ApiError> {
        match format.required_text("type")? {
            "text" => Ok(None),
            "json_object" => Ok(Some(Self::Object)),
            "json_schema" => Ok(Some(Self::Schema(schema()?.clone()))),
            _ => Err(format.wrong("type", "must be `text`, `json_object` or `json_schema`")),
        }
    }

    /// Checks that the answers of an agent with a schema of what it returns are as expected. The error says why they are not.
    pub fn check(&self, returns: Option<&Json>) -> Result<(), &'static str> {
        match (self, returns) {
            (_, None) => Err("this agent answers with text: it declares no `returns`"),
            (Self::Object, Some(_)) => Ok(()),
            (Self::Schema(expected), Some(returns)) if is_narrower(returns, &without_noise(expected)) => Ok(()),
            (Self::Schema(_), Some(_)) => {
                Err("the schema does not accept all answers of the agent, whose `returns` decides what it answers")
            }
        }
    }
}

/// Returns a schema without what SDKs add to each: that objects are closed, because providers want it so, and that integers
/// are no larger than JavaScript can represent.
fn without_noise(schema: &Json) -> Json {
    const MAX_SAFE: i64 = 9_007_199_254_740_991;
    let is_noise = |name: &str, value: &Json| match name {
        "$schema" => true,
        "additionalProperties" => *value == Json::Bool(false),
        "minimum" => value.as_i64() == Some(-MAX_SAFE),
        "maximum" => value.as_i64() == Some(MAX_SAFE),
        _ => false,
    };
    match schema {
        Json::Object(members) => {
            let kept = members.iter().filter(|(name, value)| !is_noise(name, value));
            Json::Object(kept.map(|(name, value)| (name.clone(), without_noise(value))).collect())
        }
        Json::Array(items) => items.iter().map(without_noise).collect(),
        other => other.clone(),
    }
}

/// Returns whether all values of a schema match another one.
fn is_narrower(schema: &Json, other: &Json) -> bool {
    if schema == other {
        return true;
    }
    let no_arguments = json!({"type": "object", "properties": {}});
    let convert = |schema| Signature::from_schemas(&no_arguments, Some(schema)).ok();
    let Some((sub, sup)) = convert(schema).zip(convert(other)) else { return false };
    is_subtype((&sub.signature.returns, &sub.records), (&sup.signature.returns, &sup.records))
}

/// Reads the tools of a client. `function` finds the description of a tool. There are none if the client wants none to be
/// called.
pub(super) fn client_tools<'j>(
    fields: &Fields<'j>,
    function: impl Fn(Fields<'j>) -> Result<Fields<'j>, ApiError>,
) -> Result<Vec<ClientTool>, ApiError> {
    let choice = fields.get("tool_choice");
    if choice.is_some_and(|choice| !matches!(choice.as_str(), Some("auto" | "none"))) {
        return Err(fields.wrong("tool_choice", "must be `auto` or `none`: the agent decides what it calls"));
    }
    let list = fields.list("tools")?.unwrap_or_default();
    let tool = |(index, value)| {
        let function = function(Fields::new(value, format!("tools[{index}]"))?)?;
        let schema = function.get("parameters").cloned();
        Ok(ClientTool {
            name: function.required_text("name")?.to_owned(),
            description: function.text("description")?.unwrap_or_default().to_owned(),
            schema: schema.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        })
    };
    let tools = list.iter().enumerate().map(tool).collect::<Result<Vec<_>, ApiError>>()?;
    Ok(if choice.and_then(Json::as_str) == Some("none") { Vec::new() } else { tools })
}

/// Returns the text of a field: a text, or parts of it, which have one of these types.
pub(super) fn text_content(fields: &Fields<'_>, name: &str, types: &[&str]) -> Result<String, ApiError> {
    let parts = match fields.get(name) {
        None => return Ok(String::new()),
        Some(Json::String(text)) => return Ok(text.clone()),
        Some(_) => fields.list(name)?.unwrap_or_default(),
    };
    let text = |(index, value): (usize, &Json)| {
        let part = Fields::new(value, fields.path(&format!("{name}[{index}]")))?;
        match part.required_text("type")? {
            kind if types.contains(&kind) => Ok(part.required_text("text")?.to_owned()),
            "refusal" => Ok(part.required_text("refusal")?.to_owned()),
            kind => Err(part.wrong("type", format!("content of type `{kind}` is not supported; send text"))),
        }
    };
    parts.iter().enumerate().map(text).collect::<Result<Vec<_>, _>>().map(|texts| texts.join("\n"))
}

/// Reads the calls of a message.
pub(super) fn function_calls(message: &Fields<'_>, name: &str) -> Result<Vec<ToolCall>, ApiError> {
    let call = |(index, value)| {
        let call = Fields::new(value, message.path(&format!("{name}[{index}]")))?;
        let function = call.object("function")?.ok_or_else(|| call.wrong("function", "is missing"))?;
        Ok(ToolCall {
            id: call.required_text("id")?.to_owned(),
            tool: function.required_text("name")?.replace("__", "/"),
            arguments: function.text("arguments")?.unwrap_or_default().to_owned(),
        })
    };
    message.list(name)?.unwrap_or_default().iter().enumerate().map(call).collect()
}

/// Returns the id of the call that a message is the result of.
pub(super) fn result_id(message: &Message) -> Option<&str> {
    match message {
        Message::Tool { call_id, .. } => Some(call_id),
        Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => None,
    }
}

/// Puts results into the order of their calls, as conversations have them.
pub(super) fn in_order(messages: Vec<Message>) -> Vec<Message> {
    let mut ordered: Vec<Message> = Vec::with_capacity(messages.len());
    let mut places: HashMap<String, usize> = HashMap::new();
    // Where the results of the last calls start.
    let mut begin = 0;
    let sort = |results: &mut [Message], places: &HashMap<String, usize>| {
        results.sort_by_key(|message| result_id(message).and_then(|id| places.get(id)).copied().unwrap_or(usize::MAX));
    };
    for message in messages {
        if result_id(&message).is_none() {
            sort(ordered.get_mut(begin..).unwrap_or_default(), &places);
            places = message.calls().iter().enumerate().map(|(place, call)| (call.id.clone(), place)).collect();
            begin = ordered.len() + 1;
        }
        ordered.push(message);
    }
    sort(ordered.get_mut(begin..).unwrap_or_default(), &places);
    ordered
}
