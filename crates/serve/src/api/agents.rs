//! Agents and experiments.

use crate::host::{Host, api_error};
use crate::respond::{ErrorResponse, json};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use patter::experiment::{ReportKind, StoredTrials};
use patter::stats::CompareOptions;
use patter::store::SessionId;
use patter_core::serve::native::agent_json;
use patter_core::serve::{ApiError, ApiErrorKind};
use serde_json::json;
use std::sync::Arc;

/// How many sessions are searched for experiments.
const MAX_SEARCHED: usize = 1000;

/// Lists the agents.
pub(super) async fn list(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let names = host.agents();
    let reachable = names.iter().filter(|(name, _)| access.may_reach(name));
    let agents: Vec<_> = reachable
        .map(|(name, _)| match host.compile(name) {
            Ok(compiled) => agent_json(&compiled),
            Err(error) => json!({"name": name, "error": error.message}),
        })
        .collect();
    Ok(json(&json!({ "agents": agents })))
}

/// Returns one agent.
pub(super) async fn read(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    Ok(json(&agent_json(&host.compile_for(&access, &name)?)))
}

/// Lists the experiments, newest first.
pub(super) async fn experiments(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let sessions = host.require_store()?.list(MAX_SEARCHED).await.map_err(|error| api_error(&error.into()))?;
    let experiments: Vec<_> = sessions.iter().filter(|session| session.is_experiment()).collect();
    Ok(json(&json!({ "experiments": experiments })))
}

/// Returns the report of an experiment, as far as it got.
pub(super) async fn experiment(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("there is no experiment `{id}`"));
    let session = SessionId::parse(&id).map_err(|_| missing())?;
    let mut report = StoredTrials::read(&*host.require_store()?, &session).await.map_err(|_| missing())?;
    if report.kind == ReportKind::Ab {
        let stopping = report.blocks.stopping();
        let options = CompareOptions { seed: report.seed, stopping, ..CompareOptions::default() };
        report.comparison = report.compare(&options).ok();
    }
    Ok(json(&json!(report)))
}
