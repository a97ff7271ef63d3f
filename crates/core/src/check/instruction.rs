//! Checks that instructions mention the tools of their agent.

use super::Checker;
use crate::declare::{Agent, DeclarationKind};
use crate::rule;
use crate::text::nearest;
use patter_gram::{Pattern, PatternKind, Span, Syntax};

impl<'p> Checker<'p> {
    pub(super) fn check_instruction(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(instruction) = agent.instruction() else { return };
        let Some(value) = pattern.get("instruction") else { return };
        let elements: Vec<_> = pattern.elements().filter(|element| element.name().is_some()).collect();
        let members = self.project.members_in(&self.scope, pattern);
        let names: Vec<_> = elements.iter().filter_map(|element| element.name()).collect();
        let in_toolkits = members.iter().filter(|member| member.toolkit.is_some()).filter_map(|it| it.pattern.name());
        let callable: Vec<_> = names.iter().cloned().chain(in_toolkits).collect();
        // A misspelt name, among the elements or in the instruction, is reported only once.
        let intended: Vec<_> =
            elements.iter().zip(&names).map(|(element, name)| self.intended_name(pattern, *element, name)).collect();
        let own = pattern.name().unwrap_or_default();
        let mut misspelt: Vec<&str> = Vec::new();
        let mut findings = Vec::new();
        for word in quoted_words(&instruction) {
            let is_known = callable.iter().any(|name| name == word || bare_name(name) == word);
            if is_known || intended.contains(&Some(word)) {
                continue;
            }
            // Suggestions for an agent with more tools than this would take too long.
            let known = callable.iter().take(500).map(AsRef::as_ref);
            let near = nearest(word, known.clone()).or_else(|| {
                let near = nearest(word, known.clone().map(bare_name))?;
                known.clone().find(|name| bare_name(name) == near)
            });
            let is_declared = !self.project.find(word).is_empty() || self.is_in_library(word);
            if near.is_none() && !is_declared && !is_called_tool(&instruction, word) {
                continue;
            }
            // The agent itself, and agents that call it: adding them would create a cycle.
            if self.leads_to(word, &own) {
                continue;
            }
            misspelt.extend(near);
            let message = format!("the instruction mentions `{word}`, which the agent does not have");
            findings.push(rule::MISSING_TOOL.at(span_of(word, value), message).with_hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{word}` to the elements of the agent"),
            }));
        }
        let lowercase = instruction.to_lowercase();
        let is_mentioned =
            |name: &str| [name, bare_name(name)].iter().any(|name| mentions(&lowercase, &name.to_lowercase()));
        for ((element, name), intended) in elements.iter().zip(&names).zip(&intended) {
            let is_callable =
                element.kind() == PatternKind::Reference || DeclarationKind::from_pattern(*element).is_some();
            // A toolkit is mentioned by its name, or by any of its tools.
            let tools = members.iter().filter(|member| member.toolkit == Some(*element));
            if !is_callable
                || is_mentioned(name)
                || tools.filter_map(|tool| tool.pattern.name()).any(|name| is_mentioned(&name))
                || intended.is_some_and(is_mentioned)
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

    /// Returns the name that an undefined reference is most likely a misspelling of.
    fn intended_name(&self, agent: Pattern<'p>, element: Pattern<'p>, name: &str) -> Option<&'p str> {
        if element.kind() == PatternKind::Reference { self.suggest(agent, name) } else { None }
    }
}

/// Returns the name of a tool without its toolbox.
fn bare_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the span of a word in backticks within a value, or of the whole value if the word is written differently there.
fn span_of(word: &str, value: Syntax<'_>) -> Span {
    let span = value.span();
    let found = value.text().find(&format!("`{word}`")).and_then(|at| u32::try_from(at + 1).ok());
    let length = u32::try_from(word.len()).ok();
    match (found, length) {
        (Some(at), Some(length)) => Span::new(span.start + at, span.start + at + length),
        _ => span,
    }
}

/// Returns whether a text contains a name as a whole word.
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
        let is_name = word.split('/').all(patter_gram::is_symbol);
        let is_new = is_name && !seen.contains(word);
        seen.push(*word);
        is_new
    })
}

/// Returns whether a text calls a word in backticks a tool: "the `x` tool", "the tool `x`".
fn is_called_tool(text: &str, word: &str) -> bool {
    text.contains(&format!("`{word}` tool")) || text.contains(&format!("tool `{word}`"))
}
