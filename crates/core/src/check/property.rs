//! Checks of properties.

use super::{Checker, describe_declaration};
use crate::declare::head_span;
use crate::declare::property::{self, ValueKind};
use crate::rule;
use patter_gram::{Pattern, Span, Syntax};

impl<'p> Checker<'p> {
    /// Checks that all properties are known and have the right kind of value.
    pub(super) fn check_properties(&mut self, pattern: Pattern<'p>, noun: &str, known: &[(&'static str, ValueKind)]) {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        self.report_unknown_properties(pattern, noun, &names);
        self.check_values(pattern, known);
    }

    /// Checks that properties have the right kind of value.
    pub(super) fn check_values(&mut self, pattern: Pattern<'p>, known: &[(&'static str, ValueKind)]) {
        for (name, kind) in known {
            if let Some(found) = pattern.property(name).and_then(|property| property::check_value(property, *kind)) {
                self.report(found);
            }
        }
    }

    /// Reports unknown properties.
    pub(super) fn report_unknown_properties(&mut self, pattern: Pattern<'p>, noun: &str, known: &[&str]) {
        for found in property::unknown_properties(pattern, noun, known) {
            self.report(found);
        }
    }

    /// Reports a required text that is missing or empty.
    pub(super) fn check_required_text(&mut self, pattern: Pattern<'p>, noun: &str, key: &str) {
        let Some(property) = pattern.property(key) else {
            // A misspelt key and a syntax error have their own diagnostics.
            let end = pattern.elements().next().map_or(pattern.span().end, |first| first.span().start);
            let is_misspelt = pattern.properties().any(|other| property::meant(&other.key(), &[key]).is_some());
            if is_misspelt || self.is_broken(Span::new(pattern.span().start, end)) {
                return;
            }
            let found = rule::MISSING_PROPERTY
                .at(head_span(pattern), format!("{} has no `{key}`", describe_declaration(noun, pattern)));
            return self.report(found.with_hint(format!("add `{key}: \"…\"` to its record")));
        };
        let text = property.value().and_then(Syntax::read_text);
        if text.is_some_and(|text| text.trim().is_empty()) {
            let message = format!("the `{key}` of {} is empty", describe_declaration(noun, pattern));
            self.report(rule::EMPTY_PROPERTY.at(property.syntax().span(), message).with_hint(match key {
                "model" => "write a provider and a model, such as `OpenAI/gpt-4o-mini`",
                "instruction" => "describe what the agent should do",
                "agent" => "write the name of an agent",
                "at" => "write `minute hour day month weekday`, such as `0 7 * * 1-5` for 7:00 from Monday to Friday",
                _ => "describe what the tool does, because the model knows nothing else about it",
            }));
        }
    }
}
