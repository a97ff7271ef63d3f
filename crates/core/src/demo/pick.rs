//! Selection of the tools that a message asks for.

use super::find;
use super::schema::parameters;
use super::word::{Word, is_function_word, is_generic, name_words, stem};
use crate::message::request::OfferedTool;
use std::collections::HashSet;
use std::ops::Range;

/// The minimum score of a tool: one word of its name or its description.
const MIN_POINTS: u32 = 8;
/// The maximum number of tools for one message.
const MAX_TOOLS: usize = 8;

/// A tool that a message asks for.
#[derive(Debug)]
pub(super) struct ToolMatch<'t> {
    pub(super) tool: &'t OfferedTool,
    /// The words of the message that are about the tool.
    pub(super) part: Range<usize>,
}

/// The words that identify a tool.
struct ToolVocabulary<'t> {
    tool: &'t OfferedTool,
    name: HashSet<String>,
    parameters: HashSet<String>,
    /// The words of the first sentence of the description, and of the rest.
    description: HashSet<String>,
    details: HashSet<String>,
    /// Whether its name consists only of generic words.
    is_generic: bool,
}

/// How well a message matches a tool.
#[derive(Debug, Clone, Default)]
struct MatchScore {
    points: u32,
    /// The indexes of the words that match the tool.
    explained: Vec<usize>,
    /// The indexes of those that name it.
    anchors: Vec<usize>,
}

/// Selects the tools that a message asks for, in its order. `can_call` returns whether a tool's arguments are available.
pub(super) fn pick<'t>(
    text: &str,
    words: &[Word<'_>],
    tools: &'t [OfferedTool],
    can_call: impl Fn(&OfferedTool) -> bool,
) -> Vec<ToolMatch<'t>> {
    // The text after a colon is more likely an argument than another request.
    let colon = words.iter().skip(1).position(|word| word.gap.contains(':')).map_or(words.len(), |at| at + 1);
    let picked = match_tools(text, words.get(..colon).unwrap_or_default(), tools, &can_call);
    let mut picked = if picked.is_empty() { match_tools(text, words, tools, &can_call) } else { picked };
    picked.sort_by_key(|(_, anchor)| *anchor);
    let ends = picked.iter().skip(1).map(|(_, anchor)| *anchor).collect::<Vec<_>>();
    let mut from = 0;
    let parts = picked.iter().enumerate().map(|(index, (tool, anchor))| {
        let to = ends.get(index).map_or(words.len(), |next| boundary(words, *anchor, *next));
        ToolMatch { tool, part: std::mem::replace(&mut from, to)..to }
    });
    parts.collect()
}

/// Selects tools, each with the index of the first word that is about it.
fn match_tools<'t>(
    text: &str,
    words: &[Word<'_>],
    tools: &'t [OfferedTool],
    can_call: impl Fn(&OfferedTool) -> bool,
) -> Vec<(&'t OfferedTool, usize)> {
    let known: Vec<ToolVocabulary<'t>> = tools.iter().map(ToolVocabulary::new).collect();
    let mut explained: HashSet<usize> = HashSet::new();
    let mut picked: Vec<(&'t OfferedTool, usize)> = Vec::new();
    while picked.len() < MAX_TOOLS {
        let is_first = picked.is_empty();
        let mut best: Option<(u32, MatchScore, &ToolVocabulary<'t>)> = None;
        for candidate in known.iter().filter(|known| !picked.iter().any(|(tool, _)| tool.name == known.tool.name)) {
            let score = candidate.score(text, words, &explained);
            // Further tools must be named by words that do not refer to previous ones.
            if score.points < MIN_POINTS || !is_first && (score.anchors.is_empty() || !can_call(candidate.tool)) {
                continue;
            }
            let rank = score.points + if is_first && can_call(candidate.tool) { 4 } else { 0 };
            if best.as_ref().is_none_or(|(highest, ..)| rank > *highest) {
                best = Some((rank, score, candidate));
            }
        }
        let Some((_, score, candidate)) = best else { break };
        let anchor = score.anchors.iter().chain(&score.explained).min().copied().unwrap_or(0);
        picked.push((candidate.tool, anchor));
        explained.extend(score.explained);
    }
    picked
}

/// Returns where the part about the second of two tools starts.
fn boundary(words: &[Word<'_>], first: usize, second: usize) -> usize {
    (first + 1..=second).rev().find(|at| words.get(*at).is_some_and(Word::starts_clause)).unwrap_or(second)
}

impl<'t> ToolVocabulary<'t> {
    fn new(tool: &'t OfferedTool) -> Self {
        let full_name = tool.name.full_name();
        let name: HashSet<String> = name_words(&full_name).into_iter().collect();
        let (first, rest) = tool.description.split_once(". ").unwrap_or((&tool.description, ""));
        let stems = |text: &str| -> HashSet<String> {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
            words.take(200).map(stem).collect()
        };
        let parameters = parameters(&tool.schema, &tool.schema);
        Self {
            tool,
            is_generic: name.iter().all(|word| is_generic(word)),
            name,
            parameters: parameters.iter().flat_map(|parameter| parameter.words.clone()).collect(),
            description: stems(first),
            details: stems(rest),
        }
    }

    fn score(&self, text: &str, words: &[Word<'_>], explained: &HashSet<usize>) -> MatchScore {
        let mut score = MatchScore::default();
        let mut seen = HashSet::new();
        let full_name = self.tool.name.full_name();
        let own_name = full_name.rsplit('/').next().unwrap_or(&full_name);
        for (at, word) in words.iter().enumerate().filter(|(at, _)| !explained.contains(at)) {
            if word.text == full_name || word.text == own_name && own_name.contains(char::is_uppercase) {
                score.points += 24;
                score.anchors.push(at);
            }
            if word.is_quoted || is_function_word(&word.stem) || !seen.insert(&word.stem) {
                continue;
            }
            let is_generic_word = is_generic(&word.stem);
            let in_name = self.name.contains(&word.stem);
            let points = match () {
                () if in_name && (!is_generic_word || self.is_generic) => 12,
                () if in_name => 2,
                () if is_generic_word => 0,
                () if self.description.contains(&word.stem) => 8,
                () if self.parameters.contains(&word.stem) => 6,
                () if self.details.contains(&word.stem) => 4,
                () => continue,
            };
            score.points += points;
            score.explained.push(at);
            if points >= 12 {
                score.anchors.push(at);
            }
        }
        // An address or a calculation identifies a tool as well as a word does.
        let parameters = parameters(&self.tool.schema, &self.tool.schema);
        let matching = parameters.iter().find_map(|parameter| find::find_by_format(parameter, text, words));
        if let Some(at) = matching.filter(|at| !explained.contains(at)) {
            score.points += 8;
            score.explained.push(at);
            score.anchors.push(at);
        }
        let is_incomplete = self.name.iter().any(|word| !is_generic(word) && !seen.contains(word));
        if !is_incomplete && score.points > 0 && !self.is_generic {
            score.points += 2;
        }
        score
    }
}
