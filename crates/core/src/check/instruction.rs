//! Checks that instructions mention the tools of their agent.

use super::Checker;
use crate::declare::{Agent, DeclarationKind, Member, base_name};
use crate::rule;
use crate::text::nearest;
use patter_gram::{Pattern, PatternKind, Span, Syntax, SyntaxId};
use std::collections::{HashMap, HashSet};

impl<'p> Checker<'p> {
    pub(super) fn check_instruction(&mut self, pattern: Pattern<'p>, agent: &Agent, members: &[Member<'p>]) {
        // Without its base, it is not known what the agent has.
        if base_name(pattern).is_some() && self.project.base_of(pattern).is_none() {
            return;
        }
        let Some(instruction) = agent.instruction() else { return };
        // The words of an inherited instruction are checked where it is written.
        let value = pattern.get("instruction");
        let elements: Vec<_> = pattern.elements().filter(|element| element.name().is_some()).collect();
        let names: Vec<_> = elements.iter().filter_map(|element| element.name()).collect();
        let others = members.iter().filter(|member| member.toolkit.or(member.base).is_some());
        let callable: Vec<_> = names.iter().cloned().chain(others.filter_map(|it| it.pattern.name())).collect();
        let known: HashSet<&str> = callable.iter().flat_map(|name| [name.as_ref(), bare_name(name)]).collect();
        // A misspelt name, among the elements or in the instruction, is reported only once.
        let intended: Vec<_> =
            elements.iter().zip(&names).map(|(element, name)| self.intended_name(pattern, *element, name)).collect();
        let all_intended: HashSet<&str> = intended.iter().flatten().copied().collect();
        let own = pattern.name().unwrap_or_default();
        let mut misspelt: HashSet<&str> = HashSet::new();
        let mut findings = Vec::new();
        let called_tools = words_called_tools(&instruction);
        let mut positions = None;
        let own_instruction = if value.is_some() { instruction.as_ref() } else { "" };
        for word in quoted_words(own_instruction) {
            let Some(value) = value else { break };
            if known.contains(word) || all_intended.contains(word) {
                continue;
            }
            // Suggestions for an agent with more tools than this would take too long.
            let candidates = callable.iter().take(if self.may_suggest() { 500 } else { 0 }).map(AsRef::as_ref);
            let near = nearest(word, candidates.clone()).or_else(|| {
                let near = nearest(word, candidates.clone().map(bare_name))?;
                candidates.clone().find(|name| bare_name(name) == near)
            });
            let is_declared = !self.project.find(word).is_empty() || self.is_in_library(word);
            if near.is_none() && !is_declared && !called_tools.contains(word) {
                continue;
            }
            // The agent itself, and agents that call it: adding them would create a cycle.
            if self.leads_to(word, &own) {
                continue;
            }
            misspelt.extend(near);
            let message = format!("the instruction mentions `{word}`, which the agent does not have");
            let positions = positions.get_or_insert_with(|| quoted_positions(value.text()));
            findings.push(rule::MISSING_TOOL.at(span_of(word, value, positions), message).with_hint(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("add `{word}` to the elements of the agent"),
            }));
        }
        let lowercase = instruction.to_lowercase();
        let words = Words::new(&lowercase);
        let is_mentioned = |name: &str| [bare_name(name), name].iter().any(|name| words.contain(&name.to_lowercase()));
        let mut in_toolkit: HashMap<SyntaxId, Vec<_>> = HashMap::new();
        for member in members {
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
                || misspelt.contains(name.as_ref())
            {
                continue;
            }
            let span = element.identifier().map_or(element.span(), Syntax::span);
            let found = rule::UNMENTIONED_TOOL.at(span, format!("the instruction never mentions `{name}`"));
            findings.push(found.with_hint(format!("say when to use `{name}`, or remove it")));
        }
        // With the instruction of its base, the base reports what it has.
        for member in members.iter().filter(|member| member.base.is_some() && value.is_some()) {
            let (Some(name), Some(base)) = (member.name(), member.base_name()) else { continue };
            let toolkit = member.toolkit_name().is_some_and(|toolkit| is_mentioned(&toolkit));
            if !is_mentioned(&name) && !toolkit && !misspelt.contains(name.as_ref()) {
                let message = format!("the instruction never mentions `{name}`, which it inherits from `{base}`");
                let found = rule::UNMENTIONED_TOOL.at(member.span(pattern), message);
                findings.push(found.with_hint(format!("say when to use `{name}`, or deny it with `deny: \"{name}\"`")));
            }
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

/// Returns where each text in backticks appears first in a text.
fn quoted_positions(text: &str) -> HashMap<&str, usize> {
    let mut positions = HashMap::new();
    for (at, inner) in between_backticks(text) {
        positions.entry(inner).or_insert(at);
    }
    positions
}

/// Iterates over the texts between two backticks, each with its position.
fn between_backticks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let parts = text.split('`').map(move |part| {
        let start = at;
        at += part.len() + 1;
        (start, part)
    });
    // Only a part that another one follows ends with a backtick.
    parts.skip(1).filter(|(start, part)| text.as_bytes().get(start + part.len()) == Some(&b'`'))
}

/// Returns the span of a word in backticks within a value, or of the whole value if the word is written differently there.
fn span_of(word: &str, value: Syntax<'_>, positions: &HashMap<&str, usize>) -> Span {
    let span = value.span();
    let found = positions.get(word).and_then(|at| u32::try_from(*at).ok());
    let length = u32::try_from(word.len()).ok();
    match (found, length) {
        (Some(at), Some(length)) => Span::new(span.start + at, span.start + at + length),
        _ => span,
    }
}

fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a text.
struct Words<'t> {
    text: &'t str,
    /// Where each word starts.
    positions: HashMap<&'t str, Vec<usize>>,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Self {
        let mut positions: HashMap<_, Vec<_>> = HashMap::new();
        for (at, word) in words(text) {
            positions.entry(word).or_default().push(at);
        }
        Self { text, positions }
    }

    /// Returns whether the text contains a name as a whole word.
    fn contain(&self, name: &str) -> bool {
        // A name with other characters, such as `-`, consists of several words. It is searched for where the rarest is.
        let places = |word: &str| self.positions.get(word).map(Vec::as_slice).unwrap_or_default();
        let rarest = words(name).map(|(at, word)| (at, word, places(word))).min_by_key(|(_, _, places)| places.len());
        match rarest {
            None => !name.is_empty() && self.text.match_indices(name).any(|(at, _)| self.is_whole(at, name)),
            Some((_, word, places)) if word == name => !places.is_empty(),
            Some((offset, _, places)) => {
                let mut starts = places.iter().filter_map(|at| at.checked_sub(offset));
                starts
                    .any(|at| self.text.get(at..).is_some_and(|rest| rest.starts_with(name)) && self.is_whole(at, name))
            }
        }
    }

    /// Returns whether a name at a position of the text is not a part of a longer word.
    fn is_whole(&self, at: usize, name: &str) -> bool {
        let before = self.text.get(..at).and_then(|before| before.chars().next_back());
        let after = self.text.get(at + name.len()..).and_then(|after| after.chars().next());
        !before.is_some_and(is_word_part) && !after.is_some_and(is_word_part)
    }
}

/// Iterates over the words of a text, each with its position.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    let parts = text.split_inclusive(|c| !is_word_part(c)).map(move |part| {
        let start = at;
        at += part.len();
        (start, part.strip_suffix(|c| !is_word_part(c)).unwrap_or(part))
    });
    parts.filter(|(_, word)| !word.is_empty())
}

/// Iterates over the names in backticks.
fn quoted_words(text: &str) -> impl Iterator<Item = &str> {
    let mut seen = HashSet::new();
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter(move |word| word.split('/').all(patter_gram::is_symbol) && seen.insert(*word))
}

/// Returns the words in backticks that a text calls a tool: "the `x` tool", "the tool `x`".
fn words_called_tools(text: &str) -> HashSet<&str> {
    let is_called_tool = |(at, word): &(usize, &str)| {
        text.get(at + word.len() + 1..).is_some_and(|after| after.starts_with(" tool"))
            || text.get(..at - 1).is_some_and(|before| before.ends_with("tool "))
    };
    between_backticks(text).filter(is_called_tool).map(|(_, word)| word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_whole_words() {
        let words = Words::new("use say-hello, then fs/read; never say-hello-twice or re_read. über-1");
        for name in ["use", "say-hello", "fs/read", "read", "say-hello-twice", "re_read", "über-1", "hello"] {
            assert!(words.contain(name), "{name}");
        }
        for name in ["us", "say-hell", "ay-hello", "fs/rea", "s/read", "re", "twice-or", "say_hello", "bye", "+", ""] {
            assert!(!words.contain(name), "{name}");
        }
    }

    #[test]
    fn words_in_backticks_are_found_once() {
        let text = "the `a` tool, the tool `b`, a `c`, `d` tools, `a`, not `e";
        let mut called: Vec<_> = words_called_tools(text).into_iter().collect();
        called.sort_unstable();
        assert_eq!(called, ["a", "b", "d"]);
        let positions = quoted_positions(text);
        assert_eq!(positions.get("a"), Some(&5));
        assert_eq!(positions.get("c"), text.find("`c`").map(|at| at + 1).as_ref());
        assert_eq!(positions.get("e"), None, "there is no second backtick");
    }
}
