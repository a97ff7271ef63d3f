//! Requests and notifications of the client.

use super::prompt::read_prompt;
use super::rpc::RpcError;
use crate::message::attachment::{AttachmentContents, UserInput};
use crate::serve::ApiError;
use crate::serve::read::Fields;
use serde_json::{Map, Value as Json};
use std::path::Path;

/// The id of the option that chooses the agent of a session.
pub const AGENT_OPTION: &str = "agent";

/// A request of the client.
///
/// ```
/// use patter_core::serve::acp::{ClientRequest, RpcError};
/// use serde_json::json;
/// let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "Hello"}]});
/// let request = ClientRequest::parse("session/prompt", &params).unwrap();
/// assert!(matches!(request, ClientRequest::Prompt { input, .. } if input.text == "Hello"));
/// let error = ClientRequest::parse("session/new", &json!({"cwd": "here"})).unwrap_err();
/// assert_eq!((error.code, error.message.as_str()), (RpcError::INVALID_PARAMS, "`cwd`: is not an absolute path"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum ClientRequest {
    /// `initialize`.
    Initialize {
        /// Whether the client shows notices.
        notices: bool,
    },
    /// `authenticate`.
    Authenticate,
    /// `session/new`.
    NewSession(SessionSetup),
    /// `session/load`: opens a session, and sends what happened in it.
    LoadSession {
        /// The session.
        session: String,
        /// How it is opened.
        setup: SessionSetup,
    },
    /// `session/resume`: opens a session.
    ResumeSession {
        /// The session.
        session: String,
        /// How it is opened.
        setup: SessionSetup,
    },
    /// `session/list`.
    ListSessions {
        /// The folder whose sessions are listed.
        cwd: Option<String>,
        /// How many sessions precede the page.
        offset: usize,
    },
    /// `session/delete`.
    DeleteSession {
        /// The session.
        session: String,
    },
    /// `session/close`.
    CloseSession {
        /// The session.
        session: String,
    },
    /// `session/set_mode`.
    SetMode {
        /// The session.
        session: String,
        /// The agent.
        agent: String,
    },
    /// `session/set_config_option`, with the option for the agent.
    SetAgentOption {
        /// The session.
        session: String,
        /// The agent.
        agent: String,
    },
    /// `session/prompt`.
    Prompt {
        /// The session.
        session: String,
        /// What the user says.
        input: UserInput,
        /// The contents of its attachments.
        contents: AttachmentContents,
    },
}

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SessionSetup {
    /// The number of MCP servers that the client offers. They are not started: only what a project declares is, once the user
    /// trusts it.
    pub offered_servers: usize,
}

/// A notification of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientNotification {
    /// `session/cancel`.
    Cancel {
        /// The session.
        session: String,
    },
    /// `$/cancel_request`.
    CancelRequest {
        /// The id of the request.
        id: Json,
    },
}

impl ClientRequest {
    /// Reads a request. Fields that are not known are ignored, as the protocol demands.
    pub fn parse(method: &str, params: &Json) -> Result<Self, RpcError> {
        let none = Json::Object(Map::new());
        let params = if params.is_null() { &none } else { params };
        let Json::Object(_) = params else { return Err(RpcError::invalid_params("the parameters are not an object")) };
        let fields = Fields::new(params, "")?;
        let session = || fields.required_text("sessionId").map(str::to_owned);
        Ok(match method {
            "initialize" => {
                if fields.get("protocolVersion").and_then(Json::as_u64).is_none() {
                    return Err(fields.wrong("protocolVersion", "is not a number").into());
                }
                let notices = params.pointer("/clientCapabilities/session/notices");
                Self::Initialize { notices: notices.is_some_and(Json::is_object) }
            }
            "authenticate" => Self::Authenticate,
            "session/new" => Self::NewSession(setup(&fields)?),
            "session/load" => Self::LoadSession { session: session()?, setup: setup(&fields)? },
            "session/resume" => Self::ResumeSession { session: session()?, setup: setup(&fields)? },
            "session/list" => {
                let cwd = fields.get("cwd").map(|_| folder(&fields)).transpose()?.map(str::to_owned);
                let cursor = fields.text("cursor")?.map(str::parse);
                let offset = cursor.transpose().map_err(|_| fields.wrong("cursor", "is not from this agent"))?;
                Self::ListSessions { cwd, offset: offset.unwrap_or(0) }
            }
            "session/delete" => Self::DeleteSession { session: session()? },
            "session/close" => Self::CloseSession { session: session()? },
            "session/set_mode" => {
                Self::SetMode { session: session()?, agent: fields.required_text("modeId")?.to_owned() }
            }
            "session/set_config_option" => {
                if fields.required_text("configId")? != AGENT_OPTION {
                    return Err(fields.wrong("configId", format!("there is only the option `{AGENT_OPTION}`")).into());
                }
                Self::SetAgentOption { session: session()?, agent: fields.required_text("value")?.to_owned() }
            }
            "session/prompt" => {
                let blocks = fields.list("prompt")?.ok_or_else(|| fields.wrong("prompt", "is missing"))?;
                let (input, contents) = read_prompt(blocks)?;
                Self::Prompt { session: session()?, input, contents }
            }
            _ => return Err(RpcError::unknown_method(method)),
        })
    }
}

impl ClientNotification {
    /// Reads a notification. Others, and those that are malformed, are ignored.
    pub fn parse(method: &str, params: &Json) -> Option<Self> {
        match method {
            "session/cancel" => Some(Self::Cancel { session: params.get("sessionId")?.as_str()?.to_owned() }),
            "$/cancel_request" => Some(Self::CancelRequest { id: params.get("requestId")?.clone() }),
            _ => None,
        }
    }
}

fn setup(fields: &Fields<'_>) -> Result<SessionSetup, ApiError> {
    folder(fields)?;
    Ok(SessionSetup { offered_servers: fields.list("mcpServers")?.map_or(0, <[_]>::len) })
}

fn folder<'j>(fields: &Fields<'j>) -> Result<&'j str, ApiError> {
    let cwd = fields.required_text("cwd")?;
    if Path::new(cwd).is_absolute() { Ok(cwd) } else { Err(fields.wrong("cwd", "is not an absolute path")) }
}
