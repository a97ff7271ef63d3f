//! JSON Schema keywords: which contain schemas, which are annotations, and how references are resolved.

use serde_json::{Map, Value as Json};

/// Keywords whose value is a schema.
const SINGLE_SCHEMA: &[&str] = &[
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
const SCHEMA_LIST: &[&str] = &["allOf", "anyOf", "oneOf", "prefixItems"];

/// Keywords whose value maps names to schemas.
const SCHEMA_MAP: &[&str] =
    &["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];

/// Keywords that constrain nothing themselves.
const ANNOTATIONS: &[&str] = &[
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

/// Returns whether a keyword contains definitions, which have no effect until something refers to them.
pub(crate) fn is_definitions(keyword: &str) -> bool {
    matches!(keyword, "$defs" | "definitions")
}

/// Returns whether a keyword constrains nothing itself. Unknown keywords might.
pub(crate) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}

/// Returns the direct subschemas of a schema, each with its JSON pointer.
pub(crate) fn subschemas(schema: &Map<String, Json>) -> Vec<(String, &Json)> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        match value {
            Json::Array(items) if SCHEMA_LIST.contains(&keyword.as_str()) || keyword == "items" => {
                found.extend(items.iter().enumerate().map(|(index, item)| (format!("/{keyword}/{index}"), item)));
            }
            Json::Object(named) if SCHEMA_MAP.contains(&keyword.as_str()) => {
                found.extend(named.iter().map(|(name, item)| (format!("/{keyword}/{}", escape_token(name)), item)));
            }
            _ if SINGLE_SCHEMA.contains(&keyword.as_str()) => found.push((format!("/{keyword}"), value)),
            _ => {}
        }
    }
    found.retain(|(_, item)| item.is_object() || item.is_boolean());
    found
}

/// Returns the schema with `change` applied to each direct subschema and its JSON pointer.
pub(crate) fn map_subschemas(
    schema: &Map<String, Json>,
    change: &mut dyn FnMut(&str, &Json) -> Json,
) -> Map<String, Json> {
    let mut at = |path: String, value: &Json| match value {
        Json::Object(_) | Json::Bool(_) => change(&path, value),
        other => other.clone(),
    };
    let mut mapped = |(keyword, value): (&String, &Json)| {
        let value = match value {
            Json::Array(items) if SCHEMA_LIST.contains(&keyword.as_str()) || keyword == "items" => {
                let items = items.iter().enumerate();
                Json::Array(items.map(|(index, item)| at(format!("/{keyword}/{index}"), item)).collect())
            }
            Json::Object(named) if SCHEMA_MAP.contains(&keyword.as_str()) => {
                let entry = |(name, item): (&String, &Json)| {
                    (name.clone(), at(format!("/{keyword}/{}", escape_token(name)), item))
                };
                Json::Object(named.iter().map(entry).collect())
            }
            _ if SINGLE_SCHEMA.contains(&keyword.as_str()) => at(format!("/{keyword}"), value),
            _ => value.clone(),
        };
        (keyword.clone(), value)
    };
    schema.iter().map(&mut mapped).collect()
}

/// Collects the references in a schema and its subschemas, except for definitions.
pub(crate) fn collect_references<'s>(schema: &'s Json, into: &mut Vec<&'s str>) {
    let Json::Object(map) = schema else { return };
    into.extend(map.get("$ref").and_then(Json::as_str));
    for (path, child) in subschemas(map) {
        if !is_definitions(path.split('/').nth(1).unwrap_or_default()) {
            collect_references(child, into);
        }
    }
}

/// Returns a schema with `change` applied to each reference in it and its subschemas.
pub(crate) fn map_references(schema: &Json, change: &mut dyn FnMut(&str) -> String) -> Json {
    let Json::Object(map) = schema else { return schema.clone() };
    let mut mapped = map_subschemas(map, &mut |_, child| map_references(child, change));
    if let Some(Json::String(reference)) = mapped.get_mut("$ref") {
        *reference = change(reference);
    }
    Json::Object(mapped)
}

/// Returns the JSON pointer of a reference into the same document, or `None` for other references.
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
    for byte in escape_token(name).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            reference.push(char::from(byte));
        } else {
            reference.push_str(&format!("%{byte:02X}"));
        }
    }
    reference
}

/// Escapes a name for use as a token of a JSON pointer.
pub(crate) fn escape_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Unescapes a token of a JSON pointer.
pub(crate) fn unescape_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

/// Returns the first unused name among `name`, `name2`, `name3`, …
pub(crate) fn free_name(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut count = 1_usize;
    while !is_free(&candidate) {
        count += 1;
        candidate = format!("{name}{count}");
    }
    candidate
}
