//! The names of the library, indexed, so that a check stays linear in the tools of an agent and of the library.

use super::Options;
use std::collections::{HashMap, HashSet};

pub(super) struct LibraryNames<'o> {
    /// The names as given: full names, and whole toolboxes.
    given: &'o [&'o str],
    /// The full names, by their last part.
    by_own_name: HashMap<&'o str, Vec<&'o str>>,
    full_names: HashSet<&'o str>,
    /// The starts of the names in toolboxes whose tools are not known.
    prefixes: Vec<&'o str>,
    sealed: HashSet<&'o str>,
}

impl<'o> LibraryNames<'o> {
    pub(super) fn new(options: &'o Options<'o>) -> Self {
        let mut by_own_name: HashMap<&str, Vec<&str>> = HashMap::new();
        for full in options.library {
            by_own_name.entry(full.rsplit('/').next().unwrap_or(full)).or_default().push(full);
        }
        Self {
            given: options.library,
            by_own_name,
            full_names: options.library.iter().copied().collect(),
            prefixes: options.library.iter().filter_map(|known| known.strip_suffix('*')).collect(),
            sealed: options.sealed.iter().copied().collect(),
        }
    }

    /// Returns whether the library contains a tool with a full or bare name, or may contain it.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.full_names.contains(name)
            || self.by_own_name.contains_key(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    pub(super) fn is_sealed(&self, full_name: &str) -> bool {
        self.sealed.contains(full_name)
    }

    /// Returns the full names of the tools with a bare name.
    pub(super) fn with_own_name(&self, name: &str) -> &[&'o str] {
        self.by_own_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the full name of the first tool with a full or bare name.
    pub(super) fn find(&self, name: &str) -> Option<&'o str> {
        self.with_own_name(name).first().or_else(|| self.full_names.get(name)).copied()
    }

    /// Iterates over the full and the bare names of the tools.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'o str> {
        self.given.iter().flat_map(|full| [Some(*full), full.rsplit_once('/').map(|(_, own)| own)]).flatten()
    }
}
