//! Ids of responses and of what they contain. They are made of the session, so that nothing has to remember them.

use crate::serve::Waiting;
use crate::types::definition::hash;
use std::fmt;

/// The id of a response: a session, and the number of the segment in it.
///
/// ```
/// use patter_core::serve::responses::ResponseId;
/// let id = ResponseId::parse("resp_monday_2").unwrap();
/// assert_eq!((id.session.as_str(), id.number), ("monday", 2));
/// assert_eq!(id.to_string(), "resp_monday_2");
/// assert_eq!(ResponseId::parse("resp_67ccd3a9"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseId {
    /// The session.
    pub session: String,
    /// The number of the segment, from 1.
    pub number: u32,
}

impl ResponseId {
    /// Returns the id of a segment.
    pub fn new(session: impl Into<String>, number: u32) -> Self {
        Self { session: session.into(), number }
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Option<Self> {
        let (session, number) = text.strip_prefix("resp_")?.rsplit_once('_')?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        (!session.is_empty()).then(|| Self::new(session, number))
    }

    /// Returns the id of an item of the response.
    pub(super) fn item(&self, kind: &str, index: usize) -> String {
        format!("{kind}_{}_{}_{index}", self.session, self.number)
    }
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resp_{}_{}", self.session, self.number)
    }
}

/// Returns the id of a request to approve a call of a session. It is about exactly this call, with these arguments.
pub fn approval_id(session: &str, call: &Waiting) -> String {
    const LENGTH: usize = 32;
    let about = hash(format!("{}\0{}\0{}", call.run.join("\0"), call.call_id, call.hash).as_bytes());
    format!("mcpr_{session}_{}", about.chars().filter(char::is_ascii_alphanumeric).take(LENGTH).collect::<String>())
}
