//! What an operation gives.

use super::document::{Document, text_of};
use super::operation::{Maker, Operation};
use super::parameter::{essence, is_json, is_text};
use super::schema::Place;
use serde_json::{Map, Value as Json, json};

/// How long the message of an error may be.
const LONGEST_MESSAGE: usize = 200;

pub(super) struct Response {
    pub(super) schema: Json,
    /// What of the response is the result, where it is not the body as it is.
    pub(super) result: Option<&'static str>,
}

impl<'d> Maker<'_, 'd> {
    /// Returns what an operation gives when it succeeds.
    pub(super) fn response(&mut self, operation: &Operation<'d>) -> Response {
        let contents: Vec<_> = successes(self.document, operation, self.notes)
            .into_iter()
            .filter_map(|response| response.get("content").and_then(Json::as_object))
            .filter(|content| !content.is_empty())
            .collect();
        let kinds = || contents.iter().flat_map(|content| content.iter());
        if operation.method == "HEAD" {
            return Response { schema: json!({ "type": "integer" }), result: Some("status") };
        }
        if let Some((_, media)) = kinds().find(|(kind, _)| is_json(&essence(kind))) {
            let schema = media.get("schema");
            let schema = schema.map_or_else(|| json!({}), |schema| self.schemas.plain(schema, Place::Bare, self.notes));
            return Response { schema, result: None };
        }
        if let (false, Some((kind, _))) = (kinds().any(|(kind, _)| is_text(&essence(kind))), kinds().next()) {
            self.notes.add(format!("its answer is `{kind}`, which is read as text"));
        }
        // Nothing at all is text too; a status would hide that a request failed.
        Response { schema: json!({ "type": "string" }), result: Some("text") }
    }
}

/// Returns the responses that mean success, the likeliest first.
fn successes<'d>(
    document: &Document<'d>,
    operation: &Operation<'d>,
    notes: &mut super::Notes,
) -> Vec<&'d Map<String, Json>> {
    let responses = operation.own.get("responses").and_then(Json::as_object);
    let mut found: Vec<_> =
        responses.into_iter().flatten().filter(|(status, _)| status.starts_with('2') || *status == "default").collect();
    // `default` is what remains: success only where nothing else is.
    let has_success = found.iter().any(|(status, _)| status.starts_with('2'));
    found.retain(|(status, _)| !has_success || *status != "default");
    found.sort_by_key(|(status, _)| status.to_ascii_uppercase());
    let mut resolved = Vec::new();
    for (_, response) in found {
        match document.resolve(response) {
            Ok(response) => resolved.push(response),
            Err(reference) => notes.add(format!("`{reference}` is not in this document, and is left out")),
        }
    }
    resolved
}

/// Returns what the errors of an operation mean, by status. What is wrong with a request its answer tells better.
pub(super) fn errors(document: &Document<'_>, operation: &Operation<'_>) -> Vec<(String, String)> {
    let responses = operation.own.get("responses").and_then(Json::as_object);
    let is_telling = |status: &str| {
        status.len() == 3
            && status.starts_with('4')
            && status.chars().all(|c| c.is_ascii_digit())
            && !matches!(status, "400" | "422")
    };
    let found = responses.into_iter().flatten().filter(|(status, _)| is_telling(status));
    let message = |response| text_of(document.resolve(response).ok()?, "description", LONGEST_MESSAGE);
    // Messages are templates, in which braces are holes.
    let written = |message: String| message.replace('{', "{{").replace('}', "}}");
    found.filter_map(|(status, response)| Some((status.clone(), written(message(response)?)))).collect()
}
