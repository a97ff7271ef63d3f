//! The strict subset of OpenAI.

use super::{Effect, Report};
use crate::types::keyword::{children, escaped, is_definitions, is_silent, map_children};
use serde_json::{Map, Value as Json, json};

const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Keywords that pass as they are.
const KEPT: &[&str] = &[
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

const MOST_PROPERTIES: usize = 5000;
const MOST_ENUM_VALUES: usize = 1000;
const MOST_LEVELS: usize = 10;

/// Rewrites a schema, whose root is an object.
pub(super) fn strict(root: &Map<String, Json>, report: &mut Report) -> Json {
    let schema = Json::Object(Strict { report }.object_or_other(root, ""));
    limits(&schema, report);
    schema
}

struct Strict<'r> {
    report: &'r mut Report,
}

impl Strict<'_> {
    fn schema(&mut self, schema: &Json, at: &str) -> Json {
        match schema {
            Json::Object(map) => {
                let merged = unwrapped(map);
                if merged.is_some() {
                    self.report.note(format!("{at}/allOf"), Effect::Kept, "written out, as it is only one");
                }
                Json::Object(self.object_or_other(merged.as_ref().unwrap_or(map), at))
            }
            other => {
                let what = if *other == Json::Bool(true) { "anything" } else { "nothing" };
                self.inexpressible(at, format!("a place for {what} has no type"));
                other.clone()
            }
        }
    }

    fn inexpressible(&mut self, at: &str, text: impl Into<String>) {
        self.report.note(at.to_owned(), Effect::Inexpressible, text);
    }

    fn object_or_other(&mut self, map: &Map<String, Json>, at: &str) -> Map<String, Json> {
        let mut out = Map::new();
        for (keyword, value) in map {
            self.keyword(keyword, value, at, &mut out);
        }
        self.typed(&mut out, at);
        if names_object(&out) {
            self.closed(&mut out, map, at);
        } else {
            for keyword in ["required", "additionalProperties"] {
                if out.shift_remove(keyword).is_some() {
                    self.report.drop(at, keyword);
                }
            }
        }
        self.alone(out, at)
    }

    /// Moves a reference into a choice of one where something stands beside it.
    fn alone(&mut self, mut out: Map<String, Json>, at: &str) -> Map<String, Json> {
        let is_alone = out.keys().all(|keyword| keyword == "$ref" || is_definitions(keyword));
        if !is_alone
            && !out.contains_key("anyOf")
            && let Some(reference) = out.shift_remove("$ref")
        {
            let text = "written as a choice of one, as nothing may stand beside it";
            self.report.note(format!("{at}/$ref"), Effect::Kept, text);
            out.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
        }
        out
    }

    fn keyword(&mut self, keyword: &str, value: &Json, at: &str, out: &mut Map<String, Json>) {
        match (keyword, value) {
            // What is not written anew below does not belong to an object.
            ("required" | "additionalProperties", _) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            ("properties" | "items" | "anyOf" | "$defs" | "definitions", _) => {
                let one = Map::from_iter([(keyword.to_owned(), value.clone())]);
                out.extend(map_children(&one, &mut |way, child| self.schema(child, &format!("{at}{way}"))));
            }
            ("oneOf", Json::Array(options)) if !out.contains_key("anyOf") => {
                let (effect, text) = match are_apart(options) {
                    true => (Effect::Kept, "written as anyOf, as no value fits two options"),
                    false => (Effect::Weakened, "written as anyOf, so a value may fit several options"),
                };
                self.report.note(format!("{at}/oneOf"), effect, text);
                let options = options.iter().enumerate();
                let options = options.map(|(index, option)| self.schema(option, &format!("{at}/oneOf/{index}")));
                out.insert("anyOf".to_owned(), options.collect());
            }
            ("format", Json::String(name)) if FORMATS.contains(&name.as_str()) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            ("format", _) => {
                let text = format!("left out, the provider does not know the format {value}");
                self.report.note(format!("{at}/format"), Effect::Weakened, text);
            }
            ("default", _) => {
                let text = "left out, as it has no effect where everything must be given";
                self.report.note(format!("{at}/default"), Effect::Kept, text);
            }
            ("enum" | "const", _) if has_object(value) => {
                self.inexpressible(&format!("{at}/{keyword}"), "listed objects do not fit objects with all properties");
                out.insert(keyword.to_owned(), value.clone());
            }
            _ if KEPT.contains(&keyword) => {
                out.insert(keyword.to_owned(), value.clone());
            }
            _ => self.report.drop(at, keyword),
        }
    }

    /// Gives a type to what names none.
    fn typed(&mut self, out: &mut Map<String, Json>, at: &str) {
        let has_items = out.contains_key("items");
        if out.get("type").is_some_and(|ty| names(ty, "array")) && !has_items {
            self.inexpressible(at, "an array must say what its items are");
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
            [] => return self.inexpressible(at, "a place for anything has no type"),
            [one] => one.clone(),
            _ => Json::Array(types),
        };
        self.report.note(at.to_owned(), Effect::Kept, format!("the type {ty} was added"));
        out.insert("type".to_owned(), ty);
    }

    /// Closes an object and requires all of its properties.
    fn closed(&mut self, out: &mut Map<String, Json>, map: &Map<String, Json>, at: &str) {
        let properties = out.entry("properties").or_insert_with(|| json!({}));
        let Json::Object(properties) = properties else { return };
        let listed = map.get("required").and_then(Json::as_array);
        let is_required = |name: &str| listed.is_some_and(|listed| listed.iter().any(|other| other == name));
        for (name, property) in properties.iter_mut().filter(|(name, _)| !is_required(name)) {
            *property = or_null(std::mem::take(property));
            let text = "must be given, null stands for leaving it out";
            self.report.note(format!("{at}/properties/{}", escaped(name)), Effect::Kept, text);
        }
        let names: Vec<_> = properties.keys().map(|name| Json::from(name.as_str())).collect();
        for name in listed.into_iter().flatten().filter(|name| !names.contains(name)) {
            let text = format!("{name} is required but no property, and other properties are not allowed");
            self.report.note(format!("{at}/required"), Effect::Inexpressible, text);
        }
        let (is_empty, pointer) = (names.is_empty(), format!("{at}/additionalProperties"));
        match map.get("additionalProperties") {
            Some(Json::Bool(false)) => {}
            None | Some(Json::Bool(true)) if !is_empty || at.is_empty() => {
                self.report.note(pointer, Effect::Kept, "other properties than those listed are not given");
            }
            _ => self.report.note(pointer, Effect::Inexpressible, "an object with keys of any name cannot be said"),
        }
        out.insert("required".to_owned(), Json::Array(names));
        out.insert("additionalProperties".to_owned(), Json::Bool(false));
    }
}

/// Puts the only part of an `allOf` in its place, if that says nothing twice.
fn unwrapped(map: &Map<String, Json>) -> Option<Map<String, Json>> {
    let [Json::Object(inner)] = map.get("allOf")?.as_array()?.as_slice() else { return None };
    let says_twice = |keyword: &String| !is_silent(keyword) && map.contains_key(keyword);
    if inner.keys().any(says_twice) {
        return None;
    }
    let mut merged = inner.clone();
    let beside = map.iter().filter(|(keyword, _)| *keyword != "allOf");
    merged.extend(beside.map(|(keyword, value)| (keyword.clone(), value.clone())));
    Some(merged)
}

/// Returns a schema that allows `null` too.
fn or_null(schema: Json) -> Json {
    let Json::Object(mut map) = schema else { return schema };
    let nothing = json!({ "type": "null" });
    if map.contains_key("const") || map.contains_key("$ref") {
        return json!({ "anyOf": [map, nothing] });
    }
    if let Some(Json::Array(options)) = map.get_mut("anyOf")
        && !options.contains(&nothing)
    {
        options.push(nothing);
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

fn names_object(map: &Map<String, Json>) -> bool {
    map.get("type").is_some_and(|ty| names(ty, "object"))
}

fn names(ty: &Json, wanted: &str) -> bool {
    match ty {
        Json::String(name) => name == wanted,
        Json::Array(names) => names.iter().any(|name| name == wanted),
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

/// Tells whether no value can fit two of these schemas: they name different types, or different constants.
fn are_apart(options: &[Json]) -> bool {
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

fn limits(schema: &Json, report: &mut Report) {
    let mut count = Count::default();
    count.schema(schema, 0);
    let limits = [
        (count.properties, MOST_PROPERTIES, "properties"),
        (count.values, MOST_ENUM_VALUES, "enum values"),
        (count.levels, MOST_LEVELS, "levels"),
    ];
    for (found, most, what) in limits {
        if found > most {
            let text = format!("the schema has {found} {what}, the provider takes up to {most}");
            report.note(String::new(), Effect::Inexpressible, text);
        }
    }
}

#[derive(Default)]
struct Count {
    properties: usize,
    values: usize,
    levels: usize,
}

impl Count {
    /// Counts a schema. A level is an object or an array inside of another.
    fn schema(&mut self, schema: &Json, outer: usize) {
        let Json::Object(map) = schema else { return };
        let level = outer + usize::from(map.contains_key("properties") || map.contains_key("items"));
        self.levels = self.levels.max(level);
        self.properties += map.get("properties").and_then(Json::as_object).map_or(0, Map::len);
        self.values += map.get("enum").and_then(Json::as_array).map_or(0, Vec::len);
        for (way, child) in children(map) {
            let is_definition = is_definitions(way.split('/').nth(1).unwrap_or_default());
            self.schema(child, if is_definition { 0 } else { level });
        }
    }
}
