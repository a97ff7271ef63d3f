//! Reading schedules, and what is wrong with them.

use super::{Cron, DEFAULT_CATCH_UP, Schedule, ZONES};
use crate::declare::project::Project;
use crate::declare::property::{self, ValueKind, duration};
use crate::declare::{Agent, DeclarationKind, head_span};
use crate::rule;
use crate::text::nearest;
use crate::types::signature::{Shape, Type, value_to_json};
use jiff::tz::TimeZone;
use patter_gram::{Diagnostic, Kind, Pattern, Span, Syntax, Value};
use serde_json::Value as Json;
use std::borrow::Cow;

/// The properties of a schedule.
pub(crate) const PROPERTIES: &[(&str, ValueKind)] = &[
    ("description", ValueKind::String),
    ("agent", ValueKind::String),
    ("at", ValueKind::String),
    ("timezone", ValueKind::String),
    ("catchUp", ValueKind::Duration),
    ("webhook", ValueKind::String),
];
/// The time zone of schedules that name none.
const UTC: &str = "UTC";

impl Schedule {
    /// Reads the schedules of a project, without those that the check reports as wrong.
    pub fn read_all(project: &Project) -> Vec<Self> {
        let declared = project.declarations().iter().filter(|it| it.kind == DeclarationKind::Schedule);
        let mut schedules: Vec<Self> = Vec::new();
        for pattern in declared.filter_map(|declaration| project.pattern(declaration)) {
            let Ok(schedule) = read(project, pattern) else { continue };
            if schedules.iter().all(|known| known.name != schedule.name) {
                schedules.push(schedule);
            }
        }
        schedules
    }
}

/// Returns what is wrong with a schedule, except for missing, unknown and wrongly typed properties.
pub(crate) fn findings(project: &Project, pattern: Pattern<'_>) -> Vec<Diagnostic> {
    read(project, pattern).err().unwrap_or_default()
}

fn read(project: &Project, pattern: Pattern<'_>) -> Result<Schedule, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut keep = |diagnostic: Diagnostic| errors.push(diagnostic);
    let agent = text(pattern, "agent");
    let declared = agent.as_ref().and_then(|(syntax, name)| find_agent(project, *syntax, name).map_err(&mut keep).ok());
    let at = text(pattern, "at").and_then(|(syntax, at)| read_time(syntax, &at).map_err(&mut keep).ok());
    let (timezone, zone) = read_zone(pattern).map_err(&mut keep).unwrap_or_else(|()| (UTC.to_owned(), TimeZone::UTC));
    let webhook = read_webhook(pattern).map_err(&mut keep).unwrap_or_default();
    let input = declared.as_ref().and_then(|agent| read_input(project, pattern, agent).map_err(&mut keep).ok());
    let is_typed = PROPERTIES.iter().all(|(key, kind)| {
        pattern.property(key).is_none_or(|property| property::check_value(property, *kind).is_none())
    });
    let name = pattern.name().filter(|name| !name.trim().is_empty());
    let (Some(name), Some((_, agent)), Some(at), Some(input), true) =
        (name, agent, at, input, is_typed && errors.is_empty())
    else {
        return Err(errors);
    };
    let catch_up = pattern.value("catchUp").as_ref().and_then(duration).unwrap_or(DEFAULT_CATCH_UP);
    let name = name.into_owned();
    let agent = agent.into_owned();
    Ok(Schedule { name, agent, at, timezone, input, catch_up, webhook, zone })
}

/// Returns a property with a text that is not empty.
fn text<'p>(pattern: Pattern<'p>, key: &str) -> Option<(Syntax<'p>, Cow<'p, str>)> {
    let syntax = pattern.get(key)?;
    let text = syntax.read_text()?;
    Some((syntax, text)).filter(|(_, text)| !text.trim().is_empty())
}

fn find_agent(project: &Project, syntax: Syntax<'_>, name: &str) -> Result<Agent, Diagnostic> {
    let agents = || project.agents().filter_map(|(_, agent)| Some((agent.name()?.into_owned(), agent)));
    if let Some((_, agent)) = agents().find(|(known, _)| known == name) {
        return Ok(agent);
    }
    let names: Vec<_> = agents().map(|(name, _)| name).collect();
    let found = rule::UNKNOWN_SCHEDULED_AGENT.at(syntax.span(), format!("there is no agent `{name}`"));
    Err(match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => found.with_hint(format!("did you mean `{near}`?")),
        None if names.is_empty() => found.with_hint("declare the agent at the top level of a file"),
        None => found.with_hint(format!("the agents are {}", names.join(", "))),
    })
}

fn read_time(syntax: Syntax<'_>, text: &str) -> Result<Cron, Diagnostic> {
    let cron: Cron = text.parse().map_err(|error: super::CronError| {
        rule::BAD_TIME.at(span_in(syntax, text, error.span), error.message).with_hint(error.hint)
    })?;
    if cron.can_fire() {
        return Ok(cron);
    }
    let message = format!("`{}` never comes: no such month has such a day", text.trim());
    let found = rule::NEVER_FIRES.at(syntax.span(), message);
    Err(found.with_hint("for the last days of all months, write `28` or `1`: each month has these days"))
}

/// Moves a span inside of a text to the file that has the text as a value.
fn span_in(syntax: Syntax<'_>, text: &str, span: Span) -> Span {
    // Escapes and indentation move the text; then the whole value is marked.
    let start = match syntax.kind() {
        Kind::String => syntax.text().find(text),
        _ => None,
    };
    match start.and_then(|start| u32::try_from(start).ok()) {
        Some(start) => {
            let start = syntax.span().start + start;
            Span::new(start + span.start, start + span.end)
        }
        None => syntax.span(),
    }
}

fn read_zone(pattern: Pattern<'_>) -> Result<(String, TimeZone), Diagnostic> {
    let Some((syntax, name)) = text(pattern, "timezone") else { return Ok((UTC.to_owned(), TimeZone::UTC)) };
    if let Ok(zone) = ZONES.get(&name) {
        return Ok((zone.iana_name().unwrap_or(&name).to_owned(), zone));
    }
    let known: Vec<String> = ZONES.available().map(|name| name.to_string()).collect();
    let found = rule::UNKNOWN_TIMEZONE.at(syntax.span(), format!("there is no time zone `{name}`"));
    let names = || known.iter().map(String::as_str);
    // People write the city alone.
    let city = |zone: &&str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name.trim()));
    Err(match names().find(city).or_else(|| nearest(&name, names())) {
        Some(near) => found.with_hint(format!("did you mean `{near}`?")),
        None => found.with_hint("write a name of the time zone database, such as `Europe/Zurich` or `UTC`"),
    })
}

fn read_webhook(pattern: Pattern<'_>) -> Result<Option<String>, Diagnostic> {
    let Some((syntax, url)) = text(pattern, "webhook") else { return Ok(None) };
    let is_url = ["https://", "http://"]
        .iter()
        .any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/')));
    match is_url && !url.contains(char::is_whitespace) {
        true => Ok(Some(url.into_owned())),
        false => {
            let found = rule::BAD_URL.at(syntax.span(), format!("`{url}` is not the URL of a server"));
            Err(found.with_hint("write a URL such as `https://example.com/hooks/digest`"))
        }
    }
}

/// Reads what the agent receives: a text, or a value of the type that it takes, as JSON.
fn read_input(project: &Project, pattern: Pattern<'_>, agent: &Agent) -> Result<String, Diagnostic> {
    let name = agent.name().unwrap_or_default();
    let takes = match agent.takes(project.records()) {
        None => Type::new(Shape::Text),
        Some(Ok(takes)) => takes,
        // The agent has its own finding.
        Some(Err(_)) => return Ok(String::new()),
    };
    let Some(syntax) = pattern.get("input") else {
        let found = rule::BAD_SCHEDULED_INPUT.at(head_span(pattern), format!("the agent `{name}` needs an input"));
        return Err(found.with_hint(match takes.shape {
            Shape::Text => "add `input: \"…\"`: the message that the agent receives".to_owned(),
            _ => format!("add `input`, with a value of the type `{takes}`"),
        }));
    };
    let wrong =
        |message: String, hint: String| Err(rule::BAD_SCHEDULED_INPUT.at(syntax.span(), message).with_hint(hint));
    let text = syntax.read_text().map(Cow::into_owned);
    let is_text = takes.shape == Shape::Text;
    let value = match (&text, is_text) {
        (Some(text), true) if text.trim().is_empty() => {
            return wrong("the input is empty".to_owned(), "write the message that the agent receives".to_owned());
        }
        (Some(text), true) => Json::from(text.as_str()),
        (None, true) => {
            let message = format!("the agent `{name}` takes a text");
            return wrong(message, "put quotes around the input, or declare what the agent `takes`".to_owned());
        }
        // A text is the value itself, or the value as JSON.
        (Some(text), false) => serde_json::from_str(text).unwrap_or_else(|_| Json::from(text.as_str())),
        (None, false) => Value::read(syntax).and_then(|value| value_to_json(&value)).unwrap_or(Json::Null),
    };
    if let Err(mismatches) = takes.check(&value, project.records()) {
        let reasons: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
        let message = format!("the input does not match what `{name}` takes: {}", reasons.join("; "));
        return wrong(message, format!("the agent takes `{takes}`"));
    }
    Ok(match value {
        Json::String(text) if is_text => text,
        value => value.to_string(),
    })
}
