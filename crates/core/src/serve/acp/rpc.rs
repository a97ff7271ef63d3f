//! JSON-RPC 2.0: messages, one per line.

use crate::serve::read::set;
use crate::serve::{ApiError, ApiErrorKind};
use serde_json::{Value as Json, json};
use std::fmt;

/// A message of the client.
///
/// ```
/// use patter_core::serve::acp::RpcMessage;
/// use serde_json::json;
/// let line = br#"{"jsonrpc": "2.0", "id": 1, "method": "session/list"}"#;
/// let RpcMessage::Request { id, method, .. } = RpcMessage::parse(line).unwrap() else { panic!() };
/// assert_eq!((id, method.as_str()), (json!(1), "session/list"));
/// let invalid = RpcMessage::parse(br#"{"jsonrpc": "2.0", "id": 2}"#).unwrap_err();
/// assert_eq!((invalid.id, invalid.error.code), (json!(2), -32600));
/// assert_eq!(RpcMessage::parse(b"{").unwrap_err().error.code, -32700);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum RpcMessage {
    /// A request, which gets a response.
    Request {
        /// What the response repeats.
        id: Json,
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Json,
    },
    /// A notification, which gets no response.
    Notification {
        /// The method.
        method: String,
        /// The parameters; null if there are none.
        params: Json,
    },
    /// The response to a request of the agent.
    Response {
        /// The id of the request.
        id: Json,
        /// The result.
        result: Result<Json, RpcError>,
    },
}

/// A line that is not a message.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidMessage {
    /// The id of the message, or null if it has none.
    pub id: Json,
    /// What is wrong.
    pub error: RpcError,
}

/// An error of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// What is wrong.
    pub message: String,
    /// The kind, as Patter names it: see [`ApiErrorKind::code`].
    pub kind: Option<&'static str>,
}

impl RpcMessage {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Self, InvalidMessage> {
        let without_id = |error| InvalidMessage { id: Json::Null, error };
        let message: Json = serde_json::from_slice(line)
            .map_err(|error| without_id(RpcError::new(RpcError::PARSE, format!("not valid JSON: {error}"))))?;
        let Json::Object(mut message) = message else {
            return Err(without_id(RpcError::invalid_request("a message is an object; batches are not supported")));
        };
        let id = message.remove("id");
        let has_valid_id = id.as_ref().is_none_or(|id| id.is_null() || id.is_string() || id.is_i64() || id.is_u64());
        if !has_valid_id {
            return Err(without_id(RpcError::invalid_request("`id` is neither a text nor a whole number")));
        }
        let invalid = |message: &str| InvalidMessage {
            id: id.clone().unwrap_or_default(),
            error: RpcError::invalid_request(message),
        };
        if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
            return Err(invalid("`jsonrpc` is not \"2.0\""));
        }
        let params = message.remove("params").unwrap_or_default();
        match message.remove("method") {
            Some(Json::String(method)) => Ok(match id {
                Some(id) => Self::Request { id, method, params },
                None => Self::Notification { method, params },
            }),
            Some(_) => Err(invalid("`method` is not a text")),
            None => {
                let result = match (message.remove("result"), message.remove("error")) {
                    (_, Some(error)) => Err(RpcError::read(&error)),
                    (Some(result), None) => Ok(result),
                    (None, None) => return Err(invalid("`method` is missing")),
                };
                Ok(Self::Response { id: id.unwrap_or_default(), result })
            }
        }
    }
}

impl InvalidMessage {
    /// Returns the error about a line that is too long.
    pub fn too_long(max_bytes: usize) -> Self {
        let error = RpcError::invalid_request(format!("the message has more than {max_bytes} bytes"));
        Self { id: Json::Null, error }
    }
}

impl RpcError {
    /// The code for a line that is not JSON.
    pub const PARSE: i64 = -32700;
    /// The code for JSON that is not a request, or a request that cannot be made now.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The code for unknown methods.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The code for wrong parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The code for failures.
    pub const INTERNAL: i64 = -32603;
    /// The code for sessions that do not exist.
    pub const NOT_FOUND: i64 = -32002;

    /// Returns an error with a code.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), kind: None }
    }

    /// Returns an error about a request that is not valid, or not possible now.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// Returns an error about the parameters of a request.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// Returns an error about a method that does not exist.
    pub fn unknown_method(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("there is no method `{method}`"))
    }

    fn read(error: &Json) -> Self {
        let message = error.get("message").and_then(Json::as_str).unwrap_or("the request failed");
        let code = error.get("code").and_then(Json::as_i64).unwrap_or(Self::INTERNAL);
        Self { code, message: message.to_owned(), kind: None }
    }

    fn to_json(&self) -> Json {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(kind) = self.kind {
            set(&mut error, "data", json!({ "kind": kind }));
        }
        error
    }
}

impl From<ApiError> for RpcError {
    fn from(error: ApiError) -> Self {
        let code = match error.kind {
            ApiErrorKind::Invalid => Self::INVALID_PARAMS,
            ApiErrorKind::NotFound | ApiErrorKind::UnknownModel => Self::NOT_FOUND,
            ApiErrorKind::Busy | ApiErrorKind::TooLarge | ApiErrorKind::UnsupportedType => Self::INVALID_REQUEST,
            ApiErrorKind::Unauthorized
            | ApiErrorKind::Forbidden
            | ApiErrorKind::TooMany
            | ApiErrorKind::Model
            | ApiErrorKind::Run
            | ApiErrorKind::Server
            | ApiErrorKind::Unavailable => Self::INTERNAL,
        };
        Self { code, message: error.to_string(), kind: Some(error.kind.code()) }
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RpcError {}

/// Returns the line of a response.
///
/// ```
/// use patter_core::serve::acp::{RpcError, response_line};
/// use serde_json::json;
/// assert_eq!(response_line(&json!(7), &Ok(json!({}))), "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n");
/// assert!(response_line(&json!("a"), &Err(RpcError::unknown_method("x"))).contains(r#""code":-32601"#));
/// ```
pub fn response_line(id: &Json, result: &Result<Json, RpcError>) -> String {
    line(&match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.to_json()}),
    })
}

/// Returns the line of a notification.
pub fn notification_line(method: &str, params: &Json) -> String {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Returns the line of a request to the client.
pub fn request_line(id: u64, method: &str, params: &Json) -> String {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Line breaks within texts are escaped, so a message is one line.
fn line(message: &Json) -> String {
    let mut line = message.to_string();
    line.push('\n');
    line
}
