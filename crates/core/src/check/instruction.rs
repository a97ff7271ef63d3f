//! Instructions: whether they speak of the tools that the agent has.

use super::Checker;
use crate::declare::Agent;
use crate::{nearest, rule};
use patter_gram::{Pattern, Span, Syntax};

impl<'p> Checker<'p> {
    pub(super) fn instruction(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(instruction) = agent.instruction() else { return };
        let elements: Vec<_> = pattern.elements().filter(|element| element.name().is_some()).collect();
        for element in &elements {
            let name = element.name().unwrap_or_default();
            if !mentions(&instruction, &name) {
                let span = element.identifier().map_or(element.span(), Syntax::span);
                let found = rule::UNMENTIONED_TOOL.at(span, format!("the instruction never mentions `{name}`"));
                self.report(found.with_hint(format!("say when to use `{name}`, or remove it")));
            }
        }
        let names: Vec<_> = elements.iter().filter_map(|element| element.name()).collect();
        let Some(value) = pattern.get("instruction") else { return };
        for word in quoted_words(&instruction) {
            if names.iter().any(|name| name == word) {
                continue;
            }
            let near = nearest(word, names.iter().map(AsRef::as_ref));
            let is_declared = !self.project.find(word).is_empty() || self.options.library.contains(&word);
            if near.is_none() && !is_declared && !is_called_tool(&instruction, word) {
                continue;
            }
            let found = rule::MISSING_TOOL
                .at(place_of(value, word), format!("the instruction names `{word}`, which the agent does not have"));
            self.report(found.with_hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{word}` to the elements of the agent"),
            }));
        }
    }
}

/// Returns the place of a word in backticks within an instruction; the whole where it is written in another way.
fn place_of(instruction: Syntax<'_>, word: &str) -> Span {
    let span = instruction.span();
    match instruction.text().find(&format!("`{word}`")) {
        Some(at) => {
            let start = span.start + u32::try_from(at + 1).unwrap_or(0);
            Span::new(start, start + u32::try_from(word.len()).unwrap_or(0))
        }
        None => span,
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
