//! Instructions: whether they speak of the tools that the agent has.

use super::Checker;
use crate::declare::{Agent, Declares};
use crate::{rule, text::nearest};
use patter_gram::{Pattern, PatternKind, Span, Syntax};

impl<'p> Checker<'p> {
    pub(super) fn instruction(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(instruction) = agent.instruction() else { return };
        let Some(value) = pattern.get("instruction") else { return };
        let elements: Vec<_> = pattern.elements().filter(|element| element.name().is_some()).collect();
        let names: Vec<_> = elements.iter().filter_map(|element| element.name()).collect();
        // What is misspelt, among the elements or in the instruction, is reported once.
        let meant: Vec<_> = elements.iter().zip(&names).map(|(element, name)| self.meant_by(*element, name)).collect();
        let mut misspelt: Vec<&str> = Vec::new();
        let mut findings = Vec::new();
        for word in quoted_words(&instruction) {
            if names.iter().any(|name| name == word) || meant.contains(&Some(word)) {
                continue;
            }
            // An agent with more tools than this has other troubles than a misspelt one.
            let near = nearest(word, names.iter().take(500).map(AsRef::as_ref));
            let is_declared = !self.project.find(word).is_empty() || self.options.library.contains(&word);
            if near.is_none() && !is_declared && !is_called_tool(&instruction, word) {
                continue;
            }
            misspelt.extend(near);
            let message = format!("the instruction names `{word}`, which the agent does not have");
            findings.push(rule::MISSING_TOOL.at(place_of(word, value), message).with_hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{word}` to the elements of the agent"),
            }));
        }
        let lowercase = instruction.to_lowercase();
        let is_mentioned = |name: &str| mentions(&lowercase, &name.to_lowercase());
        for ((element, name), meant) in elements.iter().zip(&names).zip(&meant) {
            let is_callable = element.kind() == PatternKind::Reference || Declares::of(*element).is_some();
            if !is_callable
                || is_mentioned(name)
                || meant.is_some_and(is_mentioned)
                || misspelt.contains(&name.as_ref())
            {
                continue;
            }
            let span = element.identifier().map_or(element.span(), Syntax::span);
            let found = rule::UNMENTIONED_TOOL.at(span, format!("the instruction never mentions `{name}`"));
            findings.push(found.with_hint(format!("say when to use `{name}`, or remove it")));
        }
        findings.into_iter().for_each(|found| self.report(found));
    }

    /// Returns the name that a reference to nothing most likely means.
    fn meant_by(&self, element: Pattern<'p>, name: &str) -> Option<&'p str> {
        if element.kind() == PatternKind::Reference { self.meant(name) } else { None }
    }
}

/// Returns where a word in backticks stands in a value; the whole value where its text is written otherwise.
fn place_of(word: &str, value: Syntax<'_>) -> Span {
    let span = value.span();
    let found = value.text().find(&format!("`{word}`")).and_then(|at| u32::try_from(at + 1).ok());
    let length = u32::try_from(word.len()).ok();
    match (found, length) {
        (Some(at), Some(length)) => Span::new(span.start + at, span.start + at + length),
        _ => span,
    }
}

/// Tells whether a text has a name as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// Iterates over the names in backticks.
fn quoted_words(text: &str) -> impl Iterator<Item = &str> {
    let mut seen = Vec::new();
    text.split('`').skip(1).step_by(2).filter(move |word| {
        let is_new = patter_gram::is_symbol(word) && !seen.contains(word);
        seen.push(*word);
        is_new
    })
}

/// Tells whether a text calls a word in backticks a tool: "the `x` tool", "the tool `x`".
fn is_called_tool(text: &str, word: &str) -> bool {
    text.contains(&format!("`{word}` tool")) || text.contains(&format!("tool `{word}`"))
}
