//! JSON in the answer of an agent.

use serde_json::Value as Json;

/// Extracts the JSON in an answer: the whole text, or its first fenced block of valid JSON.
///
/// ```
/// use patter_core::case::extract_json;
/// assert_eq!(extract_json(" [1, 2] "), Some(serde_json::json!([1, 2])));
/// assert_eq!(extract_json("Here it is:\n```json\n{\"a\": 1}\n```\nBye"), Some(serde_json::json!({"a": 1})));
/// assert_eq!(extract_json("Hello"), None);
/// ```
pub fn extract_json(text: &str) -> Option<Json> {
    serde_json::from_str(text.trim())
        .ok()
        .or_else(|| fenced_blocks(text).find_map(|fence| serde_json::from_str(fence).ok()))
}

/// Iterates over fenced blocks with the language JSON or none.
fn fenced_blocks(text: &str) -> impl Iterator<Item = &str> {
    // Text outside and inside of fences alternates.
    let inside = text.split("```").skip(1).step_by(2);
    inside.filter_map(|fence| {
        let (language, body) = fence.split_once('\n')?;
        matches!(language.trim().to_ascii_lowercase().as_str(), "" | "json").then(|| body.trim())
    })
}
