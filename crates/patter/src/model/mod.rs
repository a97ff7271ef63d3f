//! Models: what is asked, and what comes back, whoever runs them.
//!
//! A [`Model`] is one way to reach a model. Replies stream: pieces go to a sink as they come, and the whole is returned
//! at the end. [`DemoModel`] works offline, [`ScriptedModel`] plays a file.

mod demo;
mod error;
mod scripted;
mod stream;

pub use demo::DemoModel;
pub use error::ModelError;
pub use scripted::{ScriptError, ScriptedModel};

use crate::tool::{BoxFuture, CancellationToken};
use patter_core::name::Provider;
use patter_core::request::{Delta, Reply, Request};

/// What hears the pieces of a reply as they come. It should be quick: the reply waits for it.
pub type Sink<'s> = dyn Fn(Delta) + Send + Sync + 's;

/// A way to reach a model. One value serves any number of requests at once; the conversation is in the request.
///
/// ```
/// use patter::conversation::Message;
/// use patter::model::{DemoModel, Model};
/// use patter::request::{Delta, Request, Settings};
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
/// let reply = DemoModel.call(&request, &sink, &CancellationToken::new()).await.unwrap();
/// assert!(reply.text.starts_with("Hello, Ann!"));
/// assert_eq!(*heard.lock().unwrap(), reply.text);
/// # });
/// ```
pub trait Model: Send + Sync {
    /// Returns who runs it, for messages and traces.
    fn provider(&self) -> Provider;

    /// Sends a request. Pieces of the reply go to `sink` as they come, and together they are the reply that is returned.
    ///
    /// Once `cancellation` is cancelled, this ends soon, with [`ModelError::Cancelled`]. Whether a failed request is
    /// sent again is decided within, and never once the sink has heard a piece.
    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: &'a Sink<'a>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// Returns what people should know before they use it, in one line.
    fn notice(&self) -> Option<&str> {
        None
    }
}
