//! Models, and the ways to reach them.
//!
//! A [`Model`] answers requests. Replies are streamed: pieces are passed to a [`DeltaSink`] as they arrive, and the whole
//! reply is returned at the end. [`HttpModel`] calls a provider, [`DemoModel`] works offline, [`ScriptedModel`] replies
//! from a script, and [`ReplayModel`] from a recording. A [`ModelResolver`] finds the model for a name.

mod error;
mod interface;
mod stream;
mod demo;
mod scripted;
mod replay;
pub(crate) mod placeholder;
mod access;
mod key;
mod rate_limit;
mod pace;
mod http;
mod resolver;

pub use access::ProviderAccess;
pub use demo::DemoModel;
pub use error::ModelError;
pub use http::HttpModel;
pub use interface::{DeltaReceiver, DeltaSink, Model};
pub use pace::{ProviderLimit, apply_limits, new_limits};
pub use replay::{ReplayMode, ReplayModel};
pub use resolver::{ModelResolver, model_resolver, model_resolver_with_config};
pub use scripted::{ScriptError, ScriptedModel};
