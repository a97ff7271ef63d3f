//! What the model says.

use crate::message::conversation::ToolOutcome;
use crate::message::request::OfferedTool;
use serde_json::Value as Json;
use std::fmt::Write;

/// How deep a result is laid out; what is deeper is JSON.
const DEEPEST: usize = 4;
/// How many tools are listed.
const MOST_TOOLS: usize = 30;

const ASKS: (&str, &str) = ("I can use `", "` for that, but I need its `");

/// Says what came of calls.
pub(super) fn outcomes(outcomes: &[(&str, &ToolOutcome)]) -> String {
    let texts: Vec<String> = outcomes.iter().map(|(tool, outcome)| self::outcome(tool, outcome)).collect();
    texts.join("\n\n")
}

fn outcome(tool: &str, outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Value { value } => match value {
            Json::String(text) if text.trim().is_empty() => format!("`{tool}` returned an empty text."),
            Json::String(text) => text.clone(),
            Json::Null => format!("`{tool}` returned nothing."),
            Json::Array(items) if items.is_empty() => format!("`{tool}` returned an empty list."),
            Json::Object(fields) if fields.is_empty() => format!("`{tool}` returned an empty object."),
            Json::Array(_) | Json::Object(_) => {
                let mut text = format!("`{tool}` returned:");
                lay_out(value, 0, &mut text);
                text
            }
            scalar => format!("`{tool}` returned {scalar}."),
        },
        ToolOutcome::Error { message } => format!("That did not work: {message}"),
        ToolOutcome::Denied { message } => format!("I may not do that: {message}"),
        ToolOutcome::Cancelled => format!("The call of `{tool}` was cancelled."),
    }
}

/// Writes a list or an object, one line for each value.
fn lay_out(value: &Json, depth: usize, text: &mut String) {
    let line = |text: &mut String, key: &str, value: &Json| {
        let _ = write!(text, "\n{:indent$}- {key}", "", indent = depth * 2);
        match value {
            Json::Array(items) if !items.is_empty() && depth < DEEPEST => lay_out(value, depth + 1, text),
            Json::Object(fields) if !fields.is_empty() && depth < DEEPEST => lay_out(value, depth + 1, text),
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
pub(super) fn question(tool: &OfferedTool, parameter: &str) -> String {
    let description =
        tool.schema.pointer("/properties").and_then(|all| all.get(parameter)?.get("description")?.as_str());
    let description = description.map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{}{}{}{parameter}`{description}. What is it?", ASKS.0, tool.name.full_name(), ASKS.1)
}

/// Returns the tool and the parameter that a text asks for, if it is a question from here.
pub(super) fn asked(text: &str) -> Option<(&str, &str)> {
    let (tool, rest) = text.strip_prefix(ASKS.0)?.split_once(ASKS.1)?;
    Some((tool, rest.split_once('`')?.0))
}

/// Says whose name is remembered.
pub(super) fn remembered(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("Your name is {name}."),
        None => "You have not told me your name.".to_owned(),
    }
}

/// Says what it is and what it can do, after a greeting where one was said.
pub(super) fn abilities(tools: &[OfferedTool], greeting: Option<String>) -> String {
    let is_greeting = greeting.is_some();
    let mut text = greeting.map(|greeting| format!("{greeting} ")).unwrap_or_default();
    if tools.is_empty() {
        text.push_str(
            "I am the demo model of Patter, not a language model: I match words with tools, and this agent has none.",
        );
        return text;
    }
    if !is_greeting {
        text.push_str("None of my tools fits that. ");
    }
    text.push_str("I am the demo model of Patter, not a language model: I match words with tools. These I can use:");
    for tool in tools.iter().take(MOST_TOOLS) {
        let line = tool.description.lines().next().unwrap_or_default();
        let _ = write!(text, "\n- `{}`: {line}", tool.name.full_name());
    }
    if let Some(more) = tools.len().checked_sub(MOST_TOOLS).filter(|more| *more > 0) {
        let _ = write!(text, "\n- and {more} more");
    }
    text
}
