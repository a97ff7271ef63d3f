//! The first page: what the project has.

use super::page::{Page, PageError, Section, path_segment, reachable_agents, respond};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::{Html, html};
use std::sync::Arc;

/// Shows the project.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let item = |name: &String| {
        let part = path_segment(name);
        html!(
            "<li><a href=\"/studio/agents/{}\">{}</a> <a class=\"quiet\" href=\"/studio/talk?agent={}\">Talk<span class=\"hidden\"> to {}</span></a></li>",
            part,
            name,
            part,
            name
        )
    };
    let agents: Html = reachable_agents(&host, &access).iter().map(item).collect();
    let body = html!("<h1>Project</h1><section><h2>Agents</h2><ul class=\"plain\">{}</ul></section>", agents);
    Ok(respond(&Page::new(Section::Project, "Project", body), &headers))
}
