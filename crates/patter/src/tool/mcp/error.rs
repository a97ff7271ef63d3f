//! Errors of MCP servers.

use super::auth::Denial;
use super::failures::{FailureCause, MAX_MESSAGE_BYTES};
use crate::os_error;
use crate::tool::ToolFailure;
use crate::tool::redact::Redactor;
use patter_core::text::{format_duration, truncate};
use rmcp::ServiceError;
use std::error::Error;
use std::io;
use std::time::Duration;

/// The number of characters that are shown of a server's message.
pub(super) const MAX_MESSAGE_CHARS: usize = 4096;

/// An error of a server, for all callers that wait for it.
#[derive(Clone)]
pub(super) struct McpError {
    pub(super) message: String,
    pub(super) detail: String,
    pub(super) retry: Reconnect,
    /// The time limit that was exceeded.
    time_limit: Option<Duration>,
}

/// Whether to retry at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reconnect {
    /// The next attempt may succeed.
    Soon,
    /// The next attempt will fail too until someone fixes the cause.
    Later,
}

impl McpError {
    fn new(message: String, detail: String, retry: Reconnect) -> Self {
        Self { message, detail, retry, time_limit: None }
    }

    pub(super) fn cannot_start(server: &str, command: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => format!("`{command}` was not found, or its working folder does not exist"),
            io::ErrorKind::PermissionDenied => format!("permission denied to run `{command}`"),
            _ => format!("`{command}` failed to start"),
        };
        let message = format!("cannot start the MCP server `{server}`: {reason}");
        let detail = match error.kind() {
            io::ErrorKind::NotFound => "install it, or fix `command` and `cwd` of the server".to_owned(),
            io::ErrorKind::PermissionDenied => "make it executable, or fix `command` of the server".to_owned(),
            _ if error.raw_os_error().is_none() => error.to_string(),
            _ => os_error::describe(error),
        };
        Self::new(message, detail, Reconnect::Later)
    }

    pub(super) fn slow_start(server: &str, limit: Duration, detail: String) -> Self {
        let message = format!("the MCP server `{server}` was not ready within {}", format_duration(limit));
        Self { time_limit: Some(limit), ..Self::new(message, detail, Reconnect::Later) }
    }

    pub(super) fn early_exit(server: &str, detail: String) -> Self {
        let message = format!("the MCP server `{server}` exited before it was ready");
        Self::new(message, detail, Reconnect::Soon)
    }

    pub(super) fn refused_start(server: &str, reason: &str, detail: String) -> Self {
        let reason = truncate(reason, MAX_MESSAGE_CHARS);
        let message = format!("the MCP server `{server}` refused to start: {reason}");
        Self::new(message, detail, Reconnect::Later)
    }

    /// Returns the error of a server at a host and port.
    pub(super) fn unreachable(server: &str, address: &str, cause: Option<FailureCause>, detail: String) -> Self {
        let message = format!("cannot connect to the MCP server `{server}` at `{address}`");
        Self::new(message, detail, Reconnect::Soon).because(cause)
    }

    /// Adds why the connection failed, if that is known. Then the texts of libraries say no more.
    fn because(mut self, cause: Option<FailureCause>) -> Self {
        let reason = match cause {
            None => return self,
            Some(FailureCause::TooLarge) => "a message of the server is too large".to_owned(),
            Some(FailureCause::Connection(problem)) => match problem.hint() {
                Some(hint) => format!("{problem}; {hint}"),
                None => problem.to_string(),
            },
        };
        self.message = format!("{}: {reason}", self.message);
        self.detail.clear();
        self
    }

    pub(super) fn unauthorized(server: &str, status: u16, detail: String) -> Self {
        let message = format!("the MCP server `{server}` denied access ({status}); check its `headers`");
        Self::new(message, detail, Reconnect::Later)
    }

    /// Returns the error of a server that requires a login.
    pub(super) fn denied(server: &str, denial: &Denial) -> Self {
        let login = format!("`patter mcp login {server}`");
        let message = match denial {
            Denial::LoggedOut => {
                format!("the MCP server `{server}` requires a login; run {login}, or set its `headers`")
            }
            Denial::Rejected => format!("the MCP server `{server}` no longer accepts the login; run {login}"),
            Denial::Scopes(scopes) => {
                let scopes = truncate(&scopes.join(" "), MAX_MESSAGE_CHARS);
                format!("the MCP server `{server}` requires more permissions (`{scopes}`); run {login} to grant them")
            }
            Denial::Failed(error) => {
                let detail = error.hint().unwrap_or_default().to_owned();
                let message = format!("cannot renew the login at the MCP server `{server}`: {error}");
                return Self::new(message, detail, Reconnect::Later);
            }
        };
        Self::new(message, String::new(), Reconnect::Later)
    }

    pub(super) fn unstable(server: &str) -> Self {
        let message = format!("the MCP server `{server}` keeps exiting shortly after it starts");
        Self::new(message, String::new(), Reconnect::Later)
    }

    pub(super) fn from_request(server: &str, error: &ServiceError, cause: Option<FailureCause>) -> Self {
        if cause == Some(FailureCause::TooLarge) {
            let limit = MAX_MESSAGE_BYTES >> 20;
            let message = format!("the MCP server `{server}` responded with more than {limit} MiB");
            return Self::new(message, String::new(), Reconnect::Soon);
        }
        let message = match error {
            ServiceError::Timeout { timeout } => {
                let message = format!("the MCP server `{server}` did not respond within {}", format_duration(*timeout));
                return Self { time_limit: Some(*timeout), ..Self::new(message, String::new(), Reconnect::Soon) };
            }
            ServiceError::McpError(error) => {
                let message = truncate(&error.message, MAX_MESSAGE_CHARS);
                format!("the MCP server `{server}` returned an error: {message}")
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                let message = format!("lost the connection to the MCP server `{server}` before it responded");
                return Self::new(message, error_chain(error), Reconnect::Soon).because(cause);
            }
            _ => format!("the MCP server `{server}` sent an invalid response"),
        };
        Self::new(message, error_chain(error), Reconnect::Soon)
    }

    /// Changes the detail for the operator.
    pub(super) fn map_detail(mut self, change: impl FnOnce(String) -> String) -> Self {
        self.detail = change(self.detail);
        self
    }

    pub(super) fn failure(&self, redactor: &Redactor) -> ToolFailure {
        let message = redactor.redact(&self.message);
        let failure = match self.time_limit {
            Some(limit) => ToolFailure::timed_out(limit, message),
            None => ToolFailure::new(message),
        };
        if self.detail.is_empty() { failure } else { failure.with_detail(redactor.redact(&self.detail)) }
    }
}

/// Returns the messages of an error and its causes, without the names of types.
pub(super) fn error_chain(error: &dyn Error) -> String {
    let mut chain = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !chain.contains(&message) {
            chain.push_str(": ");
            chain.push_str(&message);
        }
        source = cause.source();
    }
    truncate(&strip_type_names(&chain), MAX_MESSAGE_CHARS)
}

/// Removes type names in brackets, as in `Transport [a::B<C>] error`.
fn strip_type_names(text: &str) -> String {
    let mut stripped = String::new();
    let mut rest = text;
    while let Some((before, (inside, after))) =
        rest.split_once('[').and_then(|(before, after)| Some((before, after.split_once(']')?)))
    {
        match inside.contains("::") {
            true => stripped.push_str(before.trim_end()),
            false => stripped.extend([before, "[", inside, "]"]),
        }
        rest = after;
    }
    stripped + rest
}
