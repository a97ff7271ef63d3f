//! The toolbox `text`: finding, replacing, splitting, counting.

use crate::tool::{Failure, Tool};
use regex::{Captures, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// How long a text may be, in bytes, given or made.
const LONGEST_TEXT: usize = 256 * 1024;
/// How long a regular expression may be, in bytes.
const LONGEST_PATTERN: usize = 1_000;
/// How large a regular expression may be when it is compiled, in bytes.
const LARGEST_PATTERN: usize = 1024 * 1024;
/// How many matches are returned at most, whatever the limit is.
const MOST_MATCHES: usize = 10_000;
/// How long a search may go on. One search takes time in proportion to the text, but many matches are many searches.
const LONGEST_SEARCH: Duration = Duration::from_secs(5);

pub(super) fn tools() -> Vec<Tool> {
    vec![find::tool(), replace::tool(), split::tool(), count::tool()]
}

#[derive(Serialize, JsonSchema)]
struct Found {
    matches: Vec<Match>,
    /// Whether there are more matches than were asked for
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// What matched
    text: String,
    /// How many characters there are before it
    start: usize,
    /// What the groups of the pattern matched, in order; null for one that matched nothing
    groups: Vec<Option<String>>,
}

/// Finds what matches a regular expression in a text
#[patter::tool(effect = "pure", blocking)]
fn find(
    text: String,
    /// A regular expression, without look-around and back-references; `(?i)` at the start ignores case
    pattern: String,
    /// How many matches to return at most
    #[default = 100]
    limit: usize,
) -> Result<Found, Failure> {
    let regex = compile(&text, &pattern)?;
    let deadline = Deadline::new();
    let mut matches = Vec::new();
    let (mut start, mut counted) = (0, 0);
    for captures in regex.captures_iter(&text) {
        deadline.check()?;
        let Some(whole) = captures.get(0) else { continue };
        if matches.len() >= limit.min(MOST_MATCHES) {
            return Ok(Found { matches, more: true });
        }
        start += text.get(counted..whole.start()).map_or(0, |between| between.chars().count());
        counted = whole.start();
        let groups = captures.iter().skip(1).map(|group| group.map(|group| group.as_str().to_owned())).collect();
        matches.push(Match { text: whole.as_str().to_owned(), start, groups });
    }
    Ok(Found { matches, more: false })
}

#[derive(Serialize, JsonSchema)]
struct Replaced {
    text: String,
    /// How many matches were replaced
    count: usize,
}

/// Replaces what matches a regular expression in a text
#[patter::tool(effect = "pure", blocking)]
fn replace(
    text: String,
    /// A regular expression, without look-around and back-references; `(?i)` at the start ignores case
    pattern: String,
    /// What to put in place of each match; `$1` or `${name}` stands for what a group matched, `$$` for a dollar sign
    replacement: String,
    /// How many matches to replace at most; all if nothing is said
    limit: Option<usize>,
) -> Result<Replaced, Failure> {
    let regex = compile(&text, &pattern)?;
    let deadline = Deadline::new();
    let mut result = String::with_capacity(text.len());
    let (mut count, mut done) = (0, 0);
    let mut append = |result: &mut String, captures: &Captures<'_>| {
        let Some(whole) = captures.get(0) else { return };
        result.push_str(text.get(done..whole.start()).unwrap_or_default());
        captures.expand(&replacement, result);
        done = whole.end();
        count += 1;
    };
    for captures in regex.captures_iter(&text).take(limit.unwrap_or(usize::MAX)) {
        deadline.check()?;
        append(&mut result, &captures);
        if result.len() > LONGEST_TEXT {
            return Err(Failure::new(format!("the result would be longer than {LONGEST_TEXT} bytes")));
        }
    }
    result.push_str(text.get(done..).unwrap_or_default());
    Ok(Replaced { text: result, count })
}

/// Splits a text where a regular expression matches
#[patter::tool(effect = "pure", blocking)]
fn split(
    text: String,
    /// A regular expression for what is between the parts, such as `,\s*`
    pattern: String,
    /// How many parts to return at most, the last with all that is left; all if nothing is said
    limit: Option<usize>,
) -> Result<Vec<String>, Failure> {
    let regex = compile(&text, &pattern)?;
    let deadline = Deadline::new();
    let mut parts = Vec::new();
    for part in regex.splitn(&text, limit.unwrap_or(usize::MAX)) {
        deadline.check()?;
        parts.push(part.to_owned());
    }
    Ok(parts)
}

#[derive(Serialize, JsonSchema)]
struct Counts {
    /// How many characters there are, as Unicode counts them, white space and line ends too
    characters: usize,
    /// How many words there are: what is between white space
    words: usize,
    /// How many lines there are
    lines: usize,
}

/// Counts the characters, words and lines of a text
#[patter::tool(effect = "pure")]
fn count(text: String) -> Result<Counts, Failure> {
    bounded(&text)?;
    let (characters, words) = (text.chars().count(), text.split_whitespace().count());
    Ok(Counts { characters, words, lines: text.lines().count() })
}

fn bounded(text: &str) -> Result<(), Failure> {
    if text.len() > LONGEST_TEXT {
        let message = format!("the text has {} bytes; at most {LONGEST_TEXT} are allowed", text.len());
        return Err(Failure::new(message));
    }
    Ok(())
}

fn compile(text: &str, pattern: &str) -> Result<Regex, Failure> {
    bounded(text)?;
    if pattern.len() > LONGEST_PATTERN {
        let message = format!("the pattern has {} bytes; at most {LONGEST_PATTERN} are allowed", pattern.len());
        return Err(Failure::new(message));
    }
    RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).build().map_err(|error| {
        let reason = match &error {
            regex::Error::CompiledTooBig(_) => "it is too large when its repetitions are written out".to_owned(),
            // The last line says what is wrong; those before point at the place.
            _ => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        };
        Failure::new(format!("the pattern is not a regular expression: {reason}")).with_detail(error)
    })
}

struct Deadline(Instant);

impl Deadline {
    fn new() -> Self {
        Self(Instant::now())
    }

    fn check(&self) -> Result<(), Failure> {
        if self.0.elapsed() > LONGEST_SEARCH {
            return Err(Failure::new("the search takes too long; use a simpler pattern or a shorter text"));
        }
        Ok(())
    }
}
