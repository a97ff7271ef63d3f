//! The section of one provider.

use super::facts::ModelFacts;
use crate::http::header::{HeaderName, HeaderValue};
use indexmap::IndexMap;
use patter_core::provider::{OutputLimit, Quirks, SystemRole, Wire};
use serde::Deserialize;
use std::time::Duration;

/// The longest time that can be set.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// The section of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The protocol.
    pub api: Option<Wire>,
    /// The base URL of requests, which may contain `${NAME}`, `${NAME:-default}` and `{model}`.
    pub url: Option<String>,
    /// Where the key comes from.
    pub key: Option<KeySource>,
    /// The header that contains the key: `bearer` for `Authorization: Bearer`, or the name of another one.
    pub key_header: Option<String>,
    /// Further headers of requests, whose values may contain variables.
    pub headers: IndexMap<String, String>,
    /// Further parameters of the URL.
    pub query: IndexMap<String, String>,
    /// The time limit of a call, including retries.
    pub timeout: Option<Duration>,
    /// How the server differs from others.
    pub quirks: Quirks,
    /// What applies to all its models.
    pub facts: ModelFacts,
    /// What applies to one model, by name.
    pub models: IndexMap<String, ModelFacts>,
}

/// Where the key of a provider comes from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected the name of a variable, or `{ command = [\"…\"] }`")]
pub enum KeySource {
    /// A variable.
    Variable(String),
    /// The output of a command.
    Command(KeyCommand),
}

/// A command that prints a key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The names of the variables that it receives besides those that all commands receive.
    #[serde(default)]
    pub env: Vec<String>,
}

/// A time, written as a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(Duration);

impl ProviderConfig {
    /// Lists the settings that are set. They contain no secrets, because those are in variables.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let Quirks { output_limit, system_role, strict, parallel_calls, stream_usage } = self.quirks;
        let limit = |limit: OutputLimit| {
            if limit == OutputLimit::MaxTokens { "max_tokens" } else { "max_completion_tokens" }.to_owned()
        };
        let key = self.key.as_ref().map(|key| match key {
            KeySource::Variable(name) => name.clone(),
            KeySource::Command(command) => command.command.join(" "),
        });
        let settings = [
            ("api", self.api.map(|wire| wire.name().to_owned())),
            ("url", self.url.clone()),
            ("key", key),
            ("key-header", self.key_header.clone()),
            ("timeout", self.timeout.map(|timeout| timeout.as_secs_f64().to_string())),
            ("max-tokens-field", output_limit.map(limit)),
            ("system-role", system_role.map(|role| role.name().to_owned())),
            ("strict", strict.map(|strict| strict.to_string())),
            ("parallel-calls", parallel_calls.map(|parallel| parallel.to_string())),
            ("stream-usage", stream_usage.map(|usage| usage.to_string())),
        ];
        let mut listed: Vec<(String, String)> =
            settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        listed.extend(self.headers.iter().map(|(name, value)| (format!("headers.{name}"), value.clone())));
        listed.extend(self.query.iter().map(|(name, value)| (format!("query.{name}"), value.clone())));
        listed.extend(self.facts.settings().map(|(name, value)| (name.to_owned(), value)));
        for (model, facts) in &self.models {
            listed.extend(facts.settings().map(|(name, value)| (format!("models.{model}.{name}"), value)));
        }
        listed
    }
}

/// A section as it is written, before it is checked.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawSection {
    api: Option<ApiName>,
    url: Option<String>,
    base_url: Option<String>,
    key: Option<KeySource>,
    key_header: Option<String>,
    headers: IndexMap<String, String>,
    query: IndexMap<String, String>,
    timeout: Option<Seconds>,
    max_tokens_field: Option<LimitName>,
    system_role: Option<RoleName>,
    strict: Option<bool>,
    parallel_calls: Option<bool>,
    stream_usage: Option<bool>,
    window: Option<u64>,
    max_output: Option<u64>,
    tools: Option<bool>,
    images: Option<bool>,
    documents: Option<bool>,
    reasoning: Option<bool>,
    models: IndexMap<String, ModelFacts>,
}

impl RawSection {
    /// Checks what the types do not express.
    pub(super) fn check(self) -> Result<ProviderConfig, String> {
        if self.url.is_some() && self.base_url.is_some() {
            return Err("`url` and `base-url` are the same setting; remove one of them".to_owned());
        }
        let is_empty = |name: &str| name.trim().is_empty();
        match &self.key {
            Some(KeySource::Variable(name)) if !is_variable(name) => {
                // It may be the key itself, which is not repeated.
                return Err("`key` is the name of a variable, such as \"HOUSE_API_KEY\", and not the key itself".into());
            }
            Some(KeySource::Command(command)) if command.command.first().is_none_or(|first| is_empty(first)) => {
                return Err("the command of `key` is empty".to_owned());
            }
            _ => {}
        }
        for name in self.headers.keys().chain(self.key_header.as_ref()) {
            if HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("`{name}` is not the name of a header"));
            }
        }
        for (name, value) in &self.headers {
            if HeaderValue::from_str(value).is_err() {
                return Err(format!("the header `{name}` contains characters that a header cannot contain"));
            }
        }
        Ok(ProviderConfig {
            api: self.api.map(|ApiName(wire)| wire),
            url: self.url.or(self.base_url),
            key: self.key,
            key_header: self.key_header,
            headers: self.headers,
            query: self.query,
            timeout: self.timeout.map(Seconds::duration),
            quirks: Quirks {
                output_limit: self.max_tokens_field.map(|LimitName(limit)| limit),
                system_role: self.system_role.map(|RoleName(role)| role),
                strict: self.strict,
                parallel_calls: self.parallel_calls,
                stream_usage: self.stream_usage,
            },
            facts: ModelFacts {
                window: self.window,
                max_output: self.max_output,
                tools: self.tools,
                images: self.images,
                documents: self.documents,
                reasoning: self.reasoning,
            },
            models: self.models,
        })
    }
}

/// Returns whether a text can be the name of a variable. Keys are longer or contain other characters.
pub(in crate::project) fn is_variable(name: &str) -> bool {
    let is_name_char = |c: char| c == '_' || c.is_ascii_uppercase() || c.is_ascii_digit();
    name.starts_with(|c: char| c == '_' || c.is_ascii_uppercase()) && name.chars().all(is_name_char)
}

/// The name of a protocol.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct ApiName(Wire);

/// The name of the limit on output tokens.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct LimitName(OutputLimit);

/// The role of instructions.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct RoleName(SystemRole);

impl TryFrom<String> for ApiName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let names = || Wire::ALL.map(Wire::name).join(", ");
        Wire::parse(&name).map(Self).ok_or_else(|| format!("unknown API `{name}`; use one of {}", names()))
    }
}

impl TryFrom<String> for LimitName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let error = || format!("`{name}` is not a name of the limit; use `max_tokens` or `max_completion_tokens`");
        OutputLimit::parse(&name).map(Self).ok_or_else(error)
    }
}

impl TryFrom<String> for RoleName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = SystemRole::ALL.into_iter().find(|role| role.name() == name);
        let names = || SystemRole::ALL.map(SystemRole::name).join(", ");
        found.map(Self).ok_or_else(|| format!("unknown role `{name}`; use one of {}", names()))
    }
}

impl Seconds {
    /// Converts the number into a duration.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero() && *time <= MAX_TIME);
        time.map(Self).ok_or("a time must be more than 0 and at most 86400 seconds")
    }
}
