//! The bodies of requests, as parameters of tools.

use super::document::{MAX_DESCRIPTION, text_property};
use super::http::{is_form, is_json, is_multipart, is_text, media_type};
use super::importer::Importer;
use super::operation::Operation;
use super::parameter::{Parameter, ParameterLocation, Parameters, is_true};
use super::schema::{SchemaPosition, is_set};
use crate::declare::http::Style;
use serde_json::{Map, Value as Json, json};

/// The description of a parameter whose text is sent as it is, or decoded if it is a `data:` URL.
const FILE: &str = "Content of the file: text, or a data: URL such as data:image/png;name=a.png;base64,…";

/// How the object in a body is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ObjectEncoding {
    Json,
    Form,
    Multipart,
}

impl<'d> Importer<'_, 'd> {
    /// Adds the body of a request. The error says why an operation cannot do without it.
    pub(super) fn add_body(
        &mut self,
        operation: &Operation<'d>,
        body: &'d Json,
        parameters: &mut Parameters,
    ) -> Result<(), String> {
        let body = self.document.resolve(body).map_err(|reference| format!("`{reference}` is not in this document"))?;
        let Some(content) = body.get("content").and_then(Json::as_object).filter(|content| !content.is_empty()) else {
            return Ok(());
        };
        if matches!(operation.method, "GET" | "HEAD" | "OPTIONS") {
            self.warnings.add(format!("the request body of {} is not supported; left out", operation.method));
            return Ok(());
        }
        // A type that says what it contains is preferred to one that does not.
        let is_described =
            |media: &Json| media.get("schema").and_then(Json::as_object).is_some_and(|it| !it.is_empty());
        let find = |is_wanted: fn(&str) -> bool, described: bool| {
            let mut found = content.iter().filter(|(kind, _)| is_wanted(&media_type(kind)));
            found.find(|(_, media)| !described || is_described(media))
        };
        for described in [true, false] {
            for (is_wanted, encoding) in [
                (is_json as fn(&str) -> bool, ObjectEncoding::Json),
                (is_form, ObjectEncoding::Form),
                (is_multipart, ObjectEncoding::Multipart),
            ] {
                if let Some((kind, media)) = find(is_wanted, described) {
                    parameters.content_type = content_type(kind, encoding);
                    self.add_object_body(body, media, encoding, parameters);
                    return Ok(());
                }
            }
        }
        if let Some((kind, _)) = find(is_text, false) {
            parameters.content_type = Some(kind.replace(['{', '}'], ""));
            self.add_text_body(body, None, parameters);
            return Ok(());
        }
        if let Some((kind, _)) = content.iter().find(|(kind, _)| media_type(kind).starts_with("multipart/")) {
            let reason = format!("a request body of type `{kind}` is not supported");
            if is_true(body, "required") {
                return Err(reason);
            }
            self.warnings.add(format!("{reason}; left out"));
            return Ok(());
        }
        // The content of a file decides its own type if several are possible.
        let mut kinds = content.keys().filter(|kind| !kind.contains('*'));
        parameters.content_type = match (kinds.next(), kinds.next()) {
            (Some(only), None) => Some(only.replace(['{', '}'], "")),
            _ => None,
        };
        self.add_text_body(body, Some(Style::File), parameters);
        Ok(())
    }

    fn add_text_body(&mut self, body: &Map<String, Json>, style: Option<Style>, parameters: &mut Parameters) {
        let mut schema = json!({ "type": "string" });
        let text = text_property(body, "description", MAX_DESCRIPTION);
        let text = if style == Some(Style::File) { Some(with_file_note(text)) } else { text };
        if let (Json::Object(map), Some(text)) = (&mut schema, text) {
            map.insert("description".to_owned(), text.into());
        }
        let mut parameter = Parameter::new(ParameterLocation::Body, "body", schema, is_true(body, "required"));
        parameter.style = style;
        parameters.whole_body = Some(parameters.add(parameter));
    }

    /// Adds the fields of an object as parameters, or any other body as one parameter.
    fn add_object_body(
        &mut self,
        body: &'d Map<String, Json>,
        media: &'d Json,
        encoding: ObjectEncoding,
        parameters: &mut Parameters,
    ) {
        let schema = media.get("schema");
        let merged = schema.and_then(|schema| self.schemas.properties(schema, self.warnings));
        let Some(merged) = merged else {
            let mut plain = schema
                .map_or_else(|| json!({}), |schema| self.schemas.plain(schema, SchemaPosition::Named, self.warnings));
            // A form is an object, whatever its schema says.
            let is_object = plain.get("$ref").is_some() || plain.get("type").is_some_and(|name| name == "object");
            if encoding != ObjectEncoding::Json && !is_object {
                plain = json!({ "type": "object" });
            }
            let text = text_property(body, "description", MAX_DESCRIPTION);
            if let (Json::Object(map), Some(text)) = (&mut plain, text) {
                map.entry("description").or_insert(text.into());
            }
            let parameter = Parameter::new(ParameterLocation::Body, "body", plain, is_true(body, "required"));
            parameters.whole_body = Some(parameters.add(parameter));
            return;
        };
        let required: Vec<_> = merged.required().collect();
        for (name, schema) in merged.properties.iter().filter(|(_, schema)| !is_set(schema, "readOnly")) {
            let mut plain = self.schemas.plain(schema, SchemaPosition::Named, self.warnings);
            let style = match encoding {
                ObjectEncoding::Json => None,
                _ => field_style(&plain, media.get("encoding").and_then(|encoding| encoding.get(*name)), encoding),
            };
            if let (Some(Style::File), Json::Object(map)) = (style, &mut plain) {
                describe_file(map);
            }
            let mut parameter = Parameter::new(ParameterLocation::Body, name, plain, required.contains(name));
            parameter.style = style;
            parameters.add(parameter);
        }
    }
}

/// Returns how a field of a form is written, if that is not the default.
fn field_style(schema: &Json, encoding: Option<&Json>, form: ObjectEncoding) -> Option<Style> {
    let text = |key: &str| encoding.and_then(|encoding| encoding.get(key)).and_then(Json::as_str);
    let is_exploded = encoding.and_then(|encoding| encoding.get("explode")).and_then(Json::as_bool);
    let is_list = schema.get("type").is_some_and(|name| name == "array");
    let is_file = |schema: &Json| schema.get("format").is_some_and(|format| format == "binary");
    if form == ObjectEncoding::Multipart && (is_file(schema) || schema.get("items").is_some_and(is_file)) {
        return Some(Style::File);
    }
    match text("style") {
        Some("deepObject") => Some(Style::Brackets),
        Some("spaceDelimited") if is_exploded != Some(true) => Some(Style::Space),
        Some("pipeDelimited") if is_exploded != Some(true) => Some(Style::Pipe),
        Some("tabDelimited") if is_exploded != Some(true) => Some(Style::Tab),
        _ if is_list && is_exploded == Some(false) => Some(Style::Comma),
        Some("form") if schema.get("type").is_some_and(|name| name == "object") => Some(Style::Fields),
        _ if text("contentType").is_some_and(|kind| is_json(&media_type(kind))) => Some(Style::Json),
        _ => None,
    }
}

/// Makes a schema one of text, whose description says how to pass other content.
fn describe_file(map: &mut Map<String, Json>) {
    let target = match map.get_mut("items") {
        Some(Json::Object(items)) => {
            items.remove("format");
            map
        }
        _ => {
            map.remove("format");
            map
        }
    };
    let text = target.get("description").and_then(Json::as_str).map(str::to_owned);
    target.insert("description".to_owned(), with_file_note(text).into());
}

fn with_file_note(text: Option<String>) -> String {
    match text {
        Some(text) => format!("{text} ({FILE})"),
        None => FILE.to_owned(),
    }
}

/// Returns the content type to declare, if the encoding does not imply it.
fn content_type(kind: &str, encoding: ObjectEncoding) -> Option<String> {
    match encoding {
        ObjectEncoding::Json => {
            let is_implied = matches!(media_type(kind).as_str(), "application/json" | "*/*" | "application/*");
            (!is_implied).then(|| kind.replace(['{', '}'], ""))
        }
        ObjectEncoding::Form => Some("application/x-www-form-urlencoded".to_owned()),
        ObjectEncoding::Multipart => Some("multipart/form-data".to_owned()),
    }
}
