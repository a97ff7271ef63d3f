//! The routes, one module for each protocol.

mod ag_ui;
mod agents;
mod attachments;
mod chat;
mod events;
mod fleet;
mod health;
mod request;
mod responses;
mod sessions;
mod stream;

use crate::guard::guard;
use crate::host::Host;
use crate::mcp::McpService;
use crate::respond::ErrorResponse;
use crate::studio;
use axum::Router;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use patter_core::serve::{ApiError, ApiErrorKind};
use std::sync::Arc;

/// Returns all routes. `/openapi.json` describes them.
pub(crate) fn router(host: &Arc<Host>) -> Router {
    Router::new()
        .route("/v1/models", get(chat::models))
        .route("/v1/models/{name}", get(chat::read_model))
        .route("/v1/chat/completions", post(chat::complete))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/compact", post(responses::compact))
        .route("/v1/responses/{id}", get(responses::read).delete(responses::delete))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/agents/{name}/ag-ui", post(ag_ui::run))
        .route("/api/agents", get(agents::list))
        .route("/api/agents/{name}", get(agents::read))
        .route("/api/sessions", get(sessions::list).post(sessions::create))
        .route("/api/sessions/{id}", get(sessions::read).delete(sessions::delete))
        .route("/api/sessions/{id}/messages", post(sessions::message))
        .route("/api/sessions/{id}/answers", post(sessions::answer))
        .route("/api/sessions/{id}/resume", post(sessions::resume))
        .route("/api/sessions/{id}/cancel", post(sessions::cancel))
        .route("/api/sessions/{id}/undo", post(sessions::undo))
        .route("/api/sessions/{id}/fork", post(sessions::fork))
        .route("/api/sessions/{id}/events", get(events::session_events))
        .route("/api/sessions/{id}/attachments/{sha256}", get(attachments::read))
        .route("/api/approvals", get(sessions::approvals))
        .route("/api/fleet", get(fleet::read))
        .route("/api/fleet/work/{id}", delete(fleet::remove))
        .route("/api/fleet/work/{id}/retry", post(fleet::retry))
        .route("/api/experiments", get(agents::experiments))
        .route("/api/experiments/{id}", get(agents::experiment))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi))
        .route_service("/mcp", McpService::over_http(host))
        .merge(studio::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(Arc::clone(host), guard))
        .with_state(Arc::clone(host))
}

/// Returns the description of all routes.
async fn openapi() -> Response {
    let document = include_str!("openapi.json").replacen("VERSION", env!("CARGO_PKG_VERSION"), 1);
    ([(CONTENT_TYPE, "application/json")], document).into_response()
}

async fn not_found(uri: Uri) -> Response {
    let message = format!("there is no `{}`; see /openapi.json", uri.path());
    ErrorResponse::from(ApiError::new(ApiErrorKind::NotFound, message)).into_response()
}

async fn wrong_method(uri: Uri) -> Response {
    let message = format!("`{}` does not support this method", uri.path());
    let mut response = ErrorResponse::from(ApiError::new(ApiErrorKind::Invalid, message)).into_response();
    *response.status_mut() = axum::http::StatusCode::METHOD_NOT_ALLOWED;
    response
}
