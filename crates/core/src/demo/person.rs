//! Names of people and places in a message.

use super::word::{Word, is_function_word};

/// Returns the name that users introduce themselves with: "My name is Alice", "I'm Bob", "call me Dr. Ng".
pub(super) fn introduced(words: &[Word<'_>]) -> Option<String> {
    (0..words.len()).find_map(|at| {
        let before = |steps: usize| at.checked_sub(steps).and_then(|at| words.get(at)).map_or("", |word| &word.stem);
        let last = [before(3), before(2), before(1)];
        match last {
            ["my", "nam", "is"] | [_, "call", "me"] => name_at(words, at, Capitalisation::Any),
            [_, "i", "am"] | [_, _, "i'm" | "im"] | [_, "this", "is"] => name_at(words, at, Capitalisation::Required),
            _ if follows_my_names(words, at) => name_at(words, at, Capitalisation::Any),
            _ => None,
        }
    })
}

/// Returns whether the preceding words are "my name's".
fn follows_my_names(words: &[Word<'_>], at: usize) -> bool {
    let before = |steps: usize| at.checked_sub(steps).and_then(|at| words.get(at)).map(|word| word.text.to_lowercase());
    before(2).as_deref() == Some("my") && matches!(before(1).as_deref(), Some("name's" | "name’s"))
}

/// Returns the people that a message is about, other than the user: "say hello to Ann and Bob".
pub(super) fn addressed(words: &[Word<'_>]) -> Vec<String> {
    let own = introduced(words);
    let mut people = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let case = match word.stem.as_str() {
            "to" if at >= 2 && words.get(at - 2).is_some_and(is_greeting) => Capitalisation::Any,
            "hello" if word.text.to_lowercase().starts_with("greet") => Capitalisation::Any,
            // "Hi Ann, I'm Bob" addresses the model as Ann.
            "hello" | "goodbye" if own.is_some() => continue,
            "hello" | "goodbye" | "to" | "for" | "meet" | "tell" | "ask" | "nam" | "call" | "person" => {
                Capitalisation::Required
            }
            _ => continue,
        };
        // One or more names follow these words.
        while let Some((name, next)) = name_and_next(words, at, case) {
            if !people.contains(&name) {
                people.push(name);
            }
            let joins = |word: &Word<'_>| word.stem == "and" || word.gap.contains(',');
            at = next;
            match words.get(next) {
                Some(word) if word.stem == "and" => at += 1,
                Some(word) if joins(word) => {}
                _ => break,
            }
        }
    }
    people.retain(|name| Some(name) != own.as_ref());
    if people.is_empty() && own.is_none() {
        people.extend(capitalised_names(words, |before| !matches!(before, "in" | "from" | "at" | "on" | "near")));
    }
    people
}

/// Returns the places in a message: "in Paris", "from New York".
pub(super) fn places(words: &[Word<'_>]) -> Vec<String> {
    let after =
        capitalised_names(words, |before| matches!(before, "in" | "at" | "for" | "of" | "to" | "from" | "near"));
    if after.is_empty() { capitalised_names(words, |_| true) } else { after }
}

/// Returns the capitalised names within sentences whose preceding word is accepted.
fn capitalised_names(words: &[Word<'_>], accepts: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 1;
    while at < words.len() {
        let starts_sentence = words.get(at).is_none_or(Word::starts_sentence);
        let before = words.get(at - 1).map_or("", |word| &word.stem);
        match name_and_next(words, at, Capitalisation::Required).filter(|_| !starts_sentence && accepts(before)) {
            Some((name, next)) => {
                found.push(name);
                at = next;
            }
            None => at += 1,
        }
    }
    found
}

/// Returns the longest name that starts at a word.
pub(super) fn name_at(words: &[Word<'_>], at: usize, case: Capitalisation) -> Option<String> {
    name_and_next(words, at, case).map(|(name, _)| name)
}

/// The required capitalisation of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Capitalisation {
    /// It must start with a capital letter.
    Required,
    /// Any, because the context identifies it as a name.
    Any,
}

fn name_and_next(words: &[Word<'_>], mut at: usize, case: Capitalisation) -> Option<(String, usize)> {
    const PRONOUNS: [&str; 9] = ["it", "him", "her", "them", "this", "that", "someone", "somebody", "anyone"];
    // "to the world"
    if case == Capitalisation::Any && words.get(at).is_some_and(|word| matches!(word.stem.as_str(), "the" | "our")) {
        at += 1;
    }
    let first = words.get(at).filter(|word| !word.gap.contains(['.', '!', '?', '\n']))?;
    if first.is_quoted {
        return Some((first.text.to_owned(), at + 1));
    }
    let is_word = is_function_word(&first.stem) || PRONOUNS.contains(&first.stem.as_str()) || is_calendar_name(first);
    let is_name = first.is_capitalised() || case == Capitalisation::Any && first.text.starts_with(char::is_alphabetic);
    if is_word || !is_name {
        return None;
    }
    let mut name = first.text.to_owned();
    let mut next = at + 1;
    while first.is_capitalised() && next < at + 6 {
        let Some(word) = words.get(next) else { break };
        let is_title = word.gap.trim() == "." && matches!(name.as_str(), "Dr" | "Mr" | "Mrs" | "Ms" | "St");
        let follows = word.gap.trim().is_empty() || is_title;
        let particle = matches!(word.text, "van" | "von" | "de" | "der" | "da" | "la" | "of")
            && words.get(next + 1).is_some_and(|word| word.is_capitalised() && word.gap.trim().is_empty());
        if !follows || !(word.is_capitalised() && !is_function_word(&word.stem) || particle) {
            break;
        }
        name.push_str(word.gap);
        name.push_str(word.text);
        next += 1;
    }
    // "Ann's" refers to Ann.
    let name = name.strip_suffix("'s").or_else(|| name.strip_suffix("’s")).unwrap_or(&name).to_owned();
    Some((name, next))
}

fn is_greeting(word: &Word<'_>) -> bool {
    matches!(word.stem.as_str(), "hello" | "goodbye")
}

fn is_calendar_name(word: &Word<'_>) -> bool {
    const NAMES: &str = " monday tuesday wednesday thursday friday saturday sunday january february march april may june \
        july august september october november december ";
    word.text.len() > 2 && NAMES.contains(&format!(" {} ", word.text.to_lowercase()))
}
