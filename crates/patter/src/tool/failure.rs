//! Failures of tools.

use std::error::Error;
use std::fmt;
use std::time::Duration;

/// The failure of a tool: a message for the model, and a detail for the operator.
///
/// The model reads [`ToolFailure::message`]. Logs contain [`ToolFailure::detail`] too. An error that `?` converts becomes
/// a detail, since it may contain something that the model must not see.
///
/// ```
/// use patter::tool::ToolFailure;
///
/// fn population(city: &str) -> Result<u64, ToolFailure> {
///     if city.is_empty() {
///         return Err(ToolFailure::new("a city needs a name"));
///     }
///     let table = std::fs::read_to_string("/no/such/table")?;
///     Ok(table.len() as u64)
/// }
///
/// assert_eq!(population("").unwrap_err().message(), "a city needs a name");
/// let failure = population("Bern").unwrap_err();
/// assert_eq!(failure.message(), "the tool failed");
/// assert!(failure.detail().unwrap().contains("No such file"));
/// ```
pub struct ToolFailure {
    message: String,
    detail: Option<String>,
    /// The time limit that was exceeded.
    time_limit: Option<Duration>,
}

impl ToolFailure {
    /// Creates a failure with a message for the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), detail: None, time_limit: None }
    }

    /// Creates the failure of a tool that exceeded a time limit of its own. The executor reports it like a call that
    /// exceeded the time limit of the tool.
    pub fn timed_out(limit: Duration, message: impl Into<String>) -> Self {
        Self { time_limit: Some(limit), ..Self::new(message) }
    }

    /// Sets the detail, which only the operator reads.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// Returns the message for the model.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the time limit that was exceeded, if that is the failure.
    pub fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    /// Returns the detail for the operator.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl<E: Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        let mut detail = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            detail.push_str(": ");
            detail.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::new("the tool failed").with_detail(detail)
    }
}

impl fmt::Debug for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
