//! Where the operations are.

use super::document::Document;
use super::operation::Operation;
use super::{Notes, OpenApiError, Options};
use crate::declare::template::Template;
use serde_json::Value as Json;

/// Returns the address of an operation: what was asked for, or the first one that the operation, its path or the
/// document names. `None` where the operation has one of its own that cannot be used.
pub(super) fn address(
    document: &Document<'_>,
    operation: &Operation<'_>,
    options: &Options,
    notes: &mut Notes,
) -> Result<Option<String>, OpenApiError> {
    if let Some(server) = &options.server {
        return asked(server).map(Some);
    }
    match first(operation.own).or_else(|| first(operation.item)) {
        Some(own) => Ok(filled(own).map_err(|error| notes.add(format!("skipped: {error}"))).ok()),
        None => first(document.root()).ok_or(OpenApiError::NoServer).and_then(filled).map(Some),
    }
}

fn first(owner: &Json) -> Option<&Json> {
    owner.get("servers")?.as_array()?.first()
}

/// Variables of the environment may stand in an address; arguments of a call may not decide where it goes.
fn asked(server: &str) -> Result<String, OpenApiError> {
    let open = || OpenApiError::OpenServer(server.to_owned());
    let template = Template::parse(server).map_err(|_| open())?;
    if template.parameters().next().is_some() { Err(open()) } else { whole(server) }
}

/// Returns the address of a server, with the defaults of its variables. A document may not ask for variables of the
/// environment, so braces that are left are an error.
fn filled(server: &Json) -> Result<String, OpenApiError> {
    let template = server.get("url").and_then(Json::as_str).ok_or(OpenApiError::NoServer)?;
    let mut url = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let open = || OpenApiError::OpenServer(template.to_owned());
        let (name, after) = after.split_once('}').ok_or_else(open)?;
        let variable = server.get("variables").and_then(|variables| variables.get(name));
        let default = variable.and_then(|variable| variable.get("default")).and_then(Json::as_str).ok_or_else(open)?;
        url.push_str(before);
        url.push_str(default);
        rest = after;
    }
    url.push_str(rest);
    if url.contains(['{', '}']) { Err(OpenApiError::OpenServer(template.to_owned())) } else { whole(&url) }
}

fn whole(url: &str) -> Result<String, OpenApiError> {
    let url = url.trim();
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_whole = !host.is_empty() && !host.starts_with('/') && !url.contains(char::is_whitespace);
    if is_whole { Ok(url.trim_end_matches('/').to_owned()) } else { Err(OpenApiError::RelativeServer(url.to_owned())) }
}
