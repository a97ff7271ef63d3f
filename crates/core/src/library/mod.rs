//! Libraries of tools: layers merged into one registry.
//!
//! A [`Library`] has one entry per full name. Entries come from three layers. If two have the same full name, the one in
//! the higher layer wins, and the other is reported by [`Library::overrides`], so that nothing is shadowed silently. The
//! values of the entries can have any type.

mod bind;
mod rules;

pub(crate) use bind::complete;
pub use bind::{
    BindError, BindFailure, Binding, HasDefinition, LibraryTool, MatchMode, Target, ToolFacts, UnboundReason, bind,
    bind_each, find_unbound, library_names,
};

pub(crate) use rules::first_unused_rule;
pub use rules::{KnownTools, Toolkits, declared_permissions, find_unused_rules};

use crate::name::FullName;
use crate::text::nearest;
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use std::fmt;
use thiserror::Error;

/// The origin of a tool. Later layers override earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The standard library.
    Internal,
    /// The tools that an organisation shares among its projects.
    Org,
    /// The project.
    Project,
}

/// An entry in a library.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<T> {
    /// The full name.
    pub name: FullName,
    /// The layer of the entry.
    pub layer: Layer,
    /// Whether a higher layer may override the entry.
    pub sealing: Sealing,
    /// The value.
    pub value: T,
}

/// Whether a higher layer may override an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sealing {
    /// It may be overridden.
    Open,
    /// It may not be overridden.
    Sealed,
}

/// A registry merged from layers.
///
/// ```
/// use patter_core::library::{Entry, Layer, Library, Sealing};
/// use patter_core::name::FullName;
/// let entry = |name: &str, layer, value| Entry { name: FullName::parse(name).unwrap(), layer, sealing: Sealing::Open, value };
/// let library = Library::merge([
///     entry("sayHello", Layer::Internal, "built in"),
///     entry("greetings/sayHello", Layer::Project, "ours"),
///     entry("acme/mail/send", Layer::Org, "shared"),
/// ])
/// .unwrap();
/// // A bare name refers to the highest layer that has it.
/// assert_eq!(library.resolve("sayHello").unwrap().value, "ours");
/// assert_eq!(library.resolve("acme/mail/send").unwrap().value, "shared");
/// assert_eq!(library.resolve("sendd").unwrap_err().to_string(), "there is no tool `sendd`");
/// ```
#[derive(Debug, Clone)]
pub struct Library<T> {
    entries: IndexMap<FullName, Entry<T>>,
    /// Entries that a higher layer overrides.
    shadowed: Vec<Entry<T>>,
    /// The indices of entries, by their name without the toolbox.
    by_own_name: HashMap<String, Vec<usize>>,
    /// The MCP servers that were not started.
    missing_servers: Vec<String>,
    /// The namespaces of MCP servers.
    servers: HashSet<String>,
}

/// An entry that is overridden by another.
#[derive(Debug)]
pub struct Override<'l, T> {
    /// The entry in the higher layer.
    pub winner: &'l Entry<T>,
    /// The entry in the lower layer.
    pub loser: &'l Entry<T>,
}

/// An error when merging layers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MergeError {
    /// A sealed entry would be overridden.
    #[error(
        "the {layer} layer cannot override `{name}`, which is sealed by the {sealed_by} layer{}",
        list_places(places)
    )]
    Sealed {
        /// The name.
        name: FullName,
        /// The layer that sealed it.
        sealed_by: Layer,
        /// The layer that would override it.
        layer: Layer,
        /// Where both are declared, if that is known.
        places: Vec<String>,
    },
    /// A layer has two entries with the same name.
    #[error("the {layer} layer has two tools named `{name}`{}", list_places(places))]
    Duplicate {
        /// The name.
        name: FullName,
        /// The layer.
        layer: Layer,
        /// Where both are declared, if that is known.
        places: Vec<String>,
    },
}

/// An error when resolving a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// There is no entry with that name.
    #[error("there is no tool `{name}`")]
    NotFound {
        /// The name.
        name: String,
        /// A similar name.
        nearest: Option<String>,
        /// The MCP servers that may have the tool, but were not started.
        missing_servers: Vec<String>,
    },
    /// Several entries of one layer have that name.
    #[error("`{name}` is ambiguous in the {layer} layer: it may be {}", list_names(candidates))]
    Ambiguous {
        /// The name.
        name: String,
        /// The layer.
        layer: Layer,
        /// The full names of the entries.
        candidates: Vec<FullName>,
    },
}

impl Layer {
    /// All layers, the lowest first.
    pub const ALL: [Layer; 3] = [Layer::Internal, Layer::Org, Layer::Project];

    /// Returns the name of the layer.
    pub const fn name(self) -> &'static str {
        match self {
            Layer::Internal => "internal",
            Layer::Org => "org",
            Layer::Project => "project",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ResolveError {
    /// Returns a hint on how to fix the error, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ResolveError::NotFound { missing_servers: missing, .. } if !missing.is_empty() => {
                let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
                Some(match missing.len() {
                    1 => format!("it may belong to the MCP server {}, which was not started", names.join("")),
                    _ => {
                        format!("it may belong to one of the MCP servers {}, which were not started", names.join(", "))
                    }
                })
            }
            ResolveError::NotFound { nearest, .. } => nearest.as_ref().map(|near| format!("did you mean `{near}`?")),
            ResolveError::Ambiguous { .. } => Some("use the full name".to_owned()),
        }
    }
}

impl<T> Default for Library<T> {
    fn default() -> Self {
        Self {
            entries: IndexMap::new(),
            shadowed: Vec::new(),
            by_own_name: HashMap::new(),
            missing_servers: Vec::new(),
            servers: HashSet::new(),
        }
    }
}

impl<T> Library<T> {
    /// Merges entries, given in any order. Returns all errors at once.
    pub fn merge(entries: impl IntoIterator<Item = Entry<T>>) -> Result<Self, Vec<MergeError>> {
        let mut all: Vec<_> = entries.into_iter().collect();
        all.sort_by_key(|entry| entry.layer);
        let mut library = Self::default();
        let mut errors = Vec::new();
        for entry in all {
            if let Some(before) = library.entries.get(&entry.name) {
                let name = entry.name.clone();
                let layer = entry.layer;
                if before.layer == layer {
                    errors.push(MergeError::Duplicate { name, layer, places: Vec::new() });
                    continue;
                }
                // A sealed entry stays sealed even if a layer in between overrides it.
                let seals = library.shadowed.iter().filter(|other| other.name == name).chain([before]);
                if let Some(sealed) = seals.into_iter().find(|other| other.sealing == Sealing::Sealed) {
                    errors.push(MergeError::Sealed { name, sealed_by: sealed.layer, layer, places: Vec::new() });
                    continue;
                }
            }
            library.shadowed.extend(library.entries.insert(entry.name.clone(), entry));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (index, name) in library.entries.keys().enumerate() {
            library.by_own_name.entry(name.tool_name().to_owned()).or_default().push(index);
        }
        Ok(library)
    }

    /// Iterates over the entries by layer, and within a layer in the order in which they were given.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        self.entries.values()
    }

    /// Returns the entry with a full name.
    pub fn get(&self, name: &str) -> Option<&Entry<T>> {
        self.entries.get(name)
    }

    /// Iterates over the overridden entries, each with the entry that finally wins.
    pub fn overrides(&self) -> impl Iterator<Item = Override<'_, T>> {
        self.shadowed.iter().filter_map(|loser| Some(Override { winner: self.entries.get(&loser.name)?, loser }))
    }

    /// Returns all entries that a name may refer to, in order of precedence.
    pub fn candidates(&self, name: &str) -> Vec<&Entry<T>> {
        let has_name = |entry: &&Entry<T>| entry.name.as_str() == name || entry.name.tool_name() == name;
        let mut found: Vec<_> =
            self.entries.values().filter(has_name).chain(self.shadowed.iter().filter(has_name)).collect();
        found.sort_by_key(|entry| (self.is_of_server(entry), std::cmp::Reverse(entry.layer)));
        // A stable sort: sealed entries come first, the lowest of them before the others.
        found.sort_by_key(|entry| match entry.sealing {
            Sealing::Sealed => (false, Some(entry.layer)),
            Sealing::Open => (true, None),
        });
        found
    }

    /// Returns the sealed entry of a layer below the project that a bare name always refers to, if there is one.
    pub fn sealed(&self, own_name: &str) -> Option<&Entry<T>> {
        let sealed = self.with_own_name(own_name).filter(|entry| entry.sealing == Sealing::Sealed);
        sealed.filter(|entry| entry.layer < Layer::Project).min_by_key(|entry| entry.layer)
    }

    fn with_own_name(&self, name: &str) -> impl Iterator<Item = &Entry<T>> + Clone {
        let indices = self.by_own_name.get(name).map(Vec::as_slice).unwrap_or_default();
        indices.iter().filter_map(|index| self.entries.get_index(*index)).map(|(_, entry)| entry)
    }

    /// Sets the names of MCP servers whose tools are missing because they were not started, for hints.
    #[must_use]
    pub fn with_missing_servers(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.missing_servers = servers.into_iter().collect();
        self
    }

    /// Sets the namespaces of MCP servers. Which tools they have is for others to decide, so a bare name refers to one of
    /// them only if no other tool has that name.
    #[must_use]
    pub fn with_servers(mut self, servers: impl IntoIterator<Item = String>) -> Self {
        self.servers = servers.into_iter().collect();
        self
    }

    fn is_of_server(&self, entry: &Entry<T>) -> bool {
        entry.name.namespace().is_some_and(|namespace| self.servers.contains(namespace))
    }

    /// Returns the names of MCP servers whose tools are missing.
    pub fn missing_servers(&self) -> &[String] {
        &self.missing_servers
    }

    /// Resolves a name: a full name to its entry, a bare name to the entry in the highest layer that has it. A sealed entry
    /// comes first: otherwise a higher layer could take its place under the bare name, which is what agents use.
    /// An entry of an MCP server comes last.
    pub fn resolve(&self, name: &str) -> Result<&Entry<T>, ResolveError> {
        if name.contains('/') {
            return self.get(name).ok_or_else(|| self.not_found(name));
        }
        let all = self.with_own_name(name);
        let is_elsewhere = all.clone().any(|entry| !self.is_of_server(entry));
        let entries = all.filter(|entry| !is_elsewhere || !self.is_of_server(entry));
        let sealed = self.sealed(name).map(|entry| entry.layer);
        let Some(layer) = sealed.or_else(|| entries.clone().map(|entry| entry.layer).max()) else {
            return Err(self.not_found(name));
        };
        let mut found = entries.filter(|entry| entry.layer == layer);
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry),
            (first, second) => {
                let several = first.into_iter().chain(second).chain(found);
                let candidates = several.map(|entry| entry.name.clone()).collect();
                Err(ResolveError::Ambiguous { name: name.to_owned(), layer, candidates })
            }
        }
    }

    /// Returns why a candidate for a name is chosen or not, in words. `is_agent` says that the name refers to an agent.
    pub fn reason(&self, name: &str, candidate: &Entry<T>, chosen: Option<&Entry<T>>, is_agent: bool) -> &'static str {
        let is_chosen = chosen.is_some_and(|chosen| std::ptr::eq(chosen, candidate));
        let is_overridden = self.overrides().any(|one| std::ptr::eq(one.loser, candidate));
        let is_sealed = |entry: &Entry<T>| self.sealed(name).is_some_and(|sealed| std::ptr::eq(sealed, entry));
        match chosen {
            _ if is_overridden => "overridden: a higher layer has the same full name",
            Some(chosen) if is_chosen && chosen.name.as_str() == name && name.contains('/') => {
                "chosen: the full name matches"
            }
            Some(chosen) if is_chosen && is_sealed(chosen) => "chosen: it is sealed",
            Some(_) if is_chosen => "chosen: the highest layer with this name",
            Some(chosen) if candidate.layer > chosen.layer && is_sealed(chosen) => {
                "not chosen: a lower layer seals this name"
            }
            Some(chosen) if candidate.layer < chosen.layer => "not chosen: a higher layer has this name",
            Some(_) => "not chosen: the full name differs",
            None if is_agent => "not chosen: an agent has this name",
            None => "not chosen: the name is ambiguous",
        }
    }

    fn not_found(&self, name: &str) -> ResolveError {
        let full = nearest(name, self.entries.keys().map(FullName::as_str));
        let near = full.or_else(|| nearest(name, self.entries.keys().map(FullName::tool_name)));
        // The tool may exist in a different namespace.
        let own = name.rsplit('/').next().filter(|own| self.by_own_name.contains_key(*own));
        let elsewhere = own.and_then(|own| self.resolve(own).ok()).map(|entry| entry.name.as_str());
        let missing = self.missing_servers.iter().filter(|server| match name.split_once('/') {
            Some((namespace, _)) => namespace == *server,
            None => near.is_none(),
        });
        ResolveError::NotFound {
            name: name.to_owned(),
            missing_servers: missing.cloned().collect(),
            nearest: elsewhere.filter(|_| name.contains('/')).or(near).map(str::to_owned),
        }
    }
}

fn list_places(places: &[String]) -> String {
    if places.is_empty() { String::new() } else { format!(" ({})", places.join(" and ")) }
}

fn list_names(names: &[FullName]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}
