//! The sections `[models.PROVIDER]` and `[prices."PROVIDER/MODEL"]` of `patter.toml`.

use crate::model::wire_names;
use indexmap::IndexMap;
use patter_core::provider::price::{Price, Prices, Rate, RateError, Rates};
use patter_core::provider::{ModelRef, Provider, Wire};
use patter_core::text::nearest;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;

/// The longest time that can be set.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The sections `[models.PROVIDER]`: how providers are reached. The environment overrides them.
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
    /// The protocol, for providers that speak several.
    pub api: Option<Wire>,
    /// The address that requests start with.
    pub base_url: Option<String>,
    /// The longest that a whole call may take.
    pub timeout: Option<Duration>,
}

/// A time, written as a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(Duration);

/// What a model costs, in dollars for a million tokens.
///
/// ```
/// use patter::project::Config;
/// let text = "[prices.'OpenAI/gpt-4o-mini']\ninput = 0.15\ncached = 0.075\noutput = 0.60";
/// let prices = Config::parse(text).unwrap().prices();
/// assert!(prices.price(&"OpenAI/gpt-4o-mini".parse().unwrap()).is_some());
/// assert!(Config::parse(&text.replace("0.15", "-0.15")).unwrap_err().contains("a price is a number of dollars"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PriceConfig {
    /// What is read.
    pub input: Dollars,
    /// What is read from a cache; as the rest of the input where nothing is said.
    pub cached: Option<Dollars>,
    /// What is written to a cache; as the rest of the input where nothing is said.
    pub cache_write: Option<Dollars>,
    /// What is written.
    pub output: Dollars,
}

/// A number of dollars for a million tokens.
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
                let message = format!("`{}` is not an API of {name}; use {}", wire.name(), wire_names(endpoint));
                return Err(A::Error::custom(message));
            }
            let api = api.map(|ApiName(wire)| wire);
            let section = ProviderConfig { api, base_url, timeout: timeout.map(Seconds::duration) };
            sections.insert(provider, section);
        }
        Ok(ModelsConfig { sections })
    }
}

/// A section as it is written.
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
        let known = || Wire::ALL.map(Wire::name).join(", ");
        Wire::parse(&name).map(Self).ok_or_else(|| format!("unknown API `{name}`; use one of {}", known()))
    }
}

impl Seconds {
    /// Returns the time.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<f64> for Seconds {
    type Error = &'static str;

    fn try_from(seconds: f64) -> Result<Self, Self::Error> {
        let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero() && *time <= LONGEST);
        time.map(Self).ok_or("a time is a number of seconds above 0, and at most 86400")
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
        Price { rates, long: None }
    }
}

/// Puts the prices of a project before the built-in ones.
pub(super) fn prices<'p>(ours: impl IntoIterator<Item = (&'p ModelKey, &'p PriceConfig)>) -> Prices {
    Prices::builtin().with(ours.into_iter().map(|(ModelKey(model), price)| (model.clone(), price.price())))
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
        let hinted = |error: patter_core::provider::ModelRefError| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        name.parse().map(Self).map_err(hinted)
    }
}
