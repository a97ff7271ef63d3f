//! The names of sessions.

use super::StoreError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::hash::{BuildHasher, RandomState};

/// What an id may have at most.
const LONGEST: usize = 64;
/// What chance adds to an id, and of what: nothing that looks like something else.
const CHANCE: usize = 5;
const ALPHABET: &[u8; 31] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// The name of a session: 1 to 64 of `a-z 0-9 -`.
///
/// ```
/// use patter::store::SessionId;
/// let id = SessionId::new(1_700_000_000_000);
/// assert!(id.as_str().starts_with("20231114-221320-"));
/// assert_eq!(SessionId::parse(id.as_str()).unwrap(), id);
/// let error = SessionId::parse("Mine!").unwrap_err();
/// assert_eq!(error.to_string(), "`Mine!` is no id of a session");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Returns a new id, of the time and of chance. Ids sort by their times, to the second.
    pub fn new(now_ms: u64) -> Self {
        let time = i64::try_from(now_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let time = time.unwrap_or_default().strftime("%Y%m%d-%H%M%S");
        let mut chance = RandomState::new().hash_one(now_ms);
        let letters = std::iter::repeat_with(|| {
            let index = usize::try_from(chance % 31).unwrap_or_default();
            chance /= 31;
            ALPHABET.get(index).copied().map_or('2', char::from)
        });
        Self(format!("{time}-{}", letters.take(CHANCE).collect::<String>()))
    }

    /// Returns the id that a text is.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        match is_part(text) && (1..=LONGEST).contains(&text.len()) {
            true => Ok(Self(text.to_owned())),
            false => Err(StoreError::Id { text: text.to_owned() }),
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether a text can be a part of an id.
pub(super) fn is_part(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SessionId {
    type Error = StoreError;

    fn try_from(text: String) -> Result<Self, StoreError> {
        Self::parse(&text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}
