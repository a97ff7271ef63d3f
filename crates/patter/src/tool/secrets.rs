//! Keeping secrets out of what models and people read.

use super::Failure;
use serde_json::Value as Json;

/// What stands in the place of a secret.
const REDACTED: &str = "[redacted]";
/// Shorter values are no secrets: to take every `1` out of a result would destroy it and hide nothing.
const SHORTEST: usize = 4;

/// Texts that nobody may read.
pub(crate) struct Secrets {
    /// The longest first, so that one that holds another is taken out whole.
    secrets: Vec<String>,
}

impl Secrets {
    pub(crate) fn new(values: &[String]) -> Self {
        let trimmed = values.iter().map(|value| value.trim());
        let mut secrets: Vec<_> = trimmed.filter(|value| value.len() >= SHORTEST).map(str::to_owned).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self { secrets }
    }

    /// Returns how many bytes at the beginning of a text may be what is left of a secret: the length of the longest one,
    /// and what a character grows by that was cut through and is shown as unreadable.
    pub(crate) fn margin(&self) -> usize {
        self.secrets.first().map_or(0, |longest| longest.len() + 8)
    }

    pub(crate) fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| match text.contains(secret.as_str()) {
            true => text.replace(secret.as_str(), REDACTED),
            false => text,
        })
    }

    /// Redacts a text of which the beginning was cut off, maybe within a secret, and takes off the margin.
    pub(crate) fn redact_tail(&self, text: &str) -> String {
        let margin = self.margin();
        let ends = self
            .secrets
            .iter()
            .flat_map(|secret| text.match_indices(secret.as_str()).map(|(at, found)| (at, at + found.len())));
        let covering = ends.filter(|(start, end)| *start < margin && *end > margin);
        let from = covering.map(|(_, end)| end).max().unwrap_or(margin);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        self.redact(text.get(from..).unwrap_or_default())
    }

    pub(crate) fn redact_json(&self, value: Json) -> Json {
        if self.secrets.is_empty() {
            return value;
        }
        match value {
            Json::String(text) => Json::String(self.redact(&text)),
            Json::Array(items) => items.into_iter().map(|item| self.redact_json(item)).collect(),
            Json::Object(entries) => {
                entries.into_iter().map(|(key, value)| (self.redact(&key), self.redact_json(value))).collect()
            }
            Json::Number(number) if self.secrets.contains(&number.to_string()) => Json::String(REDACTED.to_owned()),
            other @ (Json::Null | Json::Bool(_) | Json::Number(_)) => other,
        }
    }

    pub(crate) fn redact_failure(&self, failure: &Failure) -> Failure {
        let redacted = Failure::new(self.redact(failure.message()));
        match failure.detail() {
            Some(detail) => redacted.with_detail(self.redact(detail)),
            None => redacted,
        }
    }
}
