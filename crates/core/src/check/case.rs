//! Checks of cases.

use super::Checker;
use crate::case::{Check, misplaced_case, read_cases};
use crate::declare::DeclarationKind;
use crate::declare::project::Declaration;
use crate::rule;
use crate::text::nearest;
use indexmap::IndexSet;
use patter_gram::{Kind, Pattern, Span, Syntax};
use std::borrow::Cow;
use std::collections::HashMap;

impl<'p> Checker<'p> {
    /// Checks the cases of all files.
    pub(super) fn check_cases(&mut self) {
        let project = self.project;
        let mut tools = None;
        for (file, source) in project.files().iter().enumerate() {
            self.file = file;
            // The cases of a file run together, so their names must be unique.
            let mut ids = HashMap::new();
            for pattern in source.tree.patterns() {
                match DeclarationKind::from_pattern(pattern) {
                    Some(DeclarationKind::Case) => self.report(misplaced_case(pattern)),
                    Some(DeclarationKind::Cases) if !self.is_broken(pattern.span()) => {
                        let (cases, found) = read_cases(pattern, &mut ids);
                        found.into_iter().for_each(|found| self.report(found));
                        if let Some(tools) = tools.get_or_insert_with(|| self.callable()) {
                            for (check, pattern) in cases.iter().flat_map(|case| &case.checks) {
                                self.check_tool_names(check, *pattern, tools);
                                self.check_judge(check, *pattern);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns the names of everything that the agents of the project can call, or `None` if there are no agents, because
    /// then the cases are for agents elsewhere.
    fn callable(&self) -> Option<IndexSet<Cow<'p, str>>> {
        self.project.agents().next()?;
        let patterns = self.project.files().iter().flat_map(|file| file.tree.walk());
        let agents = patterns.filter(|pattern| DeclarationKind::from_pattern(*pattern) == Some(DeclarationKind::Agent));
        let toolkits = self.project.declarations().iter().filter(|one| one.kind == DeclarationKind::Toolkit);
        let toolkits = toolkits.filter_map(|toolkit| self.project.pattern(toolkit));
        Some(agents.chain(toolkits).flat_map(Pattern::elements).filter_map(Pattern::name).collect())
    }

    /// Reports checks for tools that no agent has.
    fn check_tool_names(&mut self, check: &Check, pattern: Pattern<'p>, tools: &IndexSet<Cow<'p, str>>) {
        for (name, span) in tools_in(check, pattern) {
            if tools.contains(name) {
                continue;
            }
            let found = rule::UNKNOWN_CALL.at(span, format!("no agent of this project has the tool `{name}`"));
            self.report(found.with_hint(match nearest(name, tools.iter().map(AsRef::as_ref)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use the name by which an agent calls it".to_owned(),
            }));
        }
    }

    /// Reports a judge that is not an agent of the project. The path of a file is resolved when the cases run.
    fn check_judge(&mut self, check: &Check, pattern: Pattern<'p>) {
        let Check::Judge { agent, .. } = check else { return };
        let is_file = agent.contains(['/', '\\', '.', '#']);
        let is_agent = |declaration: &&Declaration| declaration.kind == DeclarationKind::Agent;
        let agents = self.project.declarations().iter().filter(is_agent).map(|agent| agent.name.as_str());
        if is_file || agents.clone().any(|name| name == agent) {
            return;
        }
        let span = pattern.get("agent").map_or(pattern.span(), Syntax::span);
        let found = rule::UNDEFINED_REFERENCE.at(span, format!("`{agent}` is not an agent of this project"));
        let found = found.with_hint(match nearest(agent, agents) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it, or use the path of its file".to_owned(),
        });
        self.report(found);
    }
}

/// Returns the names of the tools that a check is about, with their spans.
fn tools_in<'c>(check: &'c Check, pattern: Pattern<'_>) -> Vec<(&'c str, Span)> {
    let at = |key: &str| pattern.get(key).map_or(pattern.span(), Syntax::span);
    match check {
        Check::Called { tool, .. } | Check::NotCalled { tool, .. } => vec![(tool, at("tool"))],
        Check::Order { tools } => {
            let list = pattern.get("tools").filter(|value| value.kind() == Kind::Array);
            let spans = list.into_iter().flat_map(Syntax::children).map(Syntax::span);
            tools.iter().map(String::as_str).zip(spans).collect()
        }
        _ => Vec::new(),
    }
}
