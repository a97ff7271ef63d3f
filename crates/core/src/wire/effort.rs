//! Reasoning effort, for wires that have other measures of it than a name.

use crate::message::request::Settings;
use serde_json::{Map, Value as Json, json};

/// The smallest budget that Claude accepts.
const MIN_CLAUDE_BUDGET: u64 = 1024;

/// The version of a model, such as 4.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

/// Returns the version in the name of a model: the numbers after the name of its family, as in `claude-sonnet-4-6`,
/// `claude-3-7-sonnet-20250219` and `gemini-2.5-pro`. Dates are not versions.
fn version(model_id: &str, family: &str) -> Option<Version> {
    let (_, rest) = model_id.split_once(family)?;
    let number = |word: &str| word.parse().ok().filter(|_| word.len() <= 2);
    let mut words = rest.split(|c: char| !c.is_ascii_alphanumeric()).skip_while(|word| number(word).is_none());
    let major = number(words.next()?)?;
    Some(Version(major, words.next().and_then(number).unwrap_or_default()))
}

/// How a Claude model reasons. Models without a version in their name count as new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaudeThinking {
    /// Not at all.
    None,
    /// With a budget of tokens.
    Budget,
    /// As much as it takes, guided by an effort. The version knows `xhigh` or not.
    Adaptive { has_xhigh: bool },
}

fn claude_thinking(model_id: &str) -> ClaudeThinking {
    match version(model_id, "claude") {
        Some(version) if version < Version(3, 7) => ClaudeThinking::None,
        Some(version) if version < Version(4, 6) => ClaudeThinking::Budget,
        Some(version) => ClaudeThinking::Adaptive { has_xhigh: version > Version(4, 6) },
        None => ClaudeThinking::Adaptive { has_xhigh: true },
    }
}

/// Returns whether a Claude model can be made to follow a schema.
pub(super) fn enforces_answers(model_id: &str) -> bool {
    version(model_id, "claude").is_some_and(|version| version >= Version(4, 5))
}

/// Adds the reasoning effort and the limit on output tokens, which includes reasoning, to a request to Claude.
pub(super) fn insert_claude(body: &mut Map<String, Json>, model_id: &str, settings: &Settings, max_tokens: u64) {
    let limit = settings.max_tokens.unwrap_or(max_tokens);
    body.insert("max_tokens".to_owned(), limit.into());
    let Some(effort) = effort(settings).filter(|effort| *effort != "none") else { return };
    match claude_thinking(model_id) {
        ClaudeThinking::None => {}
        ClaudeThinking::Budget => {
            let (limit, budget) = match settings.max_tokens {
                Some(limit) => (limit, fitting_budget(effort, limit)),
                // By default, reasoning takes nothing away from the answer.
                None => (max_tokens.saturating_add(claude_budget(effort)), Some(claude_budget(effort))),
            };
            let Some(budget) = budget else { return };
            body.insert("max_tokens".to_owned(), limit.into());
            body.insert("thinking".to_owned(), json!({ "type": "enabled", "budget_tokens": budget }));
        }
        ClaudeThinking::Adaptive { has_xhigh } => {
            let effort = match effort {
                "minimal" => "low",
                "xhigh" if !has_xhigh => "high",
                other => other,
            };
            body.insert("thinking".to_owned(), json!({ "type": "adaptive" }));
            body.insert("output_config".to_owned(), json!({ "effort": effort }));
        }
    }
}

/// Returns the settings that Claude does not support together with the reasoning effort, or the effort itself if the model
/// does not reason.
pub(super) fn claude_conflicts(model_id: &str, settings: &Settings) -> Vec<&'static str> {
    let Some(effort) = effort(settings).filter(|effort| *effort != "none") else { return Vec::new() };
    match claude_thinking(model_id) {
        ClaudeThinking::None => vec!["reasoningEffort"],
        ClaudeThinking::Budget if settings.max_tokens.is_some_and(|max| fitting_budget(effort, max).is_none()) => {
            vec!["reasoningEffort"]
        }
        ClaudeThinking::Budget | ClaudeThinking::Adaptive { .. } => {
            let Settings { temperature, top_p, top_k, .. } = settings;
            let conflicts = [
                ("temperature", temperature.is_some()),
                // Reasoning models accept only values near 1.
                ("topP", top_p.is_some_and(|top_p| top_p < 0.95)),
                ("topK", top_k.is_some()),
            ];
            conflicts.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
        }
    }
}

fn claude_budget(effort: &str) -> u64 {
    match effort {
        "minimal" => MIN_CLAUDE_BUDGET,
        "low" => 2048,
        "medium" => 8192,
        "high" => 16_384,
        // The oldest models allow 32,000 output tokens.
        _ => 24_576,
    }
}

/// Returns a budget that leaves at least a quarter of the limit for the answer; `None` if the limit is too low.
fn fitting_budget(effort: &str, limit: u64) -> Option<u64> {
    Some(claude_budget(effort).min(limit - limit / 4)).filter(|budget| *budget >= MIN_CLAUDE_BUDGET)
}

/// Returns whether a Gemini model expects a number of tokens instead of a level, and rejects a schema of the answer together
/// with tools.
pub(super) fn is_before_gemini_3(model_id: &str) -> bool {
    version(model_id, "gemini").is_some_and(|version| version < Version(3, 0))
}

/// Returns whether a Gemini model always reasons.
pub(super) fn always_reasons(model_id: &str) -> bool {
    let is_pro = model_id.contains("pro");
    match version(model_id, "gemini") {
        Some(version) if version < Version(3, 0) => version >= Version(2, 5) && is_pro,
        Some(_) => true,
        None => model_id.contains("gemini"),
    }
}

/// Returns the amount of reasoning for Gemini, if one is set.
pub(super) fn gemini_thinking(model_id: &str, settings: &Settings) -> Option<Json> {
    let effort = effort(settings)?;
    if is_before_gemini_3(model_id) {
        return Some(json!({ "thinkingBudget": gemini_budget(model_id, effort) }));
    }
    let version = version(model_id, "gemini");
    let has_minimal = model_id.contains("flash") && version.is_some_and(|version| version < Version(3, 8));
    let has_medium = version != Some(Version(3, 0)) || !model_id.contains("pro");
    let level = match effort {
        // There is no way to turn reasoning off, so this is the least of it.
        "none" | "minimal" if has_minimal => "minimal",
        "none" | "minimal" | "low" => "low",
        "medium" if has_medium => "medium",
        _ => "high",
    };
    Some(json!({ "thinkingLevel": level }))
}

/// Returns the number of tokens for reasoning: the provider's own numbers for each effort, within the range of the model.
fn gemini_budget(model_id: &str, effort: &str) -> u64 {
    let is_pro = model_id.contains("pro");
    match effort {
        "none" if is_pro => 128,
        "none" => 0,
        "minimal" | "low" => 1024,
        "medium" => 8192,
        "xhigh" | "max" if is_pro => 32_768,
        _ => 24_576,
    }
}

/// Returns the effort, unless it is left to the provider.
pub(super) fn effort(settings: &Settings) -> Option<&str> {
    settings.reasoning_effort.as_deref().filter(|effort| *effort != "default")
}

/// Returns whether a model of OpenAI reasons, judging by its name: `o3` and `gpt-5.1` do, `gpt-4o` and `gpt-5-chat-latest` do
/// not.
pub(super) fn is_openai_reasoning_model(model_id: &str) -> bool {
    let name = model_id.rsplit('/').next().unwrap_or(model_id);
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let is_at_least = |prefix: &str, version: u32| name.strip_prefix(prefix).and_then(number) >= Some(version);
    (is_at_least("o", 1) || is_at_least("gpt-", 5)) && !name.contains("-chat")
}
