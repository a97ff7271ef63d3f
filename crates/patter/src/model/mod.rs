//! Models: whoever replies to a conversation.
//!
//! What is asked and replied is the same for all ([`patter_core::request`]); the wires of core say how it is written,
//! and [`HttpModel`] sends it.

mod http;

pub use http::HttpModel;

use crate::drive::Models;
use crate::project::Environment;
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::name::{ModelRef, Provider};
use patter_core::request::{Delta, Reply, Request};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;

/// Whoever replies to a conversation.
pub trait Model: Send + Sync {
    /// Asks for a reply. Its pieces go to `sink` as they come; the whole is returned. A call that is cancelled ends
    /// soon, with [`ModelError::Cancelled`].
    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: &'a (dyn Fn(Delta) + Send + Sync),
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// Why a model gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ModelError {
    /// What is needed to call it is missing, such as a key.
    #[error("{message}")]
    Configuration {
        /// What is missing.
        message: String,
    },
    /// The provider refused the request, or failed.
    #[error("{message}")]
    Api {
        /// The status of HTTP, where there is one.
        status: Option<u16>,
        /// What the provider says.
        message: String,
    },
    /// There is no connection, or it broke.
    #[error("{message}")]
    Network {
        /// What happened.
        message: String,
    },
    /// The reply cannot be read.
    #[error("{message}")]
    Malformed {
        /// What is wrong with it.
        message: String,
    },
    /// It took too long.
    #[error("the model did not reply within {} s", after.as_secs())]
    TimedOut {
        /// The time that it had.
        after: Duration,
    },
    /// Nobody waits for the reply any more.
    #[error("the call of the model was cancelled")]
    Cancelled,
}

impl ModelError {
    pub(crate) fn configuration(message: String) -> Self {
        ModelError::Configuration { message }
    }

    /// Says which key is missing; any of these would do.
    pub(crate) fn missing_key(keys: &[&str]) -> Self {
        Self::configuration(format!("there is no key: `{}` is not set", keys.join("` or `")))
    }
}

/// Returns who finds models by their names, with keys and addresses from an environment. Models of one name share their
/// connections.
pub fn models(environment: &Environment) -> Models {
    let environment = environment.clone();
    let known: Mutex<HashMap<ModelRef, Arc<dyn Model>>> = Mutex::default();
    Arc::new(move |model| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(model) {
            return Ok(Arc::clone(model));
        }
        let made: Arc<dyn Model> = match model.provider {
            Provider::OpenAi | Provider::Anthropic | Provider::Google | Provider::Ollama => {
                Arc::new(HttpModel::new(model, &environment)?)
            }
            Provider::Demo | Provider::Scripted => {
                return Err(ModelError::configuration(format!("`{model}` cannot be called yet")));
            }
        };
        known.insert(model.clone(), Arc::clone(&made));
        Ok(made)
    })
}
