//! Checks of cases.

use super::Checker;
use crate::case::{Case, CaseProblem, Check, misplaced_case, read_cases};
use crate::declare::DeclarationKind;
use crate::declare::project::{Declaration, Project};
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
                        if let Some(tools) = tools.get_or_insert_with(|| callable(project)) {
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

    /// Reports checks for tools that no agent has.
    fn check_tool_names(&mut self, check: &Check, pattern: Pattern<'p>, tools: &IndexSet<Cow<'p, str>>) {
        for (name, span) in tools_in(check, pattern) {
            if tools.contains(name) {
                continue;
            }
            let (message, hint) = unknown_call(name, tools);
            self.report(rule::UNKNOWN_CALL.at(span, message).with_hint(hint));
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

/// Checks cases that are not written in gram: finds checks for tools that no agent of the project has.
///
/// ```
/// use patter_core::case::{CaseFormat, read};
/// use patter_core::{check::check_cases, declare::project::Project};
/// let project = Project::read([("a.gram", "[hi:Agent {instruction: 'Greet.'} | sayHello]")]);
/// let text = "input,called\nHello!,sayHelo";
/// let (cases, _) = read("a.csv", CaseFormat::Csv, text.as_bytes());
/// let problems = check_cases(&project, &cases);
/// assert_eq!(problems[0].to_string(), "a.csv:2: no agent of this project has the tool `sayHelo`");
/// assert_eq!(problems[0].hint.as_deref(), Some("did you mean `sayHello`?"));
/// ```
pub fn check_cases(project: &Project, cases: &[Case]) -> Vec<CaseProblem> {
    let Some(tools) = callable(project) else { return Vec::new() };
    let mut problems = Vec::new();
    for case in cases {
        let names = case.checks.iter().flat_map(|check| match check {
            Check::Called { tool, .. } | Check::NotCalled { tool, .. } => std::slice::from_ref(tool),
            Check::Order { tools } => tools,
            _ => &[],
        });
        for name in names.filter(|name| !tools.contains(name.as_str())) {
            let (message, hint) = unknown_call(name, &tools);
            problems.push(CaseProblem { location: case.location.clone(), message, hint: Some(hint) });
        }
    }
    problems
}

/// Returns the names of everything that the agents of a project can call, or `None` if there are no agents, because then
/// the cases are for agents elsewhere.
fn callable(project: &Project) -> Option<IndexSet<Cow<'_, str>>> {
    project.agents().next()?;
    let patterns = project.files().iter().flat_map(|file| file.tree.walk());
    let agents = patterns.filter(|pattern| DeclarationKind::from_pattern(*pattern) == Some(DeclarationKind::Agent));
    let toolkits = project.declarations().iter().filter(|one| one.kind == DeclarationKind::Toolkit);
    let toolkits = toolkits.filter_map(|toolkit| project.pattern(toolkit));
    Some(agents.chain(toolkits).flat_map(Pattern::elements).filter_map(Pattern::name).collect())
}

/// Describes a call of an unknown tool, and how to fix it.
fn unknown_call(name: &str, tools: &IndexSet<Cow<'_, str>>) -> (String, String) {
    let hint = match nearest(name, tools.iter().map(AsRef::as_ref)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "use the name by which an agent calls it".to_owned(),
    };
    (format!("no agent of this project has the tool `{name}`"), hint)
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
