//! Which tools a message asks for.

use super::find;
use super::schema::parameters;
use super::word::{Word, is_function_word, is_weak, name_words, stem};
use crate::message::request::OfferedTool;
use std::collections::HashSet;
use std::ops::Range;

/// What a tool needs at least to be meant: one word of its name, or one of what it says about itself.
const ENOUGH: u32 = 8;
/// How many tools one message may ask for.
const MOST: usize = 8;

/// A tool that a message asks for.
#[derive(Debug)]
pub(super) struct Picked<'t> {
    pub(super) tool: &'t OfferedTool,
    /// The words of the message that are about it.
    pub(super) part: Range<usize>,
}

/// The words that a tool is known by.
struct Known<'t> {
    tool: &'t OfferedTool,
    name: HashSet<String>,
    parameters: HashSet<String>,
    /// The words of the first sentence of the description, and those of the rest.
    description: HashSet<String>,
    details: HashSet<String>,
    /// Whether its name consists of words that fit many tools.
    is_vague: bool,
}

/// How well a message fits a tool.
#[derive(Debug, Clone, Default)]
struct Fit {
    points: u32,
    /// The words of the message that are known of the tool.
    explained: Vec<usize>,
    /// Those of them that name it.
    anchors: Vec<usize>,
}

/// Picks the tools that a message asks for, in its order. `can_call` tells whether the arguments of a tool are there.
pub(super) fn pick<'t>(
    text: &str,
    words: &[Word<'_>],
    tools: &'t [OfferedTool],
    can_call: impl Fn(&OfferedTool) -> bool,
) -> Vec<Picked<'t>> {
    // What stands after a colon is more likely a text to work on than another thing to do.
    let colon = words.iter().skip(1).position(|word| word.gap.contains(':')).map_or(words.len(), |at| at + 1);
    let picked = pick_among(text, words.get(..colon).unwrap_or_default(), tools, &can_call);
    let mut picked = if picked.is_empty() { pick_among(text, words, tools, &can_call) } else { picked };
    picked.sort_by_key(|(_, anchor)| *anchor);
    let ends = picked.iter().skip(1).map(|(_, anchor)| *anchor).collect::<Vec<_>>();
    let mut from = 0;
    let parts = picked.iter().enumerate().map(|(index, (tool, anchor))| {
        let to = ends.get(index).map_or(words.len(), |next| boundary(words, *anchor, *next));
        Picked { tool, part: std::mem::replace(&mut from, to)..to }
    });
    parts.collect()
}

/// Picks tools, each with the first word that is about it.
fn pick_among<'t>(
    text: &str,
    words: &[Word<'_>],
    tools: &'t [OfferedTool],
    can_call: impl Fn(&OfferedTool) -> bool,
) -> Vec<(&'t OfferedTool, usize)> {
    let known: Vec<Known<'t>> = tools.iter().map(Known::of).collect();
    let mut explained: HashSet<usize> = HashSet::new();
    let mut picked: Vec<(&'t OfferedTool, usize)> = Vec::new();
    while picked.len() < MOST {
        let is_first = picked.is_empty();
        let mut best: Option<(u32, Fit, &Known<'t>)> = None;
        for candidate in known.iter().filter(|known| !picked.iter().any(|(tool, _)| tool.name == known.tool.name)) {
            let fit = candidate.fit(text, words, &explained);
            // A second tool has to be named, by words that do not speak of the first.
            if fit.points < ENOUGH || !is_first && (fit.anchors.is_empty() || !can_call(candidate.tool)) {
                continue;
            }
            let rank = fit.points + if is_first && can_call(candidate.tool) { 4 } else { 0 };
            if best.as_ref().is_none_or(|(most, ..)| rank > *most) {
                best = Some((rank, fit, candidate));
            }
        }
        let Some((_, fit, candidate)) = best else { break };
        let anchor = fit.anchors.iter().chain(&fit.explained).min().copied().unwrap_or(0);
        picked.push((candidate.tool, anchor));
        explained.extend(fit.explained);
    }
    picked
}

/// Returns where the part about the second of two tools begins.
fn boundary(words: &[Word<'_>], first: usize, second: usize) -> usize {
    (first + 1..=second).rev().find(|at| words.get(*at).is_some_and(Word::begins_clause)).unwrap_or(second)
}

impl<'t> Known<'t> {
    fn of(tool: &'t OfferedTool) -> Self {
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
            is_vague: name.iter().all(|word| is_weak(word)),
            name,
            parameters: parameters.iter().flat_map(|parameter| parameter.words.clone()).collect(),
            description: stems(first),
            details: stems(rest),
        }
    }

    fn fit(&self, text: &str, words: &[Word<'_>], explained: &HashSet<usize>) -> Fit {
        let mut fit = Fit::default();
        let mut seen = HashSet::new();
        let full_name = self.tool.name.full_name();
        let own_name = full_name.rsplit('/').next().unwrap_or(&full_name);
        for (at, word) in words.iter().enumerate().filter(|(at, _)| !explained.contains(at)) {
            if word.text == full_name || word.text == own_name && own_name.contains(char::is_uppercase) {
                fit.points += 24;
                fit.anchors.push(at);
            }
            if word.is_quoted || is_function_word(&word.stem) || !seen.insert(&word.stem) {
                continue;
            }
            let weak = is_weak(&word.stem);
            let in_name = self.name.contains(&word.stem);
            let points = match () {
                () if in_name && (!weak || self.is_vague) => 12,
                () if in_name => 2,
                () if weak => 0,
                () if self.description.contains(&word.stem) => 8,
                () if self.parameters.contains(&word.stem) => 6,
                () if self.details.contains(&word.stem) => 4,
                () => continue,
            };
            fit.points += points;
            fit.explained.push(at);
            if points >= 12 {
                fit.anchors.push(at);
            }
        }
        // An address or a calculation says what is wanted as well as a word does.
        let parameters = parameters(&self.tool.schema, &self.tool.schema);
        let suited = parameters.iter().find_map(|parameter| find::suited(parameter, text, words));
        if let Some(at) = suited.filter(|at| !explained.contains(at)) {
            fit.points += 8;
            fit.explained.push(at);
            fit.anchors.push(at);
        }
        let missed = self.name.iter().any(|word| !is_weak(word) && !seen.contains(word));
        if !missed && fit.points > 0 && !self.is_vague {
            fit.points += 2;
        }
        fit
    }
}
