//! Warnings about parts of a document that a toolbox cannot express.

use indexmap::IndexSet;
use std::fmt;

/// A part of the document that the toolbox does not express.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// The part of the document: `GET /pets`, or `schema Pet`.
    pub location: String,
    /// What is missing or different.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.location, self.message)
    }
}

/// The warnings so far, without duplicates, and the current location in the document.
#[derive(Default)]
pub(super) struct Warnings {
    pub(super) location: String,
    list: IndexSet<Warning>,
}

impl Warnings {
    /// Adds a warning about the current location.
    pub(super) fn add(&mut self, message: impl Into<String>) {
        self.list.insert(Warning { location: self.location.clone(), message: message.into() });
    }

    /// Adds a warning about another location.
    pub(super) fn add_at(&mut self, location: impl Into<String>, message: impl Into<String>) {
        self.list.insert(Warning { location: location.into(), message: message.into() });
    }

    pub(super) fn into_list(self) -> Vec<Warning> {
        self.list.into_iter().collect()
    }
}
