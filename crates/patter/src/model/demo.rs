//! The built-in offline model.

use super::error::ModelError;
use super::interface::{DeltaSink, Model};
use super::stream::stream_reply;
use crate::tool::{BoxFuture, CancellationToken};
use patter_core::message::request::{Reply, Request};
use patter_core::provider::Provider;

/// The built-in offline model, which matches words to tools and is not a language model. See [`patter_core::demo`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DemoModel;

impl Model for DemoModel {
    fn provider(&self) -> Provider {
        Provider::DEMO
    }

    fn call<'a>(
        &'a self,
        request: &'a Request<'a>,
        sink: Option<&'a DeltaSink<'a>>,
        cancellation: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move { stream_reply(patter_core::demo::reply(request), sink, cancellation).await })
    }

    fn notice(&self) -> Option<&str> {
        Some(patter_core::demo::NOTICE)
    }
}
