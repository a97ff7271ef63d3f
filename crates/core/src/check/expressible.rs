//! Whether a provider can take the schemas of an agent's tools.

use super::Checker;
use crate::declare::{Agent, ToolSpec};
use crate::name::Provider;
use crate::provider::{Effect, SchemaView, view};
use crate::rule;
use patter_gram::{Pattern, PatternKind, Span};

impl<'p> Checker<'p> {
    /// Reports tools whose schema the provider of the agent's model cannot take.
    pub(super) fn expressible(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(Ok(model)) = agent.model() else { return };
        let Some(subset) = subset_of(model.provider) else { return };
        for element in pattern.elements() {
            let (tool, span) = match element.kind() {
                PatternKind::Reference => (self.referred(element), element.span()),
                _ => (ToolSpec::cast(element), element.elements().next().map_or(element.span(), Pattern::span)),
            };
            if let Some(tool) = tool {
                self.tool_expressible(&tool, span, subset, model.provider);
            }
        }
    }

    /// Returns the tool that a reference stands for, if it is the only one.
    fn referred(&self, reference: Pattern<'p>) -> Option<ToolSpec> {
        let found = self.project.find(&reference.name()?);
        let [declaration] = found.as_slice() else { return None };
        self.project.pattern(declaration).and_then(ToolSpec::cast)
    }

    fn tool_expressible(&mut self, tool: &ToolSpec, span: Span, subset: SchemaView, provider: Provider) {
        let Ok(schema) = tool.schema(self.project.records()) else { return };
        let viewed = view(&schema, subset);
        let Some(change) = viewed.changes.iter().find(|change| change.effect == Effect::Inexpressible) else { return };
        let name = tool.name().unwrap_or_default();
        let message = format!("{} cannot take the schema of `{name}` as it is: {change}", provider.name());
        let found = rule::NOT_EXPRESSIBLE.at(span, message);
        self.report(found.with_hint("`patter schema --provider` shows what goes to the model; choose a simpler type"));
    }
}

/// Returns the subset of JSON Schema that a provider takes; `None` where it takes everything.
fn subset_of(provider: Provider) -> Option<SchemaView> {
    match provider {
        Provider::OpenAi => Some(SchemaView::OpenAiStrict),
        Provider::Anthropic => Some(SchemaView::Anthropic),
        Provider::Google => Some(SchemaView::Gemini),
        Provider::Ollama | Provider::Demo | Provider::Scripted => None,
    }
}
