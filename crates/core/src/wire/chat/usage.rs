//! Token counts, for which compatible servers have several names.

use crate::message::conversation::Usage;
use crate::wire::borrowed_json::BorrowedJson;

/// Reads the counts of a reply; `None` if there are none.
pub(super) fn parse(usage: &BorrowedJson<'_>) -> Option<Usage> {
    // Most events of a stream have none.
    if !usage.is_object() {
        return None;
    }
    let first = |names: &[&[&str]]| {
        let counts = names.iter().map(|path| path.iter().fold(usage, |json, key| json.get(key)).count());
        counts.into_iter().find(|count| *count > 0).unwrap_or_default()
    };
    let cached_tokens = first(&[
        &["prompt_tokens_details", "cached_tokens"],
        &["input_tokens_details", "cached_tokens"],
        &["cached_tokens"],
        &["prompt_cache_hit_tokens"],
        &["cache_read_input_tokens"],
    ]);
    let cache_write_tokens = first(&[
        &["prompt_tokens_details", "cache_write_tokens"],
        &["prompt_tokens_details", "cache_creation_tokens"],
        &["prompt_tokens_details", "cached_creation_tokens"],
        &["input_tokens_details", "cache_write_tokens"],
        &["cache_creation_input_tokens"],
    ]);
    let reasoning_tokens = first(&[
        &["completion_tokens_details", "reasoning_tokens"],
        &["output_tokens_details", "reasoning_tokens"],
        &["reasoning_tokens"],
    ]);
    let input_tokens = first(&[&["prompt_tokens"], &["input_tokens"]]);
    let written_tokens = first(&[&["completion_tokens"], &["output_tokens"]]);
    let found =
        Usage { input_tokens, cached_tokens, cache_write_tokens, output_tokens: written_tokens, reasoning_tokens };
    let usage = count_output(found, usage.get("total_tokens").count());
    (usage != Usage::default()).then_some(usage)
}

/// Adds reasoning to the output tokens of a provider that counts it beside them, which its total reveals: xAI reports both
/// numbers, and Google only the total.
pub(in crate::wire) fn count_output(usage: Usage, total: u64) -> Usage {
    let missing = total.saturating_sub(usage.input_tokens).saturating_sub(usage.output_tokens);
    let is_beside = usage.reasoning_tokens > usage.output_tokens || usage.reasoning_tokens == missing;
    let is_unreported = usage.reasoning_tokens == 0 && usage.cached_tokens == 0 && usage.cache_write_tokens == 0;
    let reasoning_tokens = if is_unreported { missing } else { usage.reasoning_tokens };
    let beside = if is_beside || is_unreported { reasoning_tokens } else { 0 };
    Usage { output_tokens: usage.output_tokens.saturating_add(beside), reasoning_tokens, ..usage }
}
