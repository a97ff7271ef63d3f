//! The parameters of requests, as one list of tool parameters.

use super::document::{MAX_DESCRIPTION, text_property};
use super::http::{is_header, is_json, is_reserved_header, media_type};
use super::importer::Importer;
use super::naming::{symbol, truncate};
use super::operation::Operation;
use super::schema::SchemaPosition;
use super::security::Credentials;
use super::warning::Warnings;
use crate::declare::http::Style;
use crate::types::keyword::free_name;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

/// The maximum length of the name of a parameter, which providers limit.
const MAX_PARAMETER_NAME: usize = 64;

/// The part of a request that a parameter is sent in.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
    Body,
}

/// A parameter of a request.
pub(super) struct Parameter {
    pub(super) location: ParameterLocation,
    /// The name in the request.
    pub(super) wire: String,
    pub(super) schema: Json,
    pub(super) is_required: bool,
    /// How a list or an object is written.
    pub(super) style: Option<Style>,
    /// The text before the value in a path.
    pub(super) prefix: String,
}

#[derive(Default)]
pub(super) struct Parameters {
    /// The parameters, with their names in the tool.
    list: IndexMap<String, Parameter>,
    /// The parameters that always have the same value, which is a template.
    constants: Vec<(ParameterLocation, String, String)>,
    /// The parameter that is the whole body, if there is one.
    pub(super) whole_body: Option<String>,
    /// The content type of the body, if it is not plain JSON.
    pub(super) content_type: Option<String>,
}

/// The declarations of parameters by location and name.
type DeclaredParameters<'d> = IndexMap<(&'d str, &'d str), &'d Map<String, Json>>;

impl Parameter {
    pub(super) fn new(location: ParameterLocation, wire: &str, schema: Json, is_required: bool) -> Self {
        Self { location, wire: wire.to_owned(), schema, is_required, style: None, prefix: String::new() }
    }

    /// Returns the value as a template, if only one value is possible.
    fn constant(&self) -> Option<String> {
        let is_text = self.schema.get("type").is_some_and(|name| name == "string");
        let allowed = self.schema.get("enum").and_then(Json::as_array).filter(|_| is_text && self.is_required)?;
        let [Json::String(only)] = allowed.as_slice() else { return None };
        (!only.is_empty() && !only.contains(char::is_control)).then(|| escape(only))
    }
}

impl Parameters {
    /// Adds a parameter, and returns its name in the tool.
    pub(super) fn add(&mut self, parameter: Parameter) -> String {
        let symbol = symbol(&parameter.wire);
        let wanted = truncate(&symbol, MAX_PARAMETER_NAME);
        let is_free = |name: &str| !self.list.contains_key(name);
        let name = if is_free(wanted) {
            wanted.to_owned()
        } else {
            // The location and a number need room.
            let short = truncate(wanted, MAX_PARAMETER_NAME.saturating_sub(12));
            free_name(&format!("{short}_{}", parameter.location.name()), is_free)
        };
        self.list.insert(name.clone(), parameter);
        name
    }

    /// Returns the template of a path parameter.
    pub(super) fn path_template(&self, wire: &str) -> Option<String> {
        let is_meant = |location: ParameterLocation, other: &str| location == ParameterLocation::Path && other == wire;
        let constant = self.constants.iter().find(|(location, other, _)| is_meant(*location, other));
        let found = self.list.iter().find(|(_, parameter)| is_meant(parameter.location, &parameter.wire));
        constant
            .map(|(_, _, value)| value.clone())
            .or_else(|| found.map(|(name, parameter)| format!("{}{{{name}}}", parameter.prefix)))
    }

    /// Drops path parameters that the path does not contain, and adds undeclared ones.
    fn match_path(&mut self, path: &str, warnings: &mut Warnings) {
        let placeholders: Vec<_> = path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        self.list.retain(|_, parameter| {
            let is_used =
                parameter.location != ParameterLocation::Path || placeholders.contains(&parameter.wire.as_str());
            if !is_used {
                warnings.add(format!("the path parameter `{}` does not occur in the path; left out", parameter.wire));
            }
            is_used
        });
        for placeholder in placeholders {
            if self.path_template(placeholder).is_none() {
                warnings.add(format!("the path parameter `{placeholder}` is not declared; treated as text"));
                self.add(Parameter::new(ParameterLocation::Path, placeholder, json!({ "type": "string" }), true));
            }
        }
    }

    /// Returns the templates of a location by the names in the request: all, or only those that are not implied by a
    /// parameter of the same name.
    pub(super) fn templates(&self, location: ParameterLocation, all: bool) -> Vec<(String, String)> {
        let located = self.list.iter().filter(|(_, parameter)| parameter.location == location);
        let selected = located.filter(|(name, parameter)| all || **name != parameter.wire);
        let constants = self.constants.iter().filter(|(other, ..)| *other == location);
        let templates = selected.map(|(name, parameter)| (parameter.wire.clone(), format!("{{{name}}}")));
        templates.chain(constants.map(|(_, wire, value)| (wire.clone(), value.clone()))).collect()
    }

    /// Returns whether a field of the body has another name in the tool.
    pub(super) fn renames_body(&self) -> bool {
        !self.templates(ParameterLocation::Body, false).is_empty()
    }

    /// Returns the styles of the parameters that have one.
    pub(super) fn styles(&self) -> Vec<(String, String)> {
        let styles = self.list.iter().filter_map(|(name, parameter)| Some((name.clone(), parameter.style?)));
        styles.map(|(name, style)| (name, style.name().to_owned())).collect()
    }

    /// Iterates over the parameters, with their names in the tool.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Parameter)> {
        self.list.iter().map(|(name, parameter)| (name.as_str(), parameter))
    }

    /// Returns the schema of all parameters.
    pub(super) fn schema(self) -> Map<String, Json> {
        let required = self.list.iter().filter(|(_, parameter)| parameter.is_required);
        let required = required.map(|(name, _)| name.clone().into()).collect();
        let properties = self.list.into_iter().map(|(name, parameter)| (name, parameter.schema)).collect();
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
            ParameterLocation::Cookie => "cookie",
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
        let mut parameters = Parameters::default();
        for ((location, name), declared) in self.declared_parameters(operation)? {
            let location = match location {
                // Some documents also declare credentials as parameters.
                _ if credentials.contains(location, name) => continue,
                "path" => ParameterLocation::Path,
                "query" => ParameterLocation::Query,
                "header" if is_reserved_header(name) => continue,
                "header" if is_header(name) => ParameterLocation::Header,
                "cookie" if is_header(name) => ParameterLocation::Cookie,
                other => {
                    self.leave_out(other, name, declared)?;
                    continue;
                }
            };
            let is_required = location == ParameterLocation::Path || is_true(declared, "required");
            let schema = self.parameter_schema(declared);
            let mut parameter = Parameter::new(location, name, schema, is_required);
            match parameter.constant() {
                Some(value) => parameters.constants.push((location, name.to_owned(), value)),
                None => {
                    self.set_style(&mut parameter, declared);
                    parameters.add(parameter);
                }
            }
        }
        parameters.match_path(operation.path(), self.warnings);
        if let Some(body) = operation.object.get("requestBody") {
            self.add_body(operation, body, &mut parameters)?;
        }
        Ok(parameters)
    }

    /// Returns the declared parameters by location and name. Those of an operation override those of its path.
    fn declared_parameters(&self, operation: &Operation<'d>) -> Result<DeclaredParameters<'d>, String> {
        let mut declared = DeclaredParameters::new();
        let item = self.document.resolve(operation.item).ok().and_then(|item| item.get("parameters"));
        for list in [item, operation.object.get("parameters")].into_iter().flatten().filter_map(Json::as_array) {
            for parameter in list {
                let parameter = self
                    .document
                    .resolve(parameter)
                    .map_err(|reference| format!("`{reference}` is not in this document"))?;
                let text = |key: &str| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
                let location = text("in");
                let mut name = text("name");
                // The names of headers are equal in any case.
                if location == "header" {
                    let same = declared.keys().find(|(other, known)| {
                        *other == "header" && known.eq_ignore_ascii_case(name) && *known != name
                    });
                    name = same.map_or(name, |(_, known)| known);
                }
                declared.insert((location, name), parameter);
            }
        }
        Ok(declared)
    }

    /// Leaves out an unsupported parameter. It is an error if the parameter is required.
    fn leave_out(&mut self, location: &str, name: &str, parameter: &Map<String, Json>) -> Result<(), String> {
        let what = match location {
            "cookie" => format!("cookie `{name}`"),
            "header" => format!("header `{name}`"),
            _ => format!("parameter `{name}` in `{location}`"),
        };
        // The headers that are set automatically need no value.
        let is_automatic = location == "header" && super::http::is_automatic_header(name);
        if is_true(parameter, "required") && !is_automatic {
            return Err(format!("the required {what} is not supported"));
        }
        self.warnings.add(format!("the {what} is not supported; left out"));
        Ok(())
    }

    fn parameter_schema(&mut self, parameter: &'d Map<String, Json>) -> Json {
        let content = content(parameter).and_then(|(_, media)| media.get("schema"));
        let schema = content.or_else(|| parameter.get("schema"));
        let mut plain =
            schema.map_or_else(|| json!({}), |schema| self.schemas.plain(schema, SchemaPosition::Named, self.warnings));
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

    /// Sets how a list or an object is written.
    fn set_style(&mut self, parameter: &mut Parameter, declared: &Map<String, Json>) {
        if let Some((kind, _)) = content(declared) {
            parameter.style = is_json(&media_type(kind)).then_some(Style::Json);
            return;
        }
        let style = declared.get("style").and_then(Json::as_str).unwrap_or_default();
        let is_list = parameter.schema.get("type").is_some_and(|name| name == "array");
        let is_object =
            parameter.schema.get("type").is_some_and(|name| name == "object") || parameter.schema.get("$ref").is_some();
        let is_plain = !is_list && !is_object && parameter.schema.get("type").is_some_and(Json::is_string);
        let is_form = matches!(style, "" | "form");
        let is_exploded = declared.get("explode").and_then(Json::as_bool);
        let mut is_unusual = false;
        match parameter.location {
            ParameterLocation::Query if is_plain => {}
            ParameterLocation::Query => {
                let is_exploded = is_exploded.unwrap_or(is_form);
                parameter.style = match style {
                    "deepObject" => Some(Style::Brackets),
                    "spaceDelimited" if !is_exploded => Some(Style::Space),
                    "pipeDelimited" if !is_exploded => Some(Style::Pipe),
                    "tabDelimited" if !is_exploded => Some(Style::Tab),
                    _ if !is_exploded && (is_list || is_object) => Some(Style::Comma),
                    _ if is_object => Some(Style::Fields),
                    _ => None,
                };
            }
            ParameterLocation::Path => {
                match style {
                    "label" => parameter.prefix = ".".to_owned(),
                    "matrix" => parameter.prefix = format!(";{}=", escape(&parameter.wire)),
                    _ => {}
                }
                parameter.style = (is_list || is_object).then_some(Style::Comma);
                let is_exploded = is_exploded == Some(true);
                is_unusual = is_exploded && (is_object || (is_list && matches!(style, "label" | "matrix")));
            }
            ParameterLocation::Header | ParameterLocation::Cookie => {
                parameter.style = (is_list || is_object).then_some(Style::Comma);
                is_unusual = is_object && is_exploded == Some(true);
            }
            ParameterLocation::Body => {}
        }
        if is_unusual {
            let what = if is_list { "list" } else { "object" };
            let name = &parameter.wire;
            self.warnings
                .add(format!("the {what} `{name}` is serialized in an unusual style; test it before relying on it"));
        }
    }
}

/// Returns the media type of a parameter that is not described by a style, with its schema.
fn content(parameter: &Map<String, Json>) -> Option<(&String, &Json)> {
    parameter.get("content").and_then(Json::as_object).and_then(|content| content.iter().next())
}

/// Escapes a literal text in a template.
pub(super) fn escape(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

pub(super) fn is_true(map: &Map<String, Json>, key: &str) -> bool {
    map.get(key) == Some(&Json::Bool(true))
}
