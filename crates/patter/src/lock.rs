//! `patter.lock`: which tools the agents of a project are bound to.
//!
//! The file is written by `patter lock` and kept with the project. It says for each tool that an agent may call what
//! serves it, down to a hash of its schemas and of its declaration, so that [`Lock::drift`] finds every change.

use crate::tool::Tool;
use patter_core::library::{Binding, Library, Target};
use patter_core::types::definition::hash;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The name of the file.
pub const LOCK: &str = "patter.lock";

/// The version of the form of the file.
const VERSION: u32 = 1;

/// Which tools agents are bound to.
///
/// ```
/// use patter::lock::Lock;
/// let lock = Lock::default();
/// assert_eq!(Lock::parse(&lock.to_string()).unwrap(), lock);
/// assert!(lock.drift(&Lock::default()).is_empty());
/// assert!(Lock::parse("version = 99").unwrap_err().to_string().contains("version 99"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    version: u32,
    /// The bindings, by agent and then in declared order.
    #[serde(default, rename = "binding", skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Locked>,
}

/// A tool that an agent may call, and what serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locked {
    /// The agent.
    pub agent: String,
    /// The name by which the agent calls it.
    pub declares: String,
    /// The full name of the tool; the name of the agent where one serves it.
    pub tool: String,
    /// The layer of the tool; none for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The sort of its implementation.
    pub kind: String,
    /// The hash of its schemas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The hash of the text that says how it works, for tools that are declared in gram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// Why a text is no lock file.
#[derive(Debug, Error)]
pub enum LockError {
    /// It is malformed.
    #[error("`{LOCK}` cannot be read: {0}")]
    Malformed(String),
    /// It is of another version.
    #[error("`{LOCK}` has version {0}, and this is for version {VERSION}")]
    Version(u32),
}

/// A difference between what is locked and what is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The agent.
    pub agent: String,
    /// The name by which the agent calls the tool.
    pub declares: String,
    /// What is different.
    pub change: Change,
}

/// What is different from what is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is not locked.
    Added,
    /// It is locked, and there no more.
    Removed,
    /// A part of it is another.
    Part {
        /// Which part.
        part: &'static str,
        /// What is locked.
        locked: String,
        /// What is.
        now: String,
    },
}

impl Default for Lock {
    fn default() -> Self {
        Self { version: VERSION, bindings: Vec::new() }
    }
}

impl Lock {
    /// Reads a lock file.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let malformed = |error: toml::de::Error| LockError::Malformed(error.to_string().trim_end().to_owned());
        // The version comes first: what else a later one has is not known here.
        let Versioned { version } = toml::from_str(text).map_err(malformed)?;
        if version != VERSION {
            return Err(LockError::Version(version));
        }
        toml::from_str(text).map_err(malformed)
    }

    /// Adds the bindings of an agent.
    pub fn add(&mut self, agent: &str, bindings: &[Binding], library: &Library<Tool>) {
        self.bindings.extend(bindings.iter().map(|binding| Locked::of(agent, binding, library)));
    }

    /// Returns a hash of all bindings: equal if and only if all is bound to the same.
    pub fn hash(&self) -> String {
        hash(self.to_string().as_bytes())
    }

    /// Tells what is different now from what is locked.
    pub fn drift(&self, now: &Lock) -> Vec<Drift> {
        let find = |lock: &Lock, wanted: &Locked| {
            lock.bindings.iter().find(|one| one.agent == wanted.agent && one.declares == wanted.declares).cloned()
        };
        let mut drift = Vec::new();
        for locked in &self.bindings {
            let changes = match find(now, locked) {
                Some(now) => locked.changes(&now),
                None => vec![Change::Removed],
            };
            drift.extend(changes.into_iter().map(|change| locked.drift(change)));
        }
        let added = now.bindings.iter().filter(|binding| find(self, binding).is_none());
        drift.extend(added.map(|binding| binding.drift(Change::Added)));
        drift
    }
}

/// Writes the file.
impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# Which tools the agents of this project are bound to.\n")?;
        f.write_str("# Written by `patter lock`, checked by `patter check --locked`. Keep it with the project.\n")?;
        f.write_str(&toml::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Locked {
    fn of(agent: &str, binding: &Binding, library: &Library<Tool>) -> Self {
        let (agent, declares) = (agent.to_owned(), binding.name.clone());
        let unknown = |tool: &str, kind: &str| Self {
            agent: agent.clone(),
            declares: declares.clone(),
            tool: tool.to_owned(),
            layer: None,
            kind: kind.to_owned(),
            schema: None,
            source: None,
            revision: None,
        };
        match &binding.target {
            Target::Agent { name } => unknown(name, "agent"),
            Target::Tool { name, .. } => match library.get(name.as_str()) {
                None => unknown(name.as_str(), "none"),
                Some(entry) => Self {
                    layer: Some(entry.layer.name().to_owned()),
                    schema: Some(entry.value.definition.schema_hash()),
                    source: Some(file_of(&entry.value.source).to_owned()),
                    revision: entry.value.revision.as_deref().map(str::to_owned),
                    ..unknown(name.as_str(), entry.value.kind.name())
                },
            },
        }
    }

    fn changes(&self, now: &Self) -> Vec<Change> {
        // Of another tool everything is another.
        if self.tool != now.tool || self.layer != now.layer {
            return vec![Change::Part { part: "tool", locked: self.named(), now: now.named() }];
        }
        let none = || "nothing".to_owned();
        let part = |part, locked: Option<&String>, now: Option<&String>| {
            let (locked, now) = (locked.cloned(), now.cloned());
            (locked != now).then(|| Change::Part {
                part,
                locked: locked.unwrap_or_else(none),
                now: now.unwrap_or_else(none),
            })
        };
        let parts = [
            part("kind", Some(&self.kind), Some(&now.kind)),
            part("schema", self.schema.as_ref(), now.schema.as_ref()),
            part("source", self.source.as_ref(), now.source.as_ref()),
            part("revision", self.revision.as_ref(), now.revision.as_ref()),
        ];
        parts.into_iter().flatten().collect()
    }

    fn named(&self) -> String {
        match &self.layer {
            Some(layer) => format!("`{}` of the {layer} layer", self.tool),
            None => format!("the agent `{}`", self.tool),
        }
    }

    fn drift(&self, change: Change) -> Drift {
        Drift { agent: self.agent.clone(), declares: self.declares.clone(), change }
    }
}

/// Returns the file of a source, without line and column, which change all the time.
fn file_of(source: &str) -> &str {
    let mut parts = source.rsplitn(3, ':');
    let (column, line, file) = (parts.next(), parts.next(), parts.next());
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    match file {
        Some(file) if is_number(column) && is_number(line) => file,
        _ => source,
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, declares, change } = self;
        match change {
            Change::Added => write!(f, "`{declares}` of `{agent}` is not locked"),
            Change::Removed => write!(f, "`{declares}` of `{agent}` is locked, and not there any more"),
            Change::Part { part, locked, now } => {
                let (locked, now) = (short(part, locked), short(part, now));
                write!(f, "the {part} of `{declares}` of `{agent}` was {locked} and is {now}")
            }
        }
    }
}

/// Shortens hashes, which nobody compares by eye.
fn short<'t>(part: &str, text: &'t str) -> &'t str {
    if matches!(part, "schema" | "revision") { text.get(..12).unwrap_or(text) } else { text }
}
