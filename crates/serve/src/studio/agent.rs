//! The page of an agent.

use super::page::{Page, PageError, Section, path_segment, respond};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::html;
use std::sync::Arc;

/// Shows an agent.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let compiled = host.compile_for(&access, &name)?;
    let body = html!(
        "<h1>{}</h1><p><a class=\"button\" href=\"/studio/talk?agent={}\">Talk</a></p><section><h2>Instruction</h2><pre>{}</pre></section>",
        name,
        path_segment(&name),
        compiled.instruction()
    );
    Ok(respond(&Page::new(Section::Project, name, body), &headers))
}
