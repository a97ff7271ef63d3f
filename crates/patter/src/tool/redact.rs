//! Removing secrets from what models and people read.

use super::ToolFailure;
use super::http::{json_escape, percent_encode};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use serde_json::Value as Json;
use std::sync::{PoisonError, RwLock};

/// The default replacement of a secret.
const REDACTED: &str = "[redacted]";
/// The length in bytes from which a value is treated as a secret: replacing every `1` would ruin a result and hide
/// nothing.
pub(crate) const MIN_LENGTH: usize = 4;
/// The length in bytes from which a value is recognised in base64 and in hexadecimal.
const MIN_BINARY_LENGTH: usize = 8;

/// Replaces secrets in texts and values.
#[derive(Default)]
pub(crate) struct Redactor {
    /// The secrets with their replacements, the longest first, so that one that contains another is replaced as a whole.
    secrets: Vec<(String, String)>,
    /// Secrets that became known later, such as tokens of a login.
    learned: RwLock<Vec<String>>,
}

impl Redactor {
    /// Creates a redactor that replaces values by `[redacted]`.
    pub(crate) fn new(values: &[String]) -> Self {
        let mut redactor = Self::default();
        for value in values {
            redactor.add_forms(value.trim(), REDACTED);
        }
        redactor
    }

    /// Adds a secret in every encoding in which a program or a server is likely to return it.
    pub(crate) fn add_forms(&mut self, secret: &str, replacement: &str) {
        for form in forms(secret) {
            self.add(&form, replacement);
        }
    }

    /// Adds a secret, unless it is too short or known.
    fn add(&mut self, secret: &str, replacement: &str) {
        if secret.len() < MIN_LENGTH || self.secrets.iter().any(|(known, _)| known == secret) {
            return;
        }
        self.secrets.push((secret.to_owned(), replacement.to_owned()));
        self.secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
    }

    /// Hides a secret from now on, unless it is too short or known.
    pub(crate) fn hide(&self, secret: &str) {
        if self.learned().iter().any(|known| known == secret) {
            return;
        }
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        learned.extend(forms(secret));
        learned.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    fn learned(&self) -> std::sync::RwLockReadGuard<'_, Vec<String>> {
        self.learned.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the length of the longest secret in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.secrets.first().map_or(0, |(secret, _)| secret.len())
    }

    /// Returns how many bytes at the start of a truncated text may be the rest of a secret: the length of the longest
    /// one, and the growth of a character that was cut and is shown as `�`.
    pub(crate) fn margin(&self) -> usize {
        if self.secrets.is_empty() { 0 } else { self.longest() + 8 }
    }

    /// Replaces the secrets in a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = self.secrets.iter().fold(text.to_owned(), |text, (secret, replacement)| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), replacement) } else { text }
        });
        self.learned().iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), REDACTED) } else { text }
        })
    }

    /// Replaces the secrets in a text whose start was cut off, maybe within a secret, and removes the margin.
    pub(crate) fn redact_tail(&self, text: &str) -> String {
        let margin = self.margin();
        let occurrences = self
            .secrets
            .iter()
            .flat_map(|(secret, _)| text.match_indices(secret.as_str()).map(|(at, found)| (at, at + found.len())));
        let crossing = occurrences.filter(|(start, end)| *start < margin && *end > margin);
        let from = crossing.map(|(_, end)| end).max().unwrap_or(margin);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
        self.redact(text.get(from..).unwrap_or_default())
    }

    /// Replaces the secrets in a value: in texts, in keys, and numbers that are secrets.
    pub(crate) fn redact_json(&self, value: Json) -> Json {
        if self.secrets.is_empty() && self.learned().is_empty() {
            return value;
        }
        match value {
            Json::String(text) => Json::String(self.redact(&text)),
            Json::Array(items) => items.into_iter().map(|item| self.redact_json(item)).collect(),
            Json::Object(entries) => {
                entries.into_iter().map(|(key, value)| (self.redact(&key), self.redact_json(value))).collect()
            }
            Json::Number(number) => {
                let digits = number.to_string();
                let known = self.secrets.iter().find(|(secret, _)| *secret == digits);
                known.map_or(Json::Number(number), |(_, replacement)| Json::String(replacement.clone()))
            }
            other @ (Json::Null | Json::Bool(_)) => other,
        }
    }

    /// Replaces the secrets in a failure.
    pub(crate) fn redact_failure(&self, failure: &ToolFailure) -> ToolFailure {
        let message = self.redact(failure.message());
        let redacted = match failure.time_limit() {
            Some(limit) => ToolFailure::timed_out(limit, message),
            None => ToolFailure::new(message),
        };
        match failure.detail() {
            Some(detail) => redacted.with_detail(self.redact(detail)),
            None => redacted,
        }
    }
}

/// Returns a secret in every encoding in which a program or a server is likely to return it. One that is too short has
/// none.
fn forms(secret: &str) -> Vec<String> {
    if secret.len() < MIN_LENGTH {
        return Vec::new();
    }
    let encoded = percent_encode(secret);
    let mut forms = vec![
        secret.to_owned(),
        lowercase_escapes(&encoded),
        encoded.replace("%20", "+"),
        lowercase_escapes(&encoded).replace("%20", "+"),
        encoded,
        json_escape(secret),
        // JSON within a JSON string, as written by servers that echo a request.
        json_escape(&json_escape(secret)),
        BASE64_STANDARD.encode(secret),
    ];
    // What is left of a short secret would be found everywhere.
    if secret.len() >= MIN_BINARY_LENGTH {
        forms.extend(base64_forms(secret));
        let hexadecimal: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        forms.push(hexadecimal.to_ascii_uppercase());
        forms.push(hexadecimal);
    }
    forms.retain(|form| form.len() >= MIN_LENGTH);
    forms
}

/// Returns what a secret looks like within base64, alone or as a part of a longer text.
fn base64_forms(secret: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for engine in [&BASE64_STANDARD_NO_PAD, &BASE64_URL_SAFE_NO_PAD] {
        // Three bytes become four characters, so it depends on the bytes before it where the secret starts. The first
        // and the last character also encode bits of its neighbours.
        for (before, skipped) in [(0, 0), (1, 2), (2, 3)] {
            let bytes: Vec<u8> = std::iter::repeat_n(0, before).chain(secret.bytes()).collect();
            let encoded = engine.encode(&bytes);
            let end = if bytes.len().is_multiple_of(3) { encoded.len() } else { encoded.len() - 1 };
            forms.push(encoded.get(skipped..end).unwrap_or_default().to_owned());
        }
        forms.push(engine.encode(secret));
    }
    forms
}

/// Returns percent-encoded text with the letters of its escapes in lowercase: `%2F` as `%2f`.
fn lowercase_escapes(encoded: &str) -> String {
    let mut digits: u8 = 0;
    let lowercase = encoded.chars().map(|c| {
        let is_digit = digits > 0;
        digits = if c == '%' { 2 } else { digits.saturating_sub(1) };
        if is_digit { c.to_ascii_lowercase() } else { c }
    });
    lowercase.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_every_encoding() {
        let secret = "P4ss w/rd&\"x\"";
        let redactor = Redactor::new(&[secret.to_owned()]);
        for form in [
            "P4ss w/rd&\"x\"",
            "P4ss%20w%2Frd%26%22x%22",
            "P4ss%20w%2frd%26%22x%22",
            "P4ss+w%2Frd%26%22x%22",
            "P4ss w/rd&\\\"x\\\"",
            "5034737320772f72642622782 2".replace(' ', "").as_str(),
            "5034737320772F726426227822",
            "UDRzcyB3L3JkJiJ4Ig==",
        ] {
            assert_eq!(redactor.redact(&format!("<{form}>")).replace("==", ""), "<[redacted]>", "{form}");
        }
        let later = Redactor::default();
        later.hide(secret);
        assert_eq!(later.redact("<P4ss%20w%2Frd%26%22x%22>"), "<[redacted]>");
    }
    use base64::prelude::BASE64_URL_SAFE;

    #[test]
    fn secrets_are_found_in_base64() {
        let secret = "s3same-0pen?~\u{ff}";
        let redactor = Redactor::new(&[secret.to_owned()]);
        for before in ["", "u", "u:", "us:", "user"] {
            for after in ["", "x", "xy", "\n"] {
                let text = format!("{before}{secret}{after}");
                for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE.encode(&text)] {
                    let shown = redactor.redact(&format!("<{encoded}>"));
                    assert!(shown.contains(REDACTED) && shown.len() < 30, "{text:?}: {shown}");
                }
            }
        }
        let short = Redactor::new(&["abcd".to_owned()]);
        assert_eq!(short.redact("YWJjZA"), "YWJjZA");
    }
}
