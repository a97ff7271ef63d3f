//! Names, parsed once and then trusted.

use std::fmt;
use thiserror::Error;

/// The name of a tool as providers take it: 1 to 64 of `A-Z a-z 0-9 _ -`.
///
/// A `/` of a full name becomes `__`, and back.
///
/// ```
/// use patter_core::name::WireName;
/// let wire = WireName::of("weather/current").unwrap();
/// assert_eq!(wire.as_str(), "weather__current");
/// assert_eq!(wire.full_name(), "weather/current");
/// assert!(WireName::of("say hello").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireName(String);

/// Why a name cannot go on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireNameError {
    /// There is nothing.
    #[error("the name is empty")]
    Empty,
    /// There is too much.
    #[error("the name has {length} characters, and providers take at most 64")]
    TooLong {
        /// How many characters it would have on the wire.
        length: usize,
    },
    /// There is something that providers refuse.
    #[error("the name has {}, and providers take only ASCII letters, digits, `_` and `-`", shown(*.character))]
    Character {
        /// The first character that they refuse.
        character: char,
    },
    /// There is what stands for `/` on the wire.
    #[error("the name has `__`, which stands for `/` where tools go to a provider")]
    Reserved,
}

impl WireName {
    /// Returns the wire name of a tool.
    pub fn of(name: &str) -> Result<Self, WireNameError> {
        if name.is_empty() {
            return Err(WireNameError::Empty);
        }
        if name.contains("__") {
            return Err(WireNameError::Reserved);
        }
        let wire = name.replace('/', "__");
        let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if let Some(character) = wire.chars().find(|c| !allowed(c)) {
            return Err(WireNameError::Character { character });
        }
        if wire.len() > 64 {
            return Err(WireNameError::TooLong { length: wire.len() });
        }
        Ok(Self(wire))
    }

    /// Returns a name that can go on the wire and looks like one that cannot.
    pub(crate) fn near(name: &str) -> Option<Self> {
        let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| !word.is_empty());
        let joined: String = words.collect::<Vec<_>>().join("_").chars().take(64).collect();
        Self::of(&joined).ok()
    }

    /// Returns the name as it goes on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name that it stands for.
    pub fn full_name(&self) -> String {
        self.0.replace("__", "/")
    }
}

impl fmt::Display for WireName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn shown(character: char) -> String {
    if character.is_whitespace() { "a blank".to_owned() } else { format!("`{character}`") }
}

/// The full name of a tool in a library: `tool`, `ns/tool` or `org/ns/tool`.
///
/// ```
/// use patter_core::name::FullName;
/// let name = FullName::parse("acme/weather/current").unwrap();
/// assert_eq!((name.own(), name.namespace()), ("current", Some("acme/weather")));
/// assert_eq!(FullName::parse("weather//current").unwrap_err().to_string(), "a part of the name is empty");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FullName(String);

/// Why a text is no full name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FullNameError {
    /// It cannot go to a provider.
    #[error(transparent)]
    Wire(#[from] WireNameError),
    /// There is nothing before, between or after the slashes.
    #[error("a part of the name is empty")]
    EmptyPart,
    /// There are too many parts.
    #[error("the name has more than the three parts organisation, toolbox and tool")]
    TooManyParts,
}

impl FullName {
    /// Reads a full name.
    pub fn parse(name: &str) -> Result<Self, FullNameError> {
        if name.split('/').any(str::is_empty) && !name.is_empty() {
            return Err(FullNameError::EmptyPart);
        }
        if name.split('/').count() > 3 {
            return Err(FullNameError::TooManyParts);
        }
        WireName::of(name)?;
        Ok(Self(name.to_owned()))
    }

    /// Puts the name of a tool into a namespace.
    pub fn within(namespace: &str, tool: &str) -> Result<Self, FullNameError> {
        if namespace.is_empty() { Self::parse(tool) } else { Self::parse(&format!("{namespace}/{tool}")) }
    }

    /// Returns the name as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the tool within its toolbox.
    pub fn own(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, own)| own)
    }

    /// Returns what stands before the name of the tool.
    pub fn namespace(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(namespace, _)| namespace)
    }
}

// A text can be looked up among full names as it is: both hash and compare the same.
impl std::borrow::Borrow<str> for FullName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
