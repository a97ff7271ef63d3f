//! What a request holds and nobody may read.

use super::encode::{json_inside, percent};
use crate::tool::Failure;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use indexmap::IndexMap;
use serde_json::Value as Json;

/// Values shorter than this are not looked for in texts: they would be found everywhere.
const LEAST_LENGTH: usize = 4;

/// The variables of the environment that a request needs, and every form in which they may come back.
#[derive(Default)]
pub(super) struct Secrets {
    values: IndexMap<String, String>,
    /// Texts to take out, and what to put in their place, the longest first.
    forms: Vec<(String, String)>,
}

impl Secrets {
    /// Looks variables up. The operator is told which are missing; a model only that some are.
    pub(super) fn look_up<'a>(
        names: impl Iterator<Item = &'a str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Failure> {
        let mut secrets = Self::default();
        let mut missing = Vec::new();
        for name in names {
            if secrets.values.contains_key(name) || missing.contains(&name) {
                continue;
            }
            match variable(name).filter(|value| !value.is_empty()) {
                Some(value) => {
                    secrets.hide(name, &value);
                    secrets.values.insert(name.to_owned(), value);
                }
                None => missing.push(name),
            }
        }
        if missing.is_empty() {
            return Ok(secrets);
        }
        let names: Vec<_> = missing.iter().map(|name| format!("`{name}`")).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        Err(not_configured().with_detail(format!("{} {verb} not set in the environment", names.join(", "))))
    }

    /// Returns the value of a variable.
    pub(super) fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Hides a text that gives a secret away, and its encoded forms.
    pub(super) fn hide(&mut self, name: &str, value: &str) {
        if value.len() < LEAST_LENGTH {
            return;
        }
        let encoded = percent(value);
        let forms = [
            value.to_owned(),
            encoded.to_ascii_lowercase(),
            encoded.replace("%20", "+"),
            encoded,
            json_inside(value),
            // JSON in a text of JSON, as servers that echo a request write it.
            json_inside(&json_inside(value)),
            BASE64_STANDARD.encode(value),
        ];
        for form in forms {
            if !self.forms.iter().any(|(known, _)| *known == form) {
                self.forms.push((form, format!("[secret {name}]")));
            }
        }
        self.forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
    }

    /// Hides what the credentials of `Basic` say, whichever way they are written, and returns them as they are sent.
    pub(super) fn basic(&mut self, name: &str, credentials: &str) -> String {
        let is_plain = credentials.contains(':');
        let plain = if is_plain {
            credentials.to_owned()
        } else {
            let decoded = BASE64_STANDARD.decode(credentials).ok();
            decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
        };
        if let Some((_, password)) = plain.split_once(':') {
            self.hide(name, &plain);
            self.hide(name, password);
        }
        if is_plain { BASE64_STANDARD.encode(credentials) } else { credentials.to_owned() }
    }

    /// Returns the length of the longest text that is taken out.
    pub(super) fn longest(&self) -> usize {
        self.forms.first().map_or(0, |(form, _)| form.len())
    }

    /// Takes the secrets out of a text.
    pub(super) fn redact(&self, text: String) -> String {
        self.forms.iter().fold(text, |text, (form, instead)| {
            if text.contains(form.as_str()) { text.replace(form.as_str(), instead) } else { text }
        })
    }

    /// Takes the secrets out of a value.
    pub(super) fn redact_json(&self, value: Json) -> Json {
        if self.forms.is_empty() {
            return value;
        }
        match value {
            Json::String(text) => Json::String(self.redact(text)),
            Json::Array(items) => items.into_iter().map(|item| self.redact_json(item)).collect(),
            Json::Object(entries) => {
                entries.into_iter().map(|(key, value)| (self.redact(key), self.redact_json(value))).collect()
            }
            Json::Number(number) => {
                let written = number.to_string();
                let hidden = self.forms.iter().find(|(form, _)| *form == written);
                hidden.map_or(Json::Number(number), |(_, instead)| Json::String(instead.clone()))
            }
            other @ (Json::Null | Json::Bool(_)) => other,
        }
    }

    /// Takes the secrets out of a failure.
    pub(super) fn redact_failure(&self, failure: &Failure) -> Failure {
        let redacted = Failure::new(self.redact(failure.message().to_owned()));
        match failure.detail() {
            Some(detail) => redacted.with_detail(self.redact(detail.to_owned())),
            None => redacted,
        }
    }
}

/// Returns what a model reads of a tool that lacks its settings.
pub(super) fn not_configured() -> Failure {
    Failure::new("this tool is not configured; only the operator can mend that")
}
