//! Agents: what they must have, and what they may call.

use super::{Checker, Takes, the};
use crate::declare::head_span;
use crate::declare::{Agent, Declares};
use crate::provider::ModelRefError;
use crate::{rule, text::nearest};
use patter_gram::{Diagnostic, Pattern, PatternKind, Syntax};
use std::collections::HashMap;

/// The properties of an agent.
pub(super) const PROPERTIES: &[(&str, Takes)] = &[
    ("description", Takes::Text),
    ("instruction", Takes::Text),
    ("model", Takes::Text),
    ("temperature", Takes::Number { least: 0.0, most: 2.0 }),
    ("topP", Takes::Number { least: 0.0, most: 1.0 }),
    ("topK", Takes::Integer { least: 1 }),
    ("maxTokens", Takes::Integer { least: 1 }),
    ("stop", Takes::Texts),
    ("seed", Takes::Integer { least: 0 }),
    ("reasoningEffort", Takes::Word(&["none", "minimal", "low", "medium", "high"])),
    ("returns", Takes::Text),
    ("maxTurns", Takes::Integer { least: 1 }),
    ("maxToolCalls", Takes::Integer { least: 1 }),
    ("timeout", Takes::Duration),
    ("allow", Takes::Texts),
    ("ask", Takes::Texts),
    ("deny", Takes::Texts),
];

impl<'p> Checker<'p> {
    pub(super) fn agent(&mut self, pattern: Pattern<'p>) {
        self.name(pattern, "agent");
        self.required_text(pattern, "agent", "instruction");
        self.required_text(pattern, "agent", "model");
        self.properties(pattern, "agent", PROPERTIES);
        let Some(agent) = Agent::cast(pattern) else { return };
        self.model(pattern, &agent);
        self.returns(pattern);
        for wrong in agent.rules("").1 {
            self.report(wrong);
        }
        self.elements(pattern);
        self.instruction(pattern, &agent);
        self.expressible(pattern, &agent);
    }

    fn model(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let (Some(Err(error)), Some(value)) = (agent.model(), pattern.get("model")) else { return };
        let is_empty = value.read_text().is_some_and(|text| text.trim().is_empty());
        let rule = match &error {
            ModelRefError::MissingProvider(_) if is_empty => return,
            ModelRefError::MissingProvider(_) | ModelRefError::MissingModel(_) => &rule::MALFORMED_MODEL,
            ModelRefError::UnknownProvider(_) => &rule::UNKNOWN_PROVIDER,
        };
        let mut found = rule.at(value.span(), error.to_string());
        found.hint = error.hint().map(Into::into);
        self.report(found);
    }

    fn elements(&mut self, pattern: Pattern<'p>) {
        let mut names: HashMap<String, Pattern<'p>> = HashMap::new();
        for element in pattern.elements() {
            match (element.kind(), Declares::of(element)) {
                (PatternKind::Reference, _) => self.delegate_name(element),
                (_, Some(Declares::Agent)) => {
                    self.wire_name(element, "");
                    self.agent(element);
                }
                (_, Some(Declares::Tool)) => self.tool(element),
                _ => {
                    self.misplaced_element(element);
                    continue;
                }
            }
            let Some(name) = element.name() else { continue };
            let span = element.identifier().map_or(element.span(), Syntax::span);
            if let Some(first) = names.get(name.as_ref()) {
                let first = first.identifier().map_or(first.span(), Syntax::span);
                let message = format!("{} has two tools `{name}`", the("agent", pattern));
                let found = rule::DUPLICATE_TOOL.at(span, message).with_related(first, "the first one");
                self.report(
                    found.with_hint("a model can tell tools apart only by their names; rename one or remove it"),
                );
            } else {
                names.insert(name.into_owned(), element);
            }
        }
    }

    /// Reports a type of the answer that cannot be read.
    fn returns(&mut self, pattern: Pattern<'p>) {
        let Some(value) = pattern.get("returns") else { return };
        let Some(text) = value.read_text() else { return };
        let records = self.project.records();
        if let Err(error) = crate::types::signature::Type::parse(&text, records) {
            let Some(first) = error.diagnostics.into_iter().next() else { return };
            self.report(Diagnostic { span: value.span(), related: Vec::new(), ..first });
        }
    }

    /// Reports an agent that is called as a tool, and has a name that no tool may have.
    fn delegate_name(&mut self, reference: Pattern<'p>) {
        let found = self.project.find(&reference.name().unwrap_or_default());
        if found.iter().any(|declaration| declaration.declares == Declares::Agent) {
            self.wire_name(reference, "");
        }
    }

    fn misplaced_element(&mut self, element: Pattern<'p>) {
        let labels = element.labels().filter(|_| element.kind() == PatternKind::Bracket);
        let near = labels.into_iter().find_map(|label| nearest(&label, ["Tool", "Agent"]));
        let found = rule::MISPLACED.at(head_span(element), "the elements of an agent are tools and other agents");
        self.report(found.with_hint(match (near, element.kind()) {
            (Some(label), _) => format!("did you mean the label `{label}`?"),
            (None, PatternKind::Path) => {
                "a signature stands in a tool: `[name:Tool {description: \"…\"} | (a::Text)==>(::Text)]`".to_owned()
            }
            _ => "write `[name:Tool {…} | …]`, or the name of a tool".to_owned(),
        }));
    }
}
