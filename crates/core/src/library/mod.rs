//! Libraries of tools: layers merged into one registry.
//!
//! A [`Library`] holds one entry for a full name. Entries come from three layers; where two have the same full name, the
//! one of the higher layer wins, and the other is kept as [`Library::overrides`], so that nothing is shadowed in
//! silence. What the entries hold makes no difference here.

mod bind;

pub use bind::{BindError, BindFailure, Binding, Defined, Matching, Target, Unbound, bind, unbound};

use crate::name::FullName;
use crate::text::nearest;
use indexmap::IndexMap;
use std::collections::HashMap;
use std::fmt;
use thiserror::Error;

/// Where a tool comes from. A later layer wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The standard library.
    Internal,
    /// What an organisation shares among its projects.
    Org,
    /// The project.
    Project,
}

/// Something in a library, under its full name.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<T> {
    /// Its full name.
    pub name: FullName,
    /// The layer that it comes from.
    pub layer: Layer,
    /// Whether a higher layer may put something in its place.
    pub sealing: Sealing,
    /// What it is.
    pub value: T,
}

/// Whether a higher layer may put something in the place of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sealing {
    /// It may.
    Open,
    /// It may not.
    Sealed,
}

/// One registry, merged from the layers.
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
/// // A bare name means the highest layer that has it.
/// assert_eq!(library.resolve("sayHello").unwrap().value, "ours");
/// assert_eq!(library.resolve("acme/mail/send").unwrap().value, "shared");
/// assert_eq!(library.resolve("sendd").unwrap_err().to_string(), "there is no tool `sendd`");
/// ```
#[derive(Debug, Clone)]
pub struct Library<T> {
    entries: IndexMap<FullName, Entry<T>>,
    /// What lost its full name to a higher layer.
    shadowed: Vec<Entry<T>>,
    /// The places of entries by the name within their toolbox.
    by_own_name: HashMap<String, Vec<usize>>,
}

/// An entry whose place another one took.
#[derive(Debug)]
pub struct Override<'l, T> {
    /// What has the name now.
    pub winner: &'l Entry<T>,
    /// What had it in a lower layer.
    pub loser: &'l Entry<T>,
}

/// Why layers cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MergeError {
    /// A sealed entry would be overridden.
    #[error("the {layer} layer may not override `{name}`, which the {sealed_by} layer has sealed")]
    Sealed {
        /// The name.
        name: FullName,
        /// The layer that sealed it.
        sealed_by: Layer,
        /// The layer that would override it.
        layer: Layer,
    },
    /// A layer has a name twice.
    #[error("the {layer} layer has two tools `{name}`")]
    Duplicate {
        /// The name.
        name: FullName,
        /// The layer.
        layer: Layer,
    },
}

/// Why a name stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResolveError {
    /// There is nothing of the name.
    #[error("there is no tool `{name}`")]
    NotFound {
        /// The name.
        name: String,
        /// A name that looks like it.
        nearest: Option<String>,
    },
    /// There are several in one layer.
    #[error("`{name}` may be {} of the {layer} layer", listed(candidates))]
    Ambiguous {
        /// The name.
        name: String,
        /// The layer.
        layer: Layer,
        /// The full names that it may stand for.
        candidates: Vec<FullName>,
    },
}

impl Layer {
    /// All layers, the lowest first.
    pub const ALL: [Layer; 3] = [Layer::Internal, Layer::Org, Layer::Project];

    /// Returns the name as it is written.
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
    /// Returns what to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ResolveError::NotFound { nearest, .. } => nearest.as_ref().map(|near| format!("did you mean `{near}`?")),
            ResolveError::Ambiguous { .. } => Some("write the full name".to_owned()),
        }
    }
}

impl<T> Default for Library<T> {
    fn default() -> Self {
        Self { entries: IndexMap::new(), shadowed: Vec::new(), by_own_name: HashMap::new() }
    }
}

impl<T> Library<T> {
    /// Merges layers, in whatever order their entries come. Tells all that is wrong at once.
    pub fn merge(entries: impl IntoIterator<Item = Entry<T>>) -> Result<Self, Vec<MergeError>> {
        let mut all: Vec<_> = entries.into_iter().collect();
        all.sort_by_key(|entry| entry.layer);
        let mut library = Self::default();
        let mut errors = Vec::new();
        for entry in all {
            if let Some(before) = library.entries.get(&entry.name) {
                let (name, layer) = (entry.name.clone(), entry.layer);
                if before.layer == layer {
                    errors.push(MergeError::Duplicate { name, layer });
                    continue;
                }
                // A seal holds through an override by the layer between.
                let seals = library.shadowed.iter().filter(|other| other.name == name).chain([before]);
                if let Some(sealed) = seals.into_iter().find(|other| other.sealing == Sealing::Sealed) {
                    errors.push(MergeError::Sealed { name, sealed_by: sealed.layer, layer });
                    continue;
                }
            }
            library.shadowed.extend(library.entries.insert(entry.name.clone(), entry));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        for (index, name) in library.entries.keys().enumerate() {
            library.by_own_name.entry(name.own().to_owned()).or_default().push(index);
        }
        Ok(library)
    }

    /// Iterates over the entries, by layer and then in the order in which they were given.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<T>> {
        self.entries.values()
    }

    /// Returns the entry of a full name.
    pub fn get(&self, name: &str) -> Option<&Entry<T>> {
        self.entries.get(name)
    }

    /// Iterates over what was overridden, and by what. What was overridden twice comes twice, with the final winner.
    pub fn overrides(&self) -> impl Iterator<Item = Override<'_, T>> {
        self.shadowed.iter().filter_map(|loser| Some(Override { winner: self.entries.get(&loser.name)?, loser }))
    }

    /// Returns all that a name may stand for, the winners first, in the order in which they would be taken.
    pub fn candidates(&self, name: &str) -> Vec<&Entry<T>> {
        let is_it = |entry: &&Entry<T>| entry.name.as_str() == name || entry.name.own() == name;
        let mut found: Vec<_> = self.entries.values().filter(is_it).chain(self.shadowed.iter().filter(is_it)).collect();
        found.sort_by_key(|entry| std::cmp::Reverse(entry.layer));
        found
    }

    /// Returns what a name stands for: a full name for itself, a bare one for the highest layer that has it.
    pub fn resolve(&self, name: &str) -> Result<&Entry<T>, ResolveError> {
        if name.contains('/') {
            return self.get(name).ok_or_else(|| self.not_found(name));
        }
        let places = self.by_own_name.get(name).map(Vec::as_slice).unwrap_or_default();
        let entries = places.iter().filter_map(|place| self.entries.get_index(*place)).map(|(_, entry)| entry);
        let Some(layer) = entries.clone().map(|entry| entry.layer).max() else { return Err(self.not_found(name)) };
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

    fn not_found(&self, name: &str) -> ResolveError {
        let full = nearest(name, self.entries.keys().map(FullName::as_str));
        let near = full.or_else(|| nearest(name, self.entries.keys().map(FullName::own)));
        // The tool may be there under another namespace.
        let own = name.rsplit('/').next().filter(|own| self.by_own_name.contains_key(*own));
        let elsewhere = own.and_then(|own| self.resolve(own).ok()).map(|entry| entry.name.as_str());
        ResolveError::NotFound {
            name: name.to_owned(),
            nearest: elsewhere.filter(|_| name.contains('/')).or(near).map(str::to_owned),
        }
    }
}

fn listed(names: &[FullName]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(" or ")
}
