//! Changes of agents, tools and toolboxes.

use super::{Differ, Judgement, Subject};
use crate::declare::{Agent, Element, ToolSpec};
use indexmap::IndexMap;
use patter_gram::{Pattern, Property, Value};
use std::borrow::Cow;

/// The properties that say what an agent may do.
const PERMISSIONS: [&str; 3] = ["allow", "ask", "deny"];

impl Differ<'_> {
    pub(super) fn agent(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        self.text(subject, "description", Judgement::Cosmetic, old.description(), new.description());
        self.text(subject, "instruction", Judgement::Compatible, old.instruction(), new.instruction());
        if let (Some(old), Some(new)) = (old.pattern(), new.pattern()) {
            self.settings(subject, old, new, &["description", "instruction"]);
        }
        let (before, after) = (elements(old), elements(new));
        for (name, element) in &after {
            match before.get(name) {
                Some(earlier) => self.element(subject, earlier, element),
                None => self.push(subject, Judgement::Compatible, format!("may call `{name}` now")),
            }
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            self.push(subject, Judgement::Breaking, format!("cannot call `{name}` any more"));
        }
    }

    fn element(&mut self, subject: &Subject, old: &Element, new: &Element) {
        let inner = |noun: &str| {
            let name = new.name().unwrap_or_default();
            subject.inner(noun, &name, Some(old.span()), Some(new.span()))
        };
        match (old, new) {
            (Element::Tool(old), Element::Tool(new)) => self.tool(&inner("tool"), old, new),
            (Element::Agent(old), Element::Agent(new)) => self.agent(&inner("agent"), old, new),
            (Element::Reference { .. }, Element::Reference { .. }) => {}
            (_, new) => {
                let name = new.name().unwrap_or_default();
                let what = match new {
                    Element::Tool(_) => "is a tool declared in place",
                    Element::Agent(_) => "is an agent declared in place",
                    Element::Reference { .. } => "is declared elsewhere",
                };
                self.push(subject, Judgement::Compatible, format!("`{name}` {what} now"));
            }
        }
    }

    pub(super) fn tool(&mut self, subject: &Subject, old: &ToolSpec, new: &ToolSpec) {
        self.text(subject, "description", Judgement::Compatible, old.description(), new.description());
        if let (Some(old), Some(new)) = (old.pattern(), new.pattern()) {
            self.settings(subject, old, new, &["description"]);
        }
        match (old.signature(self.old.records()), new.signature(self.new.records())) {
            (Ok(old), Ok(new)) => self.signature(subject, &old, &new),
            (Ok(_), Err(_)) => self.push(subject, Judgement::Breaking, "has a signature with mistakes now"),
            (Err(_), Ok(_)) => self.push(subject, Judgement::Compatible, "has a signature without mistakes now"),
            (Err(_), Err(_)) => {}
        }
    }

    pub(super) fn toolbox(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>) {
        self.settings(subject, old, new, &[]);
        let tools = |pattern: Pattern<'_>| -> IndexMap<String, ToolSpec> {
            let tools = pattern.elements().filter_map(ToolSpec::cast);
            tools.filter_map(|tool| Some((tool.name()?.into_owned(), tool.clone()))).collect()
        };
        let (before, after) = (tools(old), tools(new));
        for (name, tool) in &after {
            let inner = subject.inner("tool", name, before.get(name).map(ToolSpec::span), Some(tool.span()));
            match before.get(name) {
                Some(earlier) => self.tool(&inner, earlier, tool),
                None => self.push(&inner, Judgement::Compatible, "is new"),
            }
        }
        for (name, tool) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
            let inner = subject.inner("tool", name, Some(tool.span()), None);
            self.push(&inner, Judgement::Breaking, "is gone");
        }
    }

    /// Compares a text. One that differs only in white space has not changed its meaning.
    fn text(
        &mut self,
        subject: &Subject,
        key: &str,
        judgement: Judgement,
        old: Option<Cow<'_, str>>,
        new: Option<Cow<'_, str>>,
    ) {
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        if old == new {
            return;
        }
        let is_same = old.split_whitespace().eq(new.split_whitespace());
        let judgement = if is_same { Judgement::Cosmetic } else { judgement };
        let what = match (is_same, old.is_empty(), new.is_empty()) {
            (true, _, _) => format!("has its `{key}` laid out otherwise"),
            (_, true, _) => format!("has a `{key}` now"),
            (_, _, true) => format!("has no `{key}` any more"),
            _ => format!("has another `{key}`"),
        };
        self.push_text(subject, judgement, &what, &old, &new);
    }

    /// Compares the other properties by value.
    fn settings(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>, compared: &[&str]) {
        let values = |pattern: Pattern<'_>| -> IndexMap<String, Value> {
            let read = |property: Property<'_>| Some((property.key().into_owned(), Value::read(property.value()?)?));
            pattern.properties().filter_map(read).filter(|(key, _)| !compared.contains(&key.as_str())).collect()
        };
        let (before, after) = (values(old), values(new));
        for key in PERMISSIONS {
            self.permission(subject, key, before.get(key), after.get(key));
        }
        let is_setting = |key: &str| !PERMISSIONS.contains(&key);
        for (key, value) in after.iter().filter(|(key, _)| is_setting(key)) {
            match before.get(key) {
                Some(earlier) if earlier == value => {}
                Some(earlier) => {
                    // The type of the answer is a promise.
                    let judgement = if key == "returns" { Judgement::Breaking } else { Judgement::Compatible };
                    self.push(subject, judgement, format!("has `{key}` {value} instead of {earlier}"));
                }
                None => self.push(subject, Judgement::Compatible, format!("has `{key}` {value} now")),
            }
        }
        for key in before.keys().filter(|key| is_setting(key) && !after.contains_key(*key)) {
            self.push(subject, Judgement::Compatible, format!("has no `{key}` any more"));
        }
    }

    /// Compares the rules of one sort. Whoever gains a permission may do what it might not do before.
    fn permission(&mut self, subject: &Subject, key: &str, old: Option<&Value>, new: Option<&Value>) {
        let (old, new) = (rules(old), rules(new));
        let is_gain_if_new = key != "deny";
        for rule in new.iter().filter(|rule| !old.contains(rule)) {
            let judgement = if is_gain_if_new { Judgement::Breaking } else { Judgement::Compatible };
            self.push(subject, judgement, format!("has the permission `{key} {rule}` now"));
        }
        for rule in old.iter().filter(|rule| !new.contains(rule)) {
            let judgement = if is_gain_if_new { Judgement::Compatible } else { Judgement::Breaking };
            self.push(subject, judgement, format!("has the permission `{key} {rule}` no more"));
        }
    }
}

/// Returns the texts of a property that is a text or a list of texts.
fn rules(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(rule)) => vec![rule.clone()],
        Some(Value::Array(rules)) => rules.iter().filter_map(|rule| rule.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// Returns what an agent may call, by name.
fn elements(agent: &Agent) -> IndexMap<String, Element> {
    agent.elements().filter_map(|element| Some((element.name()?.into_owned(), element.clone()))).collect()
}
