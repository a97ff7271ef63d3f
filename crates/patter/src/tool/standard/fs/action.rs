//! What the tools for files share.

use super::root::Roots;
use crate::tool::{ToolContext, ToolFailure};
use serde_json::Value as Json;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The constants that define a tool.
pub(super) struct ToolText {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) signature: &'static str,
}

/// The context of an action.
pub(super) struct ActionContext {
    pub(super) roots: Arc<Roots>,
    pub(super) call: ToolContext,
    /// Cancelled when the future of the call is dropped.
    pub(super) cancellation: CancellationToken,
}

/// A function that performs a call, with its deserialised arguments.
pub(super) type Action<A> = fn(&ActionContext, &A) -> Result<Json, ToolFailure>;
