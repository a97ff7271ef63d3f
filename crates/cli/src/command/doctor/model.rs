//! The models that agents name: keys, and whether providers answer.

use super::{Doctor, Line};
use patter::declare::Agent;
use patter::http::Url;
use patter::model::{Access, HttpModel, ModelError, models_with};
use patter::project::{Config, Environment, Project, Source};
use patter::provider::{ModelRef, Provider};
use std::time::Duration;

/// How long a provider has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks at the models that the agents of a project name.
pub(super) async fn look(project: &Project, environment: &Environment, config: &Config, asked: &Doctor) -> Vec<Line> {
    let mut named: Vec<ModelRef> = Vec::new();
    let patterns = project.files().iter().flat_map(|file| file.tree.walk());
    // A model that is none is an error of the check.
    for model in patterns.filter_map(|pattern| Agent::cast(pattern)?.model()?.ok()) {
        if !named.contains(&model) {
            named.push(model);
        }
    }
    let mut lines = Vec::new();
    for provider in Provider::ALL {
        let of_provider: Vec<_> = named.iter().filter(|model| model.provider == provider).collect();
        let Some(first) = of_provider.first() else { continue };
        match Access::resolve(provider, environment, &config.models) {
            Ok(Some(access)) => {
                lines.extend(key(provider, &access, environment));
                if !access.lacks_key() {
                    lines.push(reached(first, &access, environment, config, asked).await);
                }
            }
            Ok(None) => lines.extend(of_provider.into_iter().map(|model| offline(model, environment, config))),
            Err(error) => lines.push(wrong(&error)),
        }
    }
    lines
}

/// Looks for the key of a provider.
fn key(provider: Provider, access: &Access, environment: &Environment) -> Option<Line> {
    let name = provider.name();
    match access.key {
        Some(variable) => {
            let place = match environment.source(variable) {
                Some(Source::File) => "`.env`",
                Some(Source::Process) | None => "the environment",
            };
            Some(Line::well(format!("{name}: the key is `{variable}`, from {place}")))
        }
        None if access.lacks_key() => Some(wrong(&ModelError::missing_key(provider, access.endpoint.key_variables))),
        None if access.endpoint.key_variables.is_empty() => None,
        None => {
            Some(Line::skipped(format!("{name}: there is no key, which `{}` may not need", shown(&access.base_url))))
        }
    }
}

/// Asks a provider.
async fn reached(
    model: &ModelRef,
    access: &Access,
    environment: &Environment,
    config: &Config,
    asked: &Doctor,
) -> Line {
    let (name, base) = (model.provider.name(), shown(&access.base_url));
    let made = match HttpModel::with(model, environment, &config.models) {
        Ok(made) => made,
        Err(error) => return wrong(&error),
    };
    if asked.offline {
        return Line::skipped(format!("{name}: `{base}` was not asked"));
    }
    let place = access.base_url_source.map(|place| format!("`{place}` says where it is; "));
    let hint = format!("{}is the server up, and the network? `--offline` does not ask", place.unwrap_or_default());
    match tokio::time::timeout(PATIENCE, made.probe()).await {
        Err(_) => Line::broken(format!("{name}: `{base}` did not answer within {} s", PATIENCE.as_secs()), hint),
        Ok(Err(error @ ModelError::Configuration { .. })) => wrong(&error),
        Ok(Err(error)) => Line::broken(format!("{name}: `{base}` cannot be reached: {error}"), hint),
        Ok(Ok(status)) if access.endpoint.is_rejection(status) => {
            let hint = match access.key.iter().chain(access.endpoint.key_variables).next() {
                Some(variable) => format!("set a key that it takes in `{variable}`"),
                None => "whoever runs it must let you in".to_owned(),
            };
            Line::broken(format!("{name}: `{base}` answered {status}: it does not let you in"), hint)
        }
        Ok(Ok(status @ (429 | 500..))) => {
            Line::broken(format!("{name}: `{base}` answered {status}"), "try again later")
        }
        Ok(Ok(status)) if !(200..300).contains(&status) => {
            let hint = access.base_url_source.map_or_else(
                || "something between here and the provider answers in its place: a proxy?".to_owned(),
                |place| format!("is the address right that `{place}` has for {name}?"),
            );
            Line::broken(format!("{name}: `{base}` answered {status}: it lists no models there"), hint)
        }
        Ok(Ok(_)) => Line::well(format!("{name}: `{base}` answers")),
    }
}

/// Returns an address without what may be secret in it.
fn shown(base: &str) -> String {
    let Ok(mut url) = Url::parse(base) else { return "the address".to_owned() };
    let is_plain = url.set_username("").is_ok() && url.set_password(None).is_ok();
    url.set_query(None);
    if is_plain { url.as_str().trim_end_matches('/').to_owned() } else { "the address".to_owned() }
}

/// Looks at a model that needs no network.
fn offline(model: &ModelRef, environment: &Environment, config: &Config) -> Line {
    match models_with(environment, &config.models)(model) {
        Ok(_) => Line::well(format!("{model}: it needs neither key nor network")),
        Err(error) => wrong(&error),
    }
}

fn wrong(error: &ModelError) -> Line {
    Line::broken(error.to_string(), error.hint().unwrap_or("docs/cli.md says what can be set"))
}
