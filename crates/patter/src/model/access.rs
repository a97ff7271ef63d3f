//! Addresses, keys and protocols of providers, from the environment and from `patter.toml`.

use super::error::ModelError;
use super::placeholder::expand;
use crate::project::{CONFIG, Environment, KeySource, ModelsConfig, ProviderConfig};
use patter_core::provider::{Endpoint, Provider, Wire};
use std::time::Duration;

/// The default time limit of a call, including retries.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// The settings for reaching a provider. They do not contain the key itself.
///
/// ```
/// use patter::model::ProviderAccess;
/// use patter::project::{Environment, ModelsConfig};
/// use patter::provider::Provider;
/// let environment = Environment::from_variables([("OPENAI_API_KEY", "k3y"), ("PATTER_OPENAI_API", "responses")]);
/// let access = ProviderAccess::resolve(Provider::OPENAI, &environment, &ModelsConfig::default()).unwrap().unwrap();
/// assert_eq!(access.base_url, "https://api.openai.com/v1");
/// assert_eq!(access.key_variable(), Some("OPENAI_API_KEY"));
/// assert_eq!(access.wire.name(), "responses");
/// ```
#[derive(Debug, Clone)]
pub struct ProviderAccess {
    /// The provider.
    pub provider: Provider,
    /// The API of the provider.
    pub endpoint: &'static Endpoint,
    /// The base URL of requests, which may contain `{model}`.
    pub base_url: String,
    /// The variable or file that sets the base URL; `None` for the default.
    pub base_url_source: Option<&'static str>,
    /// Where the key is: in a variable that is set, or in the output of a command.
    pub key: Option<KeySource>,
    /// The variables that may contain the key, in order of preference.
    pub key_variables: Vec<String>,
    /// Whether a key is required. It is required by the provider itself, and where the project says where it is; other
    /// servers often need none.
    pub needs_key: bool,
    /// The protocol.
    pub wire: Wire,
    /// The time limit of a call, including retries.
    pub timeout: Duration,
    /// The section of the provider in `patter.toml`.
    pub settings: ProviderConfig,
}

impl ProviderAccess {
    /// Determines the settings of a provider; `None` if it is not reached over HTTP. The environment overrides
    /// `patter.toml`.
    pub fn resolve(
        provider: Provider,
        environment: &Environment,
        config: &ModelsConfig,
    ) -> Result<Option<Self>, ModelError> {
        let Some(endpoint) = provider.endpoint() else { return Ok(None) };
        let Some(default_wire) = endpoint.default_wire() else { return Ok(None) };
        let settings = config.get(provider);
        let (base_url, base_url_source) = match (environment.get(endpoint.base_url_variable), &settings.url) {
            (Some(url), _) => (url, Some(endpoint.base_url_variable)),
            (None, Some(url)) => (url.clone(), Some(CONFIG)),
            (None, None) => (endpoint.base_url.to_owned(), None),
        };
        let base_url = expand(&base_url, |name| environment.get(name)).map_err(|name| unset(provider, &name))?;
        let base_url = if base_url.contains("://") { base_url } else { format!("http://{base_url}") };
        let selected = match endpoint.wire_variable.and_then(|variable| Some((variable, environment.get(variable)?))) {
            Some((variable, name)) => Some(select_wire(provider, endpoint, variable, &name)?),
            None => settings.api,
        };
        let key_variables: Vec<String> = match &settings.key {
            Some(KeySource::Variable(name)) => vec![name.clone()],
            Some(KeySource::Command(_)) => Vec::new(),
            None => endpoint.key_variables.iter().map(|name| (*name).to_owned()).collect(),
        };
        let is_set = |name: &&String| environment.get(name).is_some_and(|key| !key.trim().is_empty());
        let variable = key_variables.iter().find(is_set).cloned().map(KeySource::Variable);
        let command = settings.key.clone().filter(|key| matches!(key, KeySource::Command(_)));
        let is_own = base_url_source.is_none() || base_url == endpoint.base_url;
        Ok(Some(Self {
            provider,
            endpoint,
            needs_key: settings.key.is_some() || (endpoint.needs_key && is_own),
            base_url,
            base_url_source,
            key: command.or(variable),
            key_variables,
            wire: selected.unwrap_or(default_wire),
            timeout: settings.timeout.unwrap_or(DEFAULT_TIMEOUT),
            settings,
        }))
    }

    /// Returns the variable that contains the key, if it is set.
    pub fn key_variable(&self) -> Option<&str> {
        match &self.key {
            Some(KeySource::Variable(name)) => Some(name),
            Some(KeySource::Command(_)) | None => None,
        }
    }

    /// Returns the error for a key that is required and missing.
    pub fn missing_key(&self) -> Option<ModelError> {
        let variables: Vec<&str> = self.key_variables.iter().map(String::as_str).collect();
        self.lacks_key().then(|| ModelError::missing_key(self.provider, &variables))
    }

    /// Returns what to check if the address is not that of a provider.
    pub fn address_hint(&self) -> String {
        match self.base_url_source {
            Some(source) => format!("check the address of {} in `{source}`", self.provider.name()),
            None => "check whether a proxy answers instead of the provider".to_owned(),
        }
    }

    /// Returns whether a required key is missing.
    pub const fn lacks_key(&self) -> bool {
        self.needs_key && self.key.is_none()
    }
}

/// Returns the error for an address with a variable that is not set.
fn unset(provider: Provider, variable: &str) -> ModelError {
    ModelError::Configuration {
        message: format!("there is no address of {}: `{variable}` is not set", provider.name()),
        hint: Some(format!("set `{variable}` in the environment or in `.env`; docs/models.md lists the settings")),
    }
}

fn select_wire(provider: Provider, endpoint: &Endpoint, variable: &str, name: &str) -> Result<Wire, ModelError> {
    let wire = Wire::parse(name).filter(|wire| endpoint.wires.contains(wire));
    wire.ok_or_else(|| ModelError::Configuration {
        message: format!("`{variable}` is `{name}`, which is not a supported {} API", provider.name()),
        hint: Some(format!("the supported APIs are {}", endpoint.wire_names())),
    })
}
