//! The sections `[models.PROVIDER]` and `[prices."PROVIDER/MODEL"]` of `patter.toml`.

use indexmap::IndexMap;
use patter_core::provider::price::{Price, Prices, Rate, RateError, Rates};
use patter_core::provider::{ModelRef, ModelRefError, Provider, Wire};
use patter_core::text::nearest;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;

/// The longest time that can be set.
const MAX_TIME: Duration = Duration::from_secs(86_400);

/// The sections `[models.PROVIDER]`: the settings for reaching providers. The environment overrides them.
///
/// ```
/// use patter::project::Config;
/// use patter::provider::Provider;
/// let text = "[models.OpenAI]\napi = 'responses'\nbase-url = 'http://localhost:8080/v1'\ntimeout = 60";
/// assert_eq!(Config::parse(text).unwrap().models.get(Provider::OPENAI).timeout.unwrap().as_secs(), 60);
/// assert!(Config::parse("[models.Anthropic]\napi = 'chat'").is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelsConfig {
    sections: IndexMap<Provider, ProviderConfig>,
}

/// The section of one provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The protocol, for providers that support several.
    pub api: Option<Wire>,
    /// The base URL of requests.
    pub base_url: Option<String>,
    /// The time limit of a call, including retries.
    pub timeout: Option<Duration>,
}

/// A time, written as a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(Duration);

/// The price of a model, in dollars per million tokens.
///
/// ```
/// use patter::project::Config;
/// let text = "[prices.'OpenAI/gpt-4o-mini']\ninput = 0.15\ncached = 0.075\noutput = 0.60";
/// let prices = Config::parse(text).unwrap().prices();
/// assert!(prices.price(&"OpenAI/gpt-4o-mini".parse().unwrap()).is_some());
/// assert!(Config::parse(&text.replace("0.15", "-0.15")).unwrap_err().contains("a price must be between 0 and"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriceConfig {
    /// Input.
    pub input: Dollars,
    /// Input that is read from a cache; by default the price of input.
    pub cached: Option<Dollars>,
    /// Input that is written to a cache; by default the price of input.
    pub cache_write: Option<Dollars>,
    /// Output.
    pub output: Dollars,
}

/// A number of dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Dollars(Rate);

/// The name of a model as the key of a table.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelKey(ModelRef);

impl ModelsConfig {
    /// Returns the settings of a provider.
    pub fn get(&self, provider: Provider) -> ProviderConfig {
        self.sections.get(&provider).cloned().unwrap_or_default()
    }
}

/// Formats the settings in a stable form, as one line for each setting.
impl fmt::Display for ModelsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (provider, ProviderConfig { api, base_url, timeout }) in &self.sections {
            let settings = [
                ("api", api.map(|wire| wire.name().to_owned())),
                ("base-url", base_url.clone()),
                ("timeout", timeout.map(|timeout| timeout.as_secs_f64().to_string())),
            ];
            for (name, value) in settings.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                writeln!(f, "{}.{name} = {value}", provider.name())?;
            }
        }
        Ok(())
    }
}

// Written by hand because a section is checked against its provider, and errors should name the line of the section.
impl<'de> Deserialize<'de> for ModelsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SectionsVisitor)
    }
}

struct SectionsVisitor;

impl<'de> Visitor<'de> for SectionsVisitor {
    type Value = ModelsConfig;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section for each provider")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ModelsConfig, A::Error> {
        let mut sections = IndexMap::new();
        while let Some(ProviderKey(provider)) = map.next_key()? {
            let RawSection { api, base_url, timeout } = map.next_value()?;
            let endpoint = provider.endpoint();
            if let (Some(ApiName(wire)), Some(endpoint)) = (api, endpoint)
                && !endpoint.wires.contains(&wire)
            {
                let name = provider.name();
                let message = format!("`{}` is not an API of {name}; use {}", wire.name(), endpoint.wire_names());
                return Err(A::Error::custom(message));
            }
            let api = api.map(|ApiName(wire)| wire);
            let section = ProviderConfig { api, base_url, timeout: timeout.map(Seconds::duration) };
            sections.insert(provider, section);
        }
        Ok(ModelsConfig { sections })
    }
}

/// A section as it is written, before it is checked.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[derive(Default)]
struct RawSection {
    api: Option<ApiName>,
    base_url: Option<String>,
    timeout: Option<Seconds>,
}

/// The name of a provider that is reached over HTTP, as the key of a table.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct ProviderKey(Provider);

impl TryFrom<String> for ProviderKey {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        if let Some(provider) = Provider::parse(&name).filter(|provider| provider.endpoint().is_some()) {
            return Ok(Self(provider));
        }
        let providers = Provider::ALL.into_iter().filter(|provider| provider.endpoint().is_some());
        let names: Vec<&str> = providers.map(Provider::name).collect();
        let hint = match nearest(&name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the providers are {}", names.join(", ")),
        };
        Err(format!("unknown provider `{name}`; {hint}"))
    }
}

/// The name of a protocol.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct ApiName(Wire);

impl TryFrom<String> for ApiName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let names = || Wire::ALL.map(Wire::name).join(", ");
        Wire::parse(&name).map(Self).ok_or_else(|| format!("unknown API `{name}`; use one of {}", names()))
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

impl PriceConfig {
    fn price(self) -> Price {
        let Dollars(input) = self.input;
        let or_input = |dollars: Option<Dollars>| dollars.map_or(input, |Dollars(rate)| rate);
        let rates = Rates {
            input,
            cached: or_input(self.cached),
            cache_write: or_input(self.cache_write),
            output: self.output.0,
        };
        Price { rates, long_context: None }
    }
}

/// Returns the built-in prices, overridden by those of a project.
pub(super) fn prices<'p>(overrides: impl IntoIterator<Item = (&'p ModelKey, &'p PriceConfig)>) -> Prices {
    let overrides = overrides.into_iter().map(|(ModelKey(model), price)| (model.clone(), price.price()));
    Prices::builtin().with_overrides(overrides)
}

impl TryFrom<f64> for Dollars {
    type Error = RateError;

    fn try_from(dollars: f64) -> Result<Self, RateError> {
        Rate::try_from(dollars).map(Self)
    }
}

impl TryFrom<String> for ModelKey {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse().map(Self).map_err(|error: ModelRefError| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
    }
}
