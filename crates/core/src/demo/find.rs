//! Values with a recognizable format: addresses, dates, calculations, JSON, lists.

use super::schema::Parameter;
use super::word::{Word, is_function_word, parse_bool, parse_number};
use serde_json::Value as Json;

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueFormat {
    Email,
    Url,
    Date,
    Time,
    DateTime,
    Path,
}

impl ValueFormat {
    /// Returns the format of a parameter's values, from its schema or its name.
    pub(super) fn from_parameter(parameter: &Parameter<'_>) -> Option<Self> {
        match parameter.schema.get("format").and_then(Json::as_str) {
            Some("email" | "idn-email") => return Some(ValueFormat::Email),
            Some("uri" | "url" | "iri" | "uri-reference") => return Some(ValueFormat::Url),
            Some("date") => return Some(ValueFormat::Date),
            Some("time") => return Some(ValueFormat::Time),
            Some("date-time") => return Some(ValueFormat::DateTime),
            Some(_) => return None,
            None => {}
        }
        match parameter.words.last()?.as_str() {
            "email" => Some(ValueFormat::Email),
            "url" | "uri" | "link" => Some(ValueFormat::Url),
            "dat" => Some(ValueFormat::Date),
            "path" | "fil" | "folder" => Some(ValueFormat::Path),
            _ => None,
        }
    }

    /// Returns whether a word has this format.
    pub(super) fn matches(self, text: &str) -> bool {
        let digits = |text: &str, mark: char, lengths: &[usize]| {
            let parts: Vec<&str> = text.split(mark).collect();
            parts.len() == lengths.len()
                && parts
                    .iter()
                    .zip(lengths)
                    .all(|(part, length)| part.len() == *length && part.chars().all(|c| c.is_ascii_digit()))
        };
        match self {
            ValueFormat::Email => text.split_once('@').is_some_and(|(who, at)| {
                !who.is_empty() && at.contains('.') && !at.contains('@') && !at.starts_with('.')
            }),
            ValueFormat::Url => text.contains("://"),
            ValueFormat::Date => digits(text, '-', &[4, 2, 2]),
            ValueFormat::Time => digits(text, ':', &[2, 2]) || digits(text, ':', &[2, 2, 2]),
            ValueFormat::DateTime => text.split_once('T').is_some_and(|(date, _)| ValueFormat::Date.matches(date)),
            ValueFormat::Path => {
                text.contains(['/', '.']) && !ValueFormat::Url.matches(text) && !ValueFormat::Email.matches(text)
            }
        }
    }
}

/// Returns whether a parameter is a calculation.
pub(super) fn is_expression(parameter: &Parameter<'_>) -> bool {
    parameter.words.iter().any(|word| matches!(word.as_str(), "expression" | "formula" | "calculat" | "equation"))
}

/// Finds the first calculation in a text: numbers and operators, possibly as words.
pub(super) fn find_expression(text: &str) -> Option<String> {
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
        let number = parse_number(core).filter(|_| core.starts_with(char::is_alphabetic));
        let is_part = is_part || number.is_some();
        if is_part {
            parts.push(number.map_or_else(|| core.to_owned(), |number| number.to_string()));
        }
        if !is_part || core.len() < sign.len() {
            best = best.or_else(|| join_calculation(&std::mem::take(&mut parts)));
            parts.clear();
        }
    }
    best.or_else(|| join_calculation(&parts))
}

/// Joins the parts of a calculation, if they contain digits and an operator after the first part.
fn join_calculation(parts: &[String]) -> Option<String> {
    let is_sign = |part: &&String| part.chars().all(|c| "+*/^%".contains(c)) || *part == "-";
    let first = parts.iter().position(|part| !is_sign(&part))?;
    let last = parts.iter().rposition(|part| !is_sign(&part))?;
    let joined = parts.get(first..=last)?.join(" ");
    // A trailing operator has no operand: `15%` is a number.
    let inner = joined.trim_end_matches(|c: char| "+-*/^%×÷".contains(c));
    let has_operator = inner.chars().skip(1).any(|c| "+-*/^%(×÷".contains(c));
    let has_digits = joined.contains(|c: char| c.is_ascii_digit());
    // Dates contain operators, too.
    (has_operator && has_digits && !parts.iter().any(|part| ValueFormat::Date.matches(part))).then_some(joined)
}

/// Returns the values of an enumeration that occur in a message, in the order of the message.
pub(super) fn enum_values(schema: &Json, words: &[Word<'_>]) -> Vec<Json> {
    let Some(values) = schema.get("enum").and_then(Json::as_array) else { return Vec::new() };
    let mut found: Vec<(usize, &Json)> = Vec::new();
    for value in values {
        let Some(text) = value.as_str() else { continue };
        let parts: Vec<String> = super::word::name_words(text);
        // Single letters such as `F` and `C` must match exactly.
        let is_letter = text.chars().count() == 1;
        let position = (0..words.len()).find(|at| {
            let here = words.iter().skip(*at);
            match is_letter {
                true => words.get(*at).is_some_and(|word| word.text == text),
                false => !parts.is_empty() && here.take(parts.len()).map(|word| &word.stem).eq(parts.iter()),
            }
        });
        found.extend(position.map(|at| (at, value)));
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, value)| value.clone()).collect()
}

/// Returns the value of a boolean parameter, if a message mentions it.
pub(super) fn mentioned_bool(parameter: &Parameter<'_>, words: &[Word<'_>]) -> Option<bool> {
    let main = parameter.words.iter().find(|word| !is_function_word(word))?;
    let at = words.iter().position(|word| word.stem == *main)?;
    let value = words.get(at + 1).filter(|word| word.gap.contains([':', '=']));
    let value = value.or_else(|| words.get(at + 2).filter(|_| words.get(at + 1).is_some_and(|word| word.stem == "is")));
    let is_negated = words.iter().take(at).rev().take(2).any(|word| {
        matches!(word.stem.as_str(), "not" | "no" | "without" | "never" | "don't") || word.text.ends_with("n't")
    });
    Some(value.and_then(|word| parse_bool(word.text)).unwrap_or(!is_negated))
}

/// Finds JSON in a text.
pub(super) fn find_json(text: &str, open: char) -> Option<Json> {
    let rest = text.get(text.find(open)?..)?;
    serde_json::Deserializer::from_str(rest).into_iter().next()?.ok()
}

/// Returns the items of a list after a colon: `tags: red, green and blue`.
pub(super) fn enumeration(text: &str) -> Vec<&str> {
    let Some((_, list)) = text.split_once(':').filter(|(_, list)| !list.starts_with("//")) else { return Vec::new() };
    let parts = list.split([',', ';', '\n']).flat_map(|part| part.split(" and "));
    let parts = parts.map(|part| part.trim().trim_end_matches(['.', '!', '?']).trim_matches(['"', '\'', '`']));
    parts.filter(|part| !part.is_empty()).take(100).collect()
}

/// Returns whether a parameter takes the whole message: a question or a task for another agent.
pub(super) fn is_task(parameter: &Parameter<'_>) -> bool {
    ends_with(parameter, &["input", "prompt", "request", "task", "question", "instruction"])
}

/// Returns the part of a message that is a free text: the text after "for" or "about" for a query, the text after a colon
/// for any text.
pub(super) fn free_text(parameter: &Parameter<'_>, text: &str, words: &[Word<'_>]) -> Option<String> {
    if ValueFormat::from_parameter(parameter).is_some()
        || is_expression(parameter)
        || parameter.schema.get("pattern").is_some()
    {
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
    let found = || Some(source_text(words.iter().skip(marker? + 1).skip_while(is_article)));
    after_colon().or_else(found).filter(|found| !found.is_empty())
}

fn ends_with(parameter: &Parameter<'_>, names: &[&str]) -> bool {
    parameter.words.last().is_some_and(|word| names.contains(&word.as_str()))
}

/// Returns the text of words as in the message.
pub(super) fn source_text<'w, 't: 'w>(words: impl Iterator<Item = &'w Word<'t>>) -> String {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push_str(word.gap);
        }
        text.push_str(word.text);
    }
    text
}

/// Returns the index of a word that matches a parameter by its format alone.
pub(super) fn find_by_format(parameter: &Parameter<'_>, text: &str, words: &[Word<'_>]) -> Option<usize> {
    if is_expression(parameter) {
        let found = find_expression(text)?;
        let is_part = |word: &Word<'_>| found.starts_with(word.text) || parse_number(word.text).is_some();
        return words.iter().position(is_part);
    }
    let format = ValueFormat::from_parameter(parameter)
        .filter(|format| matches!(format, ValueFormat::Email | ValueFormat::Url))?;
    words.iter().position(|word| format.matches(word.text))
}
