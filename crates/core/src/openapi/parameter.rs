//! What a request carries: parameters and the body, as one list of names.

use super::Notes;
use super::document::text_of;
use super::naming::symbol;
use super::operation::{Maker, Operation};
use super::schema::{LONGEST_DESCRIPTION, Place, is_set};
use super::security::Credentials;
use crate::types::keyword::free_name;
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

/// Where a parameter goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum In {
    Path,
    Query,
    Header,
    Body,
}

pub(super) struct Parameter {
    pub(super) place: In,
    /// What the server calls it.
    wire: String,
    /// What the tool calls it.
    name: String,
    schema: Json,
    is_required: bool,
}

#[derive(Default)]
pub(super) struct Parameters {
    list: Vec<Parameter>,
    /// The parameter that is all of the body, if one is.
    pub(super) whole_body: Option<String>,
    /// The type of the body, where it is not plain JSON.
    pub(super) content_type: Option<String>,
}

impl Parameters {
    fn add(&mut self, place: In, wire: &str, schema: Json, is_required: bool) -> String {
        let wanted = symbol(wire);
        let is_free = |name: &str| self.list.iter().all(|other| other.name != name);
        let name = if is_free(&wanted) { wanted } else { free_name(&format!("{wanted}_{}", place.noun()), is_free) };
        self.list.push(Parameter { place, wire: wire.to_owned(), name: name.clone(), schema, is_required });
        name
    }

    /// Returns the name of a parameter of the path.
    pub(super) fn in_path(&self, wire: &str) -> Option<&str> {
        let found = self.list.iter().find(|parameter| parameter.place == In::Path && parameter.wire == wire);
        found.map(|parameter| parameter.name.as_str())
    }

    /// Brings what is said of the path and what it holds together.
    fn match_path(&mut self, path: &str, notes: &mut Notes) {
        let holes: Vec<_> = path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0)).collect();
        self.list.retain(|parameter| {
            let is_used = parameter.place != In::Path || holes.contains(&parameter.wire.as_str());
            if !is_used {
                notes.add(format!("the path has no `{{{}}}`, and the parameter is left out", parameter.wire));
            }
            is_used
        });
        for hole in holes {
            if self.in_path(hole).is_none() {
                notes.add(format!("nothing says what `{{{hole}}}` of the path is, and it is taken for text"));
                self.add(In::Path, hole, json!({ "type": "string" }), true);
            }
        }
    }

    /// Returns the templates of a place, by what the server calls them: all, or only those that it calls otherwise.
    pub(super) fn templates(&self, place: In, all: bool) -> Vec<(String, String)> {
        let here = self.list.iter().filter(|parameter| parameter.place == place);
        let said = here.filter(|parameter| all || parameter.name != parameter.wire);
        said.map(|parameter| (parameter.wire.clone(), format!("{{{}}}", parameter.name))).collect()
    }

    /// Tells whether a field of the body is called otherwise by the server.
    pub(super) fn renames_body(&self) -> bool {
        !self.templates(In::Body, false).is_empty()
    }

    /// Returns the schema of all parameters together.
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

impl In {
    const fn noun(self) -> &'static str {
        match self {
            In::Path => "path",
            In::Query => "query",
            In::Header => "header",
            In::Body => "body",
        }
    }
}

impl<'d> Maker<'_, 'd> {
    /// Collects what the requests of an operation carry. The error says why it cannot be a tool.
    pub(super) fn parameters(
        &mut self,
        operation: &Operation<'d>,
        credentials: &Credentials,
    ) -> Result<Parameters, String> {
        // What an operation says takes the place of what its path says.
        let mut declared: IndexMap<(&str, &str), &'d Map<String, Json>> = IndexMap::new();
        let item = self.document.resolve(operation.item).ok().and_then(|item| item.get("parameters"));
        for listed in [item, operation.own.get("parameters")].into_iter().flatten().filter_map(Json::as_array) {
            for parameter in listed {
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
        for ((place, name), parameter) in declared {
            let place = match place {
                // Some documents say what is secret twice.
                _ if credentials.carry(place, name) => continue,
                "path" => In::Path,
                "query" => In::Query,
                "header" if is_sent_anyway(name) => continue,
                "header" if is_header(name) => In::Header,
                other => {
                    self.leave_out(other, name, parameter)?;
                    continue;
                }
            };
            let is_required = place == In::Path || is_true(parameter, "required");
            let schema = self.parameter_schema(place, name, parameter);
            parameters.add(place, name, schema, is_required);
        }
        parameters.match_path(operation.path, self.notes);
        if let Some(body) = operation.own.get("requestBody") {
            self.body(operation, body, &mut parameters)?;
        }
        Ok(parameters)
    }

    /// Leaves out a parameter that cannot be sent, unless the server requires it.
    fn leave_out(&mut self, place: &str, name: &str, parameter: &Map<String, Json>) -> Result<(), String> {
        let what = match place {
            "cookie" => format!("the cookie `{name}`"),
            "header" => format!("the header `{name}`"),
            _ => format!("the parameter `{name}`, which is in `{place}`,"),
        };
        if is_true(parameter, "required") {
            return Err(format!("{what} cannot be sent"));
        }
        self.notes.add(format!("{what} cannot be sent, and is left out"));
        Ok(())
    }

    fn parameter_schema(&mut self, place: In, name: &str, parameter: &'d Map<String, Json>) -> Json {
        let content = parameter.get("content").and_then(Json::as_object).and_then(|content| content.values().next());
        let schema = content.and_then(|content| content.get("schema")).or_else(|| parameter.get("schema"));
        let mut plain = schema.map_or_else(|| json!({}), |schema| self.schemas.plain(schema, Place::Named, self.notes));
        let is_list = plain.get("type").is_some_and(|name| name == "array");
        let is_object = plain.get("type").is_some_and(|name| name == "object") || plain.get("$ref").is_some();
        let text = |key: &str| parameter.get(key).and_then(Json::as_str).unwrap_or_default();
        // Lists repeat the key; other ways to write lists and objects have to be known to the caller.
        let is_repeated = matches!(text("style"), "" | "form") && parameter.get("explode") != Some(&Json::Bool(false));
        let is_plain = (!is_list && !is_object) || (is_list && place == In::Query && is_repeated) || content.is_some();
        if !is_plain {
            let what = if is_list { "list" } else { "object" };
            self.notes.add(format!("the {what} `{name}` is sent in a style of its own: try it before you rely on it"));
        }
        if let Json::Object(map) = &mut plain {
            if let Some(description) = text_of(parameter, "description", LONGEST_DESCRIPTION) {
                map.insert("description".to_owned(), description.into());
            }
            // Outside of a body there is no `null`.
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

    fn body(&mut self, operation: &Operation<'d>, body: &'d Json, parameters: &mut Parameters) -> Result<(), String> {
        let body = self.document.resolve(body).map_err(|reference| format!("`{reference}` is not in this document"))?;
        let Some(content) = body.get("content").and_then(Json::as_object).filter(|content| !content.is_empty()) else {
            return Ok(());
        };
        if matches!(operation.method, "GET" | "HEAD") {
            self.notes.add(format!("the body of a {} is left out", operation.method));
            return Ok(());
        }
        let kind_of = |wanted: fn(&str) -> bool| content.iter().find(|(kind, _)| wanted(&essence(kind)));
        if let Some((kind, media)) = kind_of(is_json) {
            if !matches!(essence(kind).as_str(), "application/json" | "*/*" | "application/*") {
                parameters.content_type = Some(kind.replace(['{', '}'], ""));
            }
            self.json_body(body, media, parameters);
            return Ok(());
        }
        if let Some((kind, _)) = kind_of(is_text) {
            parameters.content_type = Some(kind.replace(['{', '}'], ""));
            let mut schema = json!({ "type": "string" });
            if let (Json::Object(map), Some(text)) = (&mut schema, text_of(body, "description", LONGEST_DESCRIPTION)) {
                map.insert("description".to_owned(), text.into());
            }
            parameters.whole_body = Some(parameters.add(In::Body, "body", schema, is_true(body, "required")));
            return Ok(());
        }
        let kinds: Vec<_> = content.keys().map(|kind| format!("`{kind}`")).collect();
        let reason = format!("a body of {} cannot be sent", kinds.join(" or "));
        if is_true(body, "required") {
            return Err(reason);
        }
        self.notes.add(format!("{reason}, and is left out"));
        Ok(())
    }

    /// Takes the fields of a JSON object for parameters; another body is one parameter.
    fn json_body(&mut self, body: &'d Map<String, Json>, media: &'d Json, parameters: &mut Parameters) {
        let Some(schema) = media.get("schema") else {
            parameters.whole_body = Some(parameters.add(In::Body, "body", json!({}), is_true(body, "required")));
            return;
        };
        let Some(merged) = self.schemas.properties(schema, self.notes) else {
            let mut plain = self.schemas.plain(schema, Place::Named, self.notes);
            let text = text_of(body, "description", LONGEST_DESCRIPTION);
            if let (Json::Object(map), Some(text)) = (&mut plain, text) {
                map.entry("description").or_insert(text.into());
            }
            parameters.whole_body = Some(parameters.add(In::Body, "body", plain, is_true(body, "required")));
            return;
        };
        let required: Vec<_> = merged.required().collect();
        for (name, schema) in merged.properties.iter().filter(|(_, schema)| !is_set(schema, "readOnly")) {
            let plain = self.schemas.plain(schema, Place::Named, self.notes);
            parameters.add(In::Body, name, plain, required.contains(name));
        }
    }
}

fn is_true(map: &Map<String, Json>, key: &str) -> bool {
    map.get(key) == Some(&Json::Bool(true))
}

/// Tells whether a header is one that documents may not declare as a parameter.
fn is_sent_anyway(name: &str) -> bool {
    ["accept", "content-type", "authorization"].contains(&name.to_ascii_lowercase().as_str())
}

/// Tells whether a name can be that of a header which requests may set.
pub(super) fn is_header(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let follows = ["host", "content-length", "transfer-encoding", "connection", "upgrade", "proxy-authorization"];
    !name.is_empty() && name.chars().all(is_token) && !follows.contains(&name.to_ascii_lowercase().as_str())
}

/// Returns a media type without its parameters.
pub(super) fn essence(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) fn is_json(kind: &str) -> bool {
    matches!(kind, "application/json" | "text/json" | "*/*" | "application/*") || kind.ends_with("+json")
}

pub(super) fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || kind == "application/xml" || kind.ends_with("+xml") || kind == "application/yaml"
}
