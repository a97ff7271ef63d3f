//! The toolbox `text`: finding, replacing, splitting and counting, and reading results that were cut.

use crate::tool::{Tool, ToolFailure, kept};
use regex::{Captures, Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The size limit of arguments and results, in bytes.
const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The size limit of a regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 1_000;
/// The size limit of a compiled regular expression, in bytes.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;
/// The number of matches that are returned at most, whatever the limit is.
const MAX_MATCHES: usize = 10_000;
/// The time limit of a search. Each match takes linear time, but there may be many matches.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(5);

pub(super) fn tools() -> Vec<Tool> {
    vec![find::tool(), replace::tool(), split::tool(), count::tool(), read::tool()]
}

/// The number of characters that are read at most.
const MAX_READ_CHARS: usize = 100_000;

#[derive(Serialize, JsonSchema)]
struct ReadResult {
    text: String,
    /// The position of the first character that was not read; null at the end
    next: Option<usize>,
    /// The number of characters of the whole text
    total: usize,
}

/// Reads a part of a result that was cut because it is too large. `text/find` and `text/count` accept the id of such a
/// result as their text
#[patter::tool(effect = "reads", blocking)]
fn read(
    /// The id of the result, as in the note at its end: `kept-…`
    kept: String,
    /// The number of characters to skip
    #[default = 0]
    start: usize,
    /// The maximum number of characters to read
    #[default = 20_000]
    length: usize,
) -> Result<ReadResult, ToolFailure> {
    let text = kept::find(kept.trim()).ok_or_else(|| {
        ToolFailure::new(format!("no result is kept as `{}`; call the tool that returned it again", kept.trim()))
    })?;
    let part: String = text.chars().skip(start).take(length.min(MAX_READ_CHARS)).collect();
    let total = text.chars().count();
    let end = start.saturating_add(part.chars().count());
    Ok(ReadResult { text: part, next: (end < total).then_some(end), total })
}

#[derive(Serialize, JsonSchema)]
struct FindResult {
    matches: Vec<Match>,
    /// Whether there are more matches
    more: bool,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    /// The matched text
    text: String,
    /// The number of characters before the match
    start: usize,
    /// The text of each capture group, in order; null for a group that did not match
    groups: Vec<Option<String>>,
}

/// Finds the matches of a regular expression in a text
#[patter::tool(effect = "pure", blocking)]
fn find(
    text: String,
    /// A regular expression, without lookaround and backreferences; `(?i)` at the start ignores case
    pattern: String,
    /// The maximum number of matches to return
    #[default = 100]
    limit: usize,
) -> Result<FindResult, ToolFailure> {
    let kept = kept::find(text.trim());
    let text = kept.as_deref().unwrap_or(&text);
    let regex = compile(if kept.is_some() { "" } else { text }, &pattern)?;
    let timer = SearchTimer::new();
    let mut matches = Vec::new();
    let mut start = 0;
    let mut counted = 0;
    for captures in regex.captures_iter(text) {
        timer.check()?;
        let Some(whole) = captures.get(0) else { continue };
        if matches.len() >= limit.min(MAX_MATCHES) {
            return Ok(FindResult { matches, more: true });
        }
        start += text.get(counted..whole.start()).map_or(0, |between| between.chars().count());
        counted = whole.start();
        let groups = captures.iter().skip(1).map(|group| group.map(|group| group.as_str().to_owned())).collect();
        matches.push(Match { text: whole.as_str().to_owned(), start, groups });
    }
    Ok(FindResult { matches, more: false })
}

#[derive(Serialize, JsonSchema)]
struct ReplaceResult {
    text: String,
    /// The number of replaced matches
    count: usize,
}

/// Replaces the matches of a regular expression in a text
#[patter::tool(effect = "pure", blocking)]
fn replace(
    text: String,
    /// A regular expression, without lookaround and backreferences; `(?i)` at the start ignores case
    pattern: String,
    /// The replacement of each match; `$1` or `${name}` refers to a capture group, `$$` is a dollar sign
    replacement: String,
    /// The maximum number of matches to replace; by default all
    limit: Option<usize>,
) -> Result<ReplaceResult, ToolFailure> {
    let regex = compile(&text, &pattern)?;
    let timer = SearchTimer::new();
    let mut result = String::with_capacity(text.len());
    let mut count = 0;
    let mut done = 0;
    let mut append = |result: &mut String, captures: &Captures<'_>| {
        let Some(whole) = captures.get(0) else { return };
        result.push_str(text.get(done..whole.start()).unwrap_or_default());
        captures.expand(&replacement, result);
        done = whole.end();
        count += 1;
    };
    for captures in regex.captures_iter(&text).take(limit.unwrap_or(usize::MAX)) {
        timer.check()?;
        append(&mut result, &captures);
        if result.len() > MAX_TEXT_BYTES {
            return Err(ToolFailure::new(format!("the result would be larger than {MAX_TEXT_BYTES} bytes")));
        }
    }
    result.push_str(text.get(done..).unwrap_or_default());
    Ok(ReplaceResult { text: result, count })
}

/// Splits a text at the matches of a regular expression
#[patter::tool(effect = "pure", blocking)]
fn split(
    text: String,
    /// A regular expression for the separators, such as `,\s*`
    pattern: String,
    /// The maximum number of parts to return, the last with the rest of the text; by default all
    limit: Option<usize>,
) -> Result<Vec<String>, ToolFailure> {
    let regex = compile(&text, &pattern)?;
    let timer = SearchTimer::new();
    let mut parts = Vec::new();
    for part in regex.splitn(&text, limit.unwrap_or(usize::MAX)) {
        timer.check()?;
        parts.push(part.to_owned());
    }
    Ok(parts)
}

#[derive(Serialize, JsonSchema)]
struct TextCounts {
    /// The number of Unicode characters, including white space and line breaks
    characters: usize,
    /// The number of words, separated by white space
    words: usize,
    /// The number of lines
    lines: usize,
}

/// Counts the characters, words and lines of a text
#[patter::tool(effect = "pure", blocking)]
fn count(text: String) -> Result<TextCounts, ToolFailure> {
    let kept = kept::find(text.trim());
    if kept.is_none() {
        check_size(&text)?;
    }
    let text = kept.as_deref().unwrap_or(&text);
    Ok(TextCounts {
        characters: text.chars().count(),
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
    })
}

fn check_size(text: &str) -> Result<(), ToolFailure> {
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("the text has {} bytes; at most {MAX_TEXT_BYTES} are allowed", text.len());
        return Err(ToolFailure::new(message));
    }
    Ok(())
}

fn compile(text: &str, pattern: &str) -> Result<Regex, ToolFailure> {
    check_size(text)?;
    if pattern.len() > MAX_PATTERN_BYTES {
        let message = format!("the pattern has {} bytes; at most {MAX_PATTERN_BYTES} are allowed", pattern.len());
        return Err(ToolFailure::new(message));
    }
    RegexBuilder::new(pattern).size_limit(MAX_COMPILED_BYTES).build().map_err(|error| {
        let reason = match &error {
            regex::Error::CompiledTooBig(_) => "it is too large when compiled".to_owned(),
            // The last line has the message; those before show the position.
            _ => error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        };
        ToolFailure::new(format!("invalid regular expression: {reason}")).with_detail(error)
    })
}

/// The start of a search, to enforce its time limit.
struct SearchTimer(Instant);

impl SearchTimer {
    fn new() -> Self {
        Self(Instant::now())
    }

    fn check(&self) -> Result<(), ToolFailure> {
        if self.0.elapsed() > MAX_SEARCH_TIME {
            return Err(ToolFailure::new("the search took too long; use a simpler pattern or a shorter text"));
        }
        Ok(())
    }
}
