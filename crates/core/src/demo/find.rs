//! Things that are known by their form: addresses, dates, calculations, JSON, lists.

use super::schema::Parameter;
use super::word::{Word, is_function_word, number, truth};
use serde_json::Value as Json;

/// A form of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Email,
    Url,
    Date,
    Time,
    DateTime,
    Path,
}

impl Form {
    /// Returns the form that the values of a parameter have, by its format or its name.
    pub(super) fn of(parameter: &Parameter<'_>) -> Option<Self> {
        match parameter.schema.get("format").and_then(Json::as_str) {
            Some("email" | "idn-email") => return Some(Form::Email),
            Some("uri" | "url" | "iri" | "uri-reference") => return Some(Form::Url),
            Some("date") => return Some(Form::Date),
            Some("time") => return Some(Form::Time),
            Some("date-time") => return Some(Form::DateTime),
            Some(_) => return None,
            None => {}
        }
        match parameter.words.last()?.as_str() {
            "email" => Some(Form::Email),
            "url" | "uri" | "link" => Some(Form::Url),
            "dat" => Some(Form::Date),
            "path" | "fil" | "folder" => Some(Form::Path),
            _ => None,
        }
    }

    /// Tells whether a word has the form.
    pub(super) fn is(self, text: &str) -> bool {
        let digits = |text: &str, mark: char, lengths: &[usize]| {
            let parts: Vec<&str> = text.split(mark).collect();
            parts.len() == lengths.len()
                && parts
                    .iter()
                    .zip(lengths)
                    .all(|(part, length)| part.len() == *length && part.chars().all(|c| c.is_ascii_digit()))
        };
        match self {
            Form::Email => text.split_once('@').is_some_and(|(who, at)| {
                !who.is_empty() && at.contains('.') && !at.contains('@') && !at.starts_with('.')
            }),
            Form::Url => text.contains("://"),
            Form::Date => digits(text, '-', &[4, 2, 2]),
            Form::Time => digits(text, ':', &[2, 2]) || digits(text, ':', &[2, 2, 2]),
            Form::DateTime => text.split_once('T').is_some_and(|(date, _)| Form::Date.is(date)),
            Form::Path => text.contains(['/', '.']) && !Form::Url.is(text) && !Form::Email.is(text),
        }
    }
}

/// Tells whether a parameter takes a calculation.
pub(super) fn is_expression(parameter: &Parameter<'_>) -> bool {
    parameter.words.iter().any(|word| matches!(word.as_str(), "expression" | "formula" | "calculat" | "equation"))
}

/// Finds the first calculation in a text: digits with signs between, in words or not.
pub(super) fn expression(text: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut best = None;
    let text = text.replace("multiplied by", "*").replace("divided by", "/").replace("to the power of", "^");
    for piece in text.split_whitespace() {
        let sign = match piece.to_lowercase().as_str() {
            "plus" => "+",
            "minus" => "-",
            "times" | "x" | "×" => "*",
            "over" | "÷" => "/",
            _ => piece,
        };
        let core = sign.trim_end_matches(['?', '!', '.', ',', ';', '=']);
        let is_part = !core.is_empty() && core.chars().all(|c| c.is_ascii_digit() || "+-*/^%().,×÷".contains(c))
            || core.split_once('(').is_some_and(|(name, _)| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
            });
        let number = number(core).filter(|_| core.starts_with(char::is_alphabetic));
        let is_part = is_part || number.is_some();
        if is_part {
            parts.push(number.map_or_else(|| core.to_owned(), |number| number.to_string()));
        }
        if !is_part || core.len() < sign.len() {
            best = best.or_else(|| calculation(&std::mem::take(&mut parts)));
            parts.clear();
        }
    }
    best.or_else(|| calculation(&parts))
}

/// Joins the parts of a calculation, if they are one: it has digits, and a sign after the first of them.
fn calculation(parts: &[String]) -> Option<String> {
    let is_sign = |part: &&String| part.chars().all(|c| "+*/^%".contains(c)) || *part == "-";
    let first = parts.iter().position(|part| !is_sign(&part))?;
    let last = parts.iter().rposition(|part| !is_sign(&part))?;
    let joined = parts.get(first..=last)?.join(" ");
    // A sign at the end has nothing to work on: `15%` is a number.
    let inner = joined.trim_end_matches(|c: char| "+-*/^%×÷".contains(c));
    let operator = inner.chars().skip(1).any(|c| "+-*/^%(×÷".contains(c));
    let has_digits = joined.contains(|c: char| c.is_ascii_digit());
    // A date has signs between digits too.
    (operator && has_digits && !parts.iter().any(|part| Form::Date.is(part))).then_some(joined)
}

/// Returns the values of an enumeration that a message names, in the order of the message.
pub(super) fn allowed(schema: &Json, words: &[Word<'_>]) -> Vec<Json> {
    let Some(values) = schema.get("enum").and_then(Json::as_array) else { return Vec::new() };
    let mut found: Vec<(usize, &Json)> = Vec::new();
    for value in values {
        let Some(text) = value.as_str() else { continue };
        let parts: Vec<String> = super::word::name_words(text);
        // One letter is a word of its own only as it is written: `F`, `C`.
        let is_letter = text.chars().count() == 1;
        let place = (0..words.len()).find(|at| {
            let here = words.iter().skip(*at);
            match is_letter {
                true => words.get(*at).is_some_and(|word| word.text == text),
                false => !parts.is_empty() && here.take(parts.len()).map(|word| &word.stem).eq(parts.iter()),
            }
        });
        found.extend(place.map(|at| (at, value)));
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, value)| value.clone()).collect()
}

/// Tells whether a message says yes or no to a parameter, if it mentions it.
pub(super) fn mentioned(parameter: &Parameter<'_>, words: &[Word<'_>]) -> Option<bool> {
    let main = parameter.words.iter().find(|word| !is_function_word(word))?;
    let at = words.iter().position(|word| word.stem == *main)?;
    let said = words.get(at + 1).filter(|word| word.gap.contains([':', '=']));
    let said = said.or_else(|| words.get(at + 2).filter(|_| words.get(at + 1).is_some_and(|word| word.stem == "is")));
    let is_denied = words.iter().take(at).rev().take(2).any(|word| {
        matches!(word.stem.as_str(), "not" | "no" | "without" | "never" | "don't") || word.text.ends_with("n't")
    });
    Some(said.and_then(|word| truth(word.text)).unwrap_or(!is_denied))
}

/// Finds JSON in a text.
pub(super) fn json(text: &str, open: char) -> Option<Json> {
    let rest = text.get(text.find(open)?..)?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}

/// Returns what a text enumerates after a colon: `tags: red, green and blue`.
pub(super) fn enumeration(text: &str) -> Vec<&str> {
    let Some((_, list)) = text.split_once(':').filter(|(_, list)| !list.starts_with("//")) else { return Vec::new() };
    let parts = list.split([',', ';', '\n']).flat_map(|part| part.split(" and "));
    let parts = parts.map(|part| part.trim().trim_end_matches(['.', '!', '?']).trim_matches(['"', '\'', '`']));
    parts.filter(|part| !part.is_empty()).take(100).collect()
}

/// Tells whether a parameter takes all that was said: a question or a task for someone else.
pub(super) fn is_task(parameter: &Parameter<'_>) -> bool {
    ends_with(parameter, &["input", "prompt", "request", "task", "question", "instruction"])
}

/// Returns the part of a message that a free text is: all of it for a message; what stands after "for" or "about" for
/// what is looked for; what stands after a colon for any text.
pub(super) fn rest(parameter: &Parameter<'_>, text: &str, words: &[Word<'_>]) -> Option<String> {
    if Form::of(parameter).is_some() || is_expression(parameter) || parameter.schema.get("pattern").is_some() {
        return None;
    }
    let after_colon = || text.split_once(": ").map(|(_, rest)| rest.trim().to_owned()).filter(|rest| !rest.is_empty());
    if ends_with(parameter, &["text", "content", "body", "not", "messag", "sentenc", "phras"]) {
        return after_colon();
    }
    if !ends_with(parameter, &["query", "q", "search", "topic", "term", "keyword", "subject", "titl", "word", "page"]) {
        return None;
    }
    let is_marker = |word: &Word<'_>| matches!(word.stem.as_str(), "for" | "about" | "on" | "of");
    let marker = words.iter().rposition(is_marker).or_else(|| words.iter().position(|word| word.stem == "search"));
    let is_article = |word: &&Word<'_>| matches!(word.stem.as_str(), "the" | "a" | "an");
    let found = || Some(spoken(words.iter().skip(marker? + 1).skip_while(is_article)));
    after_colon().or_else(found).filter(|found| !found.is_empty())
}

fn ends_with(parameter: &Parameter<'_>, names: &[&str]) -> bool {
    parameter.words.last().is_some_and(|word| names.contains(&word.as_str()))
}

/// Returns words as they stand in the message.
pub(super) fn spoken<'w, 't: 'w>(words: impl Iterator<Item = &'w Word<'t>>) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push_str(word.gap);
        }
        text.push_str(word.text);
    }
    text
}

/// Returns the word of a message that may be meant for a parameter by its form alone.
pub(super) fn suited(parameter: &Parameter<'_>, text: &str, words: &[Word<'_>]) -> Option<usize> {
    if is_expression(parameter) {
        let found = expression(text)?;
        let is_part = |word: &Word<'_>| found.starts_with(word.text) || number(word.text).is_some();
        return words.iter().position(is_part);
    }
    let form = Form::of(parameter).filter(|form| matches!(form, Form::Email | Form::Url))?;
    words.iter().position(|word| form.is(word.text))
}
