//! How a tool fails.

use std::error::Error;
use std::fmt;

/// The failure of a tool: what the model may read, and what only the operator may.
///
/// The model reads [`Failure::message`]. Logs and traces have [`Failure::detail`] too. What `?` makes of another error
/// is for the operator alone, since nobody decided that a model may see it.
///
/// ```
/// use patter::tool::Failure;
///
/// fn population(city: &str) -> Result<u64, Failure> {
///     if city.is_empty() {
///         return Err(Failure::new("a city needs a name"));
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
pub struct Failure {
    message: String,
    detail: Option<String>,
}

impl Failure {
    /// Fails with a message that the model may read.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), detail: None }
    }

    /// Adds what only the operator may read.
    #[must_use]
    pub fn with_detail(mut self, detail: impl fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    /// Returns what the model may read.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what only the operator may read.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

impl<E: Error> From<E> for Failure {
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

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
