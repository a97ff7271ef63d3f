//! The input of a request: a text, or items.

use crate::message::attachment::{AttachmentContents, UserInput};
use crate::message::conversation::{Message, ToolCall, ToolOutcome};
use crate::serve::ApiError;
use crate::serve::attachment::{FileSource, user_content};
use crate::serve::chat::{ClientResult, split_call_id};
use crate::serve::client::{in_order, result_id, text_content};
use crate::serve::read::Fields;
use serde_json::Value as Json;
use std::collections::HashSet;

/// What a client says.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponsesInput {
    /// A message.
    Text(UserInput),
    /// Answers to calls that wait.
    Answers(Vec<ClientAnswer>),
}

/// An answer to a call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAnswer {
    /// The result of a call that the client made.
    Result(ClientResult),
    /// The decision about a call that needs approval.
    Approval {
        /// The id of the request for approval.
        id: String,
        /// Whether the call may be made.
        approve: bool,
        /// Why not.
        reason: String,
    },
}

/// The types of parts with text.
const TEXT: &[&str] = &["input_text", "output_text", "text"];

/// The items of a request.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    pub(super) context: Vec<String>,
    pub(super) history: Vec<Message>,
    pub(super) input: Option<ResponsesInput>,
    pub(super) contents: AttachmentContents,
}

impl Transcript {
    pub(super) fn read(input: &Json) -> Result<Self, ApiError> {
        let items = match input {
            Json::String(text) => {
                let input = Some(ResponsesInput::Text(text.into()));
                return Self { input, ..Self::default() }.checked();
            }
            Json::Array(items) => items,
            _ => return Err(ApiError::invalid("input", "is neither a text nor a list of items")),
        };
        let mut transcript = Self::default();
        let mut answers = Vec::new();
        for (index, value) in items.iter().enumerate() {
            let item = Fields::new(value, format!("input[{index}]"))?;
            match answer(&item)? {
                Some(answer) => answers.push(answer),
                // Answers that something follows are part of the history.
                None => answers.clear(),
            }
            transcript.add(&item)?;
        }
        transcript.input = match transcript.history.last() {
            _ if !answers.is_empty() => Some(ResponsesInput::Answers(answers)),
            Some(Message::User { text, attachments }) => {
                Some(ResponsesInput::Text(UserInput { text: text.clone(), attachments: attachments.clone() }))
            }
            _ => None,
        };
        if let Some(ResponsesInput::Text(_)) = transcript.input {
            transcript.history.pop();
        }
        transcript.checked()
    }

    fn checked(mut self) -> Result<Self, ApiError> {
        match &self.input {
            None => {
                let message = "the last item must be a message of the user, or the answer to a call that waits";
                return Err(ApiError::invalid("input", message));
            }
            Some(ResponsesInput::Text(input)) if input.is_empty() => {
                return Err(ApiError::invalid("input", "is empty"));
            }
            Some(ResponsesInput::Answers(_)) => self.history.clear(),
            Some(ResponsesInput::Text(_)) => {}
        }
        let outputs: HashSet<_> = self.history.iter().filter_map(result_id).collect();
        if let Some(call) =
            self.history.iter().flat_map(Message::calls).find(|call| !outputs.contains(call.id.as_str()))
        {
            return Err(ApiError::invalid("input", format!("there is no output of the call `{}`", call.id)));
        }
        self.history = in_order(self.history);
        Ok(self)
    }

    fn add(&mut self, item: &Fields<'_>) -> Result<(), ApiError> {
        match item_type(item)? {
            "message" => match item.required_text("role")? {
                "system" | "developer" => self.context.push(text(item, "content")?),
                "user" => {
                    let input = user_content(item, "content", TEXT, &mut self.contents, file)?;
                    self.history.push(input.into());
                }
                "assistant" => self.history.push(Message::assistant(text(item, "content")?, Vec::new())),
                role => return Err(item.wrong("role", format!("unknown role `{role}`"))),
            },
            "function_call" => {
                let call = ToolCall {
                    id: item.required_text("call_id")?.to_owned(),
                    tool: item.required_text("name")?.replace("__", "/"),
                    arguments: item.text("arguments")?.unwrap_or_default().to_owned(),
                };
                match self.history.last_mut() {
                    Some(Message::Assistant { calls, .. }) => calls.push(call),
                    _ => self.history.push(Message::assistant("", vec![call])),
                }
            }
            "function_call_output" => {
                let id = item.required_text("call_id")?;
                let value = Json::String(text(item, "output")?);
                let mut calls = self.history.iter().rev().flat_map(Message::calls);
                match calls.find(|call| call.id == id).map(|call| call.tool.clone()) {
                    Some(tool) => {
                        let outcome = ToolOutcome::Value { value };
                        self.history.push(Message::Tool { call_id: id.to_owned(), tool, outcome });
                    }
                    // The session that waits for it knows the call.
                    None if split_call_id(id).is_some() => {}
                    None => return Err(item.wrong("call_id", "there is no such call")),
                }
            }
            // What clients send back of earlier responses.
            "mcp_approval_request" | "mcp_approval_response" | "reasoning" => {}
            kind => return Err(item.wrong("type", format!("items of type `{kind}` are not supported"))),
        }
        Ok(())
    }
}

fn item_type<'j>(item: &Fields<'j>) -> Result<&'j str, ApiError> {
    match item.text("type")? {
        Some(kind) => Ok(kind),
        None if item.get("role").is_some() => Ok("message"),
        None => Err(item.wrong("type", "is missing")),
    }
}

/// Returns the answer that an item is, if it is one to a call that may wait.
fn answer(item: &Fields<'_>) -> Result<Option<ClientAnswer>, ApiError> {
    match item_type(item)? {
        "function_call_output" => {
            let id = item.required_text("call_id")?;
            let result = || Ok(ClientAnswer::Result(ClientResult { id: id.to_owned(), text: text(item, "output")? }));
            split_call_id(id).map(|_| result()).transpose()
        }
        "mcp_approval_response" => Ok(Some(ClientAnswer::Approval {
            id: item.required_text("approval_request_id")?.to_owned(),
            approve: item.flag("approve")?.ok_or_else(|| item.wrong("approve", "is missing"))?,
            reason: item.text("reason")?.unwrap_or_default().to_owned(),
        })),
        _ => Ok(None),
    }
}

/// Returns the text of a content: a text, or parts of it.
fn text(item: &Fields<'_>, name: &str) -> Result<String, ApiError> {
    text_content(item, name, TEXT)
}

/// Returns the file of a part, and its name.
fn file<'j>(part: &Fields<'j>, kind: &str) -> Result<Option<(FileSource<'j>, Option<&'j str>)>, ApiError> {
    let missing = |field: &str| part.wrong(field, "is missing: files have to be part of the request");
    match kind {
        "input_image" => {
            let url = part.text("image_url")?.ok_or_else(|| missing("image_url"))?;
            Ok(Some((FileSource::Url { field: "image_url", url }, Some("image"))))
        }
        "input_file" => {
            let data = part.text("file_data")?.ok_or_else(|| missing("file_data"))?;
            Ok(Some((FileSource::Base64 { field: "file_data", data }, part.text("filename")?)))
        }
        _ => Ok(None),
    }
}
