//! The models of agents: keys, and whether providers respond.

use super::{CheckResult, Doctor};
use patter::declare::Agent;
use patter::http::Url;
use patter::model::{HttpModel, ModelError, ProviderAccess, model_resolver_with_config};
use patter::project::{Config, Environment, KeySource, Project, VariableSource};
use patter::provider::{ModelRef, Provider};
use std::time::Duration;

/// The time that a provider has to respond.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Checks the models of the agents of a project.
pub(super) async fn examine(
    project: &Project,
    environment: &Environment,
    config: &Config,
    options: &Doctor,
) -> Vec<CheckResult> {
    let mut named: Vec<ModelRef> = Vec::new();
    let patterns = project.files().iter().flat_map(|file| file.tree.walk());
    // Invalid models are findings of the check.
    let agents = patterns.filter_map(Agent::cast);
    for model in agents.flat_map(|agent| agent.model().into_iter().chain(agent.fallbacks()).flatten()) {
        if !named.contains(&model) {
            named.push(model);
        }
    }
    let mut checks = Vec::new();
    for provider in Provider::ALL.into_iter().chain(Provider::declared()) {
        let of_provider: Vec<_> = named.iter().filter(|model| model.provider == provider).collect();
        let Some(first) = of_provider.first() else { continue };
        match ProviderAccess::resolve(provider, environment, &config.models) {
            Ok(Some(access)) => {
                checks.extend(key(provider, &access, environment));
                if !access.lacks_key() {
                    checks.push(reach(first, &access, environment, config, options).await);
                }
            }
            Ok(None) => checks.extend(of_provider.into_iter().map(|model| offline(model, environment, config))),
            Err(error) => checks.push(broken(&error)),
        }
    }
    checks
}

/// Checks the key of a provider.
fn key(provider: Provider, access: &ProviderAccess, environment: &Environment) -> Option<CheckResult> {
    let name = provider.name();
    match &access.key {
        Some(KeySource::Variable(variable)) => {
            let place = match environment.source(variable) {
                Some(VariableSource::File) => "`.env`",
                Some(VariableSource::Process) | None => "the environment",
            };
            Some(CheckResult::ok(format!("{name}: the key is `{variable}`, from {place}")))
        }
        Some(KeySource::Command(command)) => {
            Some(CheckResult::ok(format!("{name}: the key is the output of `{}`", command.command.join(" "))))
        }
        None if access.lacks_key() => access.missing_key().map(|error| broken(&error)),
        None if access.key_variables.is_empty() => None,
        None => Some(CheckResult::skipped(format!(
            "{name}: no key is set, which `{}` may not need",
            redact(&access.base_url)
        ))),
    }
}

/// Contacts a provider.
async fn reach(
    model: &ModelRef,
    access: &ProviderAccess,
    environment: &Environment,
    config: &Config,
    options: &Doctor,
) -> CheckResult {
    let name = model.provider.name();
    let base = redact(&access.base_url);
    let client = match HttpModel::with_config(model, environment, &config.models) {
        Ok(client) => client,
        Err(error) => return broken(&error),
    };
    if options.offline {
        return CheckResult::skipped(format!("{name}: `{base}` was not contacted"));
    }
    let place = access.base_url_source.map(|place| format!("the address is from `{place}`; "));
    let hint = format!("{}check the server and the network, or skip this with `--offline`", place.unwrap_or_default());
    match tokio::time::timeout(TIMEOUT, client.probe()).await {
        Err(_) => CheckResult::broken(format!("{name}: `{base}` did not respond within {} s", TIMEOUT.as_secs()), hint),
        Ok(Err(error @ ModelError::Configuration { .. })) => broken(&error),
        Ok(Err(error)) => {
            let hint = error.hint().map_or(hint, |hint| format!("{hint}; `--offline` skips this"));
            CheckResult::broken(format!("{name}: {error}"), hint)
        }
        Ok(Ok(status)) if access.endpoint.is_rejection(status) => {
            let hint = match access.key_variable().or(access.key_variables.first().map(String::as_str)) {
                Some(variable) => format!("set a valid key in `{variable}`"),
                None if access.key.is_some() => "check what the command of its key prints".to_owned(),
                None => "ask its operator for access".to_owned(),
            };
            CheckResult::broken(format!("{name}: `{base}` answered {status}: access denied"), hint)
        }
        Ok(Ok(status @ (429 | 500..))) => {
            CheckResult::broken(format!("{name}: `{base}` answered {status}"), "try again later")
        }
        Ok(Ok(status)) if !(200..300).contains(&status) => {
            let hint = access.base_url_source.map_or_else(
                || "another server may be answering in its place, such as a proxy".to_owned(),
                |place| format!("check the address of {name} in `{place}`"),
            );
            CheckResult::broken(format!("{name}: `{base}` answered {status} instead of a list of models"), hint)
        }
        Ok(Ok(_)) => CheckResult::ok(format!("{name}: `{base}` responds")),
    }
}

/// Returns an address without its secrets.
fn redact(base: &str) -> String {
    let Ok(mut url) = Url::parse(base) else { return "the address".to_owned() };
    let is_plain = url.set_username("").is_ok() && url.set_password(None).is_ok();
    url.set_query(None);
    let shown = url.as_str().trim_end_matches('/').replace("%7Bmodel%7D", "{model}");
    if is_plain { shown } else { "the address".to_owned() }
}

/// Checks a model that needs no network.
fn offline(model: &ModelRef, environment: &Environment, config: &Config) -> CheckResult {
    match model_resolver_with_config(environment, &config.models)(model) {
        Ok(_) => CheckResult::ok(format!("{model}: needs neither key nor network")),
        Err(error) => broken(&error),
    }
}

fn broken(error: &ModelError) -> CheckResult {
    CheckResult::broken(error.to_string(), error.hint().unwrap_or("docs/cli.md lists the settings"))
}
