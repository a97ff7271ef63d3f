//! What all models have in common.

use super::error::ModelError;
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::attachment::Attachment;
use patter_core::message::request::{Delta, Reply, Request};
use patter_core::provider::{ModelRef, Provider};

/// Receives the pieces of a reply as they arrive. Functions are receivers that do not give pieces back.
pub trait DeltaReceiver: Send + Sync {
    /// Receives a piece. It should return quickly, because the reply waits for it.
    fn receive(&self, delta: Delta);

    /// Asks to forget the pieces of the reply so far, because the connection broke and the request can be repeated.
    /// Returns whether that is possible: it is not if somebody has seen them.
    fn retract(&self) -> bool {
        false
    }
}

impl<F: Fn(Delta) + Send + Sync> DeltaReceiver for F {
    fn receive(&self, delta: Delta) {
        self(delta);
    }
}

/// A receiver of the pieces of a reply.
pub type DeltaSink<'s> = dyn DeltaReceiver + 's;

/// A model that answers requests. One value can serve any number of requests at once; the conversation is part of the
/// request.
///
/// ```
/// use patter::message::attachment::AttachmentContents;
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
///     messages: &vec![Message::user("Hello, I'm Ann")].into(),
///     contents: AttachmentContents::NONE,
///     tools: &[],
///     settings: &Settings::default(),
///     returns: None,
/// };
/// let streamed = Mutex::new(String::new());
/// let sink = |delta| {
///     if let Delta::Text { text } = delta {
///         streamed.lock().unwrap().push_str(&text);
///     }
/// };
/// let reply = DemoModel.call(&request, Some(&sink), &CancellationToken::new()).await.unwrap();
/// assert!(reply.text.starts_with("Hello, Ann!"));
/// assert_eq!(*streamed.lock().unwrap(), reply.text);
/// # });
/// ```
pub trait Model: Send + Sync {
    /// Returns the provider of the model, for messages and traces.
    fn provider(&self) -> Provider;

    /// Sends a request. Pieces of the reply are passed to `sink` as they arrive; together they make up the reply that is
    /// returned. Without a sink, the reply may be requested as a whole, which is cheaper. Delays are passed to the sink
    /// too.
    ///
    /// Once `cancellation` is cancelled, the call ends soon with [`ModelError::Cancelled`]. Models retry failed requests
    /// themselves, but after a piece of the reply was passed to the sink only if it can be retracted.
    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a DeltaSink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;

    /// Checks that a model reads attachments, before anything is sent. What is not known is left to the provider.
    fn check_attachments(&self, model: &ModelRef, attachments: &[&Attachment]) -> Result<(), ModelError> {
        let _ = (model, attachments);
        Ok(())
    }

    /// Returns what people should know before they use the model, in one line.
    fn notice(&self) -> Option<&str> {
        None
    }
}
