//! The responses of operations.

use super::document::{Document, text_property};
use super::http::{is_json, is_text, media_type};
use super::importer::Importer;
use super::operation::Operation;
use super::pagination;
use super::schema::SchemaPosition;
use super::warning::Warnings;
use serde_json::{Map, Value as Json, json};

/// The maximum length of an error message.
const MAX_MESSAGE: usize = 200;

pub(super) struct ToolResult {
    pub(super) schema: Json,
    /// The part of the response that is the result, if it is not the JSON body.
    pub(super) result: Option<&'static str>,
    /// The names of its fields, with those of nested objects that describe pages.
    pub(super) fields: Vec<String>,
}

impl<'d> Importer<'_, 'd> {
    /// Returns the response of a successful operation.
    pub(super) fn response(&mut self, operation: &Operation<'d>) -> ToolResult {
        let contents: Vec<_> = successes(self.document, operation, self.warnings)
            .into_iter()
            .filter_map(|response| response.get("content").and_then(Json::as_object))
            .filter(|content| !content.is_empty())
            .collect();
        let kinds = || contents.iter().flat_map(|content| content.iter());
        if operation.method == "HEAD" {
            return ToolResult { schema: json!({ "type": "integer" }), result: Some("status"), fields: Vec::new() };
        }
        if let Some((_, media)) = kinds().find(|(kind, _)| is_json(&media_type(kind))) {
            let schema = media.get("schema");
            let fields = schema.map_or_else(Vec::new, |schema| self.field_names(schema));
            let schema = schema.map_or_else(
                || json!({}),
                |schema| self.schemas.plain(schema, SchemaPosition::Anonymous, self.warnings),
            );
            return ToolResult { schema, result: None, fields };
        }
        if let (false, Some((kind, _))) = (kinds().any(|(kind, _)| is_text(&media_type(kind))), kinds().next()) {
            self.warnings.add(format!("the response type `{kind}` is read as text"));
        }
        // An empty response is an empty text. The status would hide that a request failed.
        ToolResult { schema: json!({ "type": "string" }), result: Some("text"), fields: Vec::new() }
    }

    fn field_names(&self, schema: &'d Json) -> Vec<String> {
        let mut names = Vec::new();
        // Warnings about the schema are added when it is converted.
        let properties = |schema| self.schemas.properties(schema, &mut Warnings::default());
        for (name, schema) in properties(schema).into_iter().flat_map(|merged| merged.properties) {
            if pagination::describes_pages(name) {
                let nested = properties(schema).into_iter().flat_map(|merged| merged.properties);
                names.extend(nested.map(|(inner, _)| format!("{name}.{inner}")));
            }
            names.push(name.to_owned());
        }
        names
    }
}

/// Returns the responses for success, the most likely first.
fn successes<'d>(
    document: &Document<'d>,
    operation: &Operation<'d>,
    warnings: &mut Warnings,
) -> Vec<&'d Map<String, Json>> {
    let responses = operation.object.get("responses").and_then(Json::as_object);
    let mut found: Vec<_> =
        responses.into_iter().flatten().filter(|(status, _)| status.starts_with('2') || *status == "default").collect();
    // `default` covers all other statuses: success only if no other response is.
    let has_success = found.iter().any(|(status, _)| status.starts_with('2'));
    found.retain(|(status, _)| !has_success || *status != "default");
    found.sort_by_key(|(status, _)| status.to_ascii_uppercase());
    let mut resolved = Vec::new();
    for (_, response) in found {
        match document.resolve(response) {
            Ok(response) => resolved.push(response),
            Err(reference) => warnings.add(format!("`{reference}` is not in this document; left out")),
        }
    }
    resolved
}

/// Returns the messages of errors by status. Validation errors are left out, since their responses are more specific.
pub(super) fn error_messages(document: &Document<'_>, operation: &Operation<'_>) -> Vec<(String, String)> {
    let responses = operation.object.get("responses").and_then(Json::as_object);
    let is_specific = |status: &str| {
        status.len() == 3
            && status.starts_with('4')
            && status.chars().all(|c| c.is_ascii_digit())
            && !matches!(status, "400" | "422")
    };
    let found = responses.into_iter().flatten().filter(|(status, _)| is_specific(status));
    let message = |response| text_property(document.resolve(response).ok()?, "description", MAX_MESSAGE);
    // Messages are templates, so literal braces are doubled.
    let escape = |message: String| message.replace('{', "{{").replace('}', "}}");
    found.filter_map(|(status, response)| Some((status.clone(), escape(message(response)?)))).collect()
}
