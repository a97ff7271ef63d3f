//! Documents of version 2.0, rewritten as version 3.0.
//!
//! Only what an import reads is rewritten. References to parameters are resolved, since a body is no longer a parameter.

use crate::types::keyword::pointer;
use serde_json::{Map, Value as Json, json};

/// The keywords of a parameter that belong to its schema.
const SCHEMA_KEYWORDS: &[&str] = &[
    "type",
    "format",
    "items",
    "default",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "enum",
    "multipleOf",
    "x-nullable",
];
/// The parts that move, with the prefixes of references to them.
const MOVED: &[(&str, &str)] =
    &[("#/definitions/", "#/components/schemas/"), ("#/responses/", "#/components/responses/")];
/// The maximum number of references in a chain.
const MAX_CHAIN: usize = 16;

/// Rewrites a document.
pub(super) fn to_openapi(swagger: &Json) -> Json {
    let upgrade = Upgrade { swagger };
    let mut root = Map::new();
    let mut copy = |key: &str| {
        if let Some(value) = swagger.get(key) {
            root.insert(key.to_owned(), value.clone());
        }
    };
    ["info", "security"].into_iter().for_each(&mut copy);
    root.insert("openapi".to_owned(), "3.0.3".into());
    root.insert("servers".to_owned(), servers(swagger));
    let paths = swagger.get("paths").and_then(Json::as_object);
    let paths = paths.into_iter().flatten().map(|(path, item)| (path.clone(), upgrade.path_item(item)));
    root.insert("paths".to_owned(), Json::Object(paths.collect()));
    let converted = |key: &str, convert: &dyn Fn(&Json) -> Json| -> Json {
        let parts = swagger.get(key).and_then(Json::as_object);
        parts.into_iter().flatten().map(|(name, part)| (name.clone(), convert(part))).collect::<Map<_, _>>().into()
    };
    let produces = media_types(swagger, "produces");
    root.insert(
        "components".to_owned(),
        json!({
            "schemas": converted("definitions", &schema),
            "responses": converted("responses", &|one| response(one, &produces)),
            "securitySchemes": converted("securityDefinitions", &security_scheme),
        }),
    );
    Json::Object(root)
}

struct Upgrade<'d> {
    swagger: &'d Json,
}

impl Upgrade<'_> {
    fn path_item(&self, item: &Json) -> Json {
        let Some(item) = self.resolve(item) else { return item.clone() };
        let shared = self.parameters(item.get("parameters"));
        let operations = item.iter().filter(|(key, _)| *key != "parameters").map(|(key, operation)| {
            let is_operation = operation.is_object()
                && matches!(key.as_str(), "get" | "put" | "post" | "delete" | "options" | "head" | "patch");
            let upgraded = if is_operation { self.operation(operation, &shared) } else { operation.clone() };
            (key.clone(), upgraded)
        });
        Json::Object(operations.collect())
    }

    fn operation(&self, operation: &Json, shared: &[Map<String, Json>]) -> Json {
        let Some(map) = operation.as_object() else { return operation.clone() };
        let kept = map.iter().filter(|(key, _)| !matches!(key.as_str(), "parameters" | "responses" | "schemes"));
        let mut upgraded: Map<String, Json> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        let own = self.parameters(map.get("parameters"));
        let key = |parameter: &Map<String, Json>| {
            (parameter.get("in").cloned(), parameter.get("name").cloned(), parameter.contains_key("$ref"))
        };
        let inherited = shared.iter().filter(|shared| !own.iter().any(|own| key(own) == key(shared)));
        let all: Vec<_> = inherited.chain(&own).collect();
        let location =
            |parameter: &Map<String, Json>| parameter.get("in").and_then(Json::as_str).unwrap_or_default().to_owned();
        let consumes = match media_types(operation, "consumes") {
            own if own.is_empty() => media_types(self.swagger, "consumes"),
            own => own,
        };
        let form: Vec<_> = all.iter().copied().filter(|parameter| location(parameter) == "formData").collect();
        let body = all.iter().find(|parameter| location(parameter) == "body");
        if let Some(body) = body {
            upgraded.insert("requestBody".to_owned(), request_body(body, &consumes));
        } else if !form.is_empty() {
            upgraded.insert("requestBody".to_owned(), form_body(&form, &consumes));
        }
        let others = all.iter().filter(|parameter| !matches!(location(parameter).as_str(), "body" | "formData"));
        upgraded.insert("parameters".to_owned(), others.map(|other| parameter(other)).collect());
        let produces = match media_types(operation, "produces") {
            own if own.is_empty() => media_types(self.swagger, "produces"),
            own => own,
        };
        let responses = map.get("responses").and_then(Json::as_object);
        let responses = responses.into_iter().flatten().map(|(status, one)| (status.clone(), response(one, &produces)));
        upgraded.insert("responses".to_owned(), Json::Object(responses.collect()));
        Json::Object(upgraded)
    }

    /// Returns the parameters of a list. A reference that cannot be resolved stays, so that it is reported.
    fn parameters(&self, list: Option<&Json>) -> Vec<Map<String, Json>> {
        let list = list.and_then(Json::as_array).into_iter().flatten();
        list.filter_map(|one| self.resolve(one).or(one.as_object()).cloned()).collect()
    }

    fn resolve<'a>(&'a self, value: &'a Json) -> Option<&'a Map<String, Json>> {
        let mut value = value;
        for _ in 0..MAX_CHAIN {
            let map = value.as_object()?;
            let Some(reference) = map.get("$ref").and_then(Json::as_str) else { return Some(map) };
            value = self.swagger.pointer(&pointer(reference)?)?;
        }
        None
    }
}

/// Returns the address of the server: encrypted, if there is a choice.
fn servers(swagger: &Json) -> Json {
    let text = |key: &str| swagger.get(key).and_then(Json::as_str).unwrap_or_default();
    let path = text("basePath").trim_end_matches('/');
    let path = if path.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = text("host");
    if host.is_empty() {
        return if path.is_empty() { json!([]) } else { json!([{ "url": path }]) };
    }
    let schemes: Vec<_> =
        swagger.get("schemes").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
    let is_plain = schemes.contains(&"http") && !schemes.contains(&"https");
    let scheme = if is_plain { "http" } else { "https" };
    json!([{ "url": format!("{scheme}://{host}{path}") }])
}

fn media_types(owner: &Json, key: &str) -> Vec<String> {
    let list = owner.get(key).and_then(Json::as_array).into_iter().flatten();
    list.filter_map(Json::as_str).map(str::to_owned).collect()
}

fn request_body(body: &Map<String, Json>, consumes: &[String]) -> Json {
    let schema = body.get("schema").map_or_else(|| json!({}), schema);
    let kinds = if consumes.is_empty() { &["application/json".to_owned()][..] } else { consumes };
    // Some documents say that an object in the body is a form, or do not say that it is JSON.
    let content: Map<_, _> = kinds.iter().map(|kind| (kind.clone(), json!({ "schema": schema }))).collect();
    let mut upgraded =
        json!({ "required": body.get("required").cloned().unwrap_or(Json::Bool(false)), "content": content });
    if let (Json::Object(map), Some(description)) = (&mut upgraded, body.get("description")) {
        map.insert("description".to_owned(), description.clone());
    }
    upgraded
}

fn form_body(fields: &[&Map<String, Json>], consumes: &[String]) -> Json {
    let text = |map: &Map<String, Json>, key: &str| map.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let has_file = fields.iter().any(|field| text(field, "type") == "file");
    let offers = |kind: &str| consumes.iter().any(|other| other.starts_with(kind));
    let is_multipart = has_file || (offers("multipart/form-data") && !offers("application/x-www-form-urlencoded"));
    let kind = if is_multipart { "multipart/form-data" } else { "application/x-www-form-urlencoded" };
    let mut properties = Map::new();
    let mut encoding = Map::new();
    let mut required: Vec<Json> = Vec::new();
    for field in fields {
        let name = text(field, "name");
        let mut schema = value_schema(field);
        if let Some(description) = field.get("description") {
            schema.insert("description".to_owned(), description.clone());
        }
        if schema.get("type").is_some_and(|name| name == "array") {
            encoding.insert(name.clone(), Json::Object(list_style(field)));
        }
        if field.get("required") == Some(&Json::Bool(true)) {
            required.push(name.clone().into());
        }
        properties.insert(name, Json::Object(schema));
    }
    let is_required = !required.is_empty();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    json!({ "required": is_required, "content": { kind: { "schema": schema, "encoding": encoding } } })
}

fn parameter(parameter: &Map<String, Json>) -> Json {
    if parameter.contains_key("$ref") {
        return Json::Object(parameter.clone());
    }
    let kept = parameter.iter().filter(|(key, _)| !SCHEMA_KEYWORDS.contains(&key.as_str()) && *key != "schema");
    let mut upgraded: Map<String, Json> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut own = value_schema(parameter);
    // Some documents describe parameters by a schema, as later versions do.
    if let Some(Json::Object(described)) = parameter.get("schema").map(schema) {
        own.extend(described);
    }
    if own.get("type").is_some_and(|name| name == "array") {
        upgraded.extend(list_style(parameter));
    }
    upgraded.insert("schema".to_owned(), Json::Object(own));
    Json::Object(upgraded)
}

/// Returns the schema of a parameter that is not a body.
fn value_schema(parameter: &Map<String, Json>) -> Map<String, Json> {
    let keywords = parameter.iter().filter(|(key, _)| SCHEMA_KEYWORDS.contains(&key.as_str()));
    let own: Map<String, Json> = keywords.map(|(key, value)| (key.clone(), value.clone())).collect();
    match schema(&Json::Object(own)) {
        Json::Object(own) => own,
        _ => Map::new(),
    }
}

/// Returns how a list is written.
fn list_style(parameter: &Map<String, Json>) -> Map<String, Json> {
    let is_in_query = parameter.get("in").is_some_and(|location| location == "query" || location == "formData");
    let (style, explode) = match parameter.get("collectionFormat").and_then(Json::as_str).unwrap_or_default() {
        "multi" => ("form", true),
        "ssv" => ("spaceDelimited", false),
        "pipes" => ("pipeDelimited", false),
        "tsv" => ("tabDelimited", false),
        _ => (if is_in_query { "form" } else { "simple" }, false),
    };
    [("style".to_owned(), style.into()), ("explode".to_owned(), explode.into())].into_iter().collect()
}

fn response(response: &Json, produces: &[String]) -> Json {
    let Some(map) = response.as_object() else { return response.clone() };
    if map.contains_key("$ref") {
        return schema(response);
    }
    let kept = map.iter().filter(|(key, _)| matches!(key.as_str(), "description"));
    let mut upgraded: Map<String, Json> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(described) = map.get("schema").map(schema) {
        let is_file = described.get("format").is_some_and(|format| format == "binary");
        let kinds = match produces {
            _ if is_file => vec!["application/octet-stream".to_owned()],
            [] => vec!["application/json".to_owned()],
            produces => produces.to_vec(),
        };
        let content: Map<_, _> = kinds.into_iter().map(|kind| (kind, json!({ "schema": described }))).collect();
        upgraded.insert("content".to_owned(), Json::Object(content));
    }
    Json::Object(upgraded)
}

fn security_scheme(scheme: &Json) -> Json {
    match scheme.get("type").and_then(Json::as_str) {
        Some("basic") => json!({ "type": "http", "scheme": "basic" }),
        _ => scheme.clone(),
    }
}

/// Rewrites a schema: its references, and what has another name.
fn schema(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(schema).collect(),
        Json::Object(map) => {
            let mut upgraded = Map::new();
            for (key, value) in map {
                match (key.as_str(), value) {
                    ("$ref", Json::String(reference)) => {
                        let moved =
                            MOVED.iter().find_map(|(from, to)| Some(format!("{to}{}", reference.strip_prefix(from)?)));
                        upgraded.insert(key.clone(), moved.unwrap_or_else(|| reference.clone()).into());
                    }
                    ("x-nullable", Json::Bool(true)) => drop(upgraded.insert("nullable".to_owned(), true.into())),
                    // The name of a property, not a schema with a name.
                    ("discriminator", Json::String(_)) => {}
                    ("enum" | "default" | "example" | "required", value) => {
                        upgraded.insert(key.clone(), value.clone());
                    }
                    ("type", Json::String(name)) if name == "file" => {
                        upgraded.insert("type".to_owned(), "string".into());
                        upgraded.insert("format".to_owned(), "binary".into());
                    }
                    // The names of properties are not keywords.
                    ("properties", Json::Object(properties)) => {
                        let properties = properties.iter().map(|(name, one)| (name.clone(), schema(one)));
                        upgraded.insert(key.clone(), Json::Object(properties.collect()));
                    }
                    (_, value) => drop(upgraded.insert(key.clone(), schema(value))),
                }
            }
            Json::Object(upgraded)
        }
        other => other.clone(),
    }
}
