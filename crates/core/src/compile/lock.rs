//! `patter.lock`: which tools the agents of a project are bound to.
//!
//! `patter lock` writes the file, which is committed with the project. For each tool that an agent may call it records
//! what serves it, down to a hash of its schemas and of its declaration, so that [`Lock::drift`] finds every change.

use crate::library::{Binding, Library, LibraryTool, Target};
use crate::types::definition::hash;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// The name of the file.
pub const LOCK_FILE: &str = "patter.lock";

/// The version of the file format.
const VERSION: u32 = 1;

/// The tools that agents are bound to.
///
/// ```
/// use patter_core::compile::Lock;
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
    pub bindings: Vec<LockedBinding>,
}

/// A tool that an agent may call, and what serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedBinding {
    /// The agent.
    pub agent: String,
    /// The name by which the agent calls the tool.
    pub declares: String,
    /// The full name of the tool, or of the agent that serves it.
    pub tool: String,
    /// The layer of the tool; `None` for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The kind of its implementation.
    pub kind: String,
    /// The hash of its schemas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The hash of the text that declares its implementation, for tools declared in gram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What its process may do, if it has a sandbox. The project may decide that, not only the declaration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// An error reading a lock file.
#[derive(Debug, Error)]
pub enum LockError {
    /// The file is malformed.
    #[error("cannot parse `{LOCK_FILE}`: {0}")]
    Malformed(String),
    /// The file has an unsupported_settings version.
    #[error("`{LOCK_FILE}` has version {0}, but only version {VERSION} is supported")]
    Version(u32),
}

/// A difference between the locked and the current binding of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// The agent.
    pub agent: String,
    /// The name by which the agent calls the tool.
    pub declares: String,
    /// The difference.
    pub kind: DriftKind,
}

/// How a binding differs from the locked one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftKind {
    /// The tool is not locked.
    Added,
    /// The tool is locked, but the agent no longer calls it.
    Removed,
    /// A part of the binding changed.
    Changed {
        /// The part.
        part: &'static str,
        /// Its locked value.
        locked: String,
        /// Its current value.
        current: String,
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
        // Check the version first: a later format may have fields that are unknown here.
        let Versioned { version } = toml::from_str(text).map_err(malformed)?;
        if version != VERSION {
            return Err(LockError::Version(version));
        }
        toml::from_str(text).map_err(malformed)
    }

    /// Adds the bindings of an agent.
    pub fn add(&mut self, agent: &str, bindings: &[Binding], library: &Library<impl LibraryTool>) {
        self.bindings.extend(bindings.iter().map(|binding| LockedBinding::new(agent, binding, library)));
    }

    /// Returns a hash of all bindings.
    pub fn hash(&self) -> String {
        hash(self.to_string().as_bytes())
    }

    /// Returns the differences between this lock and the current bindings.
    pub fn drift(&self, current: &Lock) -> Vec<Drift> {
        let find = |lock: &Lock, wanted: &LockedBinding| {
            lock.bindings.iter().find(|one| one.agent == wanted.agent && one.declares == wanted.declares).cloned()
        };
        let mut drift = Vec::new();
        for locked in &self.bindings {
            let kinds = match find(current, locked) {
                Some(current) => locked.changes(&current),
                None => vec![DriftKind::Removed],
            };
            drift.extend(kinds.into_iter().map(|kind| locked.drift(kind)));
        }
        let added = current.bindings.iter().filter(|binding| find(self, binding).is_none());
        drift.extend(added.map(|binding| binding.drift(DriftKind::Added)));
        drift
    }
}

/// Writes the file. Its comment is part of [`Lock::hash`], and so of every stored hash of bindings.
impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# Which tools the agents of this project are bound to.\n")?;
        f.write_str("# Written by `patter lock`, checked by `patter check --locked`. Keep it with the project.\n")?;
        f.write_str(&toml::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl LockedBinding {
    fn new(agent: &str, binding: &Binding, library: &Library<impl LibraryTool>) -> Self {
        let base = |tool: &str, kind: &str| Self {
            agent: agent.to_owned(),
            declares: binding.name.clone(),
            tool: tool.to_owned(),
            layer: None,
            kind: kind.to_owned(),
            schema: None,
            source: None,
            revision: None,
            sandbox: None,
        };
        match &binding.target {
            Target::Agent { agent } => base(&agent.path().to_string(), "agent"),
            Target::Tool { name, .. } => match library.get(name.as_str()) {
                None => base(name.as_str(), "none"),
                Some(entry) => Self {
                    layer: Some(entry.layer.name().to_owned()),
                    schema: Some(entry.value.definition().schema_hash()),
                    source: Some(agent_path(entry.value.source()).to_owned()),
                    revision: entry.value.revision().map(str::to_owned),
                    sandbox: entry.value.sandbox().filter(|sandbox| !sandbox.is_none()).map(ToString::to_string),
                    ..base(name.as_str(), entry.value.kind_name())
                },
            },
        }
    }

    fn changes(&self, current: &Self) -> Vec<DriftKind> {
        // Every other part of a different tool differs too, which says nothing more.
        if self.tool != current.tool || self.layer != current.layer {
            return vec![DriftKind::Changed { part: "tool", locked: self.target(), current: current.target() }];
        }
        let value = |part: Option<&String>| part.map_or_else(|| "none".to_owned(), Clone::clone);
        let part = |part, locked: Option<&String>, current: Option<&String>| {
            (locked != current).then(|| DriftKind::Changed { part, locked: value(locked), current: value(current) })
        };
        let parts = [
            part("kind", Some(&self.kind), Some(&current.kind)),
            part("schema", self.schema.as_ref(), current.schema.as_ref()),
            part("source", self.source.as_ref(), current.source.as_ref()),
            part("revision", self.revision.as_ref(), current.revision.as_ref()),
            part("sandbox", self.sandbox.as_ref(), current.sandbox.as_ref()),
        ];
        parts.into_iter().flatten().collect()
    }

    fn target(&self) -> String {
        match &self.layer {
            Some(layer) => format!("`{}` of the {layer} layer", self.tool),
            None => format!("the agent `{}`", self.tool),
        }
    }

    fn drift(&self, kind: DriftKind) -> Drift {
        Drift { agent: self.agent.clone(), declares: self.declares.clone(), kind }
    }
}

/// Returns the file of a source without line and column, which change with every edit.
fn agent_path(source: &str) -> &str {
    let mut parts = source.rsplitn(3, ':');
    let column = parts.next();
    let line = parts.next();
    let file = parts.next();
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    match file {
        Some(file) if is_number(column) && is_number(line) => file,
        _ => source,
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agent, declares, kind } = self;
        match kind {
            DriftKind::Added => write!(f, "`{declares}` of `{agent}` is not locked"),
            DriftKind::Removed => write!(f, "`{declares}` of `{agent}` is locked but no longer declared"),
            DriftKind::Changed { part, locked, current } => {
                let locked = short(part, locked);
                let current = short(part, current);
                write!(f, "the {part} of `{declares}` of `{agent}` changed from {locked} to {current}")
            }
        }
    }
}

/// Shortens hashes, which people do not compare by eye.
fn short<'t>(part: &str, text: &'t str) -> &'t str {
    if matches!(part, "schema" | "revision") { text.get(..12).unwrap_or(text) } else { text }
}
