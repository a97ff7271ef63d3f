//! Checks that providers support the schemas of tools.

use super::Checker;
use crate::declare::{Agent, Member, ToolSpec};
use crate::provider::Provider;
use crate::rule;
use crate::types::dialect::{Fidelity, SchemaDialect, adapt};
use crate::types::schema::input_schema;
use crate::types::signature::{Facets, Shape, Signature, Type};
use patter_gram::{Pattern, PatternKind, Span};
use std::borrow::Cow;

impl<'p> Checker<'p> {
    /// Reports tools whose schema the provider of the agent's model does not fully support.
    pub(super) fn check_provider_schemas(&mut self, agent: Pattern<'p>, declared: &Agent, members: &[Member<'p>]) {
        let Some(Ok(model)) = declared.model() else { return };
        let Some(dialect) = model.provider.profile().dialect else { return };
        // With the model of its base, the base reports what it has.
        let has_model = declared.inherited_from("model").is_none();
        for member in members.iter().filter(|member| member.base.is_none() || has_model) {
            let element = member.pattern;
            let (file, tool, span) = match element.kind() {
                PatternKind::Reference => match self.resolve(element) {
                    Some((file, tool)) => (file, tool, member.span(agent)),
                    None => continue,
                },
                _ if member.toolkit.or(member.base).is_some() => match self.project.file_of(element) {
                    Some(file) => (file, element, member.span(agent)),
                    None => continue,
                },
                _ => (self.file, element, element.elements().next().map_or(element.span(), Pattern::span)),
            };
            self.check_provider_schema(file, tool, span, dialect, model.provider);
        }
    }

    /// Resolves a reference to a pattern and its file, unless it is ambiguous.
    pub(super) fn resolve(&self, reference: Pattern<'p>) -> Option<(usize, Pattern<'p>)> {
        let found = self.project.resolve(&self.scope, &reference.name()?);
        let [found] = found.as_slice() else { return None };
        Some((found.file?, found.pattern))
    }

    /// Returns the signature of a tool, which may already have been read.
    fn signature_of(&self, file: usize, tool: Pattern<'p>) -> Option<Cow<'_, Signature>> {
        let spec = ToolSpec::cast(tool)?;
        match self.known_signature(file, tool.elements().next()?) {
            Some(signature) => Some(Cow::Borrowed(signature)),
            None => spec.signature(self.project.records()).ok().map(Cow::Owned),
        }
    }

    fn check_provider_schema(
        &mut self,
        file: usize,
        tool: Pattern<'p>,
        span: Span,
        dialect: SchemaDialect,
        provider: Provider,
    ) {
        let Some(signature) = self.signature_of(file, tool) else { return };
        if signature.parameters.iter().all(|parameter| is_plain(&parameter.ty)) {
            return;
        }
        let adapted = adapt(&input_schema(&signature, self.project.records()), dialect);
        let Some(change) = adapted.changes.iter().find(|change| change.fidelity == Fidelity::Inexpressible) else {
            return;
        };
        let name = tool.name().unwrap_or_default();
        let message = format!("{} does not fully support the schema of `{name}`: {change}", provider.name());
        let found = rule::UNSUPPORTED_SCHEMA.at(span, message);
        self.report(found.with_hint("use a simpler type; `patter schema --provider` shows what is sent to the model"));
    }
}

/// Returns whether every provider supports a type, so that its schema need not be derived.
fn is_plain(ty: &Type) -> bool {
    let Facets { allowed, pattern, format, nullable, .. } = &ty.facets;
    let has_facets = allowed.is_some() || pattern.is_some() || format.is_some() || *nullable;
    match &ty.shape {
        _ if has_facets => false,
        Shape::Text | Shape::Integer | Shape::Number | Shape::Boolean => true,
        Shape::Array(item) => is_plain(item),
        _ => false,
    }
}
