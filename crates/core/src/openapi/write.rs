//! Formatting of the toolbox.

use super::document::{Document, single_line};
use super::schema::referenced_records;
use super::tool::ImportedTool;
use super::warning::Warnings;
use crate::declare::ToolSpec;
use crate::declare::http::HttpSpec;
use crate::declare::template::Template;
use crate::types::signature::{Records, Type};
use patter_gram::{Value, quote_name};
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Returns whether the text of a tool is valid. Leaving out a tool is better than writing an invalid file.
pub(super) fn is_readable(tool: &ImportedTool, records: &Records, warnings: &mut Warnings) -> bool {
    let (tree, diagnostics) = patter_gram::parse(&format_tool(tool));
    let pattern = tree.patterns().next();
    let signature = pattern.and_then(ToolSpec::cast).map(|spec| spec.signature(records));
    let problems = match (pattern, signature) {
        (Some(pattern), Some(Ok(signature))) if diagnostics.is_empty() => HttpSpec::read(pattern, &signature).err(),
        (_, Some(Err(error))) => Some(error.diagnostics),
        _ => Some(diagnostics),
    };
    let Some(problems) = problems else { return true };
    let reason = problems.first().map_or("it cannot be expressed in gram", |diagnostic| &diagnostic.message);
    warnings.add_at(&tool.location, format!("skipped: {reason}"));
    false
}

/// Formats the record types in use, and the toolbox.
pub(super) fn format_toolbox(document: &Document<'_>, name: &str, tools: &[ImportedTool], records: &Records) -> String {
    let mut text = heading(document, tools);
    for (name, record) in referenced_records(types(tools), records) {
        text.push_str(&record.declaration(name));
        text.push_str("\n\n");
    }
    let tools: Vec<_> = tools.iter().map(format_tool).collect();
    text.push_str(&format!("[{}:Toolbox | {}]\n", quote_name(name), tools.join(", ")));
    patter_gram::format(&text).unwrap_or(text)
}

fn format_tool(tool: &ImportedTool) -> String {
    let properties = Value::Map(tool.properties.clone());
    format!("[{}:Http {properties} | {}]", quote_name(&tool.name), tool.signature)
}

fn types(tools: &[ImportedTool]) -> impl Iterator<Item = &Type> {
    tools.iter().flat_map(|ImportedTool { signature, .. }| {
        signature.parameters.iter().map(|parameter| &parameter.ty).chain([&signature.returns])
    })
}

/// Returns a comment with the origin of the toolbox and its environment variables.
fn heading(document: &Document<'_>, tools: &[ImportedTool]) -> String {
    let title = single_line(document.title(), 100);
    let title = if title.is_empty() { "Untitled API" } else { &title };
    let version = match document.root().pointer("/info/version") {
        Some(Json::String(version)) => format!(", version {}", single_line(version, 30)),
        Some(Json::Number(version)) => format!(", version {version}"),
        _ => String::new(),
    };
    let mut text = format!("// {title}{version}, imported from its OpenAPI document.\n");
    let mut variables = BTreeSet::new();
    for (key, value) in tools.iter().flat_map(|tool| &tool.properties) {
        if matches!(key.as_str(), "url" | "query" | "headers" | "cookies") {
            collect_variables(value, &mut variables);
        }
    }
    if !variables.is_empty() {
        let names: Vec<_> = variables.into_iter().collect();
        text.push_str(&format!("// Environment variables: {}.\n", names.join(", ")));
    }
    text.push('\n');
    text
}

/// Collects the environment variables of templates.
fn collect_variables(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            if let Ok(template) = Template::parse(text) {
                into.extend(template.variables().map(str::to_owned));
            }
        }
        Value::Map(entries) => entries.iter().for_each(|(_, value)| collect_variables(value, into)),
        _ => {}
    }
}
