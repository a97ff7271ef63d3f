//! Results that are too large to return at once, kept so that a model can read on.
//!
//! They are kept in memory, without secrets, until the program ends or newer ones need the room. An id cannot be guessed,
//! so only a conversation that received it can read the result.

use super::ToolFailure;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// The size up to which a result is kept, in bytes.
pub(crate) const MAX_KEPT_BYTES: usize = 16 * 1024 * 1024;
/// The size of all kept results, in bytes.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;
/// The start of each id.
const PREFIX: &str = "kept-";

/// The kept results with their ids, the oldest first.
static KEPT: Mutex<VecDeque<(String, Arc<str>)>> = Mutex::new(VecDeque::new());

/// Keeps a text, which must not contain secrets, and returns its id.
fn keep(text: &str) -> String {
    let random = || RandomState::new().hash_one(text.len());
    let id = format!("{PREFIX}{:016x}{:016x}", random(), random());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push_back((id.clone(), text.into()));
    let mut total: usize = kept.iter().map(|(_, text)| text.len()).sum();
    while total > MAX_TOTAL_BYTES && kept.len() > 1 {
        total -= kept.pop_front().map_or(0, |(_, text)| text.len());
    }
    id
}

/// Returns a text that is small enough: the text itself, or its start with a note, and then the whole text is kept. It must
/// not contain secrets.
pub(crate) fn cut(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let start = text.get(..end).unwrap_or_default();
    let characters = start.chars().count();
    let id = keep(&text);
    format!(
        "{start}\n\n[cut: these are {end} of {} bytes; read on with `text/read`, kept: \"{id}\", start: {characters}]",
        text.len()
    )
}

/// Returns the failure for a result that is too large and cannot be cut, because it is not text. The result is kept as
/// text, which must not contain secrets.
pub(crate) fn too_large(text: &str, max_bytes: usize) -> ToolFailure {
    let id = keep(text);
    let size = text.len();
    ToolFailure::new(format!(
        "the result has {size} bytes, more than the {max_bytes} that are returned at once; read it with `text/read`, \
         kept: \"{id}\""
    ))
    .with_detail("`maxBytes` of the tool sets the limit")
}

/// Returns a kept text, if a text is the id of one.
pub(crate) fn find(id: &str) -> Option<Arc<str>> {
    if !id.starts_with(PREFIX) {
        return None;
    }
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.iter().find(|(known, _)| known == id).map(|(_, text)| Arc::clone(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_characters_and_keeps_the_whole() {
        assert_eq!(cut("short".to_owned(), 5), "short");
        let shown = cut("aä".repeat(10), 5);
        assert!(shown.starts_with("aäa\n\n[cut: these are 4 of 30 bytes; read on with `text/read`"), "{shown}");
        let id = shown.split('"').nth(1).unwrap();
        assert_eq!(&*find(id).unwrap(), "aä".repeat(10));
        assert!(shown.ends_with("start: 3]"));
        assert_eq!(find("kept-0"), None);
        assert_eq!(find("other"), None);
    }

    #[test]
    fn keeps_a_bounded_amount() {
        let ids: Vec<_> = (0..6).map(|_| keep(&"x".repeat(MAX_KEPT_BYTES))).collect();
        assert!(find(&ids[0]).is_none() && find(&ids[1]).is_none());
        assert!(find(&ids[5]).is_some());
    }
}
