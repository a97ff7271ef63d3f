//! Values that a message labels with the names of parameters: `amount 20`, `city: Paris`, `5 days`.

use super::find::source_text;
use super::schema::{Parameter, ParameterKind, kind, parse_value};
use super::word::{Word, is_function_word};
use serde_json::Value as Json;
use std::ops::Range;

/// Returns the labelled value of a parameter, and the range of its words.
pub(super) fn find_labelled(
    parameter: &Parameter<'_>,
    words: &[Word<'_>],
    used: &[bool],
) -> Option<(Json, Range<usize>)> {
    let labels = labels(&parameter.words);
    labels.iter().enumerate().find_map(|(rank, label)| {
        let positions = (0..words.len()).filter(|at| {
            let here = words.iter().skip(*at).map(|word| &word.stem);
            !label.is_empty() && here.take(label.len()).eq(label.iter())
        });
        let label_is_name = rank == 0;
        positions.into_iter().find_map(|at| {
            let after = at + label.len();
            explicit_value(parameter, words, after)
                .or_else(|| value_before(parameter, words, at))
                .or_else(|| value_after(parameter, words, after, label_is_name))
                .filter(|(_, taken)| !used.get(taken.clone()).unwrap_or_default().contains(&true))
        })
    })
}

/// Returns the labels of a parameter in messages: its name, its name without `id`, and common synonyms.
fn labels(name: &[String]) -> Vec<Vec<String>> {
    let mut labels = vec![name.to_vec()];
    if let Some((last, rest @ [_, ..])) = name.split_last()
        && matches!(last.as_str(), "id" | "number" | "nam" | "cod" | "key")
    {
        labels.push(rest.to_vec());
    }
    let synonyms: &[&str] = match name {
        [one] => match one.as_str() {
            "origin" | "start" => &["from"],
            "destination" | "target" => &["to"],
            "limit" | "count" | "max" => &["top", "first", "last"],
            "replacement" | "with" => &["by"],
            "text" => &["in"],
            _ => &[],
        },
        _ => &[],
    };
    labels.extend(synonyms.iter().map(|word| vec![(*word).to_owned()]));
    labels
}

/// Matches `city: New York`, `city = Paris`, `the city is Paris`.
fn explicit_value(parameter: &Parameter<'_>, words: &[Word<'_>], at: usize) -> Option<(Json, Range<usize>)> {
    let word = words.get(at)?;
    if word.gap.contains(':') {
        let more = words.iter().skip(at + 1);
        let more = more.take_while(|word| word.gap.trim().is_empty() && !word.starts_clause()).count();
        // Takes the longest part that is a value: all of a name, but only the number of a number with a unit.
        return (at + 1..=at + 1 + more).rev().find_map(|end| value_from(parameter, words, at..end));
    }
    if word.gap.contains(['=', '#']) {
        return value_from(parameter, words, at..at + 1);
    }
    let is_stated = matches!(word.stem.as_str(), "is" | "are" | "nam" | "call" | "number");
    let value = words.get(at + 1).filter(|value| is_stated && !value.starts_sentence())?;
    let is_value = value.looks_like_a_value() || !is_function_word(&value.stem);
    is_value.then(|| value_from(parameter, words, at + 1..name_end(words, at + 1))).flatten()
}

/// Matches `5 days`.
fn value_before(parameter: &Parameter<'_>, words: &[Word<'_>], at: usize) -> Option<(Json, Range<usize>)> {
    let previous = at
        .checked_sub(1)
        .filter(|_| matches!(kind(parameter.schema), ParameterKind::Integer | ParameterKind::Number))?;
    value_from(parameter, words, previous..at)
}

/// Matches `amount 20`, `order AB123456`, `word serendipity`.
fn value_after(
    parameter: &Parameter<'_>,
    words: &[Word<'_>],
    at: usize,
    label_is_name: bool,
) -> Option<(Json, Range<usize>)> {
    let is_text = matches!(kind(parameter.schema), ParameterKind::Text | ParameterKind::Any);
    let at = if !is_text && words.get(at).is_some_and(|word| matches!(word.stem.as_str(), "of" | "to" | "at")) {
        at + 1
    } else {
        at
    };
    let word = words.get(at).filter(|word| !word.starts_clause())?;
    let ends = words.get(at + 1).is_none_or(Word::starts_clause);
    // "in Paris" is a place rather than a text, but "in 'Paris'" may be a text.
    let is_in = at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|label| label.stem == "in");
    let is_value = match is_text {
        true if is_in && !label_is_name => word.is_quoted,
        true => word.looks_like_a_value() || label_is_name && ends && !is_function_word(&word.stem),
        false => true,
    };
    is_value.then(|| value_from(parameter, words, at..name_end(words, at))).flatten()
}

/// Returns the end of a name of several words.
fn name_end(words: &[Word<'_>], at: usize) -> usize {
    let is_name = |word: &&Word<'_>| word.is_capitalised() && word.gap.trim().is_empty();
    match words.get(at) {
        Some(first) if first.is_capitalised() => at + 1 + words.iter().skip(at + 1).take_while(is_name).count(),
        _ => at + 1,
    }
}

fn value_from(parameter: &Parameter<'_>, words: &[Word<'_>], range: Range<usize>) -> Option<(Json, Range<usize>)> {
    let found = words.get(range.clone())?;
    let text = source_text(found.iter());
    Some((parse_value(parameter.schema, &text)?, range))
}
