//! Changes to tools and toolboxes.

use super::{Differ, Judgement, Subject};
use crate::declare::http::Method;
use crate::declare::sandbox::Sandbox;
use crate::declare::{Agent, Effect, ToolSpec, property};
use indexmap::IndexMap;
use patter_gram::{Pattern, Property, Value};
use std::collections::HashSet;

/// The properties that decide what a call does, to whom, and what it returns.
const ACTIONS: [&str; 13] = [
    "run", "stdin", "env", "cwd", "url", "method", "query", "headers", "body", "dashes", "exact", "succeeds", "result",
];

impl Differ<'_> {
    pub(super) fn compare_tools(&mut self, subject: &Subject, old: &ToolSpec, new: &ToolSpec) {
        self.compare_texts(subject, "description", Judgement::Compatible, old.description(), new.description());
        if let (Some(old), Some(new)) = (old.pattern(), new.pattern()) {
            let old_kind = implementation(old);
            let new_kind = implementation(new);
            if old_kind != new_kind {
                let kinds = format!("from {} to {}", old_kind.unwrap_or("none"), new_kind.unwrap_or("none"));
                self.push(subject, Judgement::Breaking, format!("implementation changed {kinds}"));
            }
            self.compare_effects(subject, old, new);
            self.compare_sandboxes(subject, old, new);
            let compared = ["description", "effect", "sandbox", "network", "writable", "readable"];
            self.compare_settings(
                subject,
                old.properties().collect(),
                new.properties().collect(),
                &compared,
                judge_setting,
            );
        }
        match (old.signature(self.old.records()), new.signature(self.new.records())) {
            (Ok(old), Ok(new)) => self.compare_signatures(subject, &old, &new),
            (Ok(_), Err(_)) => self.push(subject, Judgement::Breaking, "the signature is now invalid"),
            (Err(_), Ok(_)) => self.push(subject, Judgement::Compatible, "the signature is now valid"),
            (Err(_), Err(_)) => {}
        }
    }

    /// Compares effects. A stronger one says that more may happen. Calls that write need an approval when a person makes
    /// them, so a tool that no longer says so gains something too.
    fn compare_effects(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>) {
        let (Some(before), Some(after)) = (effect(old), effect(new)) else { return };
        if before == after {
            return;
        }
        let is_breaking = after > before || before == Effect::Writes;
        let judgement = if is_breaking { Judgement::Breaking } else { Judgement::Compatible };
        let change = format!("effect changed from {} to {}", before.name(), after.name());
        self.push(subject, judgement, change);
    }

    /// Compares sandboxes. A looser one lets the command do more, and with a stricter one, calls may fail.
    fn compare_sandboxes(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>) {
        // An invalid sandbox is a finding of the check.
        let sandbox = |pattern| Sandbox::read(pattern).ok().flatten().unwrap_or_default();
        let before = sandbox(old);
        let after = sandbox(new);
        let gained = after.gained_over(&before);
        let lost = before.gained_over(&after);
        for (change, rights) in [("loosened: the command may now use", gained), ("tightened: the command loses", lost)]
        {
            if !rights.is_empty() {
                self.push(subject, Judgement::Breaking, format!("sandbox {change} {}", rights.join(", ")));
            }
        }
    }

    pub(super) fn compare_toolboxes(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>) {
        self.compare_settings(subject, old.properties().collect(), new.properties().collect(), &[], judge_setting);
        let before = tools(old);
        let after = tools(new);
        for (name, tool) in &after {
            let inner = subject.inner("tool", name, before.get(name).map(ToolSpec::span), Some(tool.span()));
            match before.get(name) {
                Some(earlier) => self.compare_tools(&inner, earlier, tool),
                None => self.report_added_tool(&inner, new, name),
            }
        }
        for (name, tool) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
            let inner = subject.inner("tool", name, Some(tool.span()), None);
            self.push(&inner, Judgement::Breaking, "removed");
        }
    }

    /// Reports a toolbox that was added, and those of its tools that agents call.
    pub(super) fn report_added_toolbox(&mut self, subject: &Subject, toolbox: Pattern<'_>) {
        self.push(subject, Judgement::Compatible, "added");
        for (name, tool) in tools(toolbox) {
            if self.is_called_before(toolbox, &name) {
                let inner = subject.inner("tool", &name, None, Some(tool.span()));
                self.report_added_tool(&inner, toolbox, &name);
            }
        }
    }

    fn report_added_tool(&mut self, subject: &Subject, toolbox: Pattern<'_>, name: &str) {
        match self.is_called_before(toolbox, name) {
            // It may now serve calls that another tool served.
            true => self.push(subject, Judgement::Breaking, "added, and agents already call a tool of that name"),
            false => self.push(subject, Judgement::Compatible, "added"),
        }
    }

    /// Returns whether an agent of the old version calls a tool by this name.
    fn is_called_before(&self, toolbox: Pattern<'_>, name: &str) -> bool {
        let full = format!("{}/{name}", toolbox.name().unwrap_or_default());
        let agents = self.old.files().iter().flat_map(|file| file.tree.walk()).filter_map(Agent::cast);
        let called: HashSet<_> = agents
            .flat_map(|agent| {
                let members = self.old.members(&agent);
                members.iter().filter_map(|member| Some(member.name()?.into_owned())).collect::<Vec<_>>()
            })
            .collect();
        called.contains(name) || called.contains(&full)
    }

    /// Compares the properties other than `compared` by value. `judge` receives the name of a changed property, and its
    /// values before and after.
    pub(super) fn compare_settings(
        &mut self,
        subject: &Subject,
        old: Vec<Property<'_>>,
        new: Vec<Property<'_>>,
        compared: &[&str],
        judge: fn(&str, Option<&Value>, Option<&Value>) -> Judgement,
    ) {
        let values = |properties: Vec<Property<'_>>| -> IndexMap<String, Value> {
            let read = |property: Property<'_>| Some((property.key().into_owned(), Value::read(property.value()?)?));
            properties.into_iter().filter_map(read).filter(|(key, _)| !compared.contains(&key.as_str())).collect()
        };
        let before = values(old);
        let after = values(new);
        for (key, value) in &after {
            let earlier = before.get(key);
            let description = match earlier {
                Some(earlier) if earlier == value => continue,
                Some(earlier) => format!("`{key}` changed from {earlier} to {value}"),
                None => format!("`{key}` set to {value}"),
            };
            self.push(subject, judge(key, earlier, Some(value)), description);
        }
        for (key, value) in before.iter().filter(|(key, _)| !after.contains_key(*key)) {
            self.push(subject, judge(key, Some(value), None), format!("`{key}` removed"));
        }
    }
}

/// Judges a change to a property of a tool.
fn judge_setting(key: &str, old: Option<&Value>, new: Option<&Value>) -> Judgement {
    let is_true = |value: Option<&Value>| value == Some(&Value::Boolean(true));
    let is_breaking = match key {
        key if ACTIONS.contains(&key) => true,
        // Lower layers could not be overridden before.
        "sealed" => is_true(old),
        // A call whose outcome is unknown may now be repeated.
        "idempotent" => !is_true(old),
        "timeout" | "maxBytes" => is_lowered(old, new),
        _ => false,
    };
    if is_breaking { Judgement::Breaking } else { Judgement::Compatible }
}

/// Returns whether a limit is lower than before. No limit is the highest one.
pub(super) fn is_lowered(old: Option<&Value>, new: Option<&Value>) -> bool {
    let amount = |value: &Value| match value {
        Value::Integer(amount) => amount.to_i64().map(|amount| amount as f64),
        Value::Decimal(amount) => Some(amount.to_f64()),
        value => property::duration(value).map(|duration| duration.as_secs_f64()),
    };
    match (old.map(amount), new.map(amount)) {
        (Some(Some(old)), Some(Some(new))) => new < old,
        (_, None) => false,
        (None | Some(None), _) | (Some(Some(_)), Some(None)) => true,
    }
}

/// Returns the tools of a toolbox by name.
fn tools(toolbox: Pattern<'_>) -> IndexMap<String, ToolSpec> {
    let tools = toolbox.elements().filter_map(ToolSpec::cast);
    tools.filter_map(|tool| Some((tool.name()?.into_owned(), tool.clone()))).collect()
}

/// Returns the label of a tool that says how it is implemented.
fn implementation(pattern: Pattern<'_>) -> Option<&'static str> {
    ["Http", "Command"].into_iter().find(|label| pattern.has_label(label))
}

/// Returns the effect of a tool with an implementation.
fn effect(pattern: Pattern<'_>) -> Option<Effect> {
    let word = |key: &str| match pattern.value(key) {
        Some(Value::String(word) | Value::Symbol(word)) => Some(word),
        _ => None,
    };
    if let Some(effect) = word("effect").and_then(|word| Effect::parse(&word)) {
        return Some(effect);
    }
    let method = word("method").and_then(|name| Method::ALL.into_iter().find(|method| method.name() == name));
    match implementation(pattern)? {
        "Http" => Some(method.unwrap_or(Method::Get).effect()),
        _ => Some(Effect::Writes),
    }
}
