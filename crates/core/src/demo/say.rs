//! The texts of the model.

use crate::message::conversation::ToolOutcome;
use crate::message::request::OfferedTool;
use serde_json::Value as Json;
use std::fmt::Write;

/// The nesting depth up to which a result is formatted as lists. Deeper values are JSON.
const MAX_DEPTH: usize = 4;
/// The maximum number of tools to list.
const MAX_LISTED_TOOLS: usize = 30;

/// Describes the outcomes of calls.
pub(super) fn describe_outcomes(outcomes: &[(&str, &ToolOutcome)]) -> String {
    let texts: Vec<String> = outcomes.iter().map(|(tool, outcome)| describe_outcome(tool, outcome)).collect();
    texts.join("\n\n")
}

fn describe_outcome(tool: &str, outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Value { value } => match value {
            Json::String(text) if text.trim().is_empty() => format!("`{tool}` returned an empty text."),
            Json::String(text) => text.clone(),
            Json::Null => format!("`{tool}` returned nothing."),
            Json::Array(items) if items.is_empty() => format!("`{tool}` returned an empty list."),
            Json::Object(fields) if fields.is_empty() => format!("`{tool}` returned an empty object."),
            Json::Array(_) | Json::Object(_) => {
                let mut text = format!("`{tool}` returned:");
                format_list(value, 0, &mut text);
                text
            }
            scalar => format!("`{tool}` returned {scalar}."),
        },
        ToolOutcome::Error { message } => format!("That did not work: {message}"),
        ToolOutcome::Denied { message } => format!("I am not allowed to do that: {message}"),
        ToolOutcome::Cancelled => format!("The call to `{tool}` was cancelled."),
    }
}

/// Formats a list or an object, one value per line.
fn format_list(value: &Json, depth: usize, text: &mut String) {
    let line = |text: &mut String, key: &str, value: &Json| {
        let _ = write!(text, "\n{:indent$}- {key}", "", indent = depth * 2);
        match value {
            Json::Array(items) if !items.is_empty() && depth < MAX_DEPTH => format_list(value, depth + 1, text),
            Json::Object(fields) if !fields.is_empty() && depth < MAX_DEPTH => format_list(value, depth + 1, text),
            Json::String(value) => text.push_str(value),
            value => {
                let _ = write!(text, "{value}");
            }
        }
    };
    match value {
        Json::Array(items) => items.iter().enumerate().for_each(|(index, item)| match item {
            Json::Array(_) | Json::Object(_) => line(text, &format!("{}: ", index + 1), item),
            _ => line(text, "", item),
        }),
        Json::Object(fields) => fields.iter().for_each(|(key, value)| line(text, &format!("{key}: "), value)),
        _ => {}
    }
}

/// Asks for an argument.
pub(super) fn ask_argument(tool: &OfferedTool, parameter: &str) -> String {
    let description =
        tool.schema.pointer("/properties").and_then(|all| all.get(parameter)?.get("description")?.as_str());
    let description = description.map(|text| format!(" ({text})")).unwrap_or_default();
    let tool = tool.name.full_name();
    format!("I can use `{tool}` for that, but I need its `{parameter}`{description}. What is it?")
}

/// States the user's name, if it is known.
pub(super) fn recall_name(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("Your name is {name}."),
        None => "You have not told me your name.".to_owned(),
    }
}

/// Introduces the model and lists its tools, after a greeting if the user greeted.
pub(super) fn list_tools(tools: &[OfferedTool], greeting: Option<String>) -> String {
    let is_greeting = greeting.is_some();
    let mut text = greeting.map(|greeting| format!("{greeting} ")).unwrap_or_default();
    if tools.is_empty() {
        text.push_str(
            "I am Patter's demo model, not a language model: I match words in your message to tools, and this agent has none.",
        );
        return text;
    }
    if !is_greeting {
        text.push_str("None of my tools matches that. ");
    }
    text.push_str(
        "I am Patter's demo model, not a language model: I match words in your message to tools. Available tools:",
    );
    for tool in tools.iter().take(MAX_LISTED_TOOLS) {
        let line = tool.description.lines().next().unwrap_or_default();
        let _ = write!(text, "\n- `{}`: {line}", tool.name.full_name());
    }
    if let Some(more) = tools.len().checked_sub(MAX_LISTED_TOOLS).filter(|more| *more > 0) {
        let _ = write!(text, "\n- and {more} more");
    }
    text
}
