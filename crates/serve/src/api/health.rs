//! Whether the server works.

use crate::host::Host;
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::json;
use std::sync::Arc;

/// Says that the process is alive.
pub(super) async fn alive() -> Response {
    json(&json!({"status": "ok"}))
}

/// Says whether the server takes requests: its store can be read, and its agents compile.
pub(super) async fn ready(State(host): State<Arc<Host>>) -> Response {
    match check(&host).await {
        Ok(()) => json(&json!({"status": "ready"})),
        Err(message) => ErrorResponse::from(ApiError::new(ApiErrorKind::Unavailable, message)).into_response(),
    }
}

async fn check(host: &Host) -> Result<(), &'static str> {
    if host.draining.is_cancelled() {
        return Err("the server is stopping");
    }
    if let Some(store) = &host.store
        && store.list(1).await.is_err()
    {
        return Err("the session store does not answer");
    }
    match host.agents().iter().all(|(name, _)| host.compile(name).is_ok()) {
        true => Ok(()),
        false => Err("an agent does not compile"),
    }
}

/// Returns counters in the text format of Prometheus.
pub(super) async fn metrics(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let headers = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((headers, host.metrics.text()).into_response())
}
