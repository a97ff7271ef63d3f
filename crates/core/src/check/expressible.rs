//! Whether a provider can take the schemas of an agent's tools.

use super::Checker;
use crate::declare::{Agent, ToolSpec};
use crate::provider::Provider;
use crate::rule;
use crate::types::dialect::{Effect, SchemaView, view};
use crate::types::schema::input_schema;
use crate::types::signature::{Facets, Shape, Signature, Type};
use patter_gram::{Pattern, PatternKind, Span};
use std::borrow::Cow;

impl<'p> Checker<'p> {
    /// Reports tools whose schema the provider of the agent's model cannot take.
    pub(super) fn expressible(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(Ok(model)) = agent.model() else { return };
        let Some(subset) = model.provider.profile().dialect else { return };
        for element in pattern.elements() {
            let (file, tool, span) = match element.kind() {
                PatternKind::Reference => match self.referred(element) {
                    Some((file, tool)) => (file, tool, element.span()),
                    None => continue,
                },
                _ => (self.file, element, element.elements().next().map_or(element.span(), Pattern::span)),
            };
            self.tool_expressible(file, tool, span, subset, model.provider);
        }
    }

    /// Returns what a reference stands for, if it is only one thing, and its file.
    fn referred(&self, reference: Pattern<'p>) -> Option<(usize, Pattern<'p>)> {
        let found = self.project.find(&reference.name()?);
        let [declaration] = found.as_slice() else { return None };
        Some((declaration.file, self.project.pattern(declaration)?))
    }

    /// Returns the signature of a tool, which may have been read before.
    fn signature_of(&self, file: usize, tool: Pattern<'p>) -> Option<Cow<'_, Signature>> {
        let spec = ToolSpec::cast(tool)?;
        match self.signatures.get(&(file, tool.elements().next()?.syntax().id())) {
            Some(signature) => Some(Cow::Borrowed(signature)),
            None => spec.signature(self.project.records()).ok().map(Cow::Owned),
        }
    }

    fn tool_expressible(&mut self, file: usize, tool: Pattern<'p>, span: Span, subset: SchemaView, provider: Provider) {
        let Some(signature) = self.signature_of(file, tool) else { return };
        if signature.parameters.iter().all(|parameter| is_plain(&parameter.ty)) {
            return;
        }
        let viewed = view(&input_schema(&signature, self.project.records()), subset);
        let Some(change) = viewed.changes.iter().find(|change| change.effect == Effect::Inexpressible) else { return };
        let name = tool.name().unwrap_or_default();
        let message = format!("{} cannot take the schema of `{name}` as it is: {change}", provider.name());
        let found = rule::NOT_EXPRESSIBLE.at(span, message);
        self.report(found.with_hint("`patter schema --provider` shows what goes to the model; choose a simpler type"));
    }
}

/// Tells whether a type is one that every provider takes, so that its schema need not be made.
fn is_plain(ty: &Type) -> bool {
    let Facets { allowed, pattern, format, nullable, .. } = &ty.facets;
    let is_narrowed = allowed.is_some() || pattern.is_some() || format.is_some() || *nullable;
    match &ty.shape {
        _ if is_narrowed => false,
        Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean => true,
        Shape::Array(item) => is_plain(item),
        _ => false,
    }
}
