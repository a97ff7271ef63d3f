//! Judgement of observations by checks.

use super::answer::extract_json;
use super::check::{CallCount, CaseSensitivity, Check};
use super::difference::{find_mismatch, is_equal};
use super::show::{excerpt, format_duration, format_json, format_times};
use crate::provider::price::Cost;
use crate::run::Invocation;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;

/// The observed result of a case.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'o> {
    /// The last answer; empty if there is none.
    pub content: &'o str,
    /// The value of a structured answer.
    pub value: Option<&'o Json>,
    /// The tool calls, in order.
    pub tools: &'o [Invocation],
    /// The number of model calls.
    pub model_calls: u32,
    /// The duration in milliseconds.
    pub latency_ms: u64,
    /// The cost, if known.
    pub cost: Option<Cost>,
    /// The failure, if there is no answer.
    pub failure: Option<&'o str>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The description of the check.
    pub check: String,
    /// Whether the check passed.
    pub passed: bool,
    /// Whether the check could not be made, because a judge or a program failed. It says nothing about the answer then, and
    /// has not passed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub error: bool,
    /// Why it passed or failed.
    pub why: String,
}

/// Whether a check passed, and why.
struct Judgement {
    passed: bool,
    why: String,
}

impl Check {
    /// Judges an observation. Returns `None` for checks that run an agent or a program.
    ///
    /// If there is no answer, all checks of the answer fail; checks of calls, time and cost are still judged.
    ///
    /// ```
    /// use patter_core::case::{Check, Observation};
    /// let observed = Observation {
    ///     content: "Hello, Bob!", value: None, tools: &[], model_calls: 1, latency_ms: 5, cost: None, failure: None,
    /// };
    /// let result = Check::parse(&serde_json::json!({"contains": "Alice"})).unwrap().judge(&observed).unwrap();
    /// assert!(!result.passed);
    /// assert_eq!(result.why, "the answer does not contain `Alice`; it is `Hello, Bob!`");
    /// ```
    pub fn judge(&self, observed: &Observation<'_>) -> Option<CheckResult> {
        let Judgement { passed, why } = match observed.failure {
            Some(failure) if self.is_about_answer() => {
                Judgement { passed: false, why: format!("there is no answer: {failure}") }
            }
            _ => self.judge_observation(observed)?,
        };
        Some(CheckResult { check: self.to_string(), passed, error: false, why })
    }

    fn judge_observation(&self, observed: &Observation<'_>) -> Option<Judgement> {
        Some(match self {
            Check::Contains { text, sensitivity } => contains(observed.content, text, *sensitivity),
            Check::Equals { text, sensitivity } => equals(observed.content, text, *sensitivity),
            Check::Matches(expression) => {
                let passed = expression.is_match(observed.content);
                let does = if passed { "matches" } else { "does not match" };
                let why = format!(
                    "the answer {does} `{}`{}",
                    excerpt(expression.as_str()),
                    describe_answer(observed.content, passed)
                );
                Judgement { passed, why }
            }
            Check::Schema(schema) => with_value(observed, |value| match schema.first_error(value) {
                None => Judgement { passed: true, why: "the answer matches the schema".to_owned() },
                Some(error) => Judgement {
                    passed: false,
                    why: format!("the answer does not match the schema: {}", excerpt(&error)),
                },
            }),
            Check::JsonPath { path, equals } => {
                with_value(observed, |value| judge_path(path.as_str(), &path.find(value), equals.as_ref()))
            }
            Check::Not(check) => {
                let judgement = check.judge_observation(observed)?;
                // An answer that is not JSON fails a negated check, too.
                let is_judged = !check.needs_value() || answer_value(observed).is_some();
                Judgement { passed: is_judged && !judgement.passed, ..judgement }
            }
            Check::Called { tool, with, times } => called(observed.tools, tool, with.as_ref(), *times),
            Check::NotCalled { tool, with } => not_called(observed.tools, tool, with.as_ref()),
            Check::Order { tools } => order(observed.tools, tools),
            Check::Turns { max } => Judgement {
                passed: observed.model_calls <= *max,
                why: format!("the model was called {}", format_times(observed.model_calls as usize)),
            },
            Check::Latency { max_ms } => Judgement {
                passed: observed.latency_ms <= *max_ms,
                why: format!("it took {}", format_duration(observed.latency_ms)),
            },
            Check::Cost { max } => match observed.cost {
                Some(cost) => Judgement { passed: cost <= *max, why: format!("it cost {cost}") },
                None => {
                    let why = "the cost is unknown: a model has no price or did not report its tokens";
                    Judgement { passed: false, why: why.to_owned() }
                }
            },
            Check::Judge { .. } | Check::Command { .. } => return None,
        })
    }

    fn needs_value(&self) -> bool {
        matches!(self, Check::Schema(_) | Check::JsonPath { .. })
    }
}

fn contains(content: &str, text: &str, sensitivity: CaseSensitivity) -> Judgement {
    let passed = normalize(content, sensitivity).contains(normalize(text, sensitivity).as_ref());
    let does = if passed { "contains" } else { "does not contain" };
    let why = format!("the answer {does} `{}`", excerpt(text));
    let matches_ignoring_case = !passed && content.to_lowercase().contains(&text.to_lowercase());
    let rest = if matches_ignoring_case {
        ", but it does when ignoring case".to_owned()
    } else {
        describe_answer(content, passed)
    };
    Judgement { passed, why: why + &rest }
}

fn equals(content: &str, text: &str, sensitivity: CaseSensitivity) -> Judgement {
    let content = content.trim();
    let text = text.trim();
    let found = normalize(content, sensitivity);
    let expected = normalize(text, sensitivity);
    let passed = found == expected;
    let why = if passed {
        format!("the answer is `{}`", excerpt(text))
    } else if content.is_empty() {
        "the answer is empty".to_owned()
    } else {
        let common = found.chars().zip(expected.chars()).take_while(|(found, expected)| found == expected).count();
        // After a long common start, the rest is more informative.
        if common >= 40 {
            let rest = |text: &str| match text.chars().skip(common).collect::<String>() {
                rest if rest.is_empty() => "the end".to_owned(),
                rest => format!("`{}`", excerpt(&rest)),
            };
            let number = common + 1;
            format!("the answer differs from character {number} on: {}, not {}", rest(&found), rest(&expected))
        } else {
            format!("the answer is `{}`, not `{}`", excerpt(content), excerpt(text))
        }
    };
    Judgement { passed, why }
}

fn normalize(text: &str, sensitivity: CaseSensitivity) -> Cow<'_, str> {
    match sensitivity {
        CaseSensitivity::Sensitive => Cow::Borrowed(text),
        CaseSensitivity::Insensitive => Cow::Owned(text.to_lowercase()),
    }
}

/// Quotes the start of the answer if a check of it failed.
fn describe_answer(content: &str, passed: bool) -> String {
    match excerpt(content) {
        _ if passed => String::new(),
        shown if shown.is_empty() => "; it is empty".to_owned(),
        shown if shown.ends_with('…') => format!("; it starts with `{shown}`"),
        shown => format!("; it is `{shown}`"),
    }
}

fn answer_value<'o>(observed: &Observation<'o>) -> Option<Cow<'o, Json>> {
    observed.value.map(Cow::Borrowed).or_else(|| extract_json(observed.content).map(Cow::Owned))
}

fn with_value(observed: &Observation<'_>, judge: impl FnOnce(&Json) -> Judgement) -> Judgement {
    match answer_value(observed) {
        Some(value) => judge(&value),
        None => Judgement {
            passed: false,
            why: format!("the answer is not valid JSON{}", describe_answer(observed.content, false)),
        },
    }
}

fn judge_path(path: &str, found: &[&Json], equals: Option<&Json>) -> Judgement {
    let other = equals.and_then(|equals| found.iter().find(|value| !is_equal(equals, value)));
    match (found.first(), other) {
        (None, _) => Judgement { passed: false, why: format!("nothing found at `{path}`") },
        (Some(_), Some(other)) => Judgement { passed: false, why: format!("`{path}` is {}", format_json(other)) },
        (Some(first), None) => Judgement { passed: true, why: format!("`{path}` is {}", format_json(first)) },
    }
}

/// The maximum number of calls described individually.
const MAX_CALLS_SHOWN: usize = 3;

fn called(calls: &[Invocation], tool: &str, with: Option<&Json>, wanted: CallCount) -> Judgement {
    let tool_calls: Vec<_> = calls.iter().filter(|call| call.tool_name == tool).collect();
    let mismatches: Vec<_> =
        tool_calls.iter().map(|call| with.and_then(|with| find_mismatch(with, &call.args))).collect();
    let count = mismatches.iter().filter(|mismatch| mismatch.is_none()).count();
    let passed = wanted.allows(count);
    let why = if tool_calls.is_empty() {
        format!("`{tool}` was not called; {}", list_calls(calls))
    } else if count == 0 {
        let shown = tool_calls.iter().zip(&mismatches).take(MAX_CALLS_SHOWN).map(|(call, mismatch)| {
            format!("with {}: {}", format_json(&call.args), mismatch.as_deref().unwrap_or_default())
        });
        let shown: Vec<_> = shown.collect();
        let more = tool_calls.len().saturating_sub(shown.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("`{tool}` was called {}{more}", shown.join("; "))
    } else {
        let arguments = if with.is_some() { " with these arguments" } else { "" };
        format!("`{tool}` was called {}{arguments}", format_times(count))
    };
    Judgement { passed, why }
}

fn not_called(calls: &[Invocation], tool: &str, with: Option<&Json>) -> Judgement {
    let is_match = |call: &&Invocation| {
        call.tool_name == tool && with.is_none_or(|with| find_mismatch(with, &call.args).is_none())
    };
    match calls.iter().find(is_match) {
        Some(call) => Judgement { passed: false, why: format!("`{tool}` was called with {}", format_json(&call.args)) },
        None => Judgement {
            passed: true,
            why: format!("`{tool}` was not called{}", if with.is_some() { " with these arguments" } else { "" }),
        },
    }
}

fn order(calls: &[Invocation], tools: &[String]) -> Judgement {
    let mut remaining = calls.iter();
    let mut previous: Option<&str> = None;
    for tool in tools {
        if !remaining.any(|call| call.tool_name == *tool) {
            let after = previous.map(|previous| format!(" after `{previous}`")).unwrap_or_default();
            let why = format!("`{tool}` was not called{after}; {}", list_calls(calls));
            return Judgement { passed: false, why };
        }
        previous = Some(tool);
    }
    Judgement { passed: true, why: list_calls(calls) }
}

/// Lists the called tools, in order.
fn list_calls(calls: &[Invocation]) -> String {
    const MAX_LISTED: usize = 10;
    if calls.is_empty() {
        return "no tool was called".to_owned();
    }
    let names: Vec<_> = calls.iter().take(MAX_LISTED).map(|call| format!("`{}`", call.tool_name)).collect();
    let more = if calls.len() > MAX_LISTED { ", …" } else { "" };
    format!("calls: {}{more}", names.join(", "))
}
