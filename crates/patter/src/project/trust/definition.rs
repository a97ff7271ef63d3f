//! What a project defines that needs trust.

use patter_core::types::definition::hash;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that a project defines and that could do harm: a command that runs, a server that is started, an address that
/// receives a key. It is the same definition as before as long as nothing about it changed.
///
/// ```
/// use patter::project::{Definition, DefinitionKind};
/// let before = Definition::new(DefinitionKind::Command, "text/words", "wc -w", &"wc -w");
/// let after = Definition::new(DefinitionKind::Command, "text/words", "wc -l", &"wc -l");
/// assert_eq!(before.to_string(), "command `text/words`: wc -w");
/// assert_ne!(before, after);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The kind.
    pub kind: DefinitionKind,
    /// What is defined.
    pub name: String,
    /// What it does, for people. It contains no secrets.
    pub detail: String,
    /// The hash of everything that decides what it does.
    hash: String,
}

/// A kind of definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DefinitionKind {
    /// A tool that runs a command.
    Command,
    /// An MCP server that is started or called.
    Server,
    /// A check of a case that runs a command.
    Check,
    /// A hook that runs a command.
    Hook,
    /// The address of a provider, which receives the key of that provider.
    Model,
    /// A command that prints the key of a provider.
    Key,
    /// A server that HTTP tools call.
    Requests,
    /// A private address that HTTP tools may reach.
    Network,
    /// Where sessions are stored, outside of the project.
    Store,
    /// A folder outside of the project that the toolbox `fs` may access.
    Folder,
    /// Files that define the project and that the toolbox `fs` may write.
    Writable,
    /// A variable in `.env` that changes how Patter finds programs and servers.
    Variable,
}

/// A definition that is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Untrusted<'d> {
    /// The definition.
    pub definition: &'d Definition,
    /// What it did when it was trusted, if it has changed since.
    pub before: Option<&'d str>,
}

impl Definition {
    /// Returns a definition whose identity is decided by `content`.
    pub fn new(
        kind: DefinitionKind,
        name: impl Into<String>,
        detail: impl Into<String>,
        content: &impl Serialize,
    ) -> Self {
        // Texts, lists and maps of texts can always be written.
        let content = serde_json::to_vec(content).unwrap_or_default();
        Self { kind, name: name.into(), detail: detail.into(), hash: hash(&content) }
    }

    /// Returns whether this is a definition of the same thing, which may do something else.
    pub fn has_name_of(&self, other: &Self) -> bool {
        self.kind == other.kind && self.name == other.name
    }
}

impl DefinitionKind {
    /// Returns the name, for people and machines.
    pub const fn name(self) -> &'static str {
        match self {
            DefinitionKind::Command => "command",
            DefinitionKind::Server => "server",
            DefinitionKind::Check => "check",
            DefinitionKind::Hook => "hook",
            DefinitionKind::Model => "model",
            DefinitionKind::Key => "key",
            DefinitionKind::Requests => "requests",
            DefinitionKind::Network => "network",
            DefinitionKind::Store => "store",
            DefinitionKind::Folder => "folder",
            DefinitionKind::Writable => "writable",
            DefinitionKind::Variable => "variable",
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind.name(), self.name)?;
        if self.detail.is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl fmt::Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)?;
        match self.before {
            Some(before) if before != self.definition.detail => write!(f, " (changed; before: {before})"),
            Some(_) => f.write_str(" (changed)"),
            None => Ok(()),
        }
    }
}
