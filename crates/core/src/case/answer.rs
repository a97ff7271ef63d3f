//! The answer of an agent as JSON.

use serde_json::Value as Json;

/// Reads the JSON in an answer: the whole of it, or what stands in its first fence that is JSON.
///
/// ```
/// use patter_core::case::json_in;
/// assert_eq!(json_in(" [1, 2] "), Some(serde_json::json!([1, 2])));
/// assert_eq!(json_in("Here it is:\n```json\n{\"a\": 1}\n```\nBye"), Some(serde_json::json!({"a": 1})));
/// assert_eq!(json_in("Hello"), None);
/// ```
pub fn json_in(text: &str) -> Option<Json> {
    serde_json::from_str(text.trim()).ok().or_else(|| fences(text).find_map(|fence| serde_json::from_str(fence).ok()))
}

/// Iterates over the texts in fences without a language, or with JSON for one.
fn fences(text: &str) -> impl Iterator<Item = &str> {
    // Text outside and inside of fences takes turns.
    let inside = text.split("```").skip(1).step_by(2);
    inside.filter_map(|fence| {
        let (language, body) = fence.split_once('\n')?;
        matches!(language.trim().to_ascii_lowercase().as_str(), "" | "json").then(|| body.trim())
    })
}
