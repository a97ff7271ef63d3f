//! Conversion of operations to tools.

use super::importer::Importer;
use super::operation::Operation;
use super::pagination;
use super::parameter::{ParameterLocation, Parameters};
use super::response::{ToolResult, error_messages};
use super::schema::Schemas;
use super::security::{Credentials, Security};
use crate::declare::template::Template;
use crate::types::signature::Signature;
use patter_gram::Value;
use serde_json::Value as Json;

/// A tool to be written.
pub(super) struct ImportedTool {
    pub(super) name: String,
    pub(super) location: String,
    pub(super) properties: Vec<(String, Value)>,
    pub(super) signature: Signature,
}

impl<'d> Importer<'_, 'd> {
    /// Converts an operation to a tool. Returns `None`, with a warning, if that is not possible.
    pub(super) fn tool(
        &mut self,
        operation: &Operation<'d>,
        server: &str,
        security: &Security<'d>,
    ) -> Option<ImportedTool> {
        let tool = self.try_tool(operation, server, security);
        tool.map_err(|reason| self.warnings.add(format!("skipped: {reason}"))).ok()
    }

    fn try_tool(
        &mut self,
        operation: &Operation<'d>,
        server: &str,
        security: &Security<'d>,
    ) -> Result<ImportedTool, String> {
        if operation.object.get("callbacks").and_then(Json::as_object).is_some_and(|callbacks| !callbacks.is_empty()) {
            self.warnings.add("`callbacks` are requests sent by the server; left out");
        }
        let credentials = security.credentials(operation, server, self.warnings);
        let parameters = self.parameters(operation, &credentials)?;
        let url = url(server, operation, &parameters)?;
        let response = self.response(operation);
        let mut description = operation.description();
        if let Some(hint) = pagination::hint(operation, &parameters, &response.fields) {
            if !description.ends_with(['.', '!', '?', ':', '…', ')']) {
                description.push('.');
            }
            description.push_str(&hint);
        }
        let errors = error_messages(self.document, operation);
        let properties = properties(operation, description, url, &parameters, &response, credentials, errors);
        let signature = Schemas::signature(parameters.schema(), response.schema)?;
        Ok(ImportedTool { name: operation.name.clone(), location: operation.location(), properties, signature })
    }
}

/// Returns the URL template, with the names of the parameters.
fn url(server: &str, operation: &Operation<'_>, parameters: &Parameters) -> Result<String, String> {
    let mut url = server.to_owned();
    let path = operation.path();
    if !path.starts_with('/') {
        url.push('/');
    }
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let (wire, after) = after.split_once('}').ok_or("the path has an unclosed `{`")?;
        // A `$` before a placeholder would refer to an environment variable.
        url.push_str(&before.strip_suffix('$').map_or_else(|| before.to_owned(), |before| format!("{before}%24")));
        url.push_str(&parameters.path_template(wire).unwrap_or_default());
        rest = after;
    }
    url.push_str(rest);
    match Template::parse(&url) {
        Ok(_) => Ok(url),
        Err(error) => Err(format!("the path is not a valid template: {error}")),
    }
}

fn properties(
    operation: &Operation<'_>,
    description: String,
    url: String,
    parameters: &Parameters,
    response: &ToolResult,
    credentials: Credentials,
    errors: Vec<(String, String)>,
) -> Vec<(String, Value)> {
    let map_of_texts = |entries: Vec<(String, String)>| {
        Value::Map(entries.into_iter().map(|(key, text)| (key, Value::String(text))).collect())
    };
    let mut query = parameters.templates(ParameterLocation::Query, operation.sends_body());
    query.extend(credentials.query);
    let mut headers = parameters.templates(ParameterLocation::Header, true);
    headers
        .extend(parameters.content_type.iter().map(|content_type| ("Content-Type".to_owned(), content_type.clone())));
    headers.extend(credentials.headers);
    let mut cookies = parameters.templates(ParameterLocation::Cookie, true);
    cookies.extend(credentials.cookies);
    let styles = parameters.styles();
    let body = match &parameters.whole_body {
        Some(name) => Some(Value::String(format!("{{{name}}}"))),
        None => {
            let fields =
                parameters.templates(ParameterLocation::Body, !operation.sends_body() || parameters.renames_body());
            (!fields.is_empty()).then(|| map_of_texts(fields))
        }
    };
    let mut properties = vec![
        ("description".to_owned(), Value::String(description)),
        ("method".to_owned(), operation.method.into()),
        ("url".to_owned(), Value::String(url)),
    ];
    let mut add = |key: &str, value: Value| properties.push((key.to_owned(), value));
    if !query.is_empty() {
        add("query", map_of_texts(query));
    }
    if !headers.is_empty() {
        add("headers", map_of_texts(headers));
    }
    if !cookies.is_empty() {
        add("cookies", map_of_texts(cookies));
    }
    if let Some(body) = body {
        add("body", body);
    }
    if !styles.is_empty() {
        add("styles", map_of_texts(styles));
    }
    if let Some(result) = response.result {
        add("result", result.into());
    }
    if !errors.is_empty() {
        add("errors", map_of_texts(errors));
    }
    properties
}
