//! Whether the server works.

use crate::host::Host;
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use patter::store::QueueCounts;
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

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
    let mut text = host.metrics.text();
    if let Some(queue) = host.store.as_ref().and_then(|store| store.queue())
        && let (Ok(counts), Ok(workers)) = (queue.counts().await, queue.workers().await)
    {
        text.push_str(&fleet_text(&counts, workers.len()));
    }
    Ok((headers, text).into_response())
}

/// Returns gauges of what all servers that share a store do.
fn fleet_text(counts: &QueueCounts, workers: usize) -> String {
    let QueueCounts { queued, scheduled, running, waiting, parked, oldest_ms } = counts;
    let mut text = String::new();
    let _ = writeln!(text, "# HELP patter_work Turns that are work of the queue, by state.\n# TYPE patter_work gauge");
    let states =
        [("queued", queued), ("scheduled", scheduled), ("running", running), ("waiting", waiting), ("parked", parked)];
    for (state, count) in states {
        let _ = writeln!(text, "patter_work{{state=\"{state}\"}} {count}");
    }
    let name = "patter_work_oldest_seconds";
    let oldest = Duration::from_millis(*oldest_ms).as_secs_f64();
    let _ =
        writeln!(text, "# HELP {name} How long work has waited for a worker.\n# TYPE {name} gauge\n{name} {oldest}");
    let name = "patter_workers";
    let _ = writeln!(text, "# HELP {name} Servers that share the queue.\n# TYPE {name} gauge\n{name} {workers}");
    text
}
