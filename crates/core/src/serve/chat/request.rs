//! Requests for chat completions.

use crate::message::conversation::{Message, ToolCall, ToolOutcome};
use crate::run::{ClientAdditions, ClientTool};
use crate::serve::ApiError;
use crate::serve::read::{Fields, parse_body};
use crate::types::compatibility::is_subtype;
use crate::types::signature::Signature;
use serde_json::{Value as Json, json};

/// A request for a chat completion.
///
/// ```
/// use patter_core::serve::chat::{ChatInput, ChatRequest};
/// let body = r#"{"model": "greeter", "temperature": 0.5, "messages": [
///     {"role": "system", "content": "The user is Ada."},
///     {"role": "user", "content": "Hello!"}
/// ]}"#;
/// let request = ChatRequest::parse(body.as_bytes()).unwrap();
/// assert_eq!(request.input, ChatInput::Text("Hello!".into()));
/// assert_eq!(request.client.context, "The user is Ada.");
/// assert_eq!(request.ignored, ["temperature"]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The agent.
    pub model: String,
    /// The conversation before the input.
    pub history: Vec<Message>,
    /// What the client says.
    pub input: ChatInput,
    /// The tools and the context of the client.
    pub client: ClientAdditions,
    /// Whether the response is a stream.
    pub stream: bool,
    /// Whether the stream ends with the tokens used.
    pub include_usage: bool,
    /// The session to continue, if the request names one.
    pub session: Option<String>,
    /// Whether the conversation is stored.
    pub store: bool,
    /// The schema that the answer has to match.
    pub answer_schema: Option<AnswerSchema>,
    /// The fields that have no effect, because the agent decides what they are about.
    pub ignored: Vec<String>,
}

/// What a client says.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatInput {
    /// A message.
    Text(String),
    /// The results of calls that the client made.
    Results(Vec<ClientResult>),
}

/// The result of a call that the client made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResult {
    /// The id of the call, as the client knows it.
    pub id: String,
    /// The result.
    pub text: String,
}

/// What a client expects of the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerSchema {
    /// Any JSON object.
    Object,
    /// A value that matches a schema.
    Schema(Json),
}

/// Fields that are read.
const READ: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "metadata",
    "store",
    "response_format",
    "user",
    "n",
];

impl ChatRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = parse_body(body)?;
        let fields = Fields::new(&value, "")?;
        let model = fields.required_text("model")?.to_owned();
        refuse_unsupported(&fields)?;
        let messages = fields.list("messages")?.ok_or_else(|| fields.wrong("messages", "is missing"))?;
        let Transcript { context, history, input } = Transcript::read(messages)?;
        let options = fields.object("stream_options")?;
        let include_usage = options.map_or(Ok(None), |options| options.flag("include_usage"))?.unwrap_or(false);
        let session = match fields.object("metadata")? {
            Some(metadata) => metadata.text("session")?.map(str::to_owned),
            None => None,
        };
        Ok(Self {
            model,
            history,
            input,
            client: ClientAdditions { tools: tools(&fields)?, context },
            stream: fields.flag("stream")?.unwrap_or(false),
            include_usage,
            session,
            store: fields.flag("store")?.unwrap_or(true),
            answer_schema: answer_schema(&fields)?,
            ignored: fields.object.keys().filter(|name| !READ.contains(&name.as_str())).cloned().collect(),
        })
    }

    /// Checks that the answers of an agent are what the client expects.
    pub fn check_answer(&self, returns: Option<&Json>) -> Result<(), ApiError> {
        let Some(schema) = &self.answer_schema else { return Ok(()) };
        schema.check(returns).map_err(|message| ApiError::invalid("response_format", message))
    }
}

impl AnswerSchema {
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

/// Refuses what an agent cannot do, instead of doing something else.
fn refuse_unsupported(fields: &Fields<'_>) -> Result<(), ApiError> {
    if fields.get("n").is_some_and(|n| n.as_u64() != Some(1)) {
        return Err(fields.wrong("n", "an agent gives one answer"));
    }
    for name in ["functions", "function_call"] {
        if fields.get(name).is_some() {
            return Err(fields.wrong(name, "is not supported; use `tools`"));
        }
    }
    if fields.flag("logprobs")?.unwrap_or(false) {
        return Err(fields.wrong("logprobs", "is not supported"));
    }
    for name in ["audio", "web_search_options"] {
        if fields.get(name).is_some() {
            return Err(fields.wrong(name, "is not supported"));
        }
    }
    match fields.get("tool_choice") {
        None => Ok(()),
        Some(Json::String(choice)) if matches!(choice.as_str(), "auto" | "none") => Ok(()),
        Some(_) => Err(fields.wrong("tool_choice", "must be `auto` or `none`: the agent decides what it calls")),
    }
}

fn tools(fields: &Fields<'_>) -> Result<Vec<ClientTool>, ApiError> {
    let Some(list) = fields.list("tools")? else { return Ok(Vec::new()) };
    let mut tools = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        let tool = Fields::new(value, format!("tools[{index}]"))?;
        if tool.required_text("type")? != "function" {
            return Err(tool.wrong("type", "must be `function`"));
        }
        let function = tool.object("function")?.ok_or_else(|| tool.wrong("function", "is missing"))?;
        let parameters = function.get("parameters").cloned();
        tools.push(ClientTool {
            name: function.required_text("name")?.to_owned(),
            description: function.text("description")?.unwrap_or_default().to_owned(),
            schema: parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        });
    }
    let is_none = fields.get("tool_choice").and_then(Json::as_str) == Some("none");
    Ok(if is_none { Vec::new() } else { tools })
}

fn answer_schema(fields: &Fields<'_>) -> Result<Option<AnswerSchema>, ApiError> {
    let Some(format) = fields.object("response_format")? else { return Ok(None) };
    match format.required_text("type")? {
        "text" => Ok(None),
        "json_object" => Ok(Some(AnswerSchema::Object)),
        "json_schema" => {
            let schema = format.object("json_schema")?.and_then(|schema| schema.get("schema"));
            let schema = schema.ok_or_else(|| format.wrong("json_schema", "has no `schema`"))?;
            Ok(Some(AnswerSchema::Schema(schema.clone())))
        }
        _ => Err(format.wrong("type", "must be `text`, `json_object` or `json_schema`")),
    }
}

/// The messages of a request.
struct Transcript {
    context: String,
    history: Vec<Message>,
    input: ChatInput,
}

impl Transcript {
    fn read(messages: &[Json]) -> Result<Self, ApiError> {
        let mut context = Vec::new();
        let mut history = Vec::new();
        for (index, value) in messages.iter().enumerate() {
            let message = Fields::new(value, format!("messages[{index}]"))?;
            match message.required_text("role")? {
                "system" | "developer" => context.push(content(&message)?),
                "user" => history.push(Message::user(content(&message)?)),
                "assistant" => history.push(Message::assistant(content(&message)?, calls(&message)?)),
                "tool" => {
                    let id = message.required_text("tool_call_id")?;
                    let outcome = ToolOutcome::Value { value: Json::String(content(&message)?) };
                    let is_call = |call: &&ToolCall| call.id == id;
                    let tool =
                        history.iter().rev().flat_map(Message::calls).find(is_call).map(|call| call.tool.clone());
                    let tool = tool.ok_or_else(|| message.wrong("tool_call_id", "there is no such call"))?;
                    history.push(Message::Tool { call_id: id.to_owned(), tool, outcome });
                }
                role => return Err(message.wrong("role", format!("unknown role `{role}`"))),
            }
        }
        let begin = history.iter().rposition(|message| !matches!(message, Message::Tool { .. }));
        let input = match begin.and_then(|begin| history.get(begin)) {
            None => return Err(ApiError::invalid("messages", "there is no message of the user")),
            Some(Message::User { text }) if begin == Some(history.len() - 1) => ChatInput::Text(text.clone()),
            Some(Message::Assistant { calls, .. }) if !calls.is_empty() && begin != Some(history.len() - 1) => {
                let results = history.iter().skip(begin.unwrap_or_default() + 1).filter_map(|message| match message {
                    Message::Tool { call_id, outcome, .. } => {
                        Some(ClientResult { id: call_id.clone(), text: outcome.text() })
                    }
                    Message::User { .. } | Message::Assistant { .. } => None,
                });
                ChatInput::Results(results.collect())
            }
            Some(_) => {
                let message = "the last message must be one of the user, or the result of a call";
                return Err(ApiError::invalid("messages", message));
            }
        };
        history.truncate(begin.unwrap_or_default());
        if let ChatInput::Text(text) = &input
            && text.trim().is_empty()
        {
            return Err(ApiError::invalid("messages", "the last message is empty"));
        }
        let history = in_order(history);
        Ok(Self { context: context.join("\n\n"), history, input })
    }
}

/// Puts results into the order of their calls, as conversations have them.
pub(in crate::serve) fn in_order(messages: Vec<Message>) -> Vec<Message> {
    let mut ordered: Vec<Message> = Vec::with_capacity(messages.len());
    let mut order: Vec<String> = Vec::new();
    let mut results: Vec<Message> = Vec::new();
    let flush = |ordered: &mut Vec<Message>, order: &[String], results: &mut Vec<Message>| {
        let place = |message: &Message| match message {
            Message::Tool { call_id, .. } => order.iter().position(|id| id == call_id).unwrap_or(usize::MAX),
            Message::User { .. } | Message::Assistant { .. } => usize::MAX,
        };
        results.sort_by_key(place);
        ordered.append(results);
    };
    for message in messages {
        if matches!(message, Message::Tool { .. }) {
            results.push(message);
            continue;
        }
        flush(&mut ordered, &order, &mut results);
        order = message.calls().iter().map(|call| call.id.clone()).collect();
        ordered.push(message);
    }
    flush(&mut ordered, &order, &mut results);
    ordered
}

fn calls(message: &Fields<'_>) -> Result<Vec<ToolCall>, ApiError> {
    let Some(list) = message.list("tool_calls")? else { return Ok(Vec::new()) };
    let call = |(index, value): (usize, &Json)| {
        let call = Fields::new(value, message.path(&format!("tool_calls[{index}]")))?;
        let function = call.object("function")?.ok_or_else(|| call.wrong("function", "is missing"))?;
        Ok(ToolCall {
            id: call.required_text("id")?.to_owned(),
            tool: function.required_text("name")?.replace("__", "/"),
            arguments: function.text("arguments")?.unwrap_or_default().to_owned(),
        })
    };
    list.iter().enumerate().map(call).collect()
}

/// Returns the text of a message: a text, or parts of it.
fn content(message: &Fields<'_>) -> Result<String, ApiError> {
    let parts = match message.get("content") {
        None => return Ok(String::new()),
        Some(Json::String(text)) => return Ok(text.clone()),
        Some(_) => message.list("content")?.unwrap_or_default(),
    };
    let text = |(index, value): (usize, &Json)| {
        let part = Fields::new(value, message.path(&format!("content[{index}]")))?;
        match part.required_text("type")? {
            "text" => Ok(part.required_text("text")?.to_owned()),
            "refusal" => Ok(part.required_text("refusal")?.to_owned()),
            kind => Err(part.wrong("type", format!("content of type `{kind}` is not supported; send text"))),
        }
    };
    parts.iter().enumerate().map(text).collect::<Result<Vec<_>, _>>().map(|texts| texts.join("\n"))
}
