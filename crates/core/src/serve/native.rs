//! Patter's own API: agents, sessions, runs and approvals. What other protocols can express is not repeated here.

use super::attachment::{FileSource, attach, checked};
use super::read::{Fields, parse_body};
use super::{ApiError, TurnEnd, TurnOutcome, Waiting};
use crate::compile::CompiledAgent;
use crate::message::attachment::{AttachmentContents, UserInput};
use crate::session::{Log, RunPath};
use serde_json::{Value as Json, json};

/// A message to an agent, with files in Base64: `{"message": "…", "attachments": [{"name": "a.png", "data": "…"}]}`.
///
/// ```
/// use patter_core::serve::native::MessageRequest;
/// let request = MessageRequest::parse(br#"{"agent": "greeter", "message": "Hello"}"#).unwrap();
/// assert_eq!(request.agent.as_deref(), Some("greeter"));
/// let error = MessageRequest::parse(br#"{"agent": "greeter", "mesage": "Hello"}"#).unwrap_err();
/// assert_eq!(error.to_string(), "`mesage`: unknown field; did you mean `message`?");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRequest {
    /// The agent; needed to start a session.
    pub agent: Option<String>,
    /// The id of a new session.
    pub session: Option<String>,
    /// The message.
    pub message: UserInput,
    /// The contents of its attachments.
    pub contents: AttachmentContents,
    /// The URL that learns about the end of the turn.
    pub webhook: Option<String>,
}

/// An answer to a call that waits.
///
/// ```
/// use patter_core::serve::native::{AnswerRequest, Decision};
/// let body = br#"{"call_id": "c1", "hash": "ab", "decision": "refuse", "reason": "too much"}"#;
/// let request = AnswerRequest::parse(body).unwrap();
/// assert_eq!(request.decision, Decision::Refuse("too much".into()));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerRequest {
    /// The calls of agents that lead to the run.
    pub run: RunPath,
    /// The call.
    pub call_id: String,
    /// The hash of the call, as it was listed. Needed for approvals.
    pub hash: Option<String>,
    /// The decision.
    pub decision: Decision,
}

/// A decision about a call that waits.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The call may be made.
    Approve,
    /// The call may not be made, for this reason.
    Refuse(String),
    /// The client made the call, with this result.
    Result(Json),
}

/// A request to fork a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkRequest {
    /// How many messages of the conversation the new session starts with; by default all.
    pub messages: Option<usize>,
    /// The id of the new session.
    pub session: Option<String>,
}

impl MessageRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = parse_body(body)?;
        let fields = Fields::new(&value, "")?;
        fields.only(&["agent", "session", "message", "attachments", "webhook"])?;
        let mut contents = AttachmentContents::default();
        let files = fields.list("attachments")?.unwrap_or_default();
        let file = |(index, value)| {
            let file = Fields::new(value, format!("attachments[{index}]"))?;
            file.only(&["name", "data"])?;
            let source = FileSource::Base64 { field: "data", data: file.required_text("data")? };
            attach(&file, &source, Some(file.required_text("name")?), &mut contents)
        };
        let attachments = files.iter().enumerate().map(file).collect::<Result<Vec<_>, ApiError>>()?;
        let text = match attachments.is_empty() {
            true => fields.required_text("message")?,
            false => fields.text("message")?.unwrap_or_default(),
        };
        let message = checked(UserInput { text: text.to_owned(), attachments }, || "attachments".to_owned())?;
        if message.is_empty() {
            return Err(fields.wrong("message", "is empty"));
        }
        let agent = fields.text("agent")?.map(str::to_owned);
        let webhook = fields.get("webhook").map(|webhook| {
            let webhook = Fields::new(webhook, "webhook")?;
            webhook.only(&["url"])?;
            webhook.required_text("url").map(str::to_owned)
        });
        let session = fields.text("session")?.map(str::to_owned);
        Ok(Self { agent, session, message, contents, webhook: webhook.transpose()? })
    }
}

impl AnswerRequest {
    /// Reads the body of a request.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        let value = parse_body(body)?;
        let fields = Fields::new(&value, "")?;
        fields.only(&["run", "call_id", "hash", "decision", "reason", "result"])?;
        let run = fields.list("run")?.unwrap_or_default().iter();
        let run = run.map(|id| id.as_str().map(str::to_owned)).collect::<Option<_>>();
        let hash = fields.text("hash")?.map(str::to_owned);
        let decision = match fields.required_text("decision")? {
            "approve" => Decision::Approve,
            "refuse" => Decision::Refuse(fields.text("reason")?.unwrap_or_default().to_owned()),
            "result" => Decision::Result(fields.object.get("result").cloned().unwrap_or(Json::Null)),
            _ => return Err(fields.wrong("decision", "must be `approve`, `refuse` or `result`")),
        };
        if decision == Decision::Approve && hash.is_none() {
            return Err(fields.wrong("hash", "is missing: an approval is about exactly the call that was listed"));
        }
        Ok(Self {
            run: run.ok_or_else(|| fields.wrong("run", "is not a list of texts"))?,
            call_id: fields.required_text("call_id")?.to_owned(),
            hash,
            decision,
        })
    }
}

impl ForkRequest {
    /// Reads the body of a request, which may be empty.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.is_empty() {
            return Ok(Self::default());
        }
        let value = parse_body(body)?;
        let fields = Fields::new(&value, "")?;
        fields.only(&["messages", "session"])?;
        let count = |value: &Json| value.as_u64().and_then(|count| usize::try_from(count).ok());
        let messages =
            fields.get("messages").map(|value| count(value).ok_or_else(|| fields.wrong("messages", "is not a number")));
        Ok(Self { messages: messages.transpose()?, session: fields.text("session")?.map(str::to_owned) })
    }
}

/// Returns an agent: what it is for, its model and its tools.
pub fn agent_json(compiled: &CompiledAgent) -> Json {
    let tools = compiled.offered_tools().iter().zip(&compiled.spec().tools).map(
        |(tool, callable)| json!({"name": callable.name, "description": tool.description, "parameters": tool.schema}),
    );
    json!({
        "name": compiled.name(),
        "description": compiled.declaration().description(),
        "model": compiled.model().to_string(),
        "tools": tools.collect::<Vec<_>>(),
        "returns": compiled.returns(),
    })
}

/// Returns how a turn ended.
pub fn turn_json(session: Option<&str>, end: &TurnEnd) -> Json {
    let (status, details) = match &end.outcome {
        TurnOutcome::Answered { text, value, finish } => {
            ("answered", json!({"text": text, "value": value, "finish": finish.name()}))
        }
        TurnOutcome::Failed(failure) => {
            ("failed", json!({"error": {"kind": failure.kind.name(), "message": failure.message}}))
        }
        TurnOutcome::Cancelled => ("cancelled", json!({})),
        TurnOutcome::Waiting(calls) => ("waiting", json!({"waiting": calls})),
    };
    let mut turn = json!({"session": session, "status": status, "usage": end.usage});
    if let (Some(turn), Json::Object(details)) = (turn.as_object_mut(), details) {
        turn.extend(details);
    }
    turn
}

/// Returns a session: its conversation, its turns, and the calls that wait.
pub fn log_json(log: &Log) -> Json {
    json!({
        "messages": log.conversation().iter().collect::<Vec<_>>(),
        "turns": log.turns(),
        "waiting": Waiting::all(log),
        "usage": log.usage(),
    })
}
