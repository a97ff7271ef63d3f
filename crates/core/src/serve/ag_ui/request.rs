//! Requests of web pages.

use crate::message::attachment::{AttachmentContents, UserInput};
use crate::message::conversation::{Message, ToolOutcome};
use crate::run::{ClientAdditions, ClientTool};
use crate::serve::ApiError;
use crate::serve::attachment::{FileSource, checked, user_content};
use crate::serve::client::{function_calls, in_order, result_id, text_content};
use crate::serve::read::{Fields, parse_body};
use serde_json::{Value as Json, json};
use std::collections::{HashMap, HashSet};

/// A request for a run.
///
/// ```
/// use patter_core::serve::ag_ui::{AgUiInput, AgUiRequest};
/// let body = br#"{"threadId": "monday", "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "Hello"}]}"#;
/// let request = AgUiRequest::parse(body).unwrap();
/// assert_eq!((request.thread.as_str(), request.input), ("monday", AgUiInput::Text("Hello".into())));
/// let error = AgUiRequest::parse(br#"{"threadId": "monday", "runId": "r1", "messages": []}"#).unwrap_err();
/// assert_eq!(error.message, "the last message must be one of the user or the result of a tool");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AgUiRequest {
    /// The thread, which is a session.
    pub thread: String,
    /// The run, as the page names it.
    pub run: String,
    /// The run that this one belongs to.
    pub parent_run: Option<String>,
    /// What the page says.
    pub input: AgUiInput,
    /// The contents of the attachments of the input and of the history.
    pub contents: AttachmentContents,
    /// The tools that the page executes, and what it adds to the instruction.
    pub client: ClientAdditions,
    /// The model to use instead of that of the agent: `forwardedProps.model`.
    pub model: Option<String>,
    /// The name of the tools to use instead of some of the project: `forwardedProps.tools`.
    pub variant: Option<String>,
    /// The conversation before the input.
    history: Vec<Message>,
    /// Fields that have no effect.
    pub ignored: Vec<String>,
}

/// What a page says.
#[derive(Debug, Clone, PartialEq)]
pub enum AgUiInput {
    /// A message.
    Text(UserInput),
    /// Answers to interrupts, and results of tools that the page executed.
    Answers {
        /// The answers to interrupts.
        interrupts: Vec<InterruptAnswer>,
        /// The results.
        results: Vec<ToolResult>,
    },
}

/// The answer to an interrupt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptAnswer {
    /// The interrupt.
    pub id: String,
    /// Whether the call may be made; if not, why.
    pub decision: Result<(), String>,
}

/// The result of a tool that a page executed.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call.
    pub id: String,
    /// The outcome.
    pub outcome: ToolOutcome,
}

/// The type of parts with text.
const TEXT: &[&str] = &["text"];

/// The reason of a refusal without one.
const REFUSED: &str = "the user did not approve the call";

/// Fields that are read.
const READ: &[&str] = &[
    "threadId",
    "runId",
    "protocolVersion",
    "parentRunId",
    "messages",
    "tools",
    "context",
    "resume",
    "forwardedProps",
];

impl AgUiRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = parse_body(body)?;
        let fields = Fields::new(&value, "")?;
        let messages = fields.list("messages")?.ok_or_else(|| fields.wrong("messages", "is missing"))?;
        let mut transcript = Transcript::read(messages)?;
        let interrupts = interrupts(&fields)?;
        let results = transcript.take_results();
        let input = match interrupts.is_empty() && results.is_empty() {
            true => AgUiInput::Text(transcript.take_input()?),
            false => AgUiInput::Answers { interrupts, results },
        };
        let context = transcript.context.into_iter().chain(context(&fields)?);
        let is_empty = |name: &String| fields.get(name).is_none_or(is_empty);
        Ok(Self {
            thread: fields.required_text("threadId")?.to_owned(),
            run: fields.required_text("runId")?.to_owned(),
            parent_run: fields.text("parentRunId")?.map(str::to_owned),
            input,
            contents: transcript.contents,
            client: ClientAdditions { tools: tools(&fields)?, context: context.collect::<Vec<_>>().join("\n\n") },
            history: transcript.messages,
            model: chosen(&fields, "model")?,
            variant: chosen(&fields, "tools")?,
            ignored: fields.others(READ).into_iter().filter(|name| !is_empty(name)).collect(),
        })
    }

    /// Returns the conversation before the input, for a thread that is new.
    pub fn history(&self) -> Result<Vec<Message>, ApiError> {
        let results: HashSet<_> = self.history.iter().filter_map(result_id).collect();
        let mut calls = self.history.iter().flat_map(Message::calls);
        match calls.find(|call| !results.contains(call.id.as_str())) {
            Some(call) => Err(ApiError::invalid("messages", format!("there is no result of the call `{}`", call.id))),
            None => Ok(in_order(self.history.clone())),
        }
    }
}

/// Returns what the page chose, if it chose something.
fn chosen(fields: &Fields<'_>, what: &str) -> Result<Option<String>, ApiError> {
    match fields.get("forwardedProps").and_then(|props| props.get(what)) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(name)) => Ok(Some(name.clone())),
        Some(_) => Err(fields.wrong(&format!("forwardedProps.{what}"), "is not a text")),
    }
}

/// Returns whether a value says nothing: pages send an empty state with each request.
fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Object(members) => members.is_empty(),
        Json::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn tools(fields: &Fields<'_>) -> Result<Vec<ClientTool>, ApiError> {
    let tool = |(index, value)| {
        let tool = Fields::new(value, format!("tools[{index}]"))?;
        let schema = tool.get("parameters").filter(|schema| !is_empty(schema)).cloned();
        Ok(ClientTool {
            name: tool.required_text("name")?.to_owned(),
            description: tool.text("description")?.unwrap_or_default().to_owned(),
            schema: schema.unwrap_or_else(|| json!({"type": "object", "properties": {}})),
        })
    };
    fields.list("tools")?.unwrap_or_default().iter().enumerate().map(tool).collect()
}

/// Returns what the page tells about its state.
fn context(fields: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    let entry = |(index, value)| {
        let entry = Fields::new(value, format!("context[{index}]"))?;
        Ok(format!("{}: {}", entry.required_text("description")?, entry.required_text("value")?))
    };
    fields.list("context")?.unwrap_or_default().iter().enumerate().map(entry).collect()
}

fn interrupts(fields: &Fields<'_>) -> Result<Vec<InterruptAnswer>, ApiError> {
    let answer = |(index, value)| {
        let entry = Fields::new(value, format!("resume[{index}]"))?;
        let id = entry.required_text("interruptId")?.to_owned();
        let decision = match entry.required_text("status")? {
            "resolved" => decision(&entry)?,
            "cancelled" => Err(REFUSED.to_owned()),
            _ => return Err(entry.wrong("status", "must be `resolved` or `cancelled`")),
        };
        Ok(InterruptAnswer { id, decision })
    };
    fields.list("resume")?.unwrap_or_default().iter().enumerate().map(answer).collect()
}

/// Returns what the payload of an answer says. Anything but a clear yes or no is an error, so nothing is approved by mistake.
fn decision(entry: &Fields<'_>) -> Result<Result<(), String>, ApiError> {
    let unclear = || entry.wrong("payload", "must be {\"approved\": true} or {\"approved\": false}");
    let payload = match entry.get("payload") {
        Some(Json::Bool(true)) => return Ok(Ok(())),
        Some(Json::Bool(false)) => return Ok(Err(REFUSED.to_owned())),
        _ => entry.object("payload")?.ok_or_else(unclear)?,
    };
    match payload.flag("approved")?.ok_or_else(unclear)? {
        true => Ok(Ok(())),
        false => Ok(Err(payload.text("reason")?.unwrap_or(REFUSED).to_owned())),
    }
}

/// The messages of a request.
#[derive(Default)]
struct Transcript {
    context: Vec<String>,
    messages: Vec<Message>,
    contents: AttachmentContents,
}

impl Transcript {
    fn read(messages: &[Json]) -> Result<Self, ApiError> {
        let mut transcript = Self::default();
        // The tools of the calls so far.
        let mut tools: HashMap<String, String> = HashMap::new();
        for (index, value) in messages.iter().enumerate() {
            let message = Fields::new(value, format!("messages[{index}]"))?;
            // The conversations of called agents are their own.
            if message.get("subagentRunId").is_some() {
                continue;
            }
            let content = || text_content(&message, "content", TEXT);
            match message.required_text("role")? {
                "system" | "developer" => transcript.context.push(content()?),
                "user" => {
                    let input = user_content(&message, "content", TEXT, &mut transcript.contents, file)?;
                    transcript.messages.push(input.into());
                }
                "assistant" => {
                    let calls = function_calls(&message, "toolCalls")?;
                    tools.extend(calls.iter().map(|call| (call.id.clone(), call.tool.clone())));
                    transcript.messages.push(Message::assistant(content()?, calls));
                }
                "tool" => {
                    let call_id = message.required_text("toolCallId")?.to_owned();
                    let tool = tools.get(&call_id);
                    let tool = tool.ok_or_else(|| message.wrong("toolCallId", "there is no such call"))?.clone();
                    let outcome = match message.text("error")? {
                        Some(error) => ToolOutcome::Error { message: error.to_owned() },
                        None => ToolOutcome::Value { value: Json::String(content()?) },
                    };
                    transcript.messages.push(Message::Tool { call_id, tool, outcome });
                }
                "reasoning" | "activity" => {}
                role => return Err(message.wrong("role", format!("unknown role `{role}`"))),
            }
        }
        Ok(transcript)
    }

    /// Takes the results at the end.
    fn take_results(&mut self) -> Vec<ToolResult> {
        let begin = self.messages.iter().rposition(|message| result_id(message).is_none()).map_or(0, |last| last + 1);
        let results = self.messages.drain(begin..).filter_map(|message| match message {
            Message::Tool { call_id, outcome, .. } => Some(ToolResult { id: call_id, outcome }),
            Message::User { .. } | Message::Assistant { .. } | Message::Compacted { .. } => None,
        });
        results.collect()
    }

    /// Takes the messages of the user at the end.
    fn take_input(&mut self) -> Result<UserInput, ApiError> {
        let is_other = |message: &Message| !matches!(message, Message::User { .. });
        let begin = self.messages.iter().rposition(is_other).map_or(0, |last| last + 1);
        let mut input = UserInput::default();
        for message in self.messages.drain(begin..) {
            if let Message::User { text, attachments } = message {
                input.append(UserInput { text, attachments });
            }
        }
        let message = "the last message must be one of the user or the result of a tool";
        if input.is_empty() {
            Err(ApiError::invalid("messages", message))
        } else {
            checked(input, || "messages".to_owned())
        }
    }
}

/// Returns the file of a part, and its name. Besides the parts of the protocol, there are those of its draft.
fn file<'j>(part: &Fields<'j>, kind: &str) -> Result<Option<(FileSource<'j>, Option<&'j str>)>, ApiError> {
    let named = |name: &'static str| {
        let metadata = part.object("metadata")?;
        let found = metadata.and_then(|metadata| metadata.text("filename").ok().flatten());
        Ok::<_, ApiError>(found.or(Some(name)))
    };
    match kind {
        "image" | "document" => {
            let source = part.object("source")?.ok_or_else(|| part.wrong("source", "is missing"))?;
            let value = source.required_text("value")?;
            let field = "source.value";
            let source = match source.required_text("type")? {
                "data" => FileSource::Base64 { field, data: value },
                "url" => FileSource::Url { field, url: value },
                _ => return Err(part.wrong("source.type", "must be `data` or `url`")),
            };
            Ok(Some((source, named(if kind == "image" { "image" } else { "document" })?)))
        }
        "binary" => {
            let name = part.text("filename")?;
            match (part.text("data")?, part.text("url")?) {
                (Some(data), _) => Ok(Some((FileSource::Base64 { field: "data", data }, name))),
                (None, Some(url)) => Ok(Some((FileSource::Url { field: "url", url }, name))),
                (None, None) => Err(part.wrong("data", "is missing: files have to be part of the request")),
            }
        }
        _ => Ok(None),
    }
}
