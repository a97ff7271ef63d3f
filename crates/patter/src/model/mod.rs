//! Models: what is asked, and what comes back, whoever runs them.
//!
//! A [`Model`] is one way to reach a model. Replies stream: pieces go to a sink as they come, and the whole is returned
//! at the end. [`DemoModel`] works offline, [`ScriptedModel`] plays a file,
//! [`RecordedModel`] what was recorded.

mod access;
mod demo;
mod error;
mod http;
mod pace;
mod recorded;
mod scripted;
mod stream;

pub use access::Access;
pub(crate) use access::wire_names;
pub use demo::DemoModel;
pub use error::ModelError;
pub use http::HttpModel;
pub use recorded::{Checking, RecordedModel};
pub use scripted::{ScriptError, ScriptedModel};

use crate::drive::Models;
use crate::project::{Environment, ModelsConfig};
use crate::tool::{BoxFuture, CancellationToken};
use pace::Pacer;
use patter_core::message::request::{Delta, Reply, Request};
use patter_core::provider::{Backend, BuiltIn, ModelRef, Provider};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What hears the pieces of a reply as they come. It should be quick: the reply waits for it.
pub type Sink<'s> = dyn Fn(Delta) + Send + Sync + 's;

/// A way to reach a model. One value serves any number of requests at once; the conversation is in the request.
///
/// ```
/// use patter::message::conversation::Message;
/// use patter::model::{DemoModel, Model};
/// use patter::message::request::{Delta, Request, Settings};
/// use patter::tool::CancellationToken;
/// use std::sync::Mutex;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let request = Request {
///     model: &"demo".parse().unwrap(),
///     instruction: "Be kind.",
///     messages: &[Message::user("Hello, I'm Ann")],
///     tools: &[],
///     settings: &Settings::default(),
///     returns: None,
/// };
/// let heard = Mutex::new(String::new());
/// let sink = |delta| {
///     if let Delta::Text { text } = delta {
///         heard.lock().unwrap().push_str(&text);
///     }
/// };
/// let reply = DemoModel.call(&request, Some(&sink), &CancellationToken::new()).await.unwrap();
/// assert!(reply.text.starts_with("Hello, Ann!"));
/// assert_eq!(*heard.lock().unwrap(), reply.text);
/// # });
/// ```
pub trait Model: Send + Sync {
    /// Returns who runs it, for messages and traces.
    fn provider(&self) -> Provider;

    /// Sends a request. Pieces of the reply go to `sink` as they come, and together they are the reply that is returned.
    /// Where nobody listens the reply may come as a whole, which costs less. The sink hears of waits too.
    ///
    /// Once `cancellation` is cancelled, this ends soon, with [`ModelError::Cancelled`]. Whether a failed request is
    /// sent again is decided within, and never once the sink has heard a piece.
    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a Sink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// Returns what people should know before they use it, in one line.
    fn notice(&self) -> Option<&str> {
        None
    }
}

/// Returns who finds models by their names, with keys and addresses from an environment. Models of one name share their
/// connections, and those of one provider the pace that it wants. `scripted/FILE` plays a file.
pub fn models(environment: &Environment) -> Models {
    models_with(environment, &ModelsConfig::default())
}

/// The same, with what `patter.toml` says where the environment does not.
pub fn models_with(environment: &Environment, config: &ModelsConfig) -> Models {
    let (environment, config) = (environment.clone(), config.clone());
    let known: Mutex<HashMap<ModelRef, Arc<dyn Model>>> = Mutex::default();
    // The environment has one address and one key for each provider.
    let pacers: HashMap<Provider, Arc<Pacer>> =
        Provider::ALL.into_iter().map(|provider| (provider, Arc::default())).collect();
    Arc::new(move |model| {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = known.get(model) {
            return Ok(Arc::clone(model));
        }
        let made: Arc<dyn Model> = match &model.provider.profile().backend {
            Backend::Http(_) => {
                let made = HttpModel::with(model, &environment, &config)?;
                Arc::new(made.paced(pacers.get(&model.provider).cloned().unwrap_or_default()))
            }
            Backend::BuiltIn(BuiltIn::Demo) => Arc::new(DemoModel),
            Backend::BuiltIn(BuiltIn::Scripted) => Arc::new(script(&model.id)?),
        };
        known.insert(model.clone(), Arc::clone(&made));
        Ok(made)
    })
}

fn script(path: &str) -> Result<ScriptedModel, ModelError> {
    let wrong = |message: String| ModelError::Configuration { message, hint: None };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!("cannot read `{path}`: {error}")))?;
    ScriptedModel::parse(path, &text).map_err(|error| wrong(error.to_string()))
}
