//! Import of OpenAPI documents as toolboxes: one HTTP tool per operation.
//!
//! Parts of a document that a tool cannot express are left out with a [`Warning`]. A type may be wider than its schema, never
//! narrower, since the server validates requests anyway.

mod warning;
mod error;
mod swagger;
mod document;
mod http;
mod naming;
mod operation;
mod server;
mod schema;
mod importer;
mod security;
mod parameter;
mod body;
mod response;
mod pagination;
mod tool;
mod write;

pub use error::OpenApiError;
pub use warning::Warning;

use crate::text::Glob;
use document::Document;
use importer::Importer;
use schema::Schemas;
use security::Security;
use serde_json::Value as Json;
use warning::Warnings;

/// Options of an import.
///
/// ```
/// use patter_core::openapi::ImportOptions;
/// use patter_core::text::Glob;
/// let options = ImportOptions { name: Some("shop".to_owned()), only: vec![Glob::new("list*")], ..ImportOptions::default() };
/// assert!(options.only[0].matches("listOrders"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// The name of the toolbox. By default it is derived from the title of the document.
    pub name: Option<String>,
    /// The address of the server. By default the document's.
    pub server: Option<String>,
    /// The operations to import, by name, `operationId`, path, or method and path; all of them if empty.
    pub only: Vec<Glob>,
}

/// A toolbox imported from a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedToolbox {
    /// The toolbox and its record types, as formatted gram.
    pub text: String,
    /// The number of tools.
    pub tools: usize,
    /// The parts of the document that the toolbox does not express.
    pub warnings: Vec<Warning>,
}

/// Imports an OpenAPI document, version 2.0, 3.0 or 3.1, as a toolbox. The output is deterministic.
///
/// ```
/// use patter_core::openapi::{ImportOptions, import};
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
/// let imported = import(&document, &ImportOptions::default()).unwrap();
/// assert!(imported.text.contains("(city::Text)==>(::Double)"), "{}", imported.text);
/// assert!(imported.warnings.is_empty());
/// ```
pub fn import(document: &Json, options: &ImportOptions) -> Result<ImportedToolbox, OpenApiError> {
    let mut warnings = Warnings::default();
    let upgraded = document::is_swagger(document).then(|| swagger::to_openapi(document));
    let document = Document::read(upgraded.as_ref().unwrap_or(document), &mut warnings)?;
    let name = naming::toolbox_name(document.title(), options.name.as_deref())?;
    let security = Security::read(&document, &name);
    // With a selection, warnings about operations outside of it are dropped.
    let mut dropped = Warnings::default();
    let listing = if options.only.is_empty() { &mut warnings } else { &mut dropped };
    let operations = operation::list(&document, &name, listing);
    if operations.is_empty() {
        return Err(OpenApiError::NoOperations);
    }
    let count = operations.len();
    let known: Vec<_> = operations.iter().take(5).map(|operation| operation.name.clone()).collect();
    let selected: Vec<_> = operations.into_iter().filter(|operation| operation.is_selected(&options.only)).collect();
    if selected.is_empty() {
        return Err(OpenApiError::NoMatch { known, count });
    }
    let mut schemas = Schemas::new(document.root());
    let mut tools = Vec::new();
    for operation in &selected {
        warnings.location = operation.location();
        let Some(server) = server::address(&document, operation, options.server.as_deref(), &mut warnings)? else {
            continue;
        };
        let mut importer = Importer { document: &document, schemas: &mut schemas, warnings: &mut warnings };
        tools.extend(importer.tool(operation, &server, &security));
    }
    let records = schemas.records(&mut warnings);
    tools.retain(|tool| write::is_readable(tool, &records, &mut warnings));
    let warnings = warnings.into_list();
    if tools.is_empty() {
        return Err(OpenApiError::NoTools { warnings });
    }
    let text = write::format_toolbox(&document, &name, &tools, &records);
    Ok(ImportedToolbox { text, tools: tools.len(), warnings })
}
