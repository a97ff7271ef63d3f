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
    let own = own_address(operation.object).or_else(|| own_address(operation.item));
    match own {
        Some(own) => Ok(own.map_err(|error| warnings.add(format!("skipped: {error}"))).ok()),
        None => own_address(document.root()).unwrap_or(Err(OpenApiError::NoServer)).map(Some),
    }
}

/// Returns the first address that can be used, or what is wrong with the first one.
fn own_address(owner: &Json) -> Option<Result<String, OpenApiError>> {
    let servers = owner.get("servers")?.as_array()?;
    servers.iter().find_map(|server| fill(server).ok()).map(Ok).or_else(|| servers.first().map(fill))
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
        let first = |variable: &'_ Json| variable.get("enum")?.as_array()?.first()?.as_str().map(str::to_owned);
        let default = variable.and_then(|variable| variable.get("default").and_then(Json::as_str).map(str::to_owned));
        let default = default.or_else(|| variable.and_then(first)).ok_or_else(unresolved)?;
        url.push_str(before);
        url.push_str(&default);
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
    // A document on a web page means the scheme of the page, which is encrypted.
    let url = &if url.starts_with("//") { format!("https:{url}") } else { url.to_owned() };
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_absolute = !host.is_empty() && !host.starts_with('/') && !url.contains(char::is_whitespace);
    if is_absolute {
        Ok(url.trim_end_matches('/').to_owned())
    } else {
        Err(OpenApiError::RelativeServer(url.to_owned()))
    }
}
