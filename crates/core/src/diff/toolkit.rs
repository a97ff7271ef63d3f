//! Changes to toolkits.

use super::{Differ, Judgement, Subject};
use crate::declare::{Element, ToolSpec, Toolkit};
use indexmap::IndexMap;

impl Differ<'_> {
    /// Compares the tools of a toolkit. Agents gain or lose them, and rules that name the toolkit become stricter or looser,
    /// so every change is breaking.
    pub(super) fn compare_toolkits(&mut self, subject: &Subject, old: &Toolkit, new: &Toolkit) {
        self.compare_texts(subject, "description", Judgement::Cosmetic, old.description(), new.description());
        let before = self.old.toolkit_tools(old);
        let after = self.new.toolkit_tools(new);
        for name in after.iter().filter(|name| !before.contains(name)) {
            self.push(subject, Judgement::Breaking, format!("now contains `{name}`"));
        }
        for name in before.iter().filter(|name| !after.contains(name)) {
            self.push(subject, Judgement::Breaking, format!("no longer contains `{name}`"));
        }
        let old = declared_tools(old);
        for (name, tool) in declared_tools(new) {
            let Some(earlier) = old.get(&name) else { continue };
            let inner = subject.inner("tool", &name, Some(earlier.span()), Some(tool.span()));
            self.compare_tools(&inner, earlier, &tool);
        }
    }
}

/// Returns the tools that a toolkit declares in place, by name.
fn declared_tools(toolkit: &Toolkit) -> IndexMap<String, ToolSpec> {
    let tools = toolkit.elements().filter_map(|element| match element {
        Element::Tool(tool) => Some((tool.name()?.into_owned(), tool.clone())),
        _ => None,
    });
    tools.collect()
}
