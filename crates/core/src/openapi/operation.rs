//! Operations as tools.

use super::document::{Document, line, text_of};
use super::naming::{shortened, tool_name};
use super::parameter::{In, Parameters};
use super::response::{Response, errors};
use super::schema::Schemas;
use super::security::{Credentials, Security};
use super::{Glob, Notes};
use crate::declare::template::Template;
use crate::types::keyword::free_name;
use crate::types::signature::Signature;
use patter_gram::Value;
use serde_json::{Map, Value as Json};
use std::collections::HashSet;

/// The methods that can be tools, as documents and tools write them.
const METHODS: &[(&str, &str)] =
    &[("get", "GET"), ("head", "HEAD"), ("post", "POST"), ("put", "PUT"), ("patch", "PATCH"), ("delete", "DELETE")];
/// How long the description of a tool may be.
const LONGEST_DESCRIPTION: usize = 500;
/// How long the name of a tool on the wire may be.
const LONGEST_NAME: usize = 64;

pub(super) struct Operation<'d> {
    /// The name of its tool.
    pub(super) name: String,
    pub(super) method: &'static str,
    pub(super) path: &'d str,
    /// What the document says about the path.
    pub(super) item: &'d Json,
    /// What it says about the operation.
    pub(super) own: &'d Json,
}

/// A tool, ready to be written.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) place: String,
    pub(super) properties: Vec<(String, Value)>,
    pub(super) signature: Signature,
}

/// Lists the operations of a document, each with a name of its own.
pub(super) fn list<'d>(document: &Document<'d>, toolbox: &str, notes: &mut Notes) -> Vec<Operation<'d>> {
    // On the wire the name of the toolbox and `__` stand before that of the tool.
    let longest = LONGEST_NAME.saturating_sub(toolbox.len() + 2);
    let mut operations = Vec::new();
    let mut names = HashSet::new();
    let paths = document.root().get("paths").and_then(Json::as_object);
    for (path, item) in paths.into_iter().flatten().filter(|(path, _)| !path.starts_with("x-")) {
        notes.place = path.clone();
        let resolved = match document.resolve(item) {
            Ok(resolved) => resolved,
            Err(reference) => {
                notes.add(format!("skipped: `{reference}` is not in this document"));
                continue;
            }
        };
        for (key, own) in resolved.iter().filter(|(_, own)| own.is_object()) {
            let Some((_, method)) = METHODS.iter().find(|(name, _)| name == key) else {
                if matches!(key.as_str(), "options" | "trace" | "query") {
                    notes.add(format!("skipped: the method {} cannot be a tool", key.to_uppercase()));
                }
                continue;
            };
            let name = tool_name(own.get("operationId").and_then(Json::as_str), method, path);
            let name = shortened(&name, longest);
            // Room for a number is made where it is needed.
            let name = if names.contains(name) { shortened(name, longest.saturating_sub(6)) } else { name };
            let name = free_name(name, |name| !names.contains(name));
            names.insert(name.clone());
            operations.push(Operation { name, method, path, item, own });
        }
    }
    operations
}

impl<'d> Operation<'d> {
    /// Names it for people.
    pub(super) fn place(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(super) fn is_chosen(&self, only: &[Glob]) -> bool {
        let id = self.own.get("operationId").and_then(Json::as_str).unwrap_or_default();
        let place = self.place();
        only.is_empty() || only.iter().any(|glob| [&self.name, id, self.path, &place].iter().any(|it| glob.matches(it)))
    }

    /// Tells whether what no template mentions goes into the body.
    pub(super) fn sends_body(&self) -> bool {
        matches!(self.method, "POST" | "PUT" | "PATCH")
    }

    fn description(&self) -> String {
        let empty = Map::new();
        let own = self.own.as_object().unwrap_or(&empty);
        let summary = text_of(own, "summary", LONGEST_DESCRIPTION);
        let more = text_of(own, "description", LONGEST_DESCRIPTION);
        let mut description = match (summary, more) {
            (Some(summary), Some(more)) if more.starts_with(summary.trim_end_matches('.')) => more,
            (Some(summary), Some(more)) => {
                let stop = if summary.ends_with(['.', '!', '?', ':']) { "" } else { "." };
                line(&format!("{summary}{stop} {more}"), LONGEST_DESCRIPTION)
            }
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => format!("Sends {} to {}", self.method, self.path),
        };
        if own.get("deprecated") == Some(&Json::Bool(true)) {
            description.push_str(" (deprecated)");
        }
        description
    }
}

/// What operations need to become tools.
pub(super) struct Maker<'m, 'd> {
    pub(super) document: &'m Document<'d>,
    pub(super) schemas: &'m mut Schemas<'d>,
    pub(super) notes: &'m mut Notes,
}

impl<'d> Maker<'_, 'd> {
    /// Returns the tool of an operation; `None`, with a warning that says why, where it cannot be one.
    pub(super) fn tool(&mut self, operation: &Operation<'d>, server: &str, security: &Security<'d>) -> Option<Tool> {
        let made = self.try_tool(operation, server, security);
        made.map_err(|reason| self.notes.add(format!("skipped: {reason}"))).ok()
    }

    fn try_tool(&mut self, operation: &Operation<'d>, server: &str, security: &Security<'d>) -> Result<Tool, String> {
        if operation.own.get("callbacks").and_then(Json::as_object).is_some_and(|callbacks| !callbacks.is_empty()) {
            self.notes.add("`callbacks` are calls of the server, and are left out");
        }
        let credentials = security.credentials(operation, self.notes);
        let parameters = self.parameters(operation, &credentials)?;
        let url = url(server, operation, &parameters)?;
        let response = self.response(operation);
        let properties =
            properties(operation, url, &parameters, &response, credentials, errors(self.document, operation));
        let signature = Schemas::signature(parameters.schema(), response.schema)?;
        Ok(Tool { name: operation.name.clone(), place: operation.place(), properties, signature })
    }
}

/// Returns the address as a template, with the names of the parameters.
fn url(server: &str, operation: &Operation<'_>, parameters: &Parameters) -> Result<String, String> {
    let mut url = server.to_owned();
    if !operation.path.starts_with('/') {
        url.push('/');
    }
    let mut rest = operation.path;
    while let Some((before, after)) = rest.split_once('{') {
        let (wire, after) = after.split_once('}').ok_or("its path has a `{` without a `}`")?;
        // A `$` before a hole would ask for a variable of the environment.
        url.push_str(&before.strip_suffix('$').map_or_else(|| before.to_owned(), |before| format!("{before}%24")));
        url.push_str(&format!("{{{}}}", parameters.in_path(wire).unwrap_or_default()));
        rest = after;
    }
    url.push_str(rest);
    match Template::parse(&url) {
        Ok(_) => Ok(url),
        Err(error) => Err(format!("its path cannot be a template: {error}")),
    }
}

fn properties(
    operation: &Operation<'_>,
    url: String,
    parameters: &Parameters,
    response: &Response,
    credentials: Credentials,
    errors: Vec<(String, String)>,
) -> Vec<(String, Value)> {
    let texts = |entries: Vec<(String, String)>| {
        Value::Map(entries.into_iter().map(|(key, text)| (key, Value::String(text))).collect())
    };
    let mut query = parameters.templates(In::Query, operation.sends_body());
    query.extend(credentials.query);
    let mut headers = parameters.templates(In::Header, true);
    headers.extend(parameters.content_type.iter().map(|kind| ("Content-Type".to_owned(), kind.clone())));
    headers.extend(credentials.headers);
    let body = match &parameters.whole_body {
        Some(name) => Some(Value::String(format!("{{{name}}}"))),
        None => {
            let fields = parameters.templates(In::Body, !operation.sends_body() || parameters.renames_body());
            (!fields.is_empty()).then(|| texts(fields))
        }
    };
    let mut properties = vec![
        ("description".to_owned(), Value::String(operation.description())),
        ("method".to_owned(), operation.method.into()),
        ("url".to_owned(), Value::String(url)),
    ];
    let mut put = |key: &str, value: Value| properties.push((key.to_owned(), value));
    if !query.is_empty() {
        put("query", texts(query));
    }
    if !headers.is_empty() {
        put("headers", texts(headers));
    }
    if let Some(body) = body {
        put("body", body);
    }
    if let Some(result) = response.result {
        put("result", result.into());
    }
    if !errors.is_empty() {
        put("errors", texts(errors));
    }
    properties
}
