//! Changes to agents, tools and toolboxes.

use super::{Differ, Judgement, Subject};
use crate::declare::{Agent, Element, ToolSpec};
use indexmap::IndexMap;
use patter_gram::{Pattern, Property, Value};
use std::borrow::Cow;

/// The properties with the permissions of an agent.
const PERMISSIONS: [&str; 3] = ["allow", "ask", "deny"];

impl Differ<'_> {
    pub(super) fn compare_agents(&mut self, subject: &Subject, old: &Agent, new: &Agent) {
        self.compare_texts(subject, "description", Judgement::Cosmetic, old.description(), new.description());
        self.compare_texts(subject, "instruction", Judgement::Compatible, old.instruction(), new.instruction());
        if let (Some(old), Some(new)) = (old.pattern(), new.pattern()) {
            self.compare_settings(subject, old, new, &["description", "instruction"]);
        }
        let before = elements(old);
        let after = elements(new);
        for (name, element) in &after {
            match before.get(name) {
                Some(earlier) => self.compare_elements(subject, earlier, element),
                None => self.push(subject, Judgement::Compatible, format!("can now call `{name}`")),
            }
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            self.push(subject, Judgement::Breaking, format!("can no longer call `{name}`"));
        }
    }

    fn compare_elements(&mut self, subject: &Subject, old: &Element, new: &Element) {
        let inner = |noun: &str| {
            let name = new.name().unwrap_or_default();
            subject.inner(noun, &name, Some(old.span()), Some(new.span()))
        };
        match (old, new) {
            (Element::Tool(old), Element::Tool(new)) => self.compare_tools(&inner("tool"), old, new),
            (Element::Agent(old), Element::Agent(new)) => self.compare_agents(&inner("agent"), old, new),
            (Element::Reference { .. }, Element::Reference { .. }) => {}
            (_, new) => {
                let name = new.name().unwrap_or_default();
                let kind = match new {
                    Element::Tool(_) => "a tool declared in place",
                    Element::Agent(_) => "an agent declared in place",
                    Element::Reference { .. } => "declared elsewhere",
                };
                self.push(subject, Judgement::Compatible, format!("`{name}` is now {kind}"));
            }
        }
    }

    pub(super) fn compare_tools(&mut self, subject: &Subject, old: &ToolSpec, new: &ToolSpec) {
        self.compare_texts(subject, "description", Judgement::Compatible, old.description(), new.description());
        if let (Some(old), Some(new)) = (old.pattern(), new.pattern()) {
            self.compare_settings(subject, old, new, &["description"]);
        }
        match (old.signature(self.old.records()), new.signature(self.new.records())) {
            (Ok(old), Ok(new)) => self.compare_signatures(subject, &old, &new),
            (Ok(_), Err(_)) => self.push(subject, Judgement::Breaking, "the signature is now invalid"),
            (Err(_), Ok(_)) => self.push(subject, Judgement::Compatible, "the signature is now valid"),
            (Err(_), Err(_)) => {}
        }
    }

    pub(super) fn compare_toolboxes(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>) {
        self.compare_settings(subject, old, new, &[]);
        let tools = |pattern: Pattern<'_>| -> IndexMap<String, ToolSpec> {
            let tools = pattern.elements().filter_map(ToolSpec::cast);
            tools.filter_map(|tool| Some((tool.name()?.into_owned(), tool.clone()))).collect()
        };
        let before = tools(old);
        let after = tools(new);
        for (name, tool) in &after {
            let inner = subject.inner("tool", name, before.get(name).map(ToolSpec::span), Some(tool.span()));
            match before.get(name) {
                Some(earlier) => self.compare_tools(&inner, earlier, tool),
                None => self.push(&inner, Judgement::Compatible, "added"),
            }
        }
        for (name, tool) in before.iter().filter(|(name, _)| !after.contains_key(*name)) {
            let inner = subject.inner("tool", name, Some(tool.span()), None);
            self.push(&inner, Judgement::Breaking, "removed");
        }
    }

    /// Compares a text. A difference in white space does not change the meaning.
    fn compare_texts(
        &mut self,
        subject: &Subject,
        key: &str,
        judgement: Judgement,
        old: Option<Cow<'_, str>>,
        new: Option<Cow<'_, str>>,
    ) {
        let old = old.unwrap_or_default();
        let new = new.unwrap_or_default();
        if old == new {
            return;
        }
        let is_same = old.split_whitespace().eq(new.split_whitespace());
        let judgement = if is_same { Judgement::Cosmetic } else { judgement };
        let description = match (is_same, old.is_empty(), new.is_empty()) {
            (true, _, _) => format!("only the white space of `{key}` changed"),
            (_, true, _) => format!("`{key}` added"),
            (_, _, true) => format!("`{key}` removed"),
            _ => format!("`{key}` changed"),
        };
        self.push_text(subject, judgement, &description, &old, &new);
    }

    /// Compares the other properties by value.
    fn compare_settings(&mut self, subject: &Subject, old: Pattern<'_>, new: Pattern<'_>, compared: &[&str]) {
        let values = |pattern: Pattern<'_>| -> IndexMap<String, Value> {
            let read = |property: Property<'_>| Some((property.key().into_owned(), Value::read(property.value()?)?));
            pattern.properties().filter_map(read).filter(|(key, _)| !compared.contains(&key.as_str())).collect()
        };
        let before = values(old);
        let after = values(new);
        for key in PERMISSIONS {
            self.compare_permissions(subject, key, before.get(key), after.get(key));
        }
        let is_setting = |key: &str| !PERMISSIONS.contains(&key);
        for (key, value) in after.iter().filter(|(key, _)| is_setting(key)) {
            match before.get(key) {
                Some(earlier) if earlier == value => {}
                Some(earlier) => {
                    // Callers rely on the type of the answer.
                    let judgement = if key == "returns" { Judgement::Breaking } else { Judgement::Compatible };
                    self.push(subject, judgement, format!("`{key}` changed from {earlier} to {value}"));
                }
                None => self.push(subject, Judgement::Compatible, format!("`{key}` set to {value}")),
            }
        }
        for key in before.keys().filter(|key| is_setting(key) && !after.contains_key(*key)) {
            self.push(subject, Judgement::Compatible, format!("`{key}` removed"));
        }
    }

    /// Compares the rules of one kind. Granting more than before is breaking.
    fn compare_permissions(&mut self, subject: &Subject, key: &str, old: Option<&Value>, new: Option<&Value>) {
        let old = rules(old);
        let new = rules(new);
        let grants = key != "deny";
        for rule in new.iter().filter(|rule| !old.contains(rule)) {
            let judgement = if grants { Judgement::Breaking } else { Judgement::Compatible };
            self.push(subject, judgement, format!("permission `{key} {rule}` added"));
        }
        for rule in old.iter().filter(|rule| !new.contains(rule)) {
            let judgement = if grants { Judgement::Compatible } else { Judgement::Breaking };
            self.push(subject, judgement, format!("permission `{key} {rule}` removed"));
        }
    }
}

/// Returns the strings of a property that is a string or a list of strings.
fn rules(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(rule)) => vec![rule.clone()],
        Some(Value::Array(rules)) => rules.iter().filter_map(|rule| rule.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

/// Returns the elements of an agent, by name.
fn elements(agent: &Agent) -> IndexMap<String, Element> {
    agent.elements().filter_map(|element| Some((element.name()?.into_owned(), element.clone()))).collect()
}
