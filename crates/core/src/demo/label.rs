//! Values that a message gives by the names of parameters: `amount 20`, `city: Paris`, `5 days`.

use super::find::spoken;
use super::schema::{Kind, Parameter, kind, value_of};
use super::word::{Word, is_function_word};
use serde_json::Value as Json;
use std::ops::Range;

/// Returns the value that is said to be that of a parameter, and the words that say it.
pub(super) fn labelled(parameter: &Parameter<'_>, words: &[Word<'_>], used: &[bool]) -> Option<(Json, Range<usize>)> {
    let labels = labels(&parameter.words);
    labels.iter().enumerate().find_map(|(rank, label)| {
        let places = (0..words.len()).filter(|at| {
            let here = words.iter().skip(*at).map(|word| &word.stem);
            !label.is_empty() && here.take(label.len()).eq(label.iter())
        });
        let label_is_name = rank == 0;
        places.into_iter().find_map(|at| {
            let after = at + label.len();
            explicit(parameter, words, after)
                .or_else(|| before(parameter, words, at))
                .or_else(|| plain(parameter, words, after, label_is_name))
                .filter(|(_, taken)| !used.get(taken.clone()).unwrap_or_default().contains(&true))
        })
    })
}

/// Returns what a parameter may be called in a message: its name, its name without `id`, and what people say instead.
fn labels(name: &[String]) -> Vec<Vec<String>> {
    let mut labels = vec![name.to_vec()];
    if let Some((last, rest @ [_, ..])) = name.split_last()
        && matches!(last.as_str(), "id" | "number" | "nam" | "cod" | "key")
    {
        labels.push(rest.to_vec());
    }
    let instead: &[&str] = match name {
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
    labels.extend(instead.iter().map(|word| vec![(*word).to_owned()]));
    labels
}

/// `city: New York`, `city = Paris`, `the city is Paris`.
fn explicit(parameter: &Parameter<'_>, words: &[Word<'_>], at: usize) -> Option<(Json, Range<usize>)> {
    let word = words.get(at)?;
    if word.gap.contains(':') {
        let more = words.iter().skip(at + 1);
        let more = more.take_while(|word| word.gap.trim().is_empty() && !word.begins_clause()).count();
        // The longest part that is a value is meant: all of a name, the first word of a number and its unit.
        return (at + 1..=at + 1 + more).rev().find_map(|end| value_from(parameter, words, at..end));
    }
    if word.gap.contains(['=', '#']) {
        return value_from(parameter, words, at..at + 1);
    }
    let is_said = matches!(word.stem.as_str(), "is" | "are" | "nam" | "call" | "number");
    let value = words.get(at + 1).filter(|value| is_said && !value.begins_sentence())?;
    let is_value = value.looks_like_a_value() || !is_function_word(&value.stem);
    is_value.then(|| value_from(parameter, words, at + 1..name_end(words, at + 1))).flatten()
}

/// `5 days`.
fn before(parameter: &Parameter<'_>, words: &[Word<'_>], at: usize) -> Option<(Json, Range<usize>)> {
    let place = at.checked_sub(1).filter(|_| matches!(kind(parameter.schema), Kind::Integer | Kind::Number))?;
    value_from(parameter, words, place..at)
}

/// `amount 20`, `order AB123456`, `word serendipity`.
fn plain(
    parameter: &Parameter<'_>,
    words: &[Word<'_>],
    at: usize,
    label_is_name: bool,
) -> Option<(Json, Range<usize>)> {
    let is_text = matches!(kind(parameter.schema), Kind::Text | Kind::Any);
    let at = if !is_text && words.get(at).is_some_and(|word| matches!(word.stem.as_str(), "of" | "to" | "at")) {
        at + 1
    } else {
        at
    };
    let word = words.get(at).filter(|word| !word.begins_clause())?;
    let ends = words.get(at + 1).is_none_or(Word::begins_clause);
    // "in Paris" is no text, and "in 'Paris'" may be one.
    let is_in = at.checked_sub(1).and_then(|at| words.get(at)).is_some_and(|label| label.stem == "in");
    let is_value = match is_text {
        true if is_in && !label_is_name => word.is_quoted,
        true => word.looks_like_a_value() || label_is_name && ends && !is_function_word(&word.stem),
        false => true,
    };
    is_value.then(|| value_from(parameter, words, at..name_end(words, at))).flatten()
}

/// Returns where a name of several words ends.
fn name_end(words: &[Word<'_>], at: usize) -> usize {
    let is_name = |word: &&Word<'_>| word.is_capitalised() && word.gap.trim().is_empty();
    match words.get(at) {
        Some(first) if first.is_capitalised() => at + 1 + words.iter().skip(at + 1).take_while(is_name).count(),
        _ => at + 1,
    }
}

fn value_from(parameter: &Parameter<'_>, words: &[Word<'_>], range: Range<usize>) -> Option<(Json, Range<usize>)> {
    let found = words.get(range.clone())?;
    let text = spoken(found.iter());
    Some((value_of(parameter.schema, &text)?, range))
}
