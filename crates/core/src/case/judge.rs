//! Judging what was observed.

use super::answer::json_in;
use super::check::{Check, Letters, Times};
use super::difference::{lacking, same};
use super::show::{brief, duration, excerpt, times};
use crate::provider::price::Cost;
use crate::run::Invocation;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use std::borrow::Cow;

/// What came of a case.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'o> {
    /// The last answer; empty if there is none.
    pub content: &'o str,
    /// The answer as a value, where the agent answers with a form.
    pub value: Option<&'o Json>,
    /// The calls of tools, in order.
    pub tools: &'o [Invocation],
    /// How often the model was called.
    pub model_calls: u32,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// What it cost, where that is known.
    pub cost: Option<Cost>,
    /// Why there is no answer, where there is none.
    pub failure: Option<&'o str>,
}

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// The check, in words.
    pub check: String,
    /// Whether it passed.
    pub passed: bool,
    /// What was found.
    pub why: String,
}

/// What was found, and whether it is what a check asks.
struct Found {
    passed: bool,
    why: String,
}

impl Check {
    /// Judges what was observed; nothing where that needs an effect, another agent or a program.
    ///
    /// Where there is no answer, all checks of the answer fail; those of calls, time and cost are judged all the same.
    ///
    /// ```
    /// use patter_core::case::{Check, Observed};
    /// let observed = Observed {
    ///     content: "Hello, Bob!", value: None, tools: &[], model_calls: 1, latency_ms: 5, cost: None, failure: None,
    /// };
    /// let judged = Check::parse(&serde_json::json!({"contains": "Alice"})).unwrap().judge(&observed).unwrap();
    /// assert!(!judged.passed);
    /// assert_eq!(judged.why, "the answer does not contain `Alice`; it is `Hello, Bob!`");
    /// ```
    pub fn judge(&self, observed: &Observed<'_>) -> Option<Judged> {
        let Found { passed, why } = match observed.failure {
            Some(failure) if self.is_of_answer() => {
                Found { passed: false, why: format!("there is no answer: {failure}") }
            }
            _ => self.found(observed)?,
        };
        Some(Judged { check: self.to_string(), passed, why })
    }

    fn found(&self, observed: &Observed<'_>) -> Option<Found> {
        Some(match self {
            Check::Contains { text, letters } => contains(observed.content, text, *letters),
            Check::Equals { text, letters } => equals(observed.content, text, *letters),
            Check::Matches(expression) => {
                let passed = expression.is_match(observed.content);
                let does = if passed { "matches" } else { "does not match" };
                let why =
                    format!("the answer {does} `{}`{}", excerpt(expression.as_str()), begins(observed.content, passed));
                Found { passed, why }
            }
            Check::Schema(schema) => with_value(observed, |value| match schema.wrong(value) {
                None => Found { passed: true, why: "the answer fits the schema".to_owned() },
                Some(wrong) => {
                    Found { passed: false, why: format!("the answer does not fit the schema: {}", excerpt(&wrong)) }
                }
            }),
            Check::JsonPath { path, equals } => {
                with_value(observed, |value| at_path(path.as_str(), &path.find(value), equals.as_ref()))
            }
            Check::Not(check) => {
                let found = check.found(observed)?;
                // An answer that is no JSON says nothing about the JSON it should be.
                let is_judged = !check.needs_value() || value_of(observed).is_some();
                Found { passed: is_judged && !found.passed, ..found }
            }
            Check::Called { tool, with, times } => called(observed.tools, tool, with.as_ref(), *times),
            Check::NotCalled { tool, with } => not_called(observed.tools, tool, with.as_ref()),
            Check::Order { tools } => order(observed.tools, tools),
            Check::Turns { most } => Found {
                passed: observed.model_calls <= *most,
                why: format!("the model was called {}", times(observed.model_calls as usize)),
            },
            Check::Latency { most_ms } => Found {
                passed: observed.latency_ms <= *most_ms,
                why: format!("it took {}", duration(observed.latency_ms)),
            },
            Check::Cost { most } => match observed.cost {
                Some(cost) => Found { passed: cost <= *most, why: format!("it cost {cost}") },
                None => {
                    let why = "what it cost is not known: a model has no price, or did not count its tokens";
                    Found { passed: false, why: why.to_owned() }
                }
            },
            Check::Judge { .. } | Check::Command { .. } => return None,
        })
    }

    fn needs_value(&self) -> bool {
        matches!(self, Check::Schema(_) | Check::JsonPath { .. })
    }
}

fn contains(content: &str, text: &str, letters: Letters) -> Found {
    let passed = lettered(content, letters).contains(lettered(text, letters).as_ref());
    let does = if passed { "contains" } else { "does not contain" };
    let why = format!("the answer {does} `{}`", excerpt(text));
    let in_other_letters = !passed && content.to_lowercase().contains(&text.to_lowercase());
    let rest = if in_other_letters {
        ", but it does with other capital or small letters".to_owned()
    } else {
        begins(content, passed)
    };
    Found { passed, why: why + &rest }
}

fn equals(content: &str, text: &str, letters: Letters) -> Found {
    let (content, text) = (content.trim(), text.trim());
    let (one, other) = (lettered(content, letters), lettered(text, letters));
    let passed = one == other;
    let why = if passed {
        format!("the answer is `{}`", excerpt(text))
    } else if content.is_empty() {
        "the answer is empty".to_owned()
    } else {
        let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        // Both begin in the same way: what follows tells more.
        if same >= 40 {
            let rest = |text: &str| match text.chars().skip(same).collect::<String>() {
                rest if rest.is_empty() => "it ends".to_owned(),
                rest => format!("`{}` stands", excerpt(&rest)),
            };
            format!("from character {} on, {} where {} in the check", same + 1, rest(&one), rest(&other))
        } else {
            format!("the answer is `{}`, not `{}`", excerpt(content), excerpt(text))
        }
    };
    Found { passed, why }
}

fn lettered(text: &str, letters: Letters) -> Cow<'_, str> {
    match letters {
        Letters::Exact => Cow::Borrowed(text),
        Letters::AnyCase => Cow::Owned(text.to_lowercase()),
    }
}

/// Says how the answer begins, where a check of it failed.
fn begins(content: &str, passed: bool) -> String {
    match excerpt(content) {
        _ if passed => String::new(),
        shown if shown.is_empty() => "; it is empty".to_owned(),
        shown if shown.ends_with('…') => format!("; it begins with `{shown}`"),
        shown => format!("; it is `{shown}`"),
    }
}

fn value_of<'o>(observed: &Observed<'o>) -> Option<Cow<'o, Json>> {
    observed.value.map(Cow::Borrowed).or_else(|| json_in(observed.content).map(Cow::Owned))
}

fn with_value(observed: &Observed<'_>, judge: impl FnOnce(&Json) -> Found) -> Found {
    match value_of(observed) {
        Some(value) => judge(&value),
        None => Found { passed: false, why: format!("the answer is no JSON{}", begins(observed.content, false)) },
    }
}

fn at_path(path: &str, found: &[&Json], equals: Option<&Json>) -> Found {
    let other = equals.and_then(|equals| found.iter().find(|value| !same(equals, value)));
    match (found.first(), other) {
        (None, _) => Found { passed: false, why: format!("there is nothing at `{path}`") },
        (Some(_), Some(other)) => Found { passed: false, why: format!("at `{path}` is {}", brief(other)) },
        (Some(first), None) => Found { passed: true, why: format!("at `{path}` is {}", brief(first)) },
    }
}

/// How many calls are told one by one.
const MOST_TOLD: usize = 3;

fn called(calls: &[Invocation], tool: &str, with: Option<&Json>, wanted: Times) -> Found {
    let of_tool: Vec<_> = calls.iter().filter(|call| call.tool_name == tool).collect();
    let lacking: Vec<_> = of_tool.iter().map(|call| with.and_then(|with| lacking(with, &call.args))).collect();
    let count = lacking.iter().filter(|lacking| lacking.is_none()).count();
    let passed = wanted.allows(count);
    let why = if of_tool.is_empty() {
        format!("`{tool}` was not called; {}", all_called(calls))
    } else if count == 0 {
        let told =
            of_tool.iter().zip(&lacking).take(MOST_TOLD).map(|(call, lacking)| {
                format!("with {}: {}", brief(&call.args), lacking.as_deref().unwrap_or_default())
            });
        let told: Vec<_> = told.collect();
        let more = of_tool.len().saturating_sub(told.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!("`{tool}` was called {}{more}", told.join("; "))
    } else {
        let so = if with.is_some() { " like this" } else { "" };
        format!("`{tool}` was called {}{so}", times(count))
    };
    Found { passed, why }
}

fn not_called(calls: &[Invocation], tool: &str, with: Option<&Json>) -> Found {
    let is_it =
        |call: &&Invocation| call.tool_name == tool && with.is_none_or(|with| lacking(with, &call.args).is_none());
    match calls.iter().find(is_it) {
        Some(call) => Found { passed: false, why: format!("`{tool}` was called with {}", brief(&call.args)) },
        None => Found {
            passed: true,
            why: format!("`{tool}` was not called{}", if with.is_some() { " like this" } else { "" }),
        },
    }
}

fn order(calls: &[Invocation], tools: &[String]) -> Found {
    let mut made = calls.iter();
    let mut before: Option<&str> = None;
    for tool in tools {
        if !made.any(|call| call.tool_name == *tool) {
            let after = before.map(|before| format!(" after `{before}`")).unwrap_or_default();
            let why = format!("`{tool}` was not called{after}; {}", all_called(calls));
            return Found { passed: false, why };
        }
        before = Some(tool);
    }
    Found { passed: true, why: all_called(calls) }
}

/// Says what was called, in order.
fn all_called(calls: &[Invocation]) -> String {
    const MOST: usize = 10;
    if calls.is_empty() {
        return "no tool was called".to_owned();
    }
    let names: Vec<_> = calls.iter().take(MOST).map(|call| format!("`{}`", call.tool_name)).collect();
    let more = if calls.len() > MOST { ", …" } else { "" };
    format!("called were {}{more}", names.join(", "))
}
