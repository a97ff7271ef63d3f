//! How providers are reached: addresses, keys and protocols, from the environment and from `patter.toml`.

use super::ModelError;
use crate::project::{Environment, ModelsConfig};
use patter_core::provider::{Endpoint, Provider, Wire};
use std::time::Duration;

/// The longest that a whole call may take by default.
const TIMEOUT: Duration = Duration::from_secs(600);

/// How a provider is reached. The key itself is not part of it.
///
/// ```
/// use patter::model::Access;
/// use patter::project::{Environment, ModelsConfig};
/// use patter::provider::Provider;
/// let environment = Environment::of([("OPENAI_API_KEY", "k3y"), ("PATTER_OPENAI_API", "responses")]);
/// let access = Access::resolve(Provider::OPENAI, &environment, &ModelsConfig::default()).unwrap().unwrap();
/// assert_eq!((access.base_url.as_str(), access.key), ("https://api.openai.com/v1", Some("OPENAI_API_KEY")));
/// assert_eq!(access.wire.name(), "responses");
/// ```
#[derive(Debug, Clone)]
pub struct Access {
    /// What is known about the provider's endpoint.
    pub endpoint: &'static Endpoint,
    /// The address that requests start with.
    pub base_url: String,
    /// What set the address: a variable or `patter.toml`; `None` for the provider's own.
    pub base_url_source: Option<&'static str>,
    /// The variable that holds the key, if one does.
    pub key: Option<&'static str>,
    /// Whether a key is required. Only the provider itself requires one: compatible servers often need none.
    pub needs_key: bool,
    /// The protocol.
    pub wire: Wire,
    /// The longest that a whole call may take.
    pub timeout: Duration,
}

impl Access {
    /// Resolves how a provider is reached; `None` if it is not reached over HTTP. The environment overrides `patter.toml`.
    pub fn resolve(
        provider: Provider,
        environment: &Environment,
        config: &ModelsConfig,
    ) -> Result<Option<Self>, ModelError> {
        let Some(endpoint) = provider.endpoint() else { return Ok(None) };
        let Some(default_wire) = endpoint.default_wire() else { return Ok(None) };
        let settings = config.get(provider);
        let (base_url, base_url_source) = match (environment.get(endpoint.base_url_variable), settings.base_url) {
            (Some(url), _) => (url, Some(endpoint.base_url_variable)),
            (None, Some(url)) => (url, Some(crate::project::CONFIG)),
            (None, None) => (endpoint.base_url.to_owned(), None),
        };
        let base_url = if base_url.contains("://") { base_url } else { format!("http://{base_url}") };
        let selected = match endpoint.wire_variable.and_then(|variable| Some((variable, environment.get(variable)?))) {
            Some((variable, name)) => Some(select_wire(provider, endpoint, variable, &name)?),
            None => settings.api,
        };
        let key = endpoint.key_variables.iter().copied().find(|name| environment.get(name).is_some());
        Ok(Some(Self {
            endpoint,
            needs_key: base_url == endpoint.base_url && !endpoint.key_variables.is_empty(),
            base_url,
            base_url_source,
            key,
            wire: selected.unwrap_or(default_wire),
            timeout: settings.timeout.unwrap_or(TIMEOUT),
        }))
    }

    /// Returns whether a required key is missing.
    pub const fn lacks_key(&self) -> bool {
        self.needs_key && self.key.is_none()
    }
}

fn select_wire(provider: Provider, endpoint: &Endpoint, variable: &str, name: &str) -> Result<Wire, ModelError> {
    let wire = Wire::parse(name).filter(|wire| endpoint.wires.contains(wire));
    wire.ok_or_else(|| ModelError::Configuration {
        message: format!("`{variable}` is `{name}`, which is not a supported {} API", provider.name()),
        hint: Some(format!("the APIs are {}", wire_names(endpoint))),
    })
}

/// Lists the protocols of a provider for people.
pub(crate) fn wire_names(endpoint: &Endpoint) -> String {
    endpoint.wires.iter().map(|wire| wire.name()).collect::<Vec<_>>().join(", ")
}
