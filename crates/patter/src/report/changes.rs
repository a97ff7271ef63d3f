//! Differences between two texts.

use crate::html::{Html, html};
use similar::{ChangeTag, TextDiff};

/// Below this similarity two texts are considered unrelated, and no changes are marked.
const MIN_SIMILARITY: f32 = 0.3;

/// Which of two texts is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// The text that the other is compared with.
    Old,
    /// The other text.
    New,
}

/// Marks the words of a text that its counterpart does not have.
pub fn mark_changes(own: &str, other: &str, version: Version) -> Html {
    if own == other {
        return html!("{}", own);
    }
    let (old, new) = match version {
        Version::Old => (own, other),
        Version::New => (other, own),
    };
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < MIN_SIMILARITY {
        return html!("<span class=\"other\">{}</span>", own);
    }
    let own_tag = match version {
        Version::Old => ChangeTag::Delete,
        Version::New => ChangeTag::Insert,
    };
    // Neighbouring words are marked together.
    let mut pieces: Vec<(bool, String)> = Vec::new();
    for change in diff.iter_all_changes() {
        let differs = change.tag() == own_tag;
        if !differs && change.tag() != ChangeTag::Equal {
            continue;
        }
        match pieces.last_mut() {
            Some((same, text)) if *same == differs => text.push_str(change.value()),
            _ => pieces.push((differs, change.value().to_owned())),
        }
    }
    // So are words separated only by a space.
    for index in 1..pieces.len().saturating_sub(1) {
        if let Some((differs, text)) = pieces.get_mut(index)
            && text.trim().is_empty()
        {
            *differs = true;
        }
    }
    let mut joined: Vec<(bool, String)> = Vec::new();
    for (differs, text) in pieces {
        match joined.last_mut() {
            Some((same, before)) if *same == differs => before.push_str(&text),
            _ => joined.push((differs, text)),
        }
    }
    let piece = |(differs, text): (bool, String)| match (differs, version) {
        (false, _) => html!("{}", text),
        (true, Version::New) => html!("<ins>{}</ins>", text),
        (true, Version::Old) => html!("<del>{}</del>", text),
    };
    joined.into_iter().map(piece).collect()
}
