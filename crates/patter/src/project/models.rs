//! The sections `[models.PROVIDER]` and `[prices."PROVIDER/MODEL"]` of `patter.toml`.

use crate::model::OpenAiApi;
use patter_core::message::price::{Price, Prices, Rate, RateError, Rates};
use patter_core::name::{ModelRef, Provider};
use serde::Deserialize;
use std::time::Duration;

/// The longest time that can be set.
const LONGEST: Duration = Duration::from_secs(86_400);

/// How providers are reached. The environment has the last word.
///
/// ```
/// use patter::project::Config;
/// let text = "[models.OpenAI]\napi = 'responses'\nbase-url = 'http://localhost:8080/v1'\ntimeout = 60";
/// assert_eq!(Config::parse(text).unwrap().models.openai.timeout.unwrap().duration().as_secs(), 60);
/// assert!(Config::parse("[models.Anthropic]\napi = 'chat'").is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelsConfig {
    /// OpenAI, and what speaks like it.
    #[serde(rename = "OpenAI", alias = "openai")]
    pub openai: OpenAiConfig,
    /// Anthropic.
    #[serde(rename = "Anthropic", alias = "anthropic")]
    pub anthropic: ProviderConfig,
    /// Google.
    #[serde(rename = "Google", alias = "google")]
    pub google: ProviderConfig,
    /// Ollama.
    #[serde(rename = "Ollama", alias = "ollama")]
    pub ollama: ProviderConfig,
}

/// The section `[models.OpenAI]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OpenAiConfig {
    /// The API; Chat Completions where nothing is said.
    pub api: Option<OpenAiApi>,
    /// The address that requests begin with.
    pub base_url: Option<String>,
    /// How long a whole call may take.
    pub timeout: Option<Seconds>,
}

/// The section `[models.PROVIDER]` of another provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProviderConfig {
    /// The address that requests begin with.
    pub base_url: Option<String>,
    /// How long a whole call may take.
    pub timeout: Option<Seconds>,
}

/// A time, written as a number of seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Seconds(Duration);

/// What is said about one provider.
pub(crate) struct Said<'s> {
    pub(crate) api: Option<OpenAiApi>,
    pub(crate) base_url: Option<&'s str>,
    pub(crate) timeout: Option<Duration>,
}

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
    pub(crate) fn of(&self, provider: Provider) -> Said<'_> {
        let OpenAiConfig { api, base_url, timeout } = &self.openai;
        let (api, base_url, timeout) = match provider {
            Provider::OpenAi | Provider::Demo | Provider::Scripted => (*api, base_url, timeout),
            Provider::Anthropic => (None, &self.anthropic.base_url, &self.anthropic.timeout),
            Provider::Google => (None, &self.google.base_url, &self.google.timeout),
            Provider::Ollama => (None, &self.ollama.base_url, &self.ollama.timeout),
        };
        Said { api, base_url: base_url.as_deref(), timeout: timeout.map(Seconds::duration) }
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
        let hinted = |error: patter_core::name::ModelRefError| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        };
        name.parse().map(Self).map_err(hinted)
    }
}
