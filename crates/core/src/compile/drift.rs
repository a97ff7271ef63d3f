//! Differences between a lock and the current state of a project.

use super::lock::{Lock, LockedAgent, LockedPolicy, LockedServer, LockedTool};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::fmt;

/// A difference between what is locked and what is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// What differs: a setting, a server, a policy, an agent or a tool.
    pub subject: String,
    /// The difference.
    pub kind: DriftKind,
}

/// How something differs from what is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriftKind {
    /// It is not locked.
    Added,
    /// It is locked, but no longer there.
    Removed,
    /// A part of it changed.
    Changed {
        /// The part.
        part: String,
        /// Its locked value.
        locked: String,
        /// Its current value.
        current: String,
    },
}

pub(super) fn of_project(locked: &Lock, current: &Lock) -> Vec<Drift> {
    let mut found = settings(&locked.settings, &current.settings);
    found.extend(compare("MCP server", &locked.servers, &current.servers, |server: &LockedServer| &server.name));
    found.extend(compare("policy", &locked.policies, &current.policies, |policy: &LockedPolicy| &policy.name));
    found.extend(compare("agent", &locked.agents, &current.agents, agent_name));
    found.extend(compare("tool", &locked.tools, &current.tools, tool_name));
    found
}

pub(super) fn of_agents(locked: &Lock, current: &Lock) -> Vec<Drift> {
    let is_current = |agent: &&LockedAgent| current.agents.iter().any(|one| one.name == agent.name);
    let agents: Vec<_> = locked.agents.iter().filter(is_current).cloned().collect();
    let is_used = |tool: &&LockedTool| current.tools.iter().any(|one| one.name == tool.name);
    let tools: Vec<_> = locked.tools.iter().filter(is_used).cloned().collect();
    let mut found = compare("agent", &agents, &current.agents, agent_name);
    found.extend(compare("tool", &tools, &current.tools, tool_name));
    found
}

fn agent_name(agent: &LockedAgent) -> &String {
    &agent.name
}

fn tool_name(tool: &LockedTool) -> &String {
    &tool.name
}

/// Compares lines of `name = value`.
fn settings(locked: &[String], current: &[String]) -> Vec<Drift> {
    let named = |lines: &[String]| -> Vec<(String, String)> {
        let split = |line: &String| line.split_once(" = ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        lines.iter().map(|line| split(line).unwrap_or_else(|| (line.clone(), String::new()))).collect()
    };
    let locked = named(locked);
    let current = named(current);
    let find = |lines: &[(String, String)], name: &str| lines.iter().find(|(one, _)| one == name).cloned();
    let mut found = Vec::new();
    for (name, value) in &locked {
        let subject = format!("setting `{name}`");
        match find(&current, name) {
            None => found.push(Drift { subject, kind: DriftKind::Removed }),
            Some((_, now)) if now != *value => {
                let kind = DriftKind::Changed { part: "value".to_owned(), locked: value.clone(), current: now };
                found.push(Drift { subject, kind });
            }
            Some(_) => {}
        }
    }
    let added = current.iter().filter(|(name, _)| find(&locked, name).is_none());
    found.extend(added.map(|(name, _)| Drift { subject: format!("setting `{name}`"), kind: DriftKind::Added }));
    found
}

/// Compares things by name, and those that both have part by part.
fn compare<T: Serialize>(kind: &str, locked: &[T], current: &[T], name: impl Fn(&T) -> &String) -> Vec<Drift> {
    let subject = |one: &T| format!("{kind} `{}`", name(one));
    let mut found = Vec::new();
    for before in locked {
        match current.iter().find(|now| name(now) == name(before)) {
            None => found.push(Drift { subject: subject(before), kind: DriftKind::Removed }),
            Some(now) => {
                let changes = changes(&fields(before), &fields(now));
                found.extend(changes.into_iter().map(|kind| Drift { subject: subject(before), kind }));
            }
        }
    }
    let is_new = |now: &&T| !locked.iter().any(|before| name(before) == name(now));
    found.extend(current.iter().filter(is_new).map(|now| Drift { subject: subject(now), kind: DriftKind::Added }));
    found
}

fn fields(one: &impl Serialize) -> Map<String, Json> {
    match serde_json::to_value(one) {
        Ok(Json::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn changes(locked: &Map<String, Json>, current: &Map<String, Json>) -> Vec<DriftKind> {
    let names = locked.keys().chain(current.keys().filter(|name| !locked.contains_key(*name)));
    let mut changed: Vec<_> = names.filter(|name| locked.get(*name) != current.get(*name)).collect();
    // Hashes say that something changed, which is only of interest where nothing says what.
    if changed.iter().any(|name| *name == "signature") {
        changed.retain(|name| *name != "schema");
    }
    if changed.len() > 1 {
        changed.retain(|name| *name != "declaration");
    }
    let value = |fields: &Map<String, Json>, name: &str| fields.get(name).map_or_else(|| "none".to_owned(), text);
    let change = |name: &String| DriftKind::Changed {
        part: name.clone(),
        locked: value(locked, name),
        current: value(current, name),
    };
    changed.into_iter().map(change).collect()
}

/// Returns a value for people.
fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Json::Object(fields) => fields.values().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// How much of a text is shown, and how much of that is before the first difference, in characters.
const SHOWN: usize = 160;
const BEFORE: usize = 40;

/// Returns the parts of two texts in which they differ, each on one line.
fn excerpts(locked: &str, current: &str) -> (String, String) {
    let same = locked.chars().zip(current.chars()).take_while(|(a, b)| a == b).count();
    let start = if same > SHOWN / 2 { same - BEFORE } else { 0 };
    let excerpt = |text: &str| {
        let text = text.trim_end_matches('\n');
        let shown: String = text.chars().skip(start).take(SHOWN).collect();
        let before = if start > 0 { "…" } else { "" };
        let after = if text.chars().count() > start + SHOWN { "…" } else { "" };
        format!("{before}{}{after}", shown.replace('\n', "⏎"))
    };
    (excerpt(locked), excerpt(current))
}

/// Describes the difference: on one line, and for changes with the locked and the current value below it.
impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.subject;
        match &self.kind {
            DriftKind::Added => write!(f, "the {subject} is not locked"),
            DriftKind::Removed => write!(f, "the {subject} is locked, but no longer there"),
            DriftKind::Changed { part, locked, current } => {
                let (locked, current) = excerpts(locked, current);
                write!(f, "the {part} of the {subject} changed\n    locked: {locked}\n    now:    {current}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_around_the_difference() {
        let long = "word ".repeat(100);
        let (locked, current) = excerpts(&format!("{long}old"), &format!("{long}new\nline"));
        assert!(locked.starts_with("…word") && locked.ends_with("old"), "{locked}");
        assert!(current.ends_with("new⏎line") && current.chars().count() < SHOWN, "{current}");
        assert_eq!(excerpts("a", "b"), ("a".to_owned(), "b".to_owned()));
        assert!(excerpts(&long, "x").0.ends_with('…'));
    }
}
