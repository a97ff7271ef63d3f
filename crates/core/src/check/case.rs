//! Cases: what can be known of them before a token is spent.

use super::Checker;
use crate::case::{Check, alone, read_list};
use crate::declare::Declares;
use crate::declare::project::Declaration;
use crate::{rule, text::nearest};
use indexmap::IndexSet;
use patter_gram::{Kind, Pattern, Span, Syntax};
use std::borrow::Cow;
use std::collections::HashMap;

impl<'p> Checker<'p> {
    /// Checks the cases of all files.
    pub(super) fn cases(&mut self) {
        let project = self.project;
        let mut tools = None;
        for (file, source) in project.files().iter().enumerate() {
            self.file = file;
            // Cases of one file run together, so no two of them may have one name.
            let mut ids = HashMap::new();
            for pattern in source.tree.patterns() {
                match Declares::of(pattern) {
                    Some(Declares::Case) => self.report(alone(pattern)),
                    Some(Declares::Cases) if !self.is_broken(pattern.span()) => {
                        let (cases, found) = read_list(pattern, &mut ids);
                        found.into_iter().for_each(|found| self.report(found));
                        if let Some(tools) = tools.get_or_insert_with(|| self.callable()) {
                            for (check, pattern) in cases.iter().flat_map(|case| &case.checks) {
                                self.named_tools(check, *pattern, tools);
                                self.judge(check, *pattern);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Returns what the agents of the project can call, by the names that they have for it; nothing where there are no
    /// agents, since then theirs may be anywhere.
    fn callable(&self) -> Option<IndexSet<Cow<'p, str>>> {
        self.project.agents().next()?;
        let patterns = self.project.files().iter().flat_map(|file| file.tree.walk());
        let agents = patterns.filter(|pattern| Declares::of(*pattern) == Some(Declares::Agent));
        Some(agents.flat_map(Pattern::elements).filter_map(Pattern::name).collect())
    }

    /// Reports checks of tools that no agent has.
    fn named_tools(&mut self, check: &Check, pattern: Pattern<'p>, tools: &IndexSet<Cow<'p, str>>) {
        for (name, span) in named(check, pattern) {
            if tools.contains(name) {
                continue;
            }
            let found = rule::MISSING_CALL.at(span, format!("no agent of this project has the tool `{name}`"));
            self.report(found.with_hint(match nearest(name, tools.iter().map(AsRef::as_ref)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write the name that the agent has for it".to_owned(),
            }));
        }
    }

    /// Reports a judge that is no agent of the project. A file is looked for when the cases run.
    fn judge(&mut self, check: &Check, pattern: Pattern<'p>) {
        let Check::Judge { agent, .. } = check else { return };
        let is_file = agent.contains(['/', '\\', '.', '#']);
        let is_agent = |declaration: &&Declaration| declaration.declares == Declares::Agent;
        let agents = self.project.declarations().iter().filter(is_agent).map(|agent| agent.name.as_str());
        if is_file || agents.clone().any(|name| name == agent) {
            return;
        }
        let span = pattern.get("agent").map_or(pattern.span(), Syntax::span);
        let found = rule::UNDEFINED.at(span, format!("`{agent}` is no agent of this project"));
        let found = found.with_hint(match nearest(agent, agents) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it, or name its file".to_owned(),
        });
        self.report(found);
    }
}

/// Returns the tools that a check names, with the places of their names.
fn named<'c>(check: &'c Check, pattern: Pattern<'_>) -> Vec<(&'c str, Span)> {
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
