//! Requests for chat completions.

use crate::message::attachment::{AttachmentContents, UserInput};
use crate::message::conversation::{Message, ToolOutcome};
use crate::run::{ClientAdditions, ClientTool};
use crate::serve::ApiError;
use crate::serve::attachment::{FileSource, user_content};
use crate::serve::client::{AnswerSchema, client_tools, function_calls, in_order, text_content};
use crate::serve::read::{Fields, parse_body};
use serde_json::Value as Json;
use std::collections::HashMap;

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
    /// The contents of the attachments of the input and of the history.
    pub contents: AttachmentContents,
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
    Text(UserInput),
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

/// The type of parts with text.
const TEXT: &[&str] = &["text"];

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
        let Transcript { context, history, input, contents } = Transcript::read(messages)?;
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
            contents,
            client: ClientAdditions { tools: tools(&fields)?, context },
            stream: fields.flag("stream")?.unwrap_or(false),
            include_usage,
            session,
            store: fields.flag("store")?.unwrap_or(true),
            answer_schema: answer_schema(&fields)?,
            ignored: fields.others(READ),
        })
    }

    /// Checks that the answers of an agent are what the client expects.
    pub fn check_answer(&self, returns: Option<&Json>) -> Result<(), ApiError> {
        let Some(schema) = &self.answer_schema else { return Ok(()) };
        schema.check(returns).map_err(|message| ApiError::invalid("response_format", message))
    }
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
    Ok(())
}

fn tools(fields: &Fields<'_>) -> Result<Vec<ClientTool>, ApiError> {
    client_tools(fields, |tool| {
        if tool.required_text("type")? != "function" {
            return Err(tool.wrong("type", "must be `function`"));
        }
        tool.object("function")?.ok_or_else(|| tool.wrong("function", "is missing"))
    })
}

fn answer_schema(fields: &Fields<'_>) -> Result<Option<AnswerSchema>, ApiError> {
    let Some(format) = fields.object("response_format")? else { return Ok(None) };
    AnswerSchema::read(&format, || {
        let schema = format.object("json_schema")?.and_then(|schema| schema.get("schema"));
        schema.ok_or_else(|| format.wrong("json_schema", "has no `schema`"))
    })
}

/// The messages of a request.
struct Transcript {
    context: String,
    history: Vec<Message>,
    input: ChatInput,
    contents: AttachmentContents,
}

impl Transcript {
    fn read(messages: &[Json]) -> Result<Self, ApiError> {
        let mut context = Vec::new();
        let mut history = Vec::new();
        let mut contents = AttachmentContents::default();
        // The tools of the calls so far.
        let mut tools: HashMap<String, String> = HashMap::new();
        for (index, value) in messages.iter().enumerate() {
            let message = Fields::new(value, format!("messages[{index}]"))?;
            match message.required_text("role")? {
                "system" | "developer" => context.push(text_content(&message, "content", TEXT)?),
                "user" => history.push(user_content(&message, "content", TEXT, &mut contents, file)?.into()),
                "assistant" => {
                    let calls = function_calls(&message, "tool_calls")?;
                    tools.extend(calls.iter().map(|call| (call.id.clone(), call.tool.clone())));
                    history.push(Message::assistant(text_content(&message, "content", TEXT)?, calls));
                }
                "tool" => {
                    let id = message.required_text("tool_call_id")?;
                    let outcome = ToolOutcome::Value { value: Json::String(text_content(&message, "content", TEXT)?) };
                    let tool = tools.get(id).cloned();
                    let tool = tool.ok_or_else(|| message.wrong("tool_call_id", "there is no such call"))?;
                    history.push(Message::Tool { call_id: id.to_owned(), tool, outcome });
                }
                role => return Err(message.wrong("role", format!("unknown role `{role}`"))),
            }
        }
        let begin = history.iter().rposition(|message| !matches!(message, Message::Tool { .. }));
        let input = match begin.and_then(|begin| history.get(begin)) {
            None => return Err(ApiError::invalid("messages", "there is no message of the user")),
            Some(Message::User { text, attachments }) if begin == Some(history.len() - 1) => {
                ChatInput::Text(UserInput { text: text.clone(), attachments: attachments.clone() })
            }
            Some(Message::Assistant { calls, .. }) if !calls.is_empty() && begin != Some(history.len() - 1) => {
                let results = history.iter().skip(begin.unwrap_or_default() + 1).filter_map(|message| match message {
                    Message::Tool { call_id, outcome, .. } => {
                        Some(ClientResult { id: call_id.clone(), text: outcome.text() })
                    }
                    Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => None,
                });
                ChatInput::Results(results.collect())
            }
            Some(_) => {
                let message = "the last message must be one of the user, or the result of a call";
                return Err(ApiError::invalid("messages", message));
            }
        };
        history.truncate(begin.unwrap_or_default());
        if let ChatInput::Text(input) = &input
            && input.is_empty()
        {
            return Err(ApiError::invalid("messages", "the last message is empty"));
        }
        let history = in_order(history);
        Ok(Self { context: context.join("\n\n"), history, input, contents })
    }
}

/// Returns the file of a part, and its name.
fn file<'j>(part: &Fields<'j>, kind: &str) -> Result<Option<(FileSource<'j>, Option<&'j str>)>, ApiError> {
    match kind {
        "image_url" => {
            let image = part.object("image_url")?.ok_or_else(|| part.wrong("image_url", "is missing"))?;
            Ok(Some((FileSource::Url { field: "image_url.url", url: image.required_text("url")? }, Some("image"))))
        }
        "file" => {
            let file = part.object("file")?.ok_or_else(|| part.wrong("file", "is missing"))?;
            let missing = || part.wrong("file.file_data", "is missing: files have to be part of the request");
            let data = file.text("file_data")?.ok_or_else(missing)?;
            Ok(Some((FileSource::Base64 { field: "file.file_data", data }, file.text("filename")?)))
        }
        _ => Ok(None),
    }
}
