//! The addresses of servers.

use super::document::Document;
use super::error::OpenApiError;
use super::operation::Operation;
use super::warning::Warnings;
use crate::declare::template::Template;
use serde_json::Value as Json;

/// Returns the server address of an operation: the requested one, or the first of the operation, its path or the document.
/// `None`, with a warning, if the operation's own address is invalid.
pub(super) fn address(
    document: &Document<'_>,
    operation: &Operation<'_>,
    requested: Option<&str>,
    warnings: &mut Warnings,
) -> Result<Option<String>, OpenApiError> {
    if let Some(server) = requested {
        return check_requested(server).map(Some);
    }
    match first_server(operation.object).or_else(|| first_server(operation.item)) {
        Some(own) => Ok(fill(own).map_err(|error| warnings.add(format!("skipped: {error}"))).ok()),
        None => first_server(document.root()).ok_or(OpenApiError::NoServer).and_then(fill).map(Some),
    }
}

fn first_server(owner: &Json) -> Option<&Json> {
    owner.get("servers")?.as_array()?.first()
}

/// Checks a requested address. It may contain environment variables, but no parameters of calls.
fn check_requested(server: &str) -> Result<String, OpenApiError> {
    let unresolved = || OpenApiError::UnresolvedServer(server.to_owned());
    let template = Template::parse(server).map_err(|_| unresolved())?;
    if template.parameters().next().is_some() { Err(unresolved()) } else { check_absolute(server) }
}

/// Returns the address of a server, with the defaults of its variables. A document may not refer to environment variables,
/// so remaining braces are an error.
fn fill(server: &Json) -> Result<String, OpenApiError> {
    let template = server.get("url").and_then(Json::as_str).ok_or(OpenApiError::NoServer)?;
    let mut url = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let unresolved = || OpenApiError::UnresolvedServer(template.to_owned());
        let (name, after) = after.split_once('}').ok_or_else(unresolved)?;
        let variable = server.get("variables").and_then(|variables| variables.get(name));
        let default =
            variable.and_then(|variable| variable.get("default")).and_then(Json::as_str).ok_or_else(unresolved)?;
        url.push_str(before);
        url.push_str(default);
        rest = after;
    }
    url.push_str(rest);
    if url.contains(['{', '}']) {
        Err(OpenApiError::UnresolvedServer(template.to_owned()))
    } else {
        check_absolute(&url)
    }
}

fn check_absolute(url: &str) -> Result<String, OpenApiError> {
    let url = url.trim();
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_absolute = !host.is_empty() && !host.starts_with('/') && !url.contains(char::is_whitespace);
    if is_absolute {
        Ok(url.trim_end_matches('/').to_owned())
    } else {
        Err(OpenApiError::RelativeServer(url.to_owned()))
    }
}
