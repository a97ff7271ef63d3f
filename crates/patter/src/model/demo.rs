//! The built-in offline model.

use super::stream::told;
use super::{Model, ModelError, Sink};
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::request::{Reply, Request};
use patter_core::provider::Provider;

/// The built-in offline model: it matches words with tools, and is no language model. See [`patter_core::demo`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DemoModel;

impl Model for DemoModel {
    fn provider(&self) -> Provider {
        Provider::DEMO
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a Sink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { told(patter_core::demo::reply(request), sink, cancellation).await })
    }

    fn notice(&self) -> Option<&str> {
        Some(patter_core::demo::NOTICE)
    }
}
