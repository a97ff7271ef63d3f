//! Tokens: who may do what.

use patter_core::serve::{ApiError, ApiErrorKind};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// A token of a client: what it may do, and with which agents. The token itself is not stored, only its hash.
///
/// ```
/// use patter_serve::{Scope, Scopes, Token, TokenHash};
/// let token = Token::new("ci", TokenHash::of("s3cret")).with_scopes(Scopes::from_iter([Scope::Read, Scope::Run]));
/// assert!(token.hash.matches("s3cret") && !token.hash.matches("S3cret"));
/// assert!(token.scopes.contains(Scope::Run) && !token.scopes.contains(Scope::Approve));
/// assert!(token.may_reach("greeter"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The name, for logs.
    pub name: String,
    /// The hash.
    pub hash: TokenHash,
    /// What it may do.
    pub scopes: Scopes,
    /// The agents it may reach; `None` for all.
    pub agents: Option<Vec<String>>,
}

/// The SHA-256 hash of a token.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenHash([u8; 32]);

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// List agents, and read sessions, events and metrics.
    Read,
    /// Start, resume and cancel runs.
    Run,
    /// Approve and refuse calls.
    Approve,
    /// Delete sessions.
    Admin,
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

/// A text that is not a hash of a token.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a token is written as its hash: `sha256:` and 64 hexadecimal digits")]
pub struct TokenHashError;

/// The reason why a file with tokens cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TokenFileError(String);

/// A token as a file describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    hash: String,
    #[serde(default)]
    scopes: Option<Vec<String>>,
    #[serde(default)]
    agents: Option<Vec<String>>,
}

/// What the sender of a request may do. Without tokens, that is everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access(Option<Arc<Token>>);

impl Access {
    /// Returns what the holder of a token may do.
    pub(crate) fn with(token: &Token) -> Self {
        Self(Some(Arc::new(token.clone())))
    }

    /// Returns an error unless a scope is permitted.
    pub(crate) fn require(&self, scope: Scope) -> Result<(), ApiError> {
        match &self.0 {
            Some(token) if !token.scopes.contains(scope) => {
                let message = format!("the token does not permit this: it needs the scope `{}`", scope.name());
                Err(ApiError::new(ApiErrorKind::Forbidden, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns whether an agent may be reached. Agents that may not be reached do not exist for the sender.
    pub(crate) fn may_reach(&self, agent: &str) -> bool {
        self.0.as_ref().is_none_or(|token| token.may_reach(agent))
    }

    /// Returns whether all agents may be reached, and with them the tools of the project.
    pub(crate) fn may_reach_all(&self) -> bool {
        self.0.as_ref().is_none_or(|token| token.agents.is_none())
    }

    /// Returns the name of the token, or nothing if there are no tokens.
    pub(crate) fn name(&self) -> &str {
        self.0.as_ref().map_or("", |token| token.name.as_str())
    }
}

impl Token {
    /// Reads the tokens of a TOML file: a section for each.
    ///
    /// ```
    /// use patter_serve::{Scope, Token};
    /// let file = format!("[ci]\nhash = \"sha256:{}\"\nscopes = [\"run\"]\nagents = [\"greeter\"]", "0a".repeat(32));
    /// let tokens = Token::read_all(&file).unwrap();
    /// assert!(tokens[0].scopes.contains(Scope::Run) && !tokens[0].may_reach("boss"));
    /// let error = Token::read_all(&file.replace("run", "rum")).unwrap_err();
    /// assert_eq!(error.to_string(), "token `ci`: there is no scope `rum`, only read, run, approve, admin");
    /// ```
    pub fn read_all(text: &str) -> Result<Vec<Self>, TokenFileError> {
        let entries: BTreeMap<String, TokenEntry> =
            toml::from_str(text).map_err(|error| TokenFileError(error.message().to_owned()))?;
        entries.into_iter().map(|(name, entry)| Self::from_entry(name, entry)).collect()
    }

    fn from_entry(name: String, entry: TokenEntry) -> Result<Self, TokenFileError> {
        let wrong = |message: String| TokenFileError(format!("token `{name}`: {message}"));
        let hash = entry.hash.parse().map_err(|error: TokenHashError| wrong(error.to_string()))?;
        let scope = |text: &String| {
            let names = Scope::ALL.map(Scope::name).join(", ");
            Scope::parse(text).ok_or_else(|| wrong(format!("there is no scope `{text}`, only {names}")))
        };
        let scopes = entry.scopes.map(|scopes| scopes.iter().map(scope).collect::<Result<Scopes, _>>());
        let scopes = scopes.transpose()?.unwrap_or(Scopes::ALL);
        Ok(Self { name, hash, scopes, agents: entry.agents })
    }

    /// Returns a token that may do everything.
    pub fn new(name: impl Into<String>, hash: TokenHash) -> Self {
        Self { name: name.into(), hash, scopes: Scopes::ALL, agents: None }
    }

    /// Sets what it may do.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Sets the agents it may reach.
    #[must_use]
    pub fn with_agents(mut self, agents: Vec<String>) -> Self {
        self.agents = Some(agents);
        self
    }

    /// Returns whether it may reach an agent.
    pub fn may_reach(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|known| known == agent))
    }
}

impl TokenHash {
    /// Returns the hash of a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Returns whether a token has this hash. The time it takes does not depend on how much of it is right.
    pub fn matches(&self, token: &str) -> bool {
        let other = Self::of(token);
        self.0.iter().zip(other.0).fold(0, |different, (one, other)| different | (one ^ other)) == 0
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("sha256:").filter(|digits| digits.len() == 64).ok_or(TokenHashError)?;
        let mut hash = [0; 32];
        for (byte, index) in hash.iter_mut().zip((0..).step_by(2)) {
            let digits = digits.get(index..index + 2).ok_or(TokenHashError)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| TokenHashError)?;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 4] = [Self::Read, Self::Run, Self::Approve, Self::Admin];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Approve => "approve",
            Self::Admin => "admin",
        }
    }

    /// Returns the scope of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Scopes {
    /// All scopes.
    pub const ALL: Self = Self(0b1111);

    /// Returns whether a scope is included. `admin` includes all of them.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |all, scope| all | scope.bit()))
    }
}
