//! How providers are reached: addresses, keys and protocols, from the environment and from `patter.toml`.

use super::ModelError;
use crate::project::{Environment, ModelsConfig};
use patter_core::name::Provider;
use patter_core::wire::Wire;
use serde::Deserialize;
use std::time::Duration;

/// The variable that says which API of OpenAI is used.
const API_VARIABLE: &str = "PATTER_OPENAI_API";
/// How long a whole call may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The APIs of OpenAI that can be asked for.
///
/// ```
/// use patter::model::OpenAiApi;
/// assert_eq!(OpenAiApi::parse("responses"), Some(OpenAiApi::Responses));
/// assert_eq!(OpenAiApi::ALL.map(OpenAiApi::name), ["chat", "responses", "functions"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OpenAiApi {
    /// Chat Completions, which all who speak like OpenAI know.
    #[default]
    Chat,
    /// Responses.
    Responses,
    /// Chat Completions with the older `functions`, for servers that know nothing else.
    Functions,
}

/// How a provider is reached. The key itself is not in it.
///
/// ```
/// use patter::model::Access;
/// use patter::name::Provider;
/// use patter::project::{Environment, ModelsConfig};
/// let environment = Environment::of([("OPENAI_API_KEY", "k3y"), ("PATTER_OPENAI_API", "responses")]);
/// let access = Access::of(Provider::OpenAi, &environment, &ModelsConfig::default()).unwrap().unwrap();
/// assert_eq!((access.base.as_str(), access.key), ("https://api.openai.com/v1", Some("OPENAI_API_KEY")));
/// assert_eq!(access.wire.name(), "responses");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The address that requests begin with.
    pub base: String,
    /// Where that address is written: the variable, or `patter.toml`, or nowhere, as it is the provider's own.
    pub base_from: Option<&'static str>,
    /// The variables that may hold a key.
    pub keys: &'static [&'static str],
    /// The one that does.
    pub key: Option<&'static str>,
    /// Whether there must be one. Only the provider itself must have it: servers that speak like it often need none.
    pub needs_key: bool,
    /// The protocol.
    pub wire: Wire,
    /// How long a whole call may take.
    pub timeout: Duration,
}

impl Access {
    /// Returns how a provider is reached, if it is reached over HTTP. The environment comes before `patter.toml`.
    pub fn of(
        provider: Provider,
        environment: &Environment,
        config: &ModelsConfig,
    ) -> Result<Option<Self>, ModelError> {
        let Some(wire) = Wire::of(provider) else { return Ok(None) };
        let (variable, own, keys) = defaults(provider);
        let settings = config.of(provider);
        let (base, base_from) = match (environment.get(variable), settings.base_url) {
            (Some(base), _) => (base, Some(variable)),
            (None, Some(base)) => (base.to_owned(), Some(crate::project::CONFIG)),
            (None, None) => (own.to_owned(), None),
        };
        let base = if base.contains("://") { base } else { format!("http://{base}") };
        let wire = if provider == Provider::OpenAi { api(environment, settings.api)?.wire() } else { wire };
        let key = keys.iter().copied().find(|name| environment.get(name).is_some());
        let needs_key = base == own && !keys.is_empty();
        let timeout = settings.timeout.unwrap_or(TIMEOUT);
        Ok(Some(Self { base, base_from, keys, key, needs_key, wire, timeout }))
    }

    /// Tells whether a key is missing.
    pub const fn lacks_key(&self) -> bool {
        self.needs_key && self.key.is_none()
    }
}

impl OpenAiApi {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Chat, Self::Responses, Self::Functions];

    /// Returns the name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Functions => "functions",
        }
    }

    /// Finds an API by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    /// Returns its protocol.
    pub const fn wire(self) -> Wire {
        match self {
            Self::Chat => Wire::Chat,
            Self::Responses => Wire::Responses,
            Self::Functions => Wire::ChatFunctions,
        }
    }
}

fn api(environment: &Environment, configured: Option<OpenAiApi>) -> Result<OpenAiApi, ModelError> {
    let Some(name) = environment.get(API_VARIABLE) else { return Ok(configured.unwrap_or_default()) };
    OpenAiApi::parse(&name).ok_or_else(|| ModelError::Configuration {
        message: format!("`{API_VARIABLE}` is `{name}`, which is no API of OpenAI"),
        hint: Some(format!("the APIs are {}", OpenAiApi::ALL.map(OpenAiApi::name).join(", "))),
    })
}

/// Returns the variable with the address of a provider, its own address, and the variables with its key.
const fn defaults(provider: Provider) -> (&'static str, &'static str, &'static [&'static str]) {
    match provider {
        Provider::Anthropic => ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", &["ANTHROPIC_API_KEY"]),
        Provider::Google => {
            ("GOOGLE_BASE_URL", "https://generativelanguage.googleapis.com", &["GOOGLE_API_KEY", "GEMINI_API_KEY"])
        }
        Provider::Ollama => ("OLLAMA_HOST", "http://localhost:11434", &[]),
        Provider::OpenAi | Provider::Demo | Provider::Scripted => {
            ("OPENAI_BASE_URL", "https://api.openai.com/v1", &["OPENAI_API_KEY"])
        }
    }
}
