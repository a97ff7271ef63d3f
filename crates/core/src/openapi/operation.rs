//! The operations of a document.

use super::document::{Document, single_line, text_property};
use super::naming::{tool_name, truncate};
use super::warning::Warnings;
use crate::text::Glob;
use crate::types::keyword::free_name;
use serde_json::{Map, Value as Json};
use std::collections::HashSet;

/// The supported methods, as written in documents and in tools.
const METHODS: &[(&str, &str)] = &[
    ("get", "GET"),
    ("head", "HEAD"),
    ("post", "POST"),
    ("put", "PUT"),
    ("patch", "PATCH"),
    ("delete", "DELETE"),
    ("options", "OPTIONS"),
];
/// The maximum length of the description of a tool.
const MAX_TOOL_DESCRIPTION: usize = 500;
/// The maximum length of the name of a tool on the wire.
const MAX_WIRE_NAME: usize = 64;

pub(super) struct Operation<'d> {
    /// The name of the tool.
    pub(super) name: String,
    pub(super) method: &'static str,
    /// The key of the path item, which may have a fragment to tell operations on one path apart.
    path_key: &'d str,
    /// The path item that contains the operation.
    pub(super) item: &'d Json,
    /// The operation object.
    pub(super) object: &'d Json,
}

/// Lists the operations of a document, with unique names.
pub(super) fn list<'d>(document: &Document<'d>, toolbox: &str, warnings: &mut Warnings) -> Vec<Operation<'d>> {
    // On the wire, the name of the tool is prefixed with that of the toolbox and `__`.
    let max_length = MAX_WIRE_NAME.saturating_sub(toolbox.len() + 2);
    let mut operations = Vec::new();
    let mut names = HashSet::new();
    let paths = document.root().get("paths").and_then(Json::as_object);
    for (path, item) in paths.into_iter().flatten().filter(|(path, _)| !path.starts_with("x-")) {
        warnings.location.clone_from(path);
        let resolved = match document.resolve(item) {
            Ok(resolved) => resolved,
            Err(reference) => {
                warnings.add(format!("skipped: `{reference}` is not in this document"));
                continue;
            }
        };
        for (key, object) in resolved.iter().filter(|(_, object)| object.is_object()) {
            let Some((_, method)) = METHODS.iter().find(|(name, _)| name == key) else {
                if matches!(key.as_str(), "trace" | "query") {
                    warnings.add(format!("skipped: the method {} is not supported", key.to_uppercase()));
                }
                continue;
            };
            let name = tool_name(object.get("operationId").and_then(Json::as_str), method, path);
            let name = truncate(&name, max_length);
            // A duplicate name needs room for a number.
            let name = if names.contains(name) { truncate(name, max_length.saturating_sub(6)) } else { name };
            let name = free_name(name, |name| !names.contains(name));
            names.insert(name.clone());
            operations.push(Operation { name, method, path_key: path, item, object });
        }
    }
    operations
}

impl<'d> Operation<'d> {
    /// Returns the method and path, for messages.
    pub(super) fn location(&self) -> String {
        format!("{} {}", self.method, self.path_key)
    }

    /// Returns the path, without a fragment, which no request contains.
    pub(super) fn path(&self) -> &'d str {
        self.path_key.split('#').next().unwrap_or_default()
    }

    pub(super) fn is_selected(&self, only: &[Glob]) -> bool {
        let id = self.object.get("operationId").and_then(Json::as_str).unwrap_or_default();
        let location = self.location();
        only.is_empty()
            || only.iter().any(|glob| [&self.name, id, self.path_key, &location].iter().any(|name| glob.matches(name)))
    }

    /// Returns whether parameters without a template are sent in the body.
    pub(super) fn sends_body(&self) -> bool {
        matches!(self.method, "POST" | "PUT" | "PATCH")
    }

    pub(super) fn description(&self) -> String {
        let empty = Map::new();
        let object = self.object.as_object().unwrap_or(&empty);
        let summary = text_property(object, "summary", MAX_TOOL_DESCRIPTION);
        let more = text_property(object, "description", MAX_TOOL_DESCRIPTION);
        let mut description = match (summary, more) {
            (Some(summary), Some(more)) if more.starts_with(summary.trim_end_matches('.')) => more,
            (Some(summary), Some(more)) => {
                let stop = if summary.ends_with(['.', '!', '?', ':']) { "" } else { "." };
                single_line(&format!("{summary}{stop} {more}"), MAX_TOOL_DESCRIPTION)
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => format!("Sends {} to {}", self.method, self.path_key),
        };
        if object.get("deprecated") == Some(&Json::Bool(true)) {
            description.push_str(" (deprecated)");
        }
        description
    }
}
