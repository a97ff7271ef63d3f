//! Checks that instructions mention the tools of their agent.

use super::Checker;
use crate::declare::{Agent, DeclarationKind};
use crate::rule;
use crate::text::nearest;
use patter_gram::{Pattern, PatternKind, Span, Syntax, SyntaxId};
use std::collections::{HashMap, HashSet};

impl<'p> Checker<'p> {
    pub(super) fn check_instruction(&mut self, pattern: Pattern<'p>, agent: &Agent) {
        let Some(instruction) = agent.instruction() else { return };
        let Some(value) = pattern.get("instruction") else { return };
        let elements: Vec<_> = pattern.elements().filter(|element| element.name().is_some()).collect();
        let members = self.project.members_in(&self.scope, pattern);
        let names: Vec<_> = elements.iter().filter_map(|element| element.name()).collect();
        let in_toolkits = members.iter().filter(|member| member.toolkit.is_some()).filter_map(|it| it.pattern.name());
        let callable: Vec<_> = names.iter().cloned().chain(in_toolkits).collect();
        let known: HashSet<&str> = callable.iter().flat_map(|name| [name.as_ref(), bare_name(name)]).collect();
        // A misspelt name, among the elements or in the instruction, is reported only once.
        let intended: Vec<_> =
            elements.iter().zip(&names).map(|(element, name)| self.intended_name(pattern, *element, name)).collect();
        let all_intended: HashSet<&str> = intended.iter().flatten().copied().collect();
        let own = pattern.name().unwrap_or_default();
        let mut misspelt: Vec<&str> = Vec::new();
        let mut findings = Vec::new();
        for word in quoted_words(&instruction) {
            if known.contains(word) || all_intended.contains(word) {
                continue;
            }
            // Suggestions for an agent with more tools than this would take too long.
            let candidates = callable.iter().take(500).map(AsRef::as_ref);
            let near = nearest(word, candidates.clone()).or_else(|| {
                let near = nearest(word, candidates.clone().map(bare_name))?;
                candidates.clone().find(|name| bare_name(name) == near)
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
        let words: HashSet<&str> = lowercase.split(|c| !is_word_part(c)).collect();
        let is_mentioned =
            |name: &str| [bare_name(name), name].iter().any(|name| mentions(&lowercase, &words, &name.to_lowercase()));
        let mut in_toolkit: HashMap<SyntaxId, Vec<_>> = HashMap::new();
        for member in &members {
            if let (Some(toolkit), Some(name)) = (member.toolkit, member.pattern.name()) {
                in_toolkit.entry(toolkit.syntax().id()).or_default().push(name);
            }
        }
        for ((element, name), intended) in elements.iter().zip(&names).zip(&intended) {
            let is_callable =
                element.kind() == PatternKind::Reference || DeclarationKind::from_pattern(*element).is_some();
            // A toolkit is mentioned by its name, or by any of its tools.
            let mut tools = in_toolkit.get(&element.syntax().id()).into_iter().flatten();
            if !is_callable
                || is_mentioned(name)
                || tools.any(|name| is_mentioned(name))
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

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether a text with certain words contains a name as a whole word.
fn mentions(text: &str, words: &HashSet<&str>, name: &str) -> bool {
    // A name with other characters, such as `-`, consists of several words. Only if the first is there, it is searched for.
    let mut parts = name.split(|c| !is_word_part(c)).filter(|part| !part.is_empty());
    match (parts.next(), parts.next()) {
        (Some(only), None) if only == name => return words.contains(name),
        (Some(first), _) if !words.contains(first) => return false,
        _ => {}
    }
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_word_part) && !after.is_some_and(is_word_part)
    })
}

/// Iterates over the names in backticks.
fn quoted_words(text: &str) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(move |word| word.split('/').all(patter_gram::is_symbol) && seen.insert(*word))
}

/// Returns whether a text calls a word in backticks a tool: "the `x` tool", "the tool `x`".
fn is_called_tool(text: &str, word: &str) -> bool {
    text.contains(&format!("`{word}` tool")) || text.contains(&format!("tool `{word}`"))
}
