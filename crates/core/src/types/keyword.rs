//! The keywords of JSON Schema: which hold schemas, which only describe, and where references point.

use serde_json::{Map, Value as Json};

/// Keywords whose value is a schema.
const ONE: &[&str] = &[
    "items",
    "additionalItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
    "not",
    "if",
    "then",
    "else",
];

/// Keywords whose value is a list of schemas.
const LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value maps names to schemas.
const NAMED: &[&str] = &["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];

/// Keywords that allow or forbid nothing themselves.
const SILENT: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "$comment",
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
];

/// Tells whether a keyword holds definitions, which say nothing until they are referred to.
pub(crate) fn is_definitions(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions")
}

/// Tells whether a keyword allows or forbids nothing itself. One that nobody knows may mean something to somebody.
pub(crate) fn is_silent(keyword: &str) -> bool {
    SILENT.contains(&keyword) || keyword.starts_with("x-")
}

/// Returns the schemas right inside of a schema, each with the way to it as a JSON pointer.
pub(crate) fn children(schema: &Map<String, Json>) -> Vec<(String, &Json)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        match value {
            Json::Array(items) if LIST.contains(&keyword.as_str()) || keyword == "items" => {
                found.extend(items.iter().enumerate().map(|(index, item)| (format!("/{keyword}/{index}"), item)));
            }
            Json::Object(named) if NAMED.contains(&keyword.as_str()) => {
                found.extend(named.iter().map(|(name, item)| (format!("/{keyword}/{}", escaped(name)), item)));
            }
            _ if ONE.contains(&keyword.as_str()) => found.push((format!("/{keyword}"), value)),
            _ => {}
        }
    }
    found.retain(|(_, item)| item.is_object() || item.is_boolean());
    found
}

/// Returns the schema with each schema right inside of it changed; `change` gets the way to it as a JSON pointer.
pub(crate) fn map_children(
    schema: &Map<String, Json>,
    change: &mut dyn FnMut(&str, &Json) -> Json,
) -> Map<String, Json> {
    let mut at = |way: String, value: &Json| match value {
        Json::Object(_) | Json::Bool(_) => change(&way, value),
        other => other.clone(),
    };
    let mut mapped = |(keyword, value): (&String, &Json)| {
        let value = match value {
            Json::Array(items) if LIST.contains(&keyword.as_str()) || keyword == "items" => {
                let items = items.iter().enumerate();
                Json::Array(items.map(|(index, item)| at(format!("/{keyword}/{index}"), item)).collect())
            }
            Json::Object(named) if NAMED.contains(&keyword.as_str()) => {
                let entry =
                    |(name, item): (&String, &Json)| (name.clone(), at(format!("/{keyword}/{}", escaped(name)), item));
                Json::Object(named.iter().map(entry).collect())
            }
            _ if ONE.contains(&keyword.as_str()) => at(format!("/{keyword}"), value),
            _ => value.clone(),
        };
        (keyword.clone(), value)
    };
    schema.iter().map(&mut mapped).collect()
}

/// Collects the references of a schema and of all inside of it, definitions apart.
pub(crate) fn references<'s>(schema: &'s Json, into: &mut Vec<&'s str>) {
    let Json::Object(map) = schema else { return };
    into.extend(map.get("$ref").and_then(Json::as_str));
    for (way, child) in children(map) {
        if !is_definitions(way.split('/').nth(1).unwrap_or_default()) {
            references(child, into);
        }
    }
}

/// Returns a schema with its references changed, also those inside.
pub(crate) fn map_references(schema: &Json, change: &mut dyn FnMut(&str) -> String) -> Json {
    let Json::Object(map) = schema else { return schema.clone() };
    let mut mapped = map_children(map, &mut |_, child| map_references(child, change));
    if let Some(Json::String(reference)) = mapped.get_mut("$ref") {
        *reference = change(reference);
    }
    Json::Object(mapped)
}

/// Returns the JSON pointer that a reference into the same document has, or `None` for other references.
pub(crate) fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    let mut parts = fragment.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend(rest.bytes());
    }
    String::from_utf8(bytes).ok().filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
}

/// Returns the reference to a definition.
pub(crate) fn reference_to(name: &str) -> String {
    let mut reference = "#/$defs/".to_owned();
    for byte in escaped(name).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            reference.push(char::from(byte));
        } else {
            reference.push_str(&format!("%{byte:02X}"));
        }
    }
    reference
}

/// Writes a name as a part of a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Reads a part of a JSON pointer.
pub(crate) fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Returns the first of `name`, `name2`, `name3`, … that is free.
pub(crate) fn free_name(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut count = 1_usize;
    while !is_free(&candidate) {
        count += 1;
        candidate = format!("{name}{count}");
    }
    candidate
}
