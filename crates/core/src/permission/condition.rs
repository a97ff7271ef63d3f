//! Conditions on arguments: `path matches "/etc/*"`.

use super::Decision;
use crate::text::Glob;
use patter_gram::Value;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A condition on an argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The argument: a name, or names with points between them for what is inside of it.
    pub argument: String,
    /// What is asked of it.
    pub test: Test,
    /// What it is compared with: a text, a number or a boolean.
    pub value: Json,
}

/// What is asked of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// It is the value.
    Is,
    /// It is not the value, or not there.
    IsNot,
    /// As text it matches: `*` stands for any text, `?` for one character.
    Matches,
    /// As text it does not match, or is not there.
    MatchesNot,
    /// It is a smaller number.
    Less,
    /// It is a number that is not greater.
    AtMost,
    /// It is a greater number.
    Greater,
    /// It is a number that is not smaller.
    AtLeast,
}

/// The ways in which tests are written. Longer ones stand before those that they begin with.
const WRITTEN: [(&str, Test); 12] = [
    ("does not match", Test::MatchesNot),
    ("matches", Test::Matches),
    ("is not", Test::IsNot),
    ("is", Test::Is),
    ("equals", Test::Is),
    ("!=", Test::IsNot),
    ("==", Test::Is),
    ("=", Test::Is),
    ("<=", Test::AtMost),
    (">=", Test::AtLeast),
    ("<", Test::Less),
    (">", Test::Greater),
];

impl Condition {
    /// Reads conditions with `and` between them; the error is what cannot be read.
    pub(super) fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let mut conditions = Vec::new();
        let mut rest = text.trim();
        loop {
            let (condition, after) = Self::parse(rest).ok_or_else(|| rest.to_owned())?;
            conditions.push(condition);
            let after = after.trim_start();
            if after.is_empty() {
                return Ok(conditions);
            }
            let next = after.strip_prefix("and").filter(|next| next.starts_with(char::is_whitespace));
            rest = next.ok_or_else(|| after.to_owned())?.trim_start();
        }
    }

    /// Reads one condition, and returns what follows it.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (argument, rest) = text.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let (test, rest) = WRITTEN.iter().find_map(|(word, test)| Some((*test, after_word(rest, word)?)))?;
        let rest = rest.trim_start();
        let end = match rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let mut escaped = false;
                let closing = rest.char_indices().skip(1).find(|(_, c)| {
                    let is_end = !escaped && *c == quote;
                    escaped = !escaped && *c == '\\';
                    is_end
                });
                closing?.0 + 1
            }
            _ => rest.find(char::is_whitespace).unwrap_or(rest.len()),
        };
        let (value, after) = (rest.get(..end)?, rest.get(end..)?);
        let value = crate::types::signature::json_of(&Value::parse(value)?)?;
        let fits = match test {
            Test::Matches | Test::MatchesNot => value.is_string(),
            Test::Less | Test::AtMost | Test::Greater | Test::AtLeast => value.is_number(),
            Test::Is | Test::IsNot => value.is_string() || value.is_number() || value.is_boolean(),
        };
        fits.then(|| (Self { argument: argument.to_owned(), test, value }, after))
    }

    /// Tells whether it holds. Where an argument may be read in two ways, the stricter outcome counts: a rule that allows
    /// must hold for all readings, one that asks or refuses for one. So it is with the items of a list.
    pub(super) fn holds(&self, arguments: &Map<String, Json>, decision: Decision) -> bool {
        let found = self.argument.split('.').try_fold(None, |inside: Option<&Json>, key| match inside {
            None => arguments.get(key).map(Some),
            Some(object) => object.get(key).map(Some),
        });
        let found = found.flatten().filter(|found| !found.is_null());
        let Some(found) = found else { return matches!(self.test, Test::IsNot | Test::MatchesNot) };
        match (found, decision) {
            (Json::Array(items), Decision::Allow) => items.iter().all(|item| self.holds_for(item, decision)),
            (Json::Array(items), _) => {
                items.iter().any(|item| self.holds_for(item, decision)) || self.holds_for(found, decision)
            }
            _ => self.holds_for(found, decision),
        }
    }

    fn holds_for(&self, found: &Json, decision: Decision) -> bool {
        match self.test {
            Test::Is => crate::types::signature::same(found, &self.value),
            Test::IsNot => !crate::types::signature::same(found, &self.value),
            Test::Matches => self.matches(found, decision > Decision::Allow),
            Test::MatchesNot => !self.matches(found, decision == Decision::Allow),
            Test::Less => self.compare(found).is_some_and(Ordering::is_lt),
            Test::AtMost => self.compare(found).is_some_and(Ordering::is_le),
            Test::Greater => self.compare(found).is_some_and(Ordering::is_gt),
            Test::AtLeast => self.compare(found).is_some_and(Ordering::is_ge),
        }
    }

    fn compare(&self, found: &Json) -> Option<Ordering> {
        let (Json::Number(found), Json::Number(value)) = (found, &self.value) else { return None };
        crate::types::signature::compare(found, value)
    }

    /// Tells whether the text matches, as it is written and as the path that it may be; `any`: whether one of the two
    /// is enough.
    fn matches(&self, found: &Json, any: bool) -> bool {
        let text = match found {
            Json::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        };
        let pattern = self.value.as_str().unwrap_or_default();
        let (written, walked) = (Glob::new(pattern).matches(&text), Glob::new(pattern).matches(&walked(&text)));
        if any { written || walked } else { written && walked }
    }
}

/// Returns what follows a word, which must end there: `is` is not the beginning of `isolated`.
fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?;
    let is_sign = word.ends_with(['=', '<', '>']);
    (is_sign || rest.starts_with(|c: char| c.is_whitespace() || c == '"' || c == '\'')).then_some(rest)
}

/// Follows the `.` and `..` of a path, as far as the text tells.
fn walked(path: &str) -> Cow<'_, str> {
    if !path.split('/').skip(1).any(|part| matches!(part, "" | "." | "..")) && !path.starts_with("./") {
        return Cow::Borrowed(path);
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    Cow::Owned(format!("{root}{}", parts.join("/")))
}

/// Writes the condition as it is read.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.test {
            Test::Is => "is",
            Test::IsNot => "is not",
            Test::Matches => "matches",
            Test::MatchesNot => "does not match",
            Test::Less => "<",
            Test::AtMost => "<=",
            Test::Greater => ">",
            Test::AtLeast => ">=",
        };
        write!(f, "{} {word} {}", self.argument, self.value)
    }
}
