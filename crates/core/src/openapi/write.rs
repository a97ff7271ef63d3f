//! The toolbox as text.

use super::Notes;
use super::document::{Document, line};
use super::operation::Tool;
use super::schema::mentioned;
use crate::declare::ToolSpec;
use crate::declare::http::HttpSpec;
use crate::declare::template::Template;
use crate::types::signature::{Records, Type};
use patter_gram::{Value, quote_name};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Tells whether a tool is read as what it was written for: a file with mistakes would be worse than a tool less.
pub(super) fn can_be_read(tool: &Tool, records: &Records, notes: &mut Notes) -> bool {
    let (tree, diagnostics) = patter_gram::parse(&written(tool));
    let pattern = tree.patterns().next();
    let signature = pattern.and_then(ToolSpec::cast).map(|spec| spec.signature(records));
    let found = match (pattern, signature) {
        (Some(pattern), Some(Ok(signature))) if diagnostics.is_empty() => HttpSpec::read(pattern, &signature).err(),
        (_, Some(Err(error))) => Some(error.diagnostics),
        _ => Some(diagnostics),
    };
    let Some(found) = found else { return true };
    let reason = found.first().map_or("it cannot be written", |diagnostic| &diagnostic.message);
    notes.add_about(&tool.place, format!("skipped: {reason}"));
    false
}

/// Writes the record types that are used, and the toolbox.
pub(super) fn toolbox(document: &Document<'_>, name: &str, tools: &[Tool], records: &Records) -> String {
    let mut text = heading(document, tools);
    for (name, record) in mentioned(types(tools), records) {
        text.push_str(&record.declaration(name));
        text.push_str("\n\n");
    }
    let tools: Vec<_> = tools.iter().map(written).collect();
    text.push_str(&format!("[{}:Toolbox | {}]\n", quote_name(name), tools.join(", ")));
    patter_gram::format(&text).unwrap_or(text)
}

fn written(tool: &Tool) -> String {
    let properties = Value::Map(tool.properties.clone());
    format!("[{}:Http {properties} | {}]", quote_name(&tool.name), tool.signature)
}

fn types(tools: &[Tool]) -> impl Iterator<Item = &Type> {
    tools.iter().flat_map(|Tool { signature, .. }| {
        signature.parameters.iter().map(|parameter| &parameter.ty).chain([&signature.returns])
    })
}

/// Says where the toolbox comes from, and which variables it needs.
fn heading(document: &Document<'_>, tools: &[Tool]) -> String {
    let title = line(document.title(), 100);
    let title = if title.is_empty() { "An interface without a title" } else { &title };
    let version = match document.root().pointer("/info/version") {
        Some(Json::String(version)) => format!(", version {}", line(version, 30)),
        Some(Json::Number(version)) => format!(", version {version}"),
        _ => String::new(),
    };
    let mut text = format!("// {title}{version}, from its OpenAPI document.\n");
    let mut variables = BTreeSet::new();
    for (key, value) in tools.iter().flat_map(|tool| &tool.properties) {
        if matches!(key.as_str(), "url" | "query" | "headers") {
            collect(value, &mut variables);
        }
    }
    if !variables.is_empty() {
        let names: Vec<_> = variables.into_iter().collect();
        text.push_str(&format!("// Variables of the environment: {}.\n", names.join(", ")));
    }
    text.push('\n');
    text
}

/// Collects the variables of the environment that templates name.
fn collect(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if let Ok(template) = Template::parse(text) {
                into.extend(template.variables().map(str::to_owned));
            }
        }
        Value::Map(entries) => entries.iter().for_each(|(_, value)| collect(value, into)),
        _ => {}
    }
}
