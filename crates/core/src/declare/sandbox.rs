//! What the process of a command tool or an MCP server may do.

use crate::declare::property::{self, ValueKind};
use crate::rule;
use patter_gram::{Diagnostic, Pattern, Syntax, Value};
use serde::Deserialize;
use std::fmt;

/// What a process may do. Where the system cannot enforce it, the process does what it likes.
///
/// ```
/// use patter_core::declare::sandbox::{Sandbox, SandboxLevel};
/// let (tree, _) = patter_core::gram::parse("[a:Command {run: ['make'], sandbox: 'read-only', writable: ['out']}]");
/// let sandbox = Sandbox::read(tree.patterns().next().unwrap()).unwrap().unwrap();
/// assert_eq!(sandbox.level, SandboxLevel::ReadOnly);
/// assert_eq!(sandbox.to_string(), "read-only, no network, writable out");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// The files that it may change.
    pub level: SandboxLevel,
    /// Whether it may use the network.
    pub network: bool,
    /// Further folders that it may change, relative to the root of the project. `~/` stands for the home folder.
    pub writable: Vec<String>,
    /// Folders in the home folder that it may read. All others in it are hidden.
    pub readable: Vec<String>,
}

/// The files that a process may change, from the strictest level on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxLevel {
    /// None, apart from a temporary folder of its own.
    ReadOnly,
    /// Those of the project.
    Workspace,
    /// All that the user may change: there is no sandbox.
    #[default]
    None,
}

impl SandboxLevel {
    /// The names of all levels.
    pub const NAMES: [&'static str; 3] = ["read-only", "workspace", "none"];

    /// Parses the name of a level.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::ReadOnly, Self::Workspace, Self::None].into_iter().find(|level| level.name() == name)
    }

    /// Returns the name of the level.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::Workspace => "workspace",
            Self::None => "none",
        }
    }
}

impl Sandbox {
    /// The properties and the kinds of their values.
    pub(crate) const PROPERTIES: [(&'static str, ValueKind); 4] = [
        ("sandbox", ValueKind::OneOf(&SandboxLevel::NAMES)),
        ("network", ValueKind::Boolean),
        ("writable", ValueKind::StringOrList),
        ("readable", ValueKind::StringOrList),
    ];

    /// The sandbox for commands that nobody has looked at: they change nothing and have no network.
    pub fn strict() -> Self {
        Self { level: SandboxLevel::ReadOnly, ..Self::default() }
    }

    /// Returns whether a process may do whatever the user may.
    pub fn is_none(&self) -> bool {
        self.level == SandboxLevel::None
    }

    /// Reads the sandbox of a declaration, if it declares one.
    pub fn read(pattern: Pattern<'_>) -> Result<Option<Self>, Vec<Diagnostic>> {
        let check = |(name, kind): (&str, ValueKind)| property::check_value(pattern.property(name)?, kind);
        let mut found: Vec<_> = Self::PROPERTIES.into_iter().filter_map(check).collect();
        let level = match pattern.value("sandbox") {
            Some(Value::String(word) | Value::Symbol(word)) => SandboxLevel::parse(&word),
            _ => None,
        };
        // A misspelt level is reported above.
        let has_sandbox = level.map_or(pattern.property("sandbox").is_some(), |level| level != SandboxLevel::None);
        if !has_sandbox {
            found.extend(Self::PROPERTIES.iter().skip(1).filter_map(|(name, _)| {
                let property = pattern.property(name)?;
                let span = property.key_syntax().map_or(property.syntax().span(), Syntax::span);
                let message = format!("`{name}` has no effect without a sandbox");
                let hint = "add `sandbox: \"read-only\"` or `sandbox: \"workspace\"`, or remove it";
                Some(rule::NO_SANDBOX.at(span, message).with_hint(hint))
            }));
        }
        if !found.is_empty() {
            return Err(found);
        }
        Ok(level.map(|level| Self {
            level,
            network: pattern.value("network") == Some(Value::Boolean(true)),
            writable: list(pattern, "writable"),
            readable: list(pattern, "readable"),
        }))
    }

    /// Returns what this sandbox allows that another one does not, in words.
    ///
    /// ```
    /// use patter_core::declare::sandbox::{Sandbox, SandboxLevel};
    /// let strict = Sandbox::strict();
    /// let loose = Sandbox { level: SandboxLevel::Workspace, network: true, ..strict.clone() };
    /// assert_eq!(loose.gained_over(&strict), ["to change the files of the project", "the network"]);
    /// assert!(strict.gained_over(&loose).is_empty());
    /// ```
    pub fn gained_over(&self, other: &Self) -> Vec<String> {
        let mut gained = Vec::new();
        if other.is_none() {
            return gained;
        }
        match self.level {
            SandboxLevel::None => return vec!["everything that the user may do".to_owned()],
            SandboxLevel::Workspace if self.level > other.level => {
                gained.push("to change the files of the project".to_owned());
            }
            SandboxLevel::Workspace | SandboxLevel::ReadOnly => {}
        }
        if self.network && !other.network {
            gained.push("the network".to_owned());
        }
        let added = |own: &[String], others: &[String], verb: &str| -> Vec<String> {
            own.iter().filter(|folder| !others.contains(folder)).map(|folder| format!("to {verb} `{folder}`")).collect()
        };
        gained.extend(added(&self.writable, &other.writable, "change"));
        gained.extend(added(&self.readable, &[&*other.readable, &*other.writable].concat(), "read"));
        gained
    }
}

/// Formats the sandbox for people, and for the lock file.
impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.level.name())?;
        if self.is_none() {
            return Ok(());
        }
        f.write_str(if self.network { ", network" } else { ", no network" })?;
        for (name, folders) in [("writable", &self.writable), ("readable", &self.readable)] {
            if !folders.is_empty() {
                write!(f, ", {name} {}", folders.join(" "))?;
            }
        }
        Ok(())
    }
}

fn list(pattern: Pattern<'_>, key: &str) -> Vec<String> {
    let text = |value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    match pattern.value(key) {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => items.into_iter().filter_map(text).collect(),
        _ => Vec::new(),
    }
}
