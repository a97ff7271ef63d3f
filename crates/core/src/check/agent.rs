//! Checks of agents.

use super::{Checker, describe_declaration};
use crate::declare::property::ValueKind;
use crate::declare::{Agent, DeclarationKind, head_span};
use crate::provider::{ModelRef, ModelRefError};
use crate::rule;
use crate::text::nearest;
use crate::workflow::placeholder_findings;
use patter_gram::{Diagnostic, Kind, Pattern, PatternKind, Span, Syntax};
use std::collections::HashMap;

/// The properties of an agent.
pub(super) const PROPERTIES: &[(&str, ValueKind)] = &[
    ("extends", ValueKind::String),
    ("description", ValueKind::String),
    ("instruction", ValueKind::String),
    ("model", ValueKind::String),
    ("fallback", ValueKind::StringOrList),
    ("temperature", ValueKind::Number { min: 0.0, max: 2.0 }),
    ("topP", ValueKind::Number { min: 0.0, max: 1.0 }),
    ("topK", ValueKind::Integer { min: 1 }),
    ("maxTokens", ValueKind::Integer { min: 1 }),
    ("stop", ValueKind::StringOrList),
    ("seed", ValueKind::Integer { min: 0 }),
    ("reasoningEffort", ValueKind::OneOf(&["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"])),
    ("takes", ValueKind::String),
    ("returns", ValueKind::String),
    ("maxTurns", ValueKind::Integer { min: 1 }),
    ("maxToolCalls", ValueKind::Integer { min: 1 }),
    ("maxTotalTokens", ValueKind::Integer { min: 1 }),
    ("maxCost", ValueKind::Number { min: 0.0, max: 1e6 }),
    ("context", ValueKind::OneOf(&["compact", "trim", "error"])),
    ("contextWindow", ValueKind::Integer { min: 1000 }),
    ("timeout", ValueKind::Duration),
    ("allow", ValueKind::StringOrList),
    ("ask", ValueKind::StringOrList),
    ("deny", ValueKind::StringOrList),
];

impl<'p> Checker<'p> {
    pub(super) fn check_agent(&mut self, pattern: Pattern<'p>) {
        self.check_name(pattern, "agent");
        for key in ["instruction", "model"] {
            if !self.may_inherit(pattern, key) {
                self.check_required_text(pattern, "agent", key);
            }
        }
        self.check_properties(pattern, "agent", PROPERTIES);
        self.check_base(pattern);
        let (Some(own), Some(agent)) = (Agent::cast(pattern), self.project.agent(pattern)) else { return };
        self.check_model(pattern, &own);
        self.check_fallbacks(pattern, &agent);
        self.check_type(pattern, "returns");
        self.check_type(pattern, "takes");
        self.check_instruction_placeholders(pattern, &agent);
        for error in own.rules("").1 {
            self.report(error);
        }
        self.scope.enter(self.project, pattern);
        self.check_elements(pattern);
        let members = self.project.members_in(&self.scope, pattern);
        self.check_toolkit_conflicts(pattern, &members);
        self.check_instruction(pattern, &agent, &members);
        self.check_provider_schemas(pattern, &agent, &members);
        self.scope.leave();
    }

    fn check_model(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let (Some(Err(error)), Some(value)) = (agent.model(), pattern.get("model")) else { return };
        let is_empty = value.read_text().is_some_and(|text| text.trim().is_empty());
        // An empty model has its own diagnostic.
        if !is_empty {
            self.report_model(&error, value.span());
        }
    }

    /// Reports fallbacks that are not models, and those that were asked before.
    fn check_fallbacks(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(property) = pattern.get("fallback") else { return };
        let items: Vec<_> = if property.kind() == Kind::Array { property.children().collect() } else { vec![property] };
        let mut known: Vec<ModelRef> = agent.model().and_then(Result::ok).into_iter().collect();
        for item in items {
            let Some(text) = item.read_text() else { continue };
            match text.parse::<ModelRef>() {
                Err(error) => self.report_model(&error, item.span()),
                Ok(model) if known.contains(&model) => {
                    let message = format!("the fallback `{model}` is asked already");
                    let found = rule::USELESS_FALLBACK.at(item.span(), message);
                    self.report(
                        found.with_hint("name a model that is available when the others are not, or remove it"),
                    );
                }
                Ok(model) => known.push(model),
            }
        }
    }

    fn report_model(&mut self, error: &ModelRefError, span: Span) {
        let rule = match error {
            ModelRefError::MissingProvider(_) | ModelRefError::MissingModel(_) => &rule::MALFORMED_MODEL,
            ModelRefError::UnknownProvider(_) => &rule::UNKNOWN_PROVIDER,
        };
        let mut found = rule.at(span, error.to_string());
        found.hint = error.hint().map(Into::into);
        self.report(found);
    }

    fn check_elements(&mut self, pattern: Pattern<'p>) {
        let mut names: HashMap<String, Pattern<'p>> = HashMap::new();
        for element in pattern.elements() {
            match (element.kind(), DeclarationKind::from_pattern(element)) {
                (PatternKind::Reference, _) => self.check_delegate_name(element),
                (_, Some(DeclarationKind::Agent)) => {
                    self.check_wire_name(element, "");
                    self.check_declaration(element);
                }
                (_, Some(DeclarationKind::Tool)) => self.check_tool(element),
                _ => {
                    self.report_misplaced_element(element);
                    continue;
                }
            }
            let Some(name) = element.name() else { continue };
            let span = element.identifier().map_or(element.span(), Syntax::span);
            if let Some(first) = names.get(name.as_ref()) {
                let first = first.identifier().map_or(first.span(), Syntax::span);
                let message = format!("{} has two tools named `{name}`", describe_declaration("agent", pattern));
                let found = rule::DUPLICATE_TOOL.at(span, message).with_related(first, "first declared here");
                self.report(found.with_hint("models tell tools apart by name; rename or remove one of them"));
            } else {
                names.insert(name.into_owned(), element);
            }
        }
    }

    /// Reports placeholders in the instruction that are not fields of the input. Without `takes`, braces are only braces.
    fn check_instruction_placeholders(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        // An inherited instruction must still be fine with other input.
        let value = pattern.get("instruction").or_else(|| pattern.get("takes"));
        let (Some(instruction), Some(value)) = (agent.instruction(), value) else { return };
        let records = self.project.records();
        let Some(Ok(takes)) = agent.takes(records) else { return };
        for found in placeholder_findings(&instruction, value.span(), &takes, records) {
            self.report(found);
        }
    }

    /// Reports an invalid type of the answer or of the input.
    pub(super) fn check_type(&mut self, pattern: Pattern<'p>, property: &str) {
        let Some(value) = pattern.get(property) else { return };
        let Some(text) = value.read_text() else { return };
        let records = self.project.records();
        if let Err(error) = crate::types::signature::Type::parse(&text, records) {
            let Some(first) = error.diagnostics.into_iter().next() else { return };
            self.report(Diagnostic { span: value.span(), related: Vec::new(), ..first });
        }
    }

    /// Reports an agent that is called like a tool, but has a name that tools cannot have.
    fn check_delegate_name(&mut self, reference: Pattern<'p>) {
        let found = self.project.resolve(&self.scope, &reference.name().unwrap_or_default());
        if found.iter().any(|found| found.kind == DeclarationKind::Agent) {
            self.check_wire_name(reference, "");
        }
    }

    fn report_misplaced_element(&mut self, element: Pattern<'p>) {
        let labels = element.labels().filter(|_| element.kind() == PatternKind::Bracket);
        let near = labels.into_iter().find_map(|label| nearest(&label, ["Tool", "Agent"]));
        let found = rule::MISPLACED.at(head_span(element), "an agent can contain only tools and other agents");
        self.report(found.with_hint(match (near, element.kind()) {
            _ if DeclarationKind::from_pattern(element) == Some(DeclarationKind::Toolkit) => {
                "declare the toolkit at the top level of a file, and write its name here".to_owned()
            }
            (Some(label), _) => format!("did you mean the label `{label}`?"),
            (None, PatternKind::Path) => {
                "put the signature into a tool: `[name:Tool {description: \"…\"} | (a::Text)==>(::Text)]`".to_owned()
            }
            _ => "write `[name:Tool {…} | …]`, or the name of a tool".to_owned(),
        }));
    }
}
