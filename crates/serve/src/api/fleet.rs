//! The workers that share a store, and their work.

use crate::host::{Host, api_error, schedule_statuses};
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use patter::store::{Store, StoreError, WorkChange, WorkFilter, WorkQueue};
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::json;
use std::sync::Arc;

/// How much work is listed at most.
const MAX_LISTED: usize = 1000;

/// Returns the workers, how much work there is, and the work itself.
pub(super) async fn read(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let store = host.require_store()?;
    let queue = queue(&store)?;
    let mut work = queue.list(&WorkFilter::default(), MAX_LISTED).await.map_err(failed)?;
    work.retain(|work| access.may_reach(&work.agent));
    let counts = queue.counts().await.map_err(failed)?;
    let workers = queue.workers().await.map_err(failed)?;
    let mut schedules = schedule_statuses(&*store).await.map_err(failed)?;
    schedules.retain(|schedule| access.may_reach(&schedule.agent));
    Ok(json(&json!({"workers": workers, "queue": counts, "schedules": schedules, "work": work})))
}

/// Tries work again that was parked, or that waits to be tried again.
pub(super) async fn retry(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    change(&host, &access, &id, WorkChange::Retry).await
}

/// Removes work that nobody performs.
pub(super) async fn remove(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    change(&host, &access, &id, WorkChange::Remove).await
}

async fn change(host: &Host, access: &Access, id: &str, change: WorkChange) -> Result<Response, ErrorResponse> {
    access.require(Scope::Admin)?;
    let store = host.require_store()?;
    let is_changed = match id.parse() {
        Ok(id) => queue(&store)?.change(id, change).await.map_err(failed)?,
        Err(_) => false,
    };
    match is_changed {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => {
            let message = format!("there is no work {id} that waits for a worker or is parked");
            Err(ApiError::new(ApiErrorKind::NotFound, message).into())
        }
    }
}

fn queue(store: &Arc<dyn Store>) -> Result<&dyn WorkQueue, ApiError> {
    store.queue().ok_or_else(|| ApiError::new(ApiErrorKind::Invalid, "the session store has no queue"))
}

fn failed(error: StoreError) -> ApiError {
    api_error(&error.into())
}
