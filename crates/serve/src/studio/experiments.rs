//! Experiments: their list, and their reports.

use super::page::{Page, PageError, Section, path_segment, respond};
use crate::host::{Host, api_error};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::experiment::StoredTrials;
use patter::html::{Html, html};
use patter::store::SessionId;
use patter_core::serve::{ApiError, ApiErrorKind};
use std::sync::Arc;

/// How many sessions are searched for experiments.
const MAX_SEARCHED: usize = 1000;

/// Lists the experiments, newest first.
pub(super) async fn list(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let sessions = host.require_store()?.list(MAX_SEARCHED).await.map_err(|error| api_error(&error.into()))?;
    let item = |(id, title): (&SessionId, &String)| {
        html!("<li><a href=\"/studio/experiments/{}\">{}</a></li>", path_segment(id.as_str()), title)
    };
    let items: Html = sessions
        .iter()
        .filter(|session| session.is_experiment())
        .map(|session| item((&session.id, &session.title)))
        .collect();
    let list = if items.is_empty() {
        html!("<p class=\"quiet\">No experiments yet. Run <code>patter ab</code> or <code>patter eval</code>.</p>")
    } else {
        html!("<ul class=\"plain\">{}</ul>", items)
    };
    let body = html!("<h1>Experiments</h1>{}", list);
    Ok(respond(&Page::new(Section::Experiments, "Experiments", body), &headers))
}

/// Shows an experiment.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("there is no experiment `{id}`"));
    let session = SessionId::parse(&id).map_err(|_| missing())?;
    let report = StoredTrials::read(&*host.require_store()?, &session).await.map_err(|_| missing())?;
    let body =
        html!("<h1>{}</h1><p><a href=\"/api/experiments/{}\">Report as JSON</a></p>", report.title, path_segment(&id));
    Ok(respond(&Page::new(Section::Experiments, report.title.clone(), body), &headers))
}
