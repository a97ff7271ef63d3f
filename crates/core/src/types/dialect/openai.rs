//! OpenAI's strict subset.

use super::{Fidelity, Report};
use crate::types::keyword::{escape_token, is_annotation, is_definitions, map_subschemas, subschemas};
use serde_json::{Map, Value as Json, json};

const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Keywords that are kept unchanged.
const UNCHANGED: &[&str] = &[
    "type",
    "title",
    "description",
    "enum",
    "const",
    "$ref",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];

const MAX_PROPERTIES: usize = 5000;
const MAX_ENUM_VALUES: usize = 1000;
const MAX_LEVELS: usize = 10;

/// Rewrites a schema whose root is an object.
pub(super) fn adapt(root: &Map<String, Json>, report: &mut Report) -> Json {
    let schema = Json::Object(StrictWriter { report }.object_or_other(root, ""));
    report_limits(&schema, report);
    schema
}

struct StrictWriter<'r> {
    report: &'r mut Report,
}

impl StrictWriter<'_> {
    fn schema(&mut self, schema: &Json, at: &str) -> Json {
        match schema {
            Json::Object(map) => {
                let merged = inline_all_of(map);
                if merged.is_some() {
                    self.report.note(format!("{at}/allOf"), Fidelity::Preserved, "inlined; it has only one part");
                }
                Json::Object(self.object_or_other(merged.as_ref().unwrap_or(map), at))
            }
            other => {
                let allowed = if *other == Json::Bool(true) { "any" } else { "no" };
                self.inexpressible(at, format!("a schema that allows {allowed} value has no type"));
                other.clone()
            }
        }
    }

    fn inexpressible(&mut self, at: &str, text: impl Into<String>) {
        self.report.note(at.to_owned(), Fidelity::Inexpressible, text);
    }

    fn object_or_other(&mut self, map: &Map<String, Json>, at: &str) -> Map<String, Json> {
        let mut out = Map::new();
        for (keyword, value) in map {
            self.keyword(keyword, value, at, &mut out);
        }
        self.report.describe_default(at, map, &mut out);
        self.add_type(&mut out, at);
        if has_type(out.get("type"), "object") {
            self.close(&mut out, map, at);
        } else {
            for keyword in ["required", "additionalProperties"] {
                if out.shift_remove(keyword).is_some() {
                    self.report.removed(at, keyword);
                }
            }
        }
        self.isolate_reference(out, at)
    }

    /// Wraps a reference in `anyOf` if there are keywords next to it.
    fn isolate_reference(&mut self, mut out: Map<String, Json>, at: &str) -> Map<String, Json> {
        let is_alone = out.keys().all(|keyword| keyword == "$ref" || is_definitions(keyword));
        if !is_alone
            && !out.contains_key("anyOf")
            && let Some(reference) = out.shift_remove("$ref")
        {
            let text = "wrapped in anyOf; no keywords are allowed next to it";
            self.report.note(format!("{at}/$ref"), Fidelity::Preserved, text);
            out.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
        }
        out
    }

    fn keyword(&mut self, keyword: &str, value: &Json, at: &str, out: &mut Map<String, Json>) {
        match (keyword, value) {
            // Rewritten later for objects, and removed from everything else.
            ("required" | "additionalProperties", _) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            ("properties" | "items" | "anyOf" | "$defs" | "definitions", _) => {
                let one = Map::from_iter([(keyword.to_owned(), value.clone())]);
                out.extend(map_subschemas(&one, &mut |path, child| self.schema(child, &format!("{at}{path}"))));
            }
            ("oneOf", Json::Array(options)) if !out.contains_key("anyOf") => {
                let (fidelity, text) = match are_disjoint(options) {
                    true => (Fidelity::Preserved, "rewritten as anyOf; no value matches two options"),
                    false => (Fidelity::Weakened, "rewritten as anyOf; a value may match several options"),
                };
                self.report.note(format!("{at}/oneOf"), fidelity, text);
                let options = options.iter().enumerate();
                let options = options.map(|(index, option)| self.schema(option, &format!("{at}/oneOf/{index}")));
                out.insert("anyOf".to_owned(), options.collect());
            }
            ("format", Json::String(name)) if FORMATS.contains(&name.as_str()) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            ("format", _) => {
                let text = format!("removed; the provider does not support the format {value}");
                self.report.note(format!("{at}/format"), Fidelity::Weakened, text);
            }
            ("default", _) => {}
            ("enum" | "const", _) if has_object(value) => {
                self.inexpressible(
                    &format!("{at}/{keyword}"),
                    "objects in an enum may lack properties that are now required",
                );
                out.insert(keyword.to_owned(), value.clone());
            }
            _ if UNCHANGED.contains(&keyword) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            _ => self.report.removed(at, keyword),
        }
    }

    /// Adds a type to a schema that has none.
    fn add_type(&mut self, out: &mut Map<String, Json>, at: &str) {
        let has_items = out.contains_key("items");
        if has_type(out.get("type"), "array") && !has_items {
            self.inexpressible(at, "an array must have the type of its items");
        }
        if ["type", "$ref", "anyOf"].iter().any(|keyword| out.contains_key(*keyword)) {
            return;
        }
        let listed = match (out.get("enum"), out.get("const")) {
            (Some(Json::Array(values)), _) => values.clone(),
            (_, Some(value)) => vec![value.clone()],
            _ if out.contains_key("properties") => vec![json!({})],
            _ => Vec::new(),
        };
        let mut types: Vec<Json> = Vec::new();
        for value in &listed {
            let name = Json::from(type_name(value));
            if !types.contains(&name) {
                types.push(name);
            }
        }
        let ty = match types.as_slice() {
            [] => return self.inexpressible(at, "a schema that allows any value has no type"),
            [one] => one.clone(),
            _ => Json::Array(types),
        };
        self.report.note(at.to_owned(), Fidelity::Preserved, format!("added the type {ty}"));
        out.insert("type".to_owned(), ty);
    }

    /// Closes an object and requires all its properties.
    fn close(&mut self, out: &mut Map<String, Json>, map: &Map<String, Json>, at: &str) {
        let properties = out.entry("properties").or_insert_with(|| json!({}));
        let Json::Object(properties) = properties else { return };
        let listed = map.get("required").and_then(Json::as_array);
        let is_required = |name: &str| listed.is_some_and(|listed| listed.iter().any(|other| other == name));
        for (name, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
            *property = make_nullable(std::mem::take(property));
            let text = "made required; null means omitted";
            self.report.note(format!("{at}/properties/{}", escape_token(name)), Fidelity::Preserved, text);
        }
        let names: Vec<_> = properties.keys().map(|name| Json::from(name.as_str())).collect();
        for name in listed.into_iter().flatten().filter(|name| !names.contains(name)) {
            let text = format!("{name} is required but is not a property, and no other properties are allowed");
            self.report.note(format!("{at}/required"), Fidelity::Inexpressible, text);
        }
        let is_empty = names.is_empty();
        let pointer = format!("{at}/additionalProperties");
        match map.get("additionalProperties") {
            Some(Json::Bool(false)) => {}
            None | Some(Json::Bool(true)) if !is_empty || at.is_empty() => {
                self.report.note(pointer, Fidelity::Preserved, "closed; only the listed properties are allowed");
            }
            _ => {
                self.report.note(pointer, Fidelity::Inexpressible, "an object with arbitrary keys cannot be expressed");
            }
        }
        out.insert("required".to_owned(), Json::Array(names));
        out.insert("additionalProperties".to_owned(), Json::Bool(false));
    }
}

/// Replaces an `allOf` with its only part, unless a keyword appears in both.
fn inline_all_of(map: &Map<String, Json>) -> Option<Map<String, Json>> {
    let [Json::Object(inner)] = map.get("allOf")?.as_array()?.as_slice() else { return None };
    let is_repeated = |keyword: &String| !is_annotation(keyword) && map.contains_key(keyword);
    if inner.keys().any(is_repeated) {
        return None;
    }
    let mut merged = inner.clone();
    let beside = map.iter().filter(|(keyword, _)| *keyword != "allOf");
    merged.extend(beside.map(|(keyword, value)| (keyword.clone(), value.clone())));
    Some(merged)
}

/// Returns a schema that also allows `null`.
fn make_nullable(schema: Json) -> Json {
    let Json::Object(mut map) = schema else { return schema };
    let null_type = json!({ "type": "null" });
    if map.contains_key("const") || map.contains_key("$ref") {
        return json!({ "anyOf": [map, null_type] });
    }
    if let Some(Json::Array(options)) = map.get_mut("anyOf")
        && !options.contains(&null_type)
    {
        options.push(null_type);
    }
    match map.get_mut("type") {
        Some(Json::String(name)) if name != "null" => {
            let names = json!([name, "null"]);
            map.insert("type".to_owned(), names);
        }
        Some(Json::Array(names)) if !names.iter().any(|name| name == "null") => names.push("null".into()),
        _ => {}
    }
    if let Some(Json::Array(values)) = map.get_mut("enum")
        && !values.contains(&Json::Null)
    {
        values.push(Json::Null);
    }
    Json::Object(map)
}

fn has_type(ty: Option<&Json>, wanted: &str) -> bool {
    match ty {
        Some(Json::String(name)) => name == wanted,
        Some(Json::Array(names)) => names.iter().any(|name| name == wanted),
        _ => false,
    }
}

fn has_object(value: &Json) -> bool {
    match value {
        Json::Object(_) => true,
        Json::Array(items) => items.iter().any(has_object),
        _ => false,
    }
}

fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Returns whether no value can match two of these schemas: they have different types, or different constants.
fn are_disjoint(options: &[Json]) -> bool {
    let mut seen: Vec<Json> = Vec::new();
    let key = |option: &Json| match (option.get("const"), option.get("type")) {
        (Some(value), _) => Some(json!({ "const": value })),
        (None, Some(Json::String(name))) if name == "integer" => Some(json!("number")),
        (None, Some(Json::String(name))) => Some(json!(name)),
        _ => None,
    };
    let all_constant = options.iter().all(|option| option.get("const").is_some());
    let no_constant = options.iter().all(|option| option.get("const").is_none());
    (all_constant || no_constant)
        && options.iter().all(|option| {
            let Some(key) = key(option) else { return false };
            let is_new = !seen.contains(&key);
            seen.push(key);
            is_new
        })
}

/// Reports a schema that exceeds the limits of the provider.
fn report_limits(schema: &Json, report: &mut Report) {
    let mut count = SchemaSize::default();
    count.add(schema, 0);
    let limits = [
        (count.properties, MAX_PROPERTIES, "properties"),
        (count.enum_values, MAX_ENUM_VALUES, "enum values"),
        (count.levels, MAX_LEVELS, "levels of nesting"),
    ];
    for (found, max, unit) in limits {
        if found > max {
            let text = format!("the schema has {found} {unit}; the provider allows at most {max}");
            report.note(String::new(), Fidelity::Inexpressible, text);
        }
    }
}

/// The size of a schema, in the units that the provider limits.
#[derive(Default)]
struct SchemaSize {
    properties: usize,
    enum_values: usize,
    levels: usize,
}

impl SchemaSize {
    /// Adds a schema. A level is an object or array inside another.
    fn add(&mut self, schema: &Json, outer: usize) {
        let Json::Object(map) = schema else { return };
        let level = outer + usize::from(map.contains_key("properties") || map.contains_key("items"));
        self.levels = self.levels.max(level);
        self.properties += map.get("properties").and_then(Json::as_object).map_or(0, Map::len);
        self.enum_values += map.get("enum").and_then(Json::as_array).map_or(0, Vec::len);
        for (path, child) in subschemas(map) {
            let is_definition = is_definitions(path.split('/').nth(1).unwrap_or_default());
            self.add(child, if is_definition { 0 } else { level });
        }
    }
}
