//! `patter models`: lists providers and models.

use super::Command;
use crate::error::{CommandError, CommandResult, ErrorFormat, Outcome};
use crate::format::{DataFormat, FormatOption, OutputFormat};
use crate::setup::{Signals, ToolRuntime, Turn, require_trust, until_stopped};
use crate::ui;
use crate::ui::style::{BOLD, DIM};
use clap::Args;
use patter::model::{HttpModel, ProviderAccess};
use patter::project::{Config, DefinitionKind, Environment, KeySource, find_root};
use patter::provider::price::Prices;
use patter::provider::{KnownModel, ModelRef, ModelRefError, Provider};
use serde_json::{Value as Json, json};
use std::fmt::{self, Write};

/// The widest column of keys that addresses are aligned with.
const MAX_KEY_WIDTH: usize = 44;

/// List the providers and the models that are known
///
/// For each provider: whether its key is set, and its address. For each model: how many tokens it reads and writes, what
/// it accepts, and its price in dollars per million tokens of input and output. Providers and prices of patter.toml are
/// included. Nothing is sent anywhere without --live.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        patter models\n  \
                        patter models --provider Anthropic\n  \
                        patter models --provider Ollama --live\n  \
                        patter models --format json")]
pub(crate) struct Models {
    /// Only this provider, with its models
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,

    /// Ask the provider which models it has
    #[arg(long, requires = "provider")]
    live: bool,

    #[command(flatten)]
    format: FormatOption<DataFormat>,
}

/// What is shown of a provider.
struct ProviderView {
    provider: Provider,
    /// The address, and the variable or file that it comes from; an error if a variable is missing.
    address: Result<String, String>,
    key: KeyState,
    models: Vec<ModelView>,
}

/// Whether a provider has a key.
enum KeyState {
    /// It needs none.
    Unneeded,
    /// It is set there.
    Set(String),
    /// It is missing.
    Missing(String),
}

/// What is shown of a model.
struct ModelView {
    id: String,
    known: Option<KnownModel>,
    /// The prices of input and output.
    price: Option<(String, String)>,
}

impl Command for Models {
    fn error_format(&self) -> ErrorFormat {
        self.format.format.error_format()
    }

    fn run(&self) -> CommandResult {
        let root = find_root();
        let config = Config::read(root.as_deref())?;
        let environment =
            Environment::read(root.as_deref()).map_err(|error| CommandError::failure(error.to_string()))?;
        let chosen = self.provider.as_deref().map(find_provider).transpose()?;
        let all = Provider::ALL.into_iter().chain(Provider::declared()).filter(|it| it.endpoint().is_some());
        let providers = all.filter(|provider| chosen.is_none_or(|chosen| chosen == *provider));
        let prices = config.prices();
        let mut views: Vec<ProviderView> =
            providers.map(|provider| view(provider, &environment, &config, &prices)).collect();
        if let Some(provider) = chosen.filter(|_| self.live) {
            let live = self.list(provider, &environment, &config)?;
            let models = live.into_iter().map(|id| model_view(provider, id, &config, &prices)).collect();
            if let Some(view) = views.first_mut() {
                view.models = models;
            }
        }
        match self.format.format {
            DataFormat::Text => ui::print(&text(&views, chosen.is_some()))?,
            DataFormat::Json => {
                let providers: Vec<Json> = views.iter().map(to_json).collect();
                ui::print(&format!("{:#}\n", json!({ "providers": providers })))?;
            }
        }
        Ok(Outcome::Success)
    }
}

impl Models {
    /// Asks a provider for its models.
    fn list(
        &self,
        provider: Provider,
        environment: &Environment,
        config: &Config,
    ) -> Result<Vec<String>, CommandError> {
        let root = find_root();
        let runtime = ToolRuntime::new()?;
        let stop = Signals::listen(&runtime, Turn::default())?.stop;
        let is_about_models = |kind: DefinitionKind| {
            matches!(kind, DefinitionKind::Model | DefinitionKind::Key | DefinitionKind::Variable)
        };
        let definitions = config.definitions(root.as_deref(), environment);
        let used = definitions.iter().filter(|definition| is_about_models(definition.kind));
        require_trust(&runtime, &stop, root.as_deref(), used)?;
        let model = ModelRef { provider, id: "models".to_owned() };
        let client = HttpModel::with_config(&model, environment, &config.models)?;
        let listed = until_stopped(&runtime, &stop, client.list_models()).ok_or_else(CommandError::interrupted)?;
        Ok(listed?)
    }
}

/// Finds a provider by name.
fn find_provider(name: &str) -> Result<Provider, CommandError> {
    let found = Provider::parse(name).filter(|provider| provider.endpoint().is_some());
    found.ok_or_else(|| {
        let error = ModelRefError::UnknownProvider(name.to_owned());
        CommandError::usage(error.to_string()).with_hint_if(error.hint())
    })
}

fn view(provider: Provider, environment: &Environment, config: &Config, prices: &Prices) -> ProviderView {
    let access = ProviderAccess::resolve(provider, environment, &config.models);
    let (address, key) = match &access {
        Ok(Some(access)) => (Ok(access.base_url.clone()), key_state(access)),
        Ok(None) => (Ok(String::new()), KeyState::Unneeded),
        Err(error) => {
            let variables = provider.endpoint().map_or(&[][..], |endpoint| endpoint.key_variables);
            let set = variables.iter().find(|name| environment.get(name).is_some());
            let key = match set {
                Some(name) => KeyState::Set((*name).to_owned()),
                None => KeyState::Missing(variables.join(" or ")),
            };
            (Err(error.to_string()), key)
        }
    };
    let listed = provider.profile().models.iter().map(|row| row.id.to_owned());
    let own = config.models.get(provider).models.into_keys();
    let mut ids: Vec<String> = listed.collect();
    ids.extend(own.filter(|id| !ids.contains(id)).collect::<Vec<_>>());
    let models = ids.into_iter().map(|id| model_view(provider, id, config, prices)).collect();
    ProviderView { provider, address, key, models }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unneeded => f.write_str("no key needed"),
            Self::Set(place) => write!(f, "key from {place}"),
            Self::Missing(names) => write!(f, "no key: set {names}"),
        }
    }
}

fn key_state(access: &ProviderAccess) -> KeyState {
    match &access.key {
        Some(KeySource::Variable(name)) => KeyState::Set(name.clone()),
        Some(KeySource::Command(_)) => KeyState::Set("a command".to_owned()),
        None if access.lacks_key() => KeyState::Missing(access.key_variables.join(" or ")),
        None => KeyState::Unneeded,
    }
}

fn model_view(provider: Provider, id: String, config: &Config, prices: &Prices) -> ModelView {
    let model = ModelRef { provider, id: id.clone() };
    let price = prices.price(&model).map(|price| price.rates);
    let price = price.map(|rates| (rates.input.million().to_string(), rates.output.million().to_string()));
    ModelView { id, known: config.models.known_model(&model), price }
}

fn text(views: &[ProviderView], is_chosen: bool) -> String {
    let mut text = String::new();
    let width = views.iter().map(|view| view.provider.name().len()).max().unwrap_or(0);
    let key_width = views.iter().map(|view| view.key.to_string().chars().count()).max().unwrap_or(0).min(MAX_KEY_WIDTH);
    for view in views {
        let key = view.key.to_string();
        let address = match &view.address {
            Ok(address) => without_secrets(address),
            Err(problem) => problem.clone(),
        };
        let name = view.provider.name();
        let _ = writeln!(text, "{BOLD}{name:width$}{BOLD:#}  {key:key_width$}  {DIM}{address}{DIM:#}");
        let is_usable = !matches!(view.key, KeyState::Missing(_));
        if is_chosen || is_usable {
            let width = view.models.iter().map(|model| model.id.len()).max().unwrap_or(0);
            view.models.iter().for_each(|model| write_model(&mut text, model, width));
        }
    }
    text
}

fn write_model(text: &mut String, model: &ModelView, width: usize) {
    let mut parts = Vec::new();
    if let Some(known) = &model.known {
        parts.extend(known.window.map(|window| format!("{} in", tokens(window))));
        parts.extend(known.max_output.map(|limit| format!("{} out", tokens(limit))));
        parts.extend(abilities(known).into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()));
    }
    parts.extend(model.price.as_ref().map(|(input, output)| format!("{input}/{output}")));
    let parts = parts.join(", ");
    let _ = writeln!(text, "{}", format!("  {:width$}  {DIM}{parts}{DIM:#}", model.id).trim_end());
}

/// Returns what a model can do.
fn abilities(known: &KnownModel) -> [(&'static str, bool); 5] {
    [
        ("tools", known.tools),
        ("images", known.images),
        ("documents", known.documents),
        ("strict", known.strict),
        ("reasoning", known.reasoning),
    ]
}

/// Returns a number of tokens, rounded: `128k`, `1.0M`.
fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", (count + 500) / 1_000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// Returns an address without what may be secret in it.
fn without_secrets(address: &str) -> String {
    let address = address.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn to_json(view: &ProviderView) -> Json {
    let (key, source) = match &view.key {
        KeyState::Unneeded => ("not needed", None),
        KeyState::Set(place) => ("set", Some(place)),
        KeyState::Missing(names) => ("missing", Some(names)),
    };
    let models: Vec<Json> = view
        .models
        .iter()
        .map(|model| {
            let mut json = json!({ "id": model.id });
            if let (Some(fields), Some(known)) = (json.as_object_mut(), &model.known) {
                fields.insert("window".to_owned(), json!(known.window));
                fields.insert("max_output".to_owned(), json!(known.max_output));
                fields.extend(abilities(known).map(|(name, has)| (name.to_owned(), json!(has))));
            }
            if let (Some(fields), Some((input, output))) = (json.as_object_mut(), &model.price) {
                let dollars = |text: &str| text.trim_start_matches('$').parse::<f64>().ok();
                fields.insert("price".to_owned(), json!({ "input": dollars(input), "output": dollars(output) }));
            }
            json
        })
        .collect();
    json!({
        "name": view.provider.name(),
        "address": view.address.as_deref().ok().map(without_secrets),
        "problem": view.address.as_ref().err(),
        "key": key,
        "key_source": source,
        "models": models,
    })
}
