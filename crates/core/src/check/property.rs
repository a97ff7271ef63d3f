//! The properties of declarations.

use super::{Checker, the};
use crate::declare::head_span;
use crate::declare::property::{self, Takes};
use crate::{rule, text::nearest};
use patter_gram::{Pattern, Span, Syntax};

impl<'p> Checker<'p> {
    /// Checks all properties against what there is.
    pub(super) fn properties(&mut self, pattern: Pattern<'p>, noun: &str, known: &[(&'static str, Takes)]) {
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        self.known_properties(pattern, noun, &names);
        for (name, takes) in known {
            if let Some(found) = pattern.property(name).and_then(|property| property::wrong(property, *takes)) {
                self.report(found);
            }
        }
    }

    /// Reports properties that nothing reads.
    pub(super) fn known_properties(&mut self, pattern: Pattern<'p>, noun: &str, known: &[&str]) {
        for found in property::unknown(pattern, noun, known) {
            self.report(found);
        }
    }

    /// Reports a required text that is missing or empty.
    pub(super) fn required_text(&mut self, pattern: Pattern<'p>, noun: &str, key: &str) {
        let Some(property) = pattern.property(key) else {
            // A misspelt key, or a subject that cannot be read, is reported as what it is.
            let end = pattern.elements().next().map_or(pattern.span().end, |first| first.span().start);
            let is_misspelt = pattern.properties().any(|other| nearest(&other.key(), [key]).is_some());
            if is_misspelt || self.is_broken(Span::new(pattern.span().start, end)) {
                return;
            }
            let found = rule::MISSING_PROPERTY.at(head_span(pattern), format!("{} has no `{key}`", the(noun, pattern)));
            return self.report(found.with_hint(format!("add `{key}: \"…\"` to its record")));
        };
        let text = property.value().and_then(Syntax::read_text);
        if text.is_some_and(|text| text.trim().is_empty()) {
            let message = format!("the `{key}` of {} is empty", the(noun, pattern));
            self.report(rule::EMPTY_PROPERTY.at(property.syntax().span(), message).with_hint(match key {
                "model" => "write a provider and a model, as in `OpenAI/gpt-4o-mini`",
                "instruction" => "say what the agent should do",
                _ => "say what the tool does; a model knows nothing else of it",
            }));
        }
    }
}
