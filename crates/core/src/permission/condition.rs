//! Conditions on arguments, such as `path matches "/etc/*"`.

use super::Decision;
use crate::text::Glob;
use crate::types::signature::{Shape, Type, compare_numbers, json_eq, value_to_json};
use patter_gram::Value;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// A condition on an argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The argument: a name, or a path of names separated by dots. A path leads through lists to each of their elements.
    pub argument: String,
    /// The comparison.
    pub operator: Operator,
    /// The value to compare with: a string, a number or a boolean.
    pub value: Json,
}

/// A comparison of an argument with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// The argument equals the value.
    Equals,
    /// The argument differs from the value, or is missing.
    NotEquals,
    /// The text of the argument matches a pattern, in which `*` matches any text and `?` a single character.
    Matches,
    /// The text of the argument does not match a pattern, or the argument is missing.
    NotMatches,
    /// The argument is a number less than the value.
    Less,
    /// The argument is a number less than or equal to the value.
    AtMost,
    /// The argument is a number greater than the value.
    Greater,
    /// The argument is a number greater than or equal to the value.
    AtLeast,
}

/// The spellings of the operators. Longer ones come before their prefixes.
const SPELLINGS: [(&str, Operator); 12] = [
    ("does not match", Operator::NotMatches),
    ("matches", Operator::Matches),
    ("is not", Operator::NotEquals),
    ("is", Operator::Equals),
    ("equals", Operator::Equals),
    ("!=", Operator::NotEquals),
    ("==", Operator::Equals),
    ("=", Operator::Equals),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Condition {
    /// Parses conditions separated by `and`. The error is the part that is invalid.
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

    /// Parses one condition, and returns it with the rest of the text.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let (argument, rest) = text.split_once(char::is_whitespace)?;
        let rest = rest.trim_start();
        let (operator, rest) =
            SPELLINGS.iter().find_map(|(word, operator)| Some((*operator, after_word(rest, word)?)))?;
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
        let (value, after) = rest.split_at_checked(end)?;
        let value = value_to_json(&Value::parse(value)?)?;
        let is_valid = match operator {
            Operator::Matches | Operator::NotMatches => value.is_string(),
            Operator::Less | Operator::AtMost | Operator::Greater | Operator::AtLeast => value.is_number(),
            Operator::Equals | Operator::NotEquals => value.is_string() || value.is_number() || value.is_boolean(),
        };
        is_valid.then(|| (Self { argument: argument.to_owned(), operator, value }, after))
    }

    /// Returns whether the arguments meet the condition. A list stands for each of its elements, wherever it is on the
    /// path. If there are several values, or a value can be interpreted in several ways, the stricter outcome counts: an
    /// `allow` rule needs all of them to meet the condition, the others only one.
    pub(super) fn is_met(&self, arguments: &Map<String, Json>, decision: Decision) -> bool {
        let mut found = Vec::new();
        find_in_object(arguments, &self.argument, &mut found);
        let mut values = found.into_iter();
        match decision {
            Decision::Allow => values.all(|value| self.is_met_by_value(value, decision)),
            Decision::Ask | Decision::Deny => values.any(|value| self.is_met_by_value(value, decision)),
        }
    }

    fn is_met_by_value(&self, found: Option<&Json>, decision: Decision) -> bool {
        match found {
            None => matches!(self.operator, Operator::NotEquals | Operator::NotMatches),
            // The elements are values of their own. A pattern may also span several of them, as in `*rm*-rf*`.
            Some(list @ Json::Array(_)) => match decision {
                Decision::Allow => true,
                Decision::Ask | Decision::Deny => self.operator == Operator::Matches && self.is_met_by(list, decision),
            },
            Some(found) => self.is_met_by(found, decision),
        }
    }

    fn is_met_by(&self, found: &Json, decision: Decision) -> bool {
        match self.operator {
            Operator::Equals => json_eq(found, &self.value),
            Operator::NotEquals => !json_eq(found, &self.value),
            Operator::Matches => self.matches(found, decision > Decision::Allow),
            Operator::NotMatches => !self.matches(found, decision == Decision::Allow),
            Operator::Less => self.compare(found).is_some_and(Ordering::is_lt),
            Operator::AtMost => self.compare(found).is_some_and(Ordering::is_le),
            Operator::Greater => self.compare(found).is_some_and(Ordering::is_gt),
            Operator::AtLeast => self.compare(found).is_some_and(Ordering::is_ge),
        }
    }

    /// Returns whether a value of a type can meet the condition.
    pub(super) fn can_be_met(&self, ty: &Type) -> bool {
        if matches!(self.operator, Operator::NotEquals | Operator::NotMatches) {
            return true;
        }
        if let Some(allowed) = &ty.facets.allowed {
            return allowed.iter().any(|value| self.is_met_by(value, Decision::Deny));
        }
        match (&ty.shape, self.operator) {
            (Shape::Any | Shape::Schema(_), _) | (Shape::Text, Operator::Matches) => true,
            (Shape::Text, Operator::Equals) => self.value.is_string(),
            (Shape::Integer | Shape::Number, Operator::Matches) => true,
            (Shape::Integer | Shape::Number, _) => self.value.is_number(),
            (Shape::Boolean, _) => [true, false].iter().any(|value| self.is_met_by(&(*value).into(), Decision::Deny)),
            (Shape::Array(_) | Shape::Object(_) | Shape::Record(_), Operator::Matches) => true,
            (Shape::Text | Shape::Array(_) | Shape::Object(_) | Shape::Record(_), _) => false,
        }
    }

    fn compare(&self, found: &Json) -> Option<Ordering> {
        let (Json::Number(found), Json::Number(value)) = (found, &self.value) else { return None };
        compare_numbers(found, value)
    }

    /// Returns whether the text matches both as written and as a normalized path. If `any`, one of the two is enough.
    fn matches(&self, found: &Json, any: bool) -> bool {
        let text = match found {
            Json::String(text) => Cow::Borrowed(text.as_str()),
            other => Cow::Owned(other.to_string()),
        };
        let glob = Glob::new(self.value.as_str().unwrap_or_default());
        let as_written = glob.matches(&text);
        let as_path = glob.matches(&normalize_path(&text));
        if any { as_written || as_path } else { as_written && as_path }
    }
}

/// Finds the values at a path of names separated by dots. A name may contain dots itself. `None` is a missing value.
fn find_in_object<'a>(object: &'a Map<String, Json>, path: &str, found: &mut Vec<Option<&'a Json>>) {
    let mut is_missing = true;
    for (name, rest) in splits(path) {
        if let Some(value) = object.get(name) {
            is_missing = false;
            find_in_value(value, rest, found);
        }
    }
    if is_missing {
        found.push(None);
    }
}

fn find_in_value<'a>(value: &'a Json, path: Option<&str>, found: &mut Vec<Option<&'a Json>>) {
    match (value, path) {
        (Json::Null, _) => found.push(None),
        (Json::Array(items), _) => {
            if items.is_empty() {
                found.push(None);
            }
            items.iter().for_each(|item| find_in_value(item, path, found));
            if path.is_none() {
                found.push(Some(value));
            }
        }
        (Json::Object(object), Some(path)) => find_in_object(object, path, found),
        (_, Some(_)) => found.push(None),
        (_, None) => found.push(Some(value)),
    }
}

/// Iterates over the ways to split a path into a name and the rest, starting with the shortest name.
pub(super) fn splits(path: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let inner = path.match_indices('.').filter_map(|(at, _)| Some((path.get(..at)?, Some(path.get(at + 1..)?))));
    inner.chain([(path, None)])
}

/// Returns the text after a word. The word must end there: `isolated` does not start with the word `is`.
fn after_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(word)?;
    let is_sign = word.ends_with(['=', '<', '>']);
    (is_sign || rest.starts_with(|c: char| c.is_whitespace() || c == '"' || c == '\'')).then_some(rest)
}

/// Resolves `.` and `..` in a path, as far as possible without a file system.
fn normalize_path(path: &str) -> Cow<'_, str> {
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

/// Formats the condition in the form in which it is parsed.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.operator {
            Operator::Equals => "is",
            Operator::NotEquals => "is not",
            Operator::Matches => "matches",
            Operator::NotMatches => "does not match",
            Operator::Less => "<",
            Operator::AtMost => "<=",
            Operator::Greater => ">",
            Operator::AtLeast => ">=",
        };
        write!(f, "{} {word} {}", self.argument, self.value)
    }
}
