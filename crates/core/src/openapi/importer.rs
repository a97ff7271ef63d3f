//! The state of an import.

use super::document::Document;
use super::schema::Schemas;
use super::warning::Warnings;

/// The state shared by the conversion of all operations to tools.
pub(super) struct Importer<'m, 'd> {
    pub(super) document: &'m Document<'d>,
    pub(super) schemas: &'m mut Schemas<'d>,
    pub(super) warnings: &'m mut Warnings,
}
