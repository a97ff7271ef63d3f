//! Parsed names of tools.

use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

/// The longest name that providers accept.
const MAX_LENGTH: usize = 64;

/// The name of a tool as it is sent to providers: 1 to 64 of `A-Z a-z 0-9 _ -`.
///
/// Each `/` of the full name is replaced by `__`.
///
/// ```
/// use patter_core::name::WireName;
/// let wire = WireName::from_full_name("weather/current").unwrap();
/// assert_eq!(wire.as_str(), "weather__current");
/// assert_eq!(wire.full_name(), "weather/current");
/// assert!(WireName::from_full_name("say hello").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireName(String);

/// The reason why a name cannot be sent to providers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireNameError {
    /// The name is empty.
    #[error("the name is empty")]
    Empty,
    /// The name is too long.
    #[error("the name has {length} characters, but providers accept at most {MAX_LENGTH}")]
    TooLong {
        /// The length of the wire name.
        length: usize,
    },
    /// The name contains a character that providers reject.
    #[error("the name contains {}, but providers accept only ASCII letters, digits, `_` and `-`", quote(*.character))]
    Character {
        /// The first such character.
        character: char,
    },
    /// The name contains `__`, which replaces `/`.
    #[error("the name contains `__`, which replaces `/` in names that are sent to providers")]
    Reserved,
}

impl WireName {
    /// Converts the full name of a tool.
    pub fn from_full_name(name: &str) -> Result<Self, WireNameError> {
        if name.is_empty() {
            return Err(WireNameError::Empty);
        }
        if name.contains("__") {
            return Err(WireNameError::Reserved);
        }
        let wire = name.replace('/', "__");
        let is_allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if let Some(character) = wire.chars().find(|c| !is_allowed(c)) {
            return Err(WireNameError::Character { character });
        }
        if wire.len() > MAX_LENGTH {
            return Err(WireNameError::TooLong { length: wire.len() });
        }
        Ok(Self(wire))
    }

    /// Returns a valid name that resembles an invalid one.
    pub(crate) fn suggest(name: &str) -> Option<Self> {
        let name: String = name.chars().map(spell_in_ascii).collect();
        let words = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| !word.is_empty());
        let joined: String = words.collect::<Vec<_>>().join("_").chars().take(MAX_LENGTH).collect();
        Self::from_full_name(&joined).ok()
    }

    /// Returns the name as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the full name.
    pub fn full_name(&self) -> String {
        self.0.replace("__", "/")
    }
}

impl fmt::Display for WireName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a letter of a European language as it is written without accents.
fn spell_in_ascii(letter: char) -> Cow<'static, str> {
    let plain = match letter {
        'ä' | 'æ' => "ae",
        'Ä' | 'Æ' => "Ae",
        'ö' | 'ø' | 'œ' => "oe",
        'Ö' | 'Ø' | 'Œ' => "Oe",
        'ü' => "ue",
        'Ü' => "Ue",
        'ß' => "ss",
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ą' => "a",
        'À' | 'Á' | 'Â' | 'Ã' | 'Å' | 'Ą' => "A",
        'ç' | 'č' | 'ć' => "c",
        'Ç' | 'Č' | 'Ć' => "C",
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' => "e",
        'È' | 'É' | 'Ê' | 'Ë' | 'Ę' | 'Ě' => "E",
        'ì' | 'í' | 'î' | 'ï' => "i",
        'Ì' | 'Í' | 'Î' | 'Ï' => "I",
        'ñ' | 'ń' | 'ň' => "n",
        'Ñ' | 'Ń' | 'Ň' => "N",
        'ò' | 'ó' | 'ô' | 'õ' => "o",
        'Ò' | 'Ó' | 'Ô' | 'Õ' => "O",
        'ù' | 'ú' | 'û' | 'ů' => "u",
        'Ù' | 'Ú' | 'Û' | 'Ů' => "U",
        'ł' => "l",
        'Ł' => "L",
        'ř' => "r",
        'š' | 'ś' => "s",
        'Š' | 'Ś' => "S",
        'ý' | 'ÿ' => "y",
        'ž' | 'ź' | 'ż' => "z",
        'Ž' | 'Ź' | 'Ż' => "Z",
        other => return Cow::Owned(other.to_string()),
    };
    Cow::Borrowed(plain)
}

fn quote(character: char) -> String {
    if character.is_whitespace() { "whitespace".to_owned() } else { format!("`{character}`") }
}

/// The reason why providers do not accept the name of a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParameterNameError {
    /// The name is empty.
    #[error("the name of the parameter is empty")]
    Empty,
    /// The name is too long.
    #[error("the name of the parameter has {length} characters, but providers accept at most {MAX_LENGTH}")]
    TooLong {
        /// The length of the name.
        length: usize,
    },
    /// The name contains a character that providers reject.
    #[error(
        "the name of the parameter contains {}, but providers accept only ASCII letters, digits, `_`, `-` and `.`",
        quote(*.character)
    )]
    Character {
        /// The first such character.
        character: char,
    },
}

/// Checks that providers accept the name of a parameter: 1 to 64 of `A-Z a-z 0-9 _ - .`.
///
/// ```
/// use patter_core::name::check_parameter_name;
/// assert!(check_parameter_name("personName").is_ok());
/// assert!(check_parameter_name("größe").is_err());
/// ```
pub fn check_parameter_name(name: &str) -> Result<(), ParameterNameError> {
    if name.is_empty() {
        return Err(ParameterNameError::Empty);
    }
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if let Some(character) = name.chars().find(|c| !is_allowed(c)) {
        return Err(ParameterNameError::Character { character });
    }
    match name.len() {
        length if length > MAX_LENGTH => Err(ParameterNameError::TooLong { length }),
        _ => Ok(()),
    }
}

/// The full name of a tool in a library: `tool`, `toolbox/tool` or `org/toolbox/tool`.
///
/// ```
/// use patter_core::name::FullName;
/// let name = FullName::parse("acme/weather/current").unwrap();
/// assert_eq!((name.tool_name(), name.namespace()), ("current", Some("acme/weather")));
/// assert_eq!(FullName::parse("weather//current").unwrap_err().to_string(), "a part of the name is empty");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FullName(String);

/// The reason why a text is not the full name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FullNameError {
    /// The name cannot be sent to providers.
    #[error(transparent)]
    Wire(#[from] WireNameError),
    /// There is nothing before, between or after the slashes.
    #[error("a part of the name is empty")]
    EmptyPart,
    /// The name has too many parts.
    #[error("the name has more than three parts (organisation, toolbox and tool)")]
    TooManyParts,
}

impl FullName {
    /// Parses a full name.
    pub fn parse(name: &str) -> Result<Self, FullNameError> {
        if name.split('/').any(str::is_empty) && !name.is_empty() {
            return Err(FullNameError::EmptyPart);
        }
        if name.split('/').count() > 3 {
            return Err(FullNameError::TooManyParts);
        }
        WireName::from_full_name(name)?;
        Ok(Self(name.to_owned()))
    }

    /// Joins a namespace, which may be empty, and the name of a tool.
    pub fn join(namespace: &str, tool: &str) -> Result<Self, FullNameError> {
        if namespace.is_empty() { Self::parse(tool) } else { Self::parse(&format!("{namespace}/{tool}")) }
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of the tool within its toolbox.
    pub fn tool_name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, tool)| tool)
    }

    /// Returns everything before the name of the tool.
    pub fn namespace(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(namespace, _)| namespace)
    }
}

// Allows maps of full names to be searched with a `&str`.
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
