//! Session ids.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use thiserror::Error;

/// The maximum length of an id.
const MAX_LENGTH: usize = 64;
/// The number of random characters in an id that people type.
const FEW_CHARACTERS: usize = 5;
/// The number of random characters in an id of a server, where thousands of sessions may start in the same second.
const MANY_CHARACTERS: usize = 12;
/// The characters to choose from, without those that look alike.
const ALPHABET: &[u8; 31] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// The id of a session: 1 to 64 characters of `a-z`, `0-9` and `-`.
///
/// ```
/// use patter::store::SessionId;
/// let id = SessionId::new(1_700_000_000_000);
/// assert!(id.as_str().starts_with("20231114-221320-"));
/// assert_eq!(SessionId::parse(id.as_str()).unwrap(), id);
/// let ids: std::collections::HashSet<_> = (0..10_000).map(|_| SessionId::unique(1_700_000_000_000)).collect();
/// assert_eq!(ids.len(), 10_000);
/// let error = SessionId::parse("Mine!").unwrap_err();
/// assert_eq!(error.to_string(), "`Mine!` is not a session id");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

/// An error parsing a session id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a session id")]
pub struct SessionIdError {
    /// The text.
    pub text: String,
}

impl SessionIdError {
    /// Returns a hint for fixing the error.
    pub fn hint(&self) -> &'static str {
        "a session id has 1 to 64 characters of `a-z`, `0-9` and `-`"
    }
}

impl SessionId {
    /// Returns a new id made of the time and random characters. Ids sort by time, to the second.
    pub fn new(now_ms: u64) -> Self {
        Self::with_random(now_ms, FEW_CHARACTERS)
    }

    /// Returns a new id with more random characters, for servers: there, thousands of sessions may start in the same second.
    pub fn unique(now_ms: u64) -> Self {
        Self::with_random(now_ms, MANY_CHARACTERS)
    }

    fn with_random(now_ms: u64, count: usize) -> Self {
        let time = i64::try_from(now_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let time = time.unwrap_or_default().strftime("%Y%m%d-%H%M%S");
        let mut random = RandomState::new().hash_one(now_ms);
        let characters = std::iter::repeat_with(|| {
            let index = usize::try_from(random % 31).unwrap_or_default();
            random /= 31;
            ALPHABET.get(index).copied().map_or('2', char::from)
        });
        Self(format!("{time}-{}", characters.take(count).collect::<String>()))
    }

    /// Parses an id.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        match is_id_text(text) && (1..=MAX_LENGTH).contains(&text.len()) {
            true => Ok(Self(text.to_owned())),
            false => Err(SessionIdError { text: text.to_owned() }),
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a text consists of characters that ids may have.
pub(super) fn is_id_text(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionId {
    type Error = SessionIdError;

    fn try_from(text: String) -> Result<Self, SessionIdError> {
        Self::parse(&text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}
