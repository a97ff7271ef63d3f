//! The parameters and bodies of requests, as one list of tool parameters.

use super::document::{MAX_DESCRIPTION, text_property};
use super::http::{is_header, is_json, is_reserved_header, is_text, media_type};
use super::importer::Importer;
use super::naming::symbol;
use super::operation::Operation;
use super::schema::{SchemaPosition, is_set};
use super::security::Credentials;
use super::warning::Warnings;
use crate::types::keyword::free_name;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

/// The part of a request that a parameter is sent in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
    Body,
}

struct Parameter {
    location: ParameterLocation,
    /// The name in the request.
    wire: String,
    /// The name in the tool.
    name: String,
    schema: Json,
    is_required: bool,
}

#[derive(Default)]
pub(super) struct Parameters {
    list: Vec<Parameter>,
    /// The parameter that is the whole body, if there is one.
    pub(super) whole_body: Option<String>,
    /// The content type of the body, if it is not plain JSON.
    pub(super) content_type: Option<String>,
}

impl Parameters {
    fn add(&mut self, location: ParameterLocation, wire: &str, schema: Json, is_required: bool) -> String {
        let wanted = symbol(wire);
        let is_free = |name: &str| self.list.iter().all(|other| other.name != name);
        let name = if is_free(&wanted) { wanted } else { free_name(&format!("{wanted}_{}", location.name()), is_free) };
        self.list.push(Parameter { location, wire: wire.to_owned(), name: name.clone(), schema, is_required });
        name
    }

    /// Returns the name of a path parameter.
    pub(super) fn path_parameter(&self, wire: &str) -> Option<&str> {
        let found =
            self.list.iter().find(|parameter| parameter.location == ParameterLocation::Path && parameter.wire == wire);
        found.map(|parameter| parameter.name.as_str())
    }

    /// Drops path parameters that the path does not contain, and adds undeclared ones.
    fn match_path(&mut self, path: &str, warnings: &mut Warnings) {
        let placeholders: Vec<_> = path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        self.list.retain(|parameter| {
            let is_used =
                parameter.location != ParameterLocation::Path || placeholders.contains(&parameter.wire.as_str());
            if !is_used {
                warnings.add(format!("the path parameter `{}` does not occur in the path; left out", parameter.wire));
            }
            is_used
        });
        for placeholder in placeholders {
            if self.path_parameter(placeholder).is_none() {
                warnings.add(format!("the path parameter `{placeholder}` is not declared; treated as text"));
                self.add(ParameterLocation::Path, placeholder, json!({ "type": "string" }), true);
            }
        }
    }

    /// Returns the templates of a location by the names in the request: all, or only those with another name in the tool.
    pub(super) fn templates(&self, location: ParameterLocation, all: bool) -> Vec<(String, String)> {
        let located = self.list.iter().filter(|parameter| parameter.location == location);
        let selected = located.filter(|parameter| all || parameter.name != parameter.wire);
        selected.map(|parameter| (parameter.wire.clone(), format!("{{{}}}", parameter.name))).collect()
    }

    /// Returns whether a field of the body has another name in the tool.
    pub(super) fn renames_body(&self) -> bool {
        !self.templates(ParameterLocation::Body, false).is_empty()
    }

    /// Returns the schema of all parameters.
    pub(super) fn schema(self) -> Map<String, Json> {
        let required = self.list.iter().filter(|parameter| parameter.is_required);
        let required = required.map(|parameter| parameter.name.clone().into()).collect();
        let properties = self.list.into_iter().map(|parameter| (parameter.name, parameter.schema)).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), Json::Object(properties));
        schema.insert("required".to_owned(), Json::Array(required));
        schema
    }
}

impl ParameterLocation {
    const fn name(self) -> &'static str {
        match self {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
            ParameterLocation::Header => "header",
            ParameterLocation::Body => "body",
        }
    }
}

impl<'d> Importer<'_, 'd> {
    /// Collects the parameters of an operation. The error says why it cannot be converted.
    pub(super) fn parameters(
        &mut self,
        operation: &Operation<'d>,
        credentials: &Credentials,
    ) -> Result<Parameters, String> {
        // The parameters of an operation override those of its path.
        let mut declared: IndexMap<(&str, &str), &'d Map<String, Json>> = IndexMap::new();
        let item = self.document.resolve(operation.item).ok().and_then(|item| item.get("parameters"));
        for list in [item, operation.object.get("parameters")].into_iter().flatten().filter_map(Json::as_array) {
            for parameter in list {
                match self.document.resolve(parameter) {
                    Ok(parameter) => {
                        let text = |key: &str| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
                        declared.insert((text("in"), text("name")), parameter);
                    }
                    Err(reference) => return Err(format!("`{reference}` is not in this document")),
                }
            }
        }
        let mut parameters = Parameters::default();
        for ((location, name), parameter) in declared {
            let location = match location {
                // Some documents also declare credentials as parameters.
                _ if credentials.contains(location, name) => continue,
                "path" => ParameterLocation::Path,
                "query" => ParameterLocation::Query,
                "header" if is_reserved_header(name) => continue,
                "header" if is_header(name) => ParameterLocation::Header,
                other => {
                    self.leave_out(other, name, parameter)?;
                    continue;
                }
            };
            let is_required = location == ParameterLocation::Path || is_true(parameter, "required");
            let schema = self.parameter_schema(location, name, parameter);
            parameters.add(location, name, schema, is_required);
        }
        parameters.match_path(operation.path, self.warnings);
        if let Some(body) = operation.object.get("requestBody") {
            self.add_body(operation, body, &mut parameters)?;
        }
        Ok(parameters)
    }

    /// Leaves out an unsupported parameter. It is an error if the parameter is required.
    fn leave_out(&mut self, location: &str, name: &str, parameter: &Map<String, Json>) -> Result<(), String> {
        let what = match location {
            "cookie" => format!("cookie `{name}`"),
            "header" => format!("header `{name}`"),
            _ => format!("parameter `{name}` in `{location}`"),
        };
        if is_true(parameter, "required") {
            return Err(format!("the required {what} is not supported"));
        }
        self.warnings.add(format!("the {what} is not supported; left out"));
        Ok(())
    }

    fn parameter_schema(&mut self, location: ParameterLocation, name: &str, parameter: &'d Map<String, Json>) -> Json {
        let content = parameter.get("content").and_then(Json::as_object).and_then(|content| content.values().next());
        let schema = content.and_then(|content| content.get("schema")).or_else(|| parameter.get("schema"));
        let mut plain =
            schema.map_or_else(|| json!({}), |schema| self.schemas.plain(schema, SchemaPosition::Named, self.warnings));
        let is_list = plain.get("type").is_some_and(|name| name == "array");
        let is_object = plain.get("type").is_some_and(|name| name == "object") || plain.get("$ref").is_some();
        let text = |key: &str| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
        // Lists are sent by repeating the key; tools do not support other styles of lists and objects.
        let is_repeated = matches!(text("style"), "" | "form") && parameter.get("explode") != Some(&Json::Bool(false));
        let is_plain = (!is_list && !is_object)
            || (is_list && location == ParameterLocation::Query && is_repeated)
            || content.is_some();
        if !is_plain {
            let what = if is_list { "list" } else { "object" };
            self.warnings
                .add(format!("the {what} `{name}` is serialized in an unusual style; test it before relying on it"));
        }
        if let Json::Object(map) = &mut plain {
            if let Some(description) = text_property(parameter, "description", MAX_DESCRIPTION) {
                map.insert("description".to_owned(), description.into());
            }
            // Only bodies can contain `null`.
            if let Some(Json::Array(names)) = map.get("type")
                && let [name, Json::String(null)] = names.as_slice()
                && null == "null"
            {
                let name = name.clone();
                map.insert("type".to_owned(), name);
                if let Some(Json::Array(allowed)) = map.get_mut("enum") {
                    allowed.retain(|value| !value.is_null());
                }
            }
        }
        plain
    }

    fn add_body(
        &mut self,
        operation: &Operation<'d>,
        body: &'d Json,
        parameters: &mut Parameters,
    ) -> Result<(), String> {
        let body = self.document.resolve(body).map_err(|reference| format!("`{reference}` is not in this document"))?;
        let Some(content) = body.get("content").and_then(Json::as_object).filter(|content| !content.is_empty()) else {
            return Ok(());
        };
        if matches!(operation.method, "GET" | "HEAD") {
            self.warnings.add(format!("the request body of {} is not supported; left out", operation.method));
            return Ok(());
        }
        let find = |is_wanted: fn(&str) -> bool| content.iter().find(|(kind, _)| is_wanted(&media_type(kind)));
        if let Some((kind, media)) = find(is_json) {
            if !matches!(media_type(kind).as_str(), "application/json" | "*/*" | "application/*") {
                parameters.content_type = Some(kind.replace(['{', '}'], ""));
            }
            self.add_json_body(body, media, parameters);
            return Ok(());
        }
        if let Some((kind, _)) = find(is_text) {
            parameters.content_type = Some(kind.replace(['{', '}'], ""));
            let mut schema = json!({ "type": "string" });
            if let (Json::Object(map), Some(text)) = (&mut schema, text_property(body, "description", MAX_DESCRIPTION))
            {
                map.insert("description".to_owned(), text.into());
            }
            parameters.whole_body =
                Some(parameters.add(ParameterLocation::Body, "body", schema, is_true(body, "required")));
            return Ok(());
        }
        let kinds: Vec<_> = content.keys().map(|kind| format!("`{kind}`")).collect();
        let reason = format!("a request body of type {} is not supported", kinds.join(" or "));
        if is_true(body, "required") {
            return Err(reason);
        }
        self.warnings.add(format!("{reason}; left out"));
        Ok(())
    }

    /// Adds the fields of a JSON object as parameters, or any other body as one parameter.
    fn add_json_body(&mut self, body: &'d Map<String, Json>, media: &'d Json, parameters: &mut Parameters) {
        let Some(schema) = media.get("schema") else {
            parameters.whole_body =
                Some(parameters.add(ParameterLocation::Body, "body", json!({}), is_true(body, "required")));
            return;
        };
        let Some(merged) = self.schemas.properties(schema, self.warnings) else {
            let mut plain = self.schemas.plain(schema, SchemaPosition::Named, self.warnings);
            let text = text_property(body, "description", MAX_DESCRIPTION);
            if let (Json::Object(map), Some(text)) = (&mut plain, text) {
                map.entry("description").or_insert(text.into());
            }
            parameters.whole_body =
                Some(parameters.add(ParameterLocation::Body, "body", plain, is_true(body, "required")));
            return;
        };
        let required: Vec<_> = merged.required().collect();
        for (name, schema) in merged.properties.iter().filter(|(_, schema)| !is_set(schema, "readOnly")) {
            let plain = self.schemas.plain(schema, SchemaPosition::Named, self.warnings);
            parameters.add(ParameterLocation::Body, name, plain, required.contains(name));
        }
    }
}

fn is_true(map: &Map<String, Json>, key: &str) -> bool {
    map.get(key) == Some(&Json::Bool(true))
}
