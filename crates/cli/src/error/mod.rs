//! How commands fail: one error type, which `main` prints once.
//!
//! In text an error goes to stderr: first the errors and source excerpts that explain it, then the message, with the hint
//! on a line of its own. The exit code follows from the [`ErrorKind`].
//!
//! Machine-readable formats carry the same error on stdout. `--format json` prints one document, `stream-json` ends with
//! one event, and SARIF has a notification of the tool. In all of them the error is an object:
//!
//! ```json
//! {"error": {
//!   "kind": "ToolError",
//!   "message": "the agent `greeter` cannot run",
//!   "place": {"file": "agents/hello.gram", "line": 3, "column": 5},
//!   "hint": "declare it in a toolbox",
//!   "details": [{"kind": "failure", "message": "nothing implements the tool `sayHelo`"}]
//! }}
//! ```
//!
//! `kind` and `message` are always present; `place` (`line` and `column` may be missing), `hint` and `details` only where
//! they are known. `details` lists errors of the same shape, or diagnostics, which also have a `code` and a `level`. The
//! output of a program that failed is in `detail`.
//! The kinds are `usage`, `failure`, `interrupted`, and those that the library names: `ConfigurationError`, `ToolError`,
//! `ValidationError`, `LLMAPIError`, `StoreError`, `Cancelled` and `Suspended` for runs, `untrusted` for projects that the
//! user has not trusted, `LockError` for those that differ from their lock, `not_found`, `permission_denied`, `invalid_input`,
//! `invalid_output`, `failed`, `timed_out` and `cancelled` for calls of tools.

mod library;

use crate::place::Place;
use crate::setup::stop_name;
use crate::ui::{self, Excerpts};
use serde_json::{Map, Value as Json, json};
use std::fmt;
use std::io;

/// The result of a command.
pub(crate) type CommandResult = Result<Outcome, CommandError>;

/// How a command ended that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The work is done, and nothing is wrong.
    Success,
    /// The work is done, and something was found: a mistake, a difference, a failed gate.
    Findings,
    /// The work was interrupted, and what was done so far is reported.
    Interrupted,
}

/// The error with which a command ends.
#[derive(Debug)]
pub(crate) struct CommandError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    context: Box<Context>,
}

/// What else is known about an error. Most errors have none of it.
#[derive(Debug, Default)]
struct Context {
    place: Option<Place>,
    /// Errors that explain this one.
    details: Vec<CommandError>,
    /// Diagnostics that explain this one.
    excerpts: Option<Excerpts>,
    /// The output of the program that failed.
    output: Option<String>,
    /// The other fields of the JSON document.
    document: Map<String, Json>,
    /// Whether text shows the kind.
    shows_kind: bool,
    /// Whether it is already on stderr.
    is_printed: bool,
}

/// What kind of error it is, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The arguments are malformed or contradict each other.
    Usage,
    /// Anything without a more specific kind.
    Failure,
    /// A signal stopped the program.
    Interrupted,
    /// A kind that the library names.
    Named {
        /// The name, for machines.
        name: &'static str,
        /// The exit code.
        code: u8,
    },
}

/// How errors are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ErrorFormat {
    /// For people, on stderr.
    #[default]
    Text,
    /// And one JSON document on stdout.
    Json,
    /// And one line of JSON on stdout, as the last event.
    StreamJson,
    /// And a SARIF log on stdout.
    Sarif,
}

impl Outcome {
    /// Returns the outcome of work that may have found something.
    pub(crate) fn from_findings(has_findings: bool) -> Self {
        if has_findings { Self::Findings } else { Self::Success }
    }

    pub(crate) const fn exit_code(self) -> u8 {
        match self {
            Outcome::Success => 0,
            Outcome::Findings => 1,
            Outcome::Interrupted => INTERRUPTED,
        }
    }
}

/// The exit code of a program that was interrupted: 128 and the number of SIGINT. `main` replaces it by the code of the
/// signal that stopped the program.
pub(crate) const INTERRUPTED: u8 = 130;

impl ErrorKind {
    /// Returns a kind that the library names, for a failure like any other.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self::Named { name, code: 1 }
    }

    /// Returns the name, for machines.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            ErrorKind::Usage => "usage",
            ErrorKind::Failure => "failure",
            ErrorKind::Interrupted => "interrupted",
            ErrorKind::Named { name, .. } => name,
        }
    }

    const fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Usage => 2,
            ErrorKind::Failure => 1,
            ErrorKind::Interrupted => INTERRUPTED,
            ErrorKind::Named { code, .. } => code,
        }
    }
}

impl CommandError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None, context: Box::default() }
    }

    /// Returns an error about the arguments of the command, which exits with 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Returns an error without a more specific kind, which exits with 1.
    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failure, message)
    }

    /// Returns the error of a program that a signal stopped.
    pub(crate) fn interrupted() -> Self {
        Self::new(
            ErrorKind::Interrupted,
            stop_name().map_or_else(|| "interrupted".to_owned(), |signal| format!("stopped by {signal}")),
        )
    }

    /// Combines errors into one, or returns the only one unchanged. There must be at least one.
    pub(crate) fn combine(message: impl Into<String>, mut errors: Vec<CommandError>) -> Self {
        match errors.pop() {
            Some(only) if errors.is_empty() => only,
            Some(last) => {
                let kind = last.kind;
                errors.push(last);
                Self::new(kind, message).with_details(errors)
            }
            None => Self::failure(message),
        }
    }

    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the hint, if there is one.
    #[must_use]
    pub(crate) fn with_hint_if(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    #[must_use]
    pub(crate) fn with_place(mut self, place: Place) -> Self {
        self.context.place = Some(place);
        self
    }

    #[must_use]
    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    #[must_use]
    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds errors that explain this one.
    #[must_use]
    pub(crate) fn with_details(mut self, details: impl IntoIterator<Item = CommandError>) -> Self {
        self.context.details.extend(details);
        self
    }

    /// Adds diagnostics that explain this error, with excerpts of their source.
    #[must_use]
    pub(crate) fn with_excerpts(mut self, excerpts: Excerpts) -> Self {
        self.context.excerpts = Some(excerpts);
        self
    }

    /// Adds the output of the program that failed, if there is any.
    #[must_use]
    pub(crate) fn with_output(mut self, output: Option<&str>) -> Self {
        self.context.output = output.map(|output| output.trim_end().to_owned()).filter(|output| !output.is_empty());
        self
    }

    /// Sets the JSON document that the error is part of, for commands that print one even when they fail.
    #[must_use]
    pub(crate) fn with_document(mut self, document: Json) -> Self {
        if let Json::Object(fields) = document {
            self.context.document = fields;
        }
        self
    }

    /// Shows the kind in text too.
    #[must_use]
    pub(crate) fn with_kind_shown(mut self) -> Self {
        self.context.shows_kind = true;
        self
    }

    /// Marks an error that stderr shows already in another form.
    #[must_use]
    pub(crate) fn marked_printed(mut self) -> Self {
        self.context.is_printed = true;
        self
    }

    /// Returns what kind of error it is.
    pub(crate) const fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) const fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// Returns the error as the object that is documented above.
    pub(crate) fn to_json(&self) -> Json {
        let mut error = Map::new();
        error.insert("kind".to_owned(), json!(self.kind.name()));
        error.insert("message".to_owned(), json!(self.message));
        if let Some(place) = &self.context.place {
            error.insert("place".to_owned(), place.to_json());
        }
        if let Some(hint) = &self.hint {
            error.insert("hint".to_owned(), json!(hint));
        }
        if let Some(output) = &self.context.output {
            error.insert("detail".to_owned(), json!(output));
        }
        let diagnostics = self.context.excerpts.iter().flat_map(Excerpts::to_json);
        let details: Vec<_> = self.context.details.iter().map(Self::to_json).chain(diagnostics).collect();
        if !details.is_empty() {
            error.insert("details".to_owned(), Json::Array(details));
        }
        Json::Object(error)
    }

    /// Prints the error: for people on stderr, and in machine-readable formats on stdout too.
    pub(crate) fn print(&self, format: ErrorFormat) -> io::Result<()> {
        self.print_document(format)?;
        self.print_text()
    }

    /// Prints the error on stdout, in formats that are machine-readable.
    pub(crate) fn print_document(&self, format: ErrorFormat) -> io::Result<()> {
        match format {
            ErrorFormat::Text => Ok(()),
            ErrorFormat::Json => {
                let mut document = self.context.document.clone();
                document.insert("error".to_owned(), self.to_json());
                ui::print(&format!("{:#}\n", Json::Object(document)))
            }
            ErrorFormat::StreamJson => ui::print(&format!("{}\n", json!({"event": "error", "error": self.to_json()}))),
            ErrorFormat::Sarif => ui::print(&self.to_sarif()),
        }
    }

    /// Prints a problem on stderr that does not end the command. As a detail of a later error it is not printed again.
    pub(crate) fn print_problem(&mut self) -> io::Result<()> {
        self.print_text()?;
        self.context.is_printed = true;
        Ok(())
    }

    /// Prints the error on stderr.
    fn print_text(&self) -> io::Result<()> {
        if self.context.is_printed {
            return Ok(());
        }
        for detail in &self.context.details {
            detail.print_text()?;
        }
        if let Some(excerpts) = &self.context.excerpts {
            excerpts.print()?;
        }
        if self.exit_code() == INTERRUPTED {
            return ui::status(&self.message);
        }
        ui::error(&self.to_string(), self.hint.as_deref())?;
        match &self.context.output {
            Some(output) => ui::status(&format!("  {}", output.replace('\n', "\n  "))),
            None => Ok(()),
        }
    }

    fn to_sarif(&self) -> String {
        let notification = json!({
            "level": "error",
            "message": { "text": self.message },
            "properties": self.to_json(),
        });
        let document = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": { "name": "patter", "semanticVersion": env!("CARGO_PKG_VERSION") } },
                "invocations": [{ "executionSuccessful": false, "toolExecutionNotifications": [notification] }],
                "results": [],
            }],
        });
        format!("{document:#}\n")
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.context.place.as_ref().filter(|place| place.has_line()) {
            write!(f, "{place}: ")?;
        }
        if self.context.shows_kind {
            write!(f, "{}: ", self.kind.name())?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_objects_of_one_shape() {
        let error = CommandError::usage("two versions are required").with_hint("name two files");
        assert_eq!(
            error.to_json(),
            json!({"kind": "usage", "message": "two versions are required", "hint": "name two files"})
        );
        let both =
            vec![CommandError::failure("one").with_place(Place::parse("a.gram:1:2")), CommandError::failure("two")];
        let combined = CommandError::combine("two problems", both);
        let place = json!({"file": "a.gram", "line": 1, "column": 2});
        let details =
            json!([{"kind": "failure", "message": "one", "place": place}, {"kind": "failure", "message": "two"}]);
        assert_eq!(combined.to_json(), json!({"kind": "failure", "message": "two problems", "details": details}));
        assert_eq!((error.exit_code(), combined.exit_code()), (2, 1));
    }
}
