//! Toolboxes from OpenAPI documents: one HTTP tool for each operation.
//!
//! What a tool cannot say is left out with a warning, so that a reader of the toolbox knows what the document says
//! beyond it. A type may come out wider than its schema, never narrower: the server checks what it is sent anyway.

mod document;
mod error;
mod naming;
mod operation;
mod parameter;
mod response;
mod schema;
mod security;
mod server;
mod write;

pub use error::OpenApiError;

use crate::text::Glob;
use document::Document;
use indexmap::IndexSet;
use schema::Schemas;
use security::Security;
use serde_json::Value as Json;
use std::fmt;

/// What to make of a document.
///
/// ```
/// use patter_core::openapi::Options;
/// use patter_core::text::Glob;
/// let options = Options { name: Some("shop".to_owned()), only: vec![Glob::new("list*")], ..Options::default() };
/// assert!(options.only[0].matches("listOrders"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The name of the toolbox; without one the title of the document gives it.
    pub name: Option<String>,
    /// The address that all operations are at; without one the document says it.
    pub server: Option<String>,
    /// The operations to take, by name, `operationId`, path, or method and path; all of them if there is nothing.
    pub only: Vec<Glob>,
}

/// A toolbox that was made from a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The toolbox and its record types, as formatted gram.
    pub text: String,
    /// How many tools it has.
    pub tools: usize,
    /// What the document says and the toolbox does not.
    pub warnings: Vec<Warning>,
}

/// Something that the document says and the toolbox does not.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    /// What it is about: `GET /pets`, or `schema Pet`.
    pub place: String,
    /// What is different.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Makes a toolbox from an OpenAPI document, version 3.0 or 3.1. The same document gives the same bytes.
///
/// ```
/// use patter_core::openapi::{Options, toolbox};
/// use serde_json::json;
/// let document = json!({
///     "openapi": "3.1.0",
///     "info": { "title": "Weather", "version": "1" },
///     "servers": [{ "url": "https://api.example.com/v1" }],
///     "paths": { "/cities/{city}": { "get": {
///         "operationId": "current",
///         "summary": "Current weather of a city",
///         "parameters": [{ "name": "city", "in": "path", "required": true, "schema": { "type": "string" } }],
///         "responses": { "200": { "description": "ok", "content": { "application/json": {
///             "schema": { "type": "number" } } } } }
///     } } }
/// });
/// let made = toolbox(&document, &Options::default()).unwrap();
/// assert!(made.text.contains("(city::Text)==>(::Double)"), "{}", made.text);
/// assert!(made.warnings.is_empty());
/// ```
pub fn toolbox(document: &Json, options: &Options) -> Result<Imported, OpenApiError> {
    let mut notes = Notes::default();
    let document = Document::read(document, &mut notes)?;
    let name = naming::toolbox_name(document.title(), options)?;
    let security = Security::read(&document, &name);
    // What is not asked for needs no warning.
    let mut unasked = Notes::default();
    let listing = if options.only.is_empty() { &mut notes } else { &mut unasked };
    let operations = operation::list(&document, &name, listing);
    if operations.is_empty() {
        return Err(OpenApiError::NoOperations);
    }
    let count = operations.len();
    let known: Vec<_> = operations.iter().take(5).map(|operation| operation.name.clone()).collect();
    let chosen: Vec<_> = operations.into_iter().filter(|operation| operation.is_chosen(&options.only)).collect();
    if chosen.is_empty() {
        return Err(OpenApiError::NothingMatches { known, count });
    }
    let mut schemas = Schemas::new(document.root());
    let mut tools = Vec::new();
    for operation in &chosen {
        notes.place = operation.place();
        let Some(server) = server::address(&document, operation, options, &mut notes)? else { continue };
        let mut maker = operation::Maker { document: &document, schemas: &mut schemas, notes: &mut notes };
        tools.extend(maker.tool(operation, &server, &security));
    }
    let records = schemas.records(&mut notes);
    tools.retain(|tool| write::can_be_read(tool, &records, &mut notes));
    let warnings = notes.warnings.into_iter().collect();
    if tools.is_empty() {
        return Err(OpenApiError::NothingLeft { warnings });
    }
    let text = write::toolbox(&document, &name, &tools, &records);
    Ok(Imported { text, tools: tools.len(), warnings })
}

/// Warnings, each once, about the place where the import is.
#[derive(Default)]
struct Notes {
    place: String,
    warnings: IndexSet<Warning>,
}

impl Notes {
    fn add(&mut self, message: impl Into<String>) {
        self.warnings.insert(Warning { place: self.place.clone(), message: message.into() });
    }

    fn add_about(&mut self, place: impl Into<String>, message: impl Into<String>) {
        self.warnings.insert(Warning { place: place.into(), message: message.into() });
    }
}
