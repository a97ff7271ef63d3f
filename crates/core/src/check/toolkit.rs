//! Checks of toolkits.

use super::{Checker, describe_declaration};
use crate::declare::{DeclarationKind, Member, head_span};
use crate::rule;
use patter_gram::{Pattern, PatternKind, Syntax};
use std::collections::{HashMap, HashSet};

impl<'p> Checker<'p> {
    pub(super) fn check_toolkit(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "toolkit");
        self.report_unknown_properties(pattern, "toolkit", &["description"]);
        if pattern.elements().next().is_none() && !self.is_broken(pattern.span()) {
            let message = format!("{} is empty", describe_declaration("toolkit", pattern));
            let found = rule::EMPTY_TOOLKIT.at(head_span(pattern), message);
            self.report(found.with_hint("add tools after a bar: `| readFile, listFiles`"));
        }
        let mut names: HashMap<String, Pattern<'p>> = HashMap::new();
        for element in pattern.elements() {
            match (element.kind(), DeclarationKind::from_pattern(element)) {
                (PatternKind::Reference, _) => self.check_toolkit_reference(pattern, element),
                (_, Some(DeclarationKind::Tool)) => self.check_tool(element),
                _ => {
                    let message = "a toolkit can contain only tools and other toolkits";
                    let found = rule::MISPLACED.at(head_span(element), message);
                    self.report(found.with_hint("write the name of a tool, or `[name:Tool {…} | …]`"));
                }
            }
            let Some(name) = element.name() else { continue };
            if let Some(first) = names.get(name.as_ref()) {
                let toolkit = describe_declaration("toolkit", pattern);
                let found = rule::DUPLICATE_TOOL.at(element.span(), format!("{toolkit} has two tools named `{name}`"));
                self.report(found.with_related(first.span(), "first named here").with_hint("remove one of them"));
            } else {
                names.insert(name.into_owned(), element);
            }
        }
        if self.includes_itself(pattern) {
            let message = format!("{} includes itself", describe_declaration("toolkit", pattern));
            let found = rule::TOOLKIT_CYCLE.at(head_span(pattern), message);
            self.report(found.with_hint("remove one of the references between the toolkits"));
        }
    }

    /// Reports a reference of a toolkit to something that is not a tool. What is not declared is reported with the
    /// references of agents.
    fn check_toolkit_reference(&mut self, toolkit: Pattern<'p>, reference: Pattern<'p>) {
        let name = reference.name().unwrap_or_default();
        let found = self.project.find(&name);
        self.check_reference_of_toolkit(toolkit, reference, &name, found.len());
        if found.iter().any(|found| found.kind == DeclarationKind::Agent) {
            let message = format!("`{name}` is an agent, but a toolkit can contain only tools and other toolkits");
            let found = rule::MISPLACED.at(reference.span(), message);
            self.report(found.with_hint("add the agent to the elements of the agent that calls it"));
        }
    }

    /// Returns whether a toolkit includes itself, directly or through others.
    fn includes_itself(&self, toolkit: Pattern<'p>) -> bool {
        let id = |pattern: Pattern<'p>| (self.project.file_of(pattern), pattern.syntax().id());
        let mut seen = HashSet::new();
        let included = |pattern: Pattern<'p>| pattern.elements().filter_map(|it| self.project.included_toolkit(it));
        let mut open: Vec<_> = included(toolkit).collect();
        while let Some(pattern) = open.pop() {
            if id(pattern) == id(toolkit) {
                return true;
            }
            if seen.insert(id(pattern)) {
                open.extend(included(pattern));
            }
        }
        false
    }

    /// Reports tools with the same name that an agent has because of its toolkits.
    pub(super) fn check_toolkit_conflicts(&mut self, agent: Pattern<'p>, members: &[Member<'p>]) {
        if members.iter().all(|member| member.toolkit.is_none()) {
            return;
        }
        let mut names: HashMap<String, &Member<'p>> = HashMap::new();
        for member in members {
            let Some(name) = member.name() else { continue };
            let Some(first) = names.get(name.as_ref()) else {
                names.insert(name.into_owned(), member);
                continue;
            };
            // Two elements of the agent itself are reported with its elements.
            if member.toolkit.is_none() && first.toolkit.is_none() {
                continue;
            }
            let agent = describe_declaration("agent", agent);
            let span = |element: Pattern<'p>| element.identifier().map_or(element.span(), Syntax::span);
            let message = format!("{agent} has two different tools named `{name}`, because of its toolkits");
            let found = rule::DUPLICATE_TOOL.at(span(member.element()), message);
            let found = found.with_related(span(first.element()), "the first one");
            self.report(found.with_hint("rename one of them, or remove it from the toolkit"));
        }
    }
}
