//! Finding the model for a name.

use super::demo::DemoModel;
use super::error::ModelError;
use super::http::HttpModel;
use super::interface::Model;
use super::key::CommandKey;
use super::pace::register;
use super::rate_limit::RateLimiter;
use super::scripted::ScriptedModel;
use crate::file::read_source;
use crate::os_error::describe;
use crate::project::{Environment, ModelsConfig};
use patter_core::provider::{Backend, BuiltIn, ModelRef, Provider};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Finds the model that a name refers to.
pub type ModelResolver = Arc<dyn Fn(&ModelRef) -> Result<Arc<dyn Model>, ModelError> + Send + Sync>;

/// Returns a resolver that takes keys and addresses from an environment. Models with the same name share connections, and
/// models of the same provider share its rate limits. `scripted/FILE` is a script.
pub fn model_resolver(environment: &Environment) -> ModelResolver {
    model_resolver_with_config(environment, &ModelsConfig::default())
}

/// Returns a resolver that also uses the settings of `patter.toml`, which the environment overrides.
pub fn model_resolver_with_config(environment: &Environment, config: &ModelsConfig) -> ModelResolver {
    let environment = environment.clone();
    let config = config.clone();
    let known: Mutex<HashMap<ModelRef, Arc<dyn Model>>> = Mutex::default();
    let shared: Mutex<HashMap<Provider, SharedAccess>> = Mutex::default();
    Arc::new(move |name| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(name) {
            return Ok(Arc::clone(model));
        }
        let model: Arc<dyn Model> = match &name.provider.profile().backend {
            Backend::Http(_) => {
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let access = shared.entry(name.provider).or_default();
                let model = HttpModel::with_shared_key(name, &environment, &config, access.key.clone())?;
                access.key = model.command_key();
                register(model.server(), &access.limiter);
                Arc::new(model.with_rate_limiter(Arc::clone(&access.limiter)))
            }
            Backend::BuiltIn(BuiltIn::Demo) => Arc::new(DemoModel),
            Backend::BuiltIn(BuiltIn::Scripted) => Arc::new(read_script(&name.id)?),
        };
        known.insert(name.clone(), Arc::clone(&model));
        Ok(model)
    })
}

/// What the models of a provider share, because there is one address and one key for all of them.
#[derive(Default)]
struct SharedAccess {
    limiter: Arc<RateLimiter>,
    key: Option<Arc<CommandKey>>,
}

fn read_script(path: &str) -> Result<ScriptedModel, ModelError> {
    let failed = |reason: String| ModelError::config(format!("cannot read the script `{path}`: {reason}"));
    let bytes = read_source(Path::new(path)).map_err(|error| failed(describe(&error)))?;
    let text = String::from_utf8(bytes).map_err(|_| failed("it is not UTF-8 text".to_owned()))?;
    ScriptedModel::parse(path, &text)
        .map_err(|error| ModelError::Configuration { message: error.to_string(), hint: Some(error.hint().to_owned()) })
}
