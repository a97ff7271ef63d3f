//! Checks of workflows.

use super::Checker;
use crate::declare::property::ValueKind;
use crate::declare::scope::{Candidate, Scope};
use crate::declare::workflow::{WorkflowSpec, is_workflow};
use crate::declare::{Agent, DeclarationKind, Member, head_span, is_pipe, pipe_findings};
use crate::rule;
use crate::run::{Limits, MAX_CALLS_IN_REPLY};
use crate::workflow::{Callee, WorkflowContext, findings, model_call_bound};
use patter_gram::{Diagnostic, Kind, Pattern, PatternKind, Syntax, Value};

/// The properties of a workflow.
const PROPERTIES: &[(&str, ValueKind)] = &[
    ("description", ValueKind::String),
    ("takes", ValueKind::String),
    ("returns", ValueKind::String),
    ("maxModelCalls", ValueKind::Integer { min: 1 }),
    ("maxTotalTokens", ValueKind::Integer { min: 1 }),
    ("maxCost", ValueKind::Number { min: 0.0, max: 1e6 }),
    ("timeout", ValueKind::Duration),
    ("allow", ValueKind::StringOrList),
    ("ask", ValueKind::StringOrList),
    ("deny", ValueKind::StringOrList),
];

/// The properties that a pipe has, too. Its tools say what it takes and returns, and it calls no model.
const PIPE_PROPERTIES: [&str; 5] = ["description", "timeout", "allow", "ask", "deny"];

/// How deeply workflows and agents are followed to count model calls. Runs are not nested more deeply.
const MAX_DEPTH: usize = 5;

impl<'p> Checker<'p> {
    pub(super) fn check_workflow(&mut self, pattern: Pattern<'p>) {
        let is_pipe = is_pipe(pattern);
        let noun = if is_pipe { "pipe" } else { "workflow" };
        let is_known = |(name, _): &&(&'static str, ValueKind)| !is_pipe || PIPE_PROPERTIES.contains(name);
        let properties: Vec<_> = PROPERTIES.iter().filter(is_known).copied().collect();
        self.check_name(pattern, noun);
        self.check_properties(pattern, noun, &properties);
        self.check_type(pattern, "takes");
        self.check_type(pattern, "returns");
        let Some(workflow) = self.project.agent(pattern) else { return };
        for error in workflow.rules("").1 {
            self.report(error);
        }
        self.scope.enter(self.project, pattern);
        for element in pattern.elements().filter(|element| element.kind() == PatternKind::Bracket) {
            if DeclarationKind::from_pattern(element).is_some() {
                self.check_declaration(element);
            }
        }
        if !self.is_broken(pattern.span()) {
            let found = match pipe_findings(pattern, &|name| self.is_agent(name)).filter(|_| is_pipe) {
                Some(found) if WorkflowSpec::read(pattern).diagnostics.is_empty() => vec![found],
                _ => self.workflow_findings(pattern, &workflow),
            };
            found.into_iter().for_each(|found| self.report(found));
        }
        self.scope.leave();
    }

    fn workflow_findings(&self, pattern: Pattern<'p>, workflow: &Agent) -> Vec<Diagnostic> {
        let records = self.project.records();
        let takes = workflow.takes(records);
        let returns = workflow.returns(records);
        let (Ok(takes), Ok(returns)) = (takes.transpose(), returns.transpose()) else { return Vec::new() };
        let max_model_calls = pattern.get("maxModelCalls").and_then(|value| Some((read_count(value)?, value.span())));
        let spec = WorkflowSpec::read(pattern);
        let context = WorkflowContext {
            takes,
            returns,
            max_model_calls,
            records,
            callee: &|name| Callee::find(self.project, &self.scope, name),
            model_calls: &|name| self.model_calls(&self.scope, name, MAX_DEPTH),
            span: head_span(pattern),
        };
        findings(&spec, &context)
    }

    fn is_agent(&self, name: &str) -> bool {
        self.project.resolve(&self.scope, name).iter().any(|found| found.kind == DeclarationKind::Agent)
    }

    /// Returns how many model calls one call of something takes at most.
    fn model_calls(&self, scope: &Scope<'p>, name: &str, depth: usize) -> u64 {
        let found = self.project.resolve(scope, name);
        let [Candidate { kind: DeclarationKind::Agent, pattern, .. }] = found.as_slice() else { return 0 };
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        let Some(agent) = self.project.agent(*pattern) else { return 0 };
        // The scope of an agent elsewhere has only its own declarations.
        let mut inner = Scope::default();
        inner.enter(self.project, *pattern);
        if is_workflow(*pattern) {
            return model_call_bound(&WorkflowSpec::read(*pattern), &|name| self.model_calls(&inner, name, depth));
        }
        let limits = agent.declared_limits();
        let turns = limits.max_turns.unwrap_or_else(|| u64::from(Limits::default().max_model_calls));
        let members = self.project.members_in(&inner, *pattern);
        let called = members.iter().filter_map(Member::name);
        let most = called.map(|name| self.model_calls(&inner, &name, depth)).max().unwrap_or_default();
        let calls = limits.max_tool_calls.unwrap_or_else(|| turns.saturating_mul(MAX_CALLS_IN_REPLY as u64));
        turns.saturating_add(calls.saturating_mul(most))
    }

    /// Reports a step that calls something unknown, ambiguous, or that cannot be called.
    pub(super) fn check_step_callee(
        &mut self,
        workflow: Pattern<'p>,
        node: Pattern<'p>,
        name: &str,
        found: &[Candidate<'p>],
    ) {
        let labels = node.syntax().children().filter(|part| part.kind() == Kind::Label).zip(node.labels());
        let label = labels.into_iter().find(|(_, label)| label == name).map(|(syntax, _)| syntax);
        let span = label.or_else(|| node.identifier()).map_or(node.span(), Syntax::span);
        match found {
            [one] if one.kind == DeclarationKind::Toolkit => {
                let found = rule::NOT_CALLABLE.at(span, format!("`{name}` is a toolkit, which cannot be called"));
                self.report(found.with_hint("a step calls one agent, tool or workflow"));
            }
            [_] => {}
            [] if self.is_broken(workflow.span()) || self.is_in_library(name) => {}
            [] => {
                let message = format!("no agent, tool or workflow is named `{name}`");
                let hint = match self.suggest(workflow, name) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "declare it, or provide it in a library when the workflow runs".to_owned(),
                };
                self.report(rule::UNKNOWN_STEP.at(span, message).with_hint(hint));
            }
            several => {
                let locations: Vec<_> = several.iter().map(|one| self.project.location_of(one)).collect();
                let message = format!("`{name}` is declared in {} places", locations.len());
                let hint = format!("it is declared in {}; rename all but one", locations.join(" and "));
                self.report(rule::AMBIGUOUS_REFERENCE.at(span, message).with_hint(hint));
            }
        }
    }
}

fn read_count(value: Syntax<'_>) -> Option<u64> {
    match Value::read(value)? {
        Value::Integer(count) => count.to_i64().and_then(|count| u64::try_from(count).ok()),
        _ => None,
    }
}
