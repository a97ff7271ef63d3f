//! What goes wrong with an MCP server.

use crate::tool::Failure;
use crate::tool::secrets::Secrets;
use rmcp::ServiceError;
use std::error::Error;
use std::io;
use std::time::Duration;

/// How much a server may say in a message.
pub(super) const LONGEST_MESSAGE: usize = 4096;

/// What went wrong with a server, for all who wait for it.
#[derive(Clone)]
pub(super) struct Trouble {
    message: String,
    detail: String,
    pub(super) again: Again,
}

/// Whether to try again at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It may work the next time.
    Soon,
    /// Only someone can mend it.
    Later,
}

impl Trouble {
    fn new(message: String, detail: String, again: Again) -> Self {
        Self { message, detail, again }
    }

    pub(super) fn unstartable(server: &str, command: &str, error: &io::Error) -> Self {
        let why = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no program `{command}`, or no folder to start it in"),
            io::ErrorKind::PermissionDenied => format!("`{command}` may not be run"),
            _ => format!("`{command}` does not start"),
        };
        Self::new(format!("the MCP server `{server}` cannot be started: {why}"), error.to_string(), Again::Later)
    }

    pub(super) fn slow_start(server: &str, limit: Duration, detail: String) -> Self {
        Self::new(format!("the MCP server `{server}` was not ready within {}", shown(limit)), detail, Again::Later)
    }

    pub(super) fn ended_early(server: &str, detail: String) -> Self {
        Self::new(format!("the MCP server `{server}` ended before it was ready"), detail, Again::Soon)
    }

    pub(super) fn refused_start(server: &str, why: &str, detail: String) -> Self {
        let message = format!("the MCP server `{server}` refused to start: {}", cut(why, LONGEST_MESSAGE));
        Self::new(message, detail, Again::Later)
    }

    pub(super) fn unreachable(server: &str, detail: String) -> Self {
        Self::new(format!("the MCP server `{server}` cannot be reached"), detail, Again::Soon)
    }

    pub(super) fn unauthorized(server: &str, status: u16, detail: String) -> Self {
        let message =
            format!("the MCP server `{server}` refused the connection ({status}): its `headers` give no access");
        Self::new(message, detail, Again::Later)
    }

    pub(super) fn unstable(server: &str) -> Self {
        let message = format!("the MCP server `{server}` keeps ending soon after it started");
        Self::new(message, String::new(), Again::Later)
    }

    /// What happened to a request.
    pub(super) fn of_request(server: &str, error: &ServiceError) -> Self {
        let message = match error {
            ServiceError::McpError(error) => {
                format!("the MCP server `{server}` refused: {}", cut(&error.message, LONGEST_MESSAGE))
            }
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                format!("the connection to the MCP server `{server}` broke before there was an answer")
            }
            _ => format!("the MCP server `{server}` gave no answer that can be understood"),
        };
        Self::new(message, causes(error), Again::Soon)
    }

    pub(super) fn timed_out(server: &str, limit: Duration) -> Self {
        let message = format!("the MCP server `{server}` did not answer within {}", shown(limit));
        Self::new(message, String::new(), Again::Soon)
    }

    /// Changes what the operator reads.
    pub(super) fn map_detail(mut self, change: impl FnOnce(String) -> String) -> Self {
        self.detail = change(self.detail);
        self
    }

    pub(super) fn failure(&self, secrets: &Secrets) -> Failure {
        let failure = Failure::new(secrets.redact(&self.message));
        if self.detail.is_empty() { failure } else { failure.with_detail(secrets.redact(&self.detail)) }
    }
}

/// Writes an error with what caused it, without the names of types.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_told = cause.to_string();
        if !told.contains(&cause_told) {
            told.push_str(": ");
            told.push_str(&cause_told);
        }
        source = cause.source();
    }
    cut(&without_types(&told), LONGEST_MESSAGE)
}

/// Takes out what stands in brackets and names a type, as in `Transport [a::B<C>] error`.
fn without_types(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, (inside, after))) =
        rest.split_once('[').and_then(|(before, after)| Some((before, after.split_once(']')?)))
    {
        match inside.contains("::") {
            true => plain.push_str(before.trim_end()),
            false => plain.extend([before, "[", inside, "]"]),
        }
        rest = after;
    }
    plain + rest
}

/// Cuts a text, and shows it.
pub(super) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest).and_then(|(at, _)| text.get(..at)) {
        Some(start) => format!("{start}…"),
        None => text.to_owned(),
    }
}

/// Writes a time for people.
pub(super) fn shown(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
