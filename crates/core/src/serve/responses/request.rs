//! Requests for responses.

use super::id::ResponseId;
use super::input::{ResponsesInput, Transcript};
use crate::message::attachment::AttachmentContents;
use crate::message::conversation::Message;
use crate::run::{ClientAdditions, ClientTool};
use crate::serve::client::{AnswerSchema, client_tools};
use crate::serve::read::{Fields, parse_body};
use crate::serve::{ApiError, ApiErrorKind};
use serde_json::{Value as Json, json};

/// A request for a response.
///
/// ```
/// use patter_core::serve::responses::{ResponsesInput, ResponsesRequest};
/// let body = br#"{"model": "greeter", "input": "Hello!", "instructions": "The user is Ada.", "top_p": 1}"#;
/// let request = ResponsesRequest::parse(body).unwrap();
/// assert_eq!(request.input, ResponsesInput::Text("Hello!".into()));
/// assert_eq!(request.client.context, "The user is Ada.");
/// assert_eq!(request.ignored, ["top_p"]);
/// let error = ResponsesRequest::parse(br#"{"model": "greeter", "input": []}"#).unwrap_err();
/// assert_eq!(error.param.as_deref(), Some("input"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ResponsesRequest {
    /// The agent.
    pub model: String,
    /// The conversation before the input, besides what the server knows.
    pub history: Vec<Message>,
    /// What the client says.
    pub input: ResponsesInput,
    /// The contents of the attachments of the input and of the history.
    pub contents: AttachmentContents,
    /// What the response continues.
    pub previous: PreviousState,
    /// The tools and the context of the client.
    pub client: ClientAdditions,
    /// Whether the response is a stream.
    pub stream: bool,
    /// Whether the response is stored.
    pub store: bool,
    /// Whether the run continues without the client.
    pub background: bool,
    /// The schema that the answer has to match.
    pub answer_schema: Option<AnswerSchema>,
    /// The format of the text as the client wrote it.
    pub format: Option<Json>,
    /// What the client wants to remember.
    pub metadata: Json,
    /// The fields that have no effect, because the agent decides what they are about.
    pub ignored: Vec<String>,
}

/// What a response continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviousState {
    /// Nothing.
    None,
    /// Another response.
    Response(ResponseId),
    /// A conversation, which is a session.
    Conversation(String),
}

/// Fields that are read.
const READ: &[&str] = &[
    "model",
    "input",
    "previous_response_id",
    "conversation",
    "instructions",
    "tools",
    "tool_choice",
    "text",
    "store",
    "background",
    "stream",
    "metadata",
    "user",
];

impl ResponsesRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = parse_body(body)?;
        let fields = Fields::new(&value, "")?;
        let model = fields.required_text("model")?.to_owned();
        refuse_unsupported(&fields)?;
        let input = fields.get("input").ok_or_else(|| fields.wrong("input", "is missing"))?;
        let Transcript { context, history, input, contents } = Transcript::read(input)?;
        let context: Vec<_> = fields.text("instructions")?.map(str::to_owned).into_iter().chain(context).collect();
        let format = fields.object("text")?.and_then(|text| text.get("format")).cloned();
        let store = fields.flag("store")?.unwrap_or(true);
        let background = fields.flag("background")?.unwrap_or(false);
        if background && !store {
            return Err(fields.wrong("background", "a response in the background has to be stored"));
        }
        Ok(Self {
            model,
            history,
            input: input.ok_or_else(|| fields.wrong("input", "is empty"))?,
            contents,
            previous: previous(&fields)?,
            client: ClientAdditions { tools: tools(&fields)?, context: context.join("\n\n") },
            stream: fields.flag("stream")?.unwrap_or(false),
            store,
            background,
            answer_schema: answer_schema(format.as_ref())?,
            format,
            metadata: fields.get("metadata").cloned().unwrap_or_else(|| json!({})),
            ignored: fields.others(READ),
        })
    }

    /// Checks that the answers of an agent are what the client expects.
    pub fn check_answer(&self, returns: Option<&Json>) -> Result<(), ApiError> {
        let Some(schema) = &self.answer_schema else { return Ok(()) };
        schema.check(returns).map_err(|message| ApiError::invalid("text.format", message))
    }
}

/// Refuses what an agent cannot do, instead of doing something else.
fn refuse_unsupported(fields: &Fields<'_>) -> Result<(), ApiError> {
    for name in ["prompt", "max_tool_calls", "context_management"] {
        if fields.get(name).is_some() {
            return Err(fields.wrong(name, "is not supported"));
        }
    }
    Ok(())
}

fn previous(fields: &Fields<'_>) -> Result<PreviousState, ApiError> {
    let conversation = match fields.get("conversation") {
        Some(Json::Object(_)) => fields.object("conversation")?.map(|value| value.required_text("id")).transpose()?,
        _ => fields.text("conversation")?,
    };
    match (fields.text("previous_response_id")?, conversation) {
        (None, None) => Ok(PreviousState::None),
        (None, Some(id)) => Ok(PreviousState::Conversation(id.to_owned())),
        (Some(id), None) => {
            let missing = || {
                let message = format!("there is no response `{id}`");
                ApiError { kind: ApiErrorKind::NotFound, param: Some("previous_response_id".to_owned()), message }
            };
            ResponseId::parse(id).map(PreviousState::Response).ok_or_else(missing)
        }
        (Some(_), Some(_)) => Err(fields.wrong("conversation", "cannot be used with `previous_response_id`")),
    }
}

fn tools(fields: &Fields<'_>) -> Result<Vec<ClientTool>, ApiError> {
    client_tools(fields, |tool| match tool.required_text("type")? {
        "function" => Ok(tool),
        _ => Err(tool.wrong("type", "must be `function`: the agent has its own tools")),
    })
}

fn answer_schema(format: Option<&Json>) -> Result<Option<AnswerSchema>, ApiError> {
    let Some(format) = format else { return Ok(None) };
    let format = Fields::new(format, "text.format")?;
    AnswerSchema::read(&format, || format.get("schema").ok_or_else(|| format.wrong("schema", "is missing")))
}
