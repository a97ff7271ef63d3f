//! The page of a tool: what it does, where it comes from, and which agents call it.

use super::callable::{effect_badge, row, schemas};
use super::page::{Page, PageError, Section, respond};
use super::view::{ProjectView, agent_address, layer_words};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::graph::NodeKind;
use patter::html::{Html, html, prose};
use patter::library::Entry;
use patter::permission::Decision;
use patter::tool::Tool;
use patter_core::serve::{ApiError, ApiErrorKind};
use std::sync::Arc;

/// Shows a tool, by its full name.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let view = ProjectView::read(&host, &access).await?;
    let unknown = || ApiError::new(ApiErrorKind::NotFound, format!("there is no tool `{name}`"));
    let index = view.graph.nodes().iter().position(|node| node.kind == NodeKind::Tool && node.name == name);
    let entry = view.driver.library().get(&name);
    let (Some(index), Some(entry)) = (index, entry) else { return Err(unknown().into()) };
    let body = body(&view, index, entry);
    Ok(respond(&Page::new(Section::Project, name, body).with_style("agent.css"), &headers))
}

fn body(view: &ProjectView, index: usize, entry: &Entry<Tool>) -> Html {
    let tool = &entry.value;
    let definition = &tool.definition;
    let mut facts = vec![tool.kind.name().to_owned()];
    facts.extend(tool.idempotent.then(|| "idempotent".to_owned()));
    facts.extend(tool.sealed.then(|| "sealed".to_owned()));
    facts.push(format!("at most {} s", tool.timeout.as_secs_f64()));
    facts.extend(tool.sandbox.as_ref().map(|sandbox| format!("sandbox: {sandbox}")));
    let overridden = view.driver.library().overrides().filter(|one| one.winner.name == entry.name);
    let overridden: Html = overridden
        .map(|one| html!("<li>the one of {} ({})</li>", layer_words(one.loser.layer), &*one.loser.value.source))
        .collect();
    let overridden = if overridden.is_empty() { overridden } else { html!("<ul class=\"plain\">{}</ul>", overridden) };
    html!(
        "<header class=\"top\"><p class=\"kind\"><a href=\"/\">Project</a></p><h1>{} {}</h1><p>{}</p>\
         <dl class=\"facts\">{}{}{}{}</dl></header><section><h2>Called by</h2>{}</section><section><h2>Schema</h2>{}</section>",
        entry.name.as_str(),
        effect_badge(tool.effect.name()),
        definition.description.trim(),
        row("Signature", &html!("<code>{}</code>", definition.signature.to_string())),
        row("From", &html!("{} <span class=\"quiet\">({})</span>", layer_words(entry.layer), &*tool.source)),
        row("Runs", &html!("{}", facts.join(", "))),
        row("Overrides", &overridden),
        callers(view, index),
        schemas(definition)
    )
}

/// Lists the agents that call a tool, with their permission.
fn callers(view: &ProjectView, index: usize) -> Html {
    let graph = &view.graph;
    let calls = graph.edges().iter().zip(graph.ends()).filter(|(_, (_, to))| *to == index);
    let item = |(edge, (from, _)): (&patter::graph::Edge, &(usize, usize))| {
        let agent = graph.nodes().get(*from).filter(|node| node.is_agent())?;
        let permission = edge.permission.as_ref()?;
        let words = match permission.decision {
            Decision::Allow => "allowed",
            Decision::Ask => "asks first",
            Decision::Deny => "denied",
        };
        let rules: Html =
            permission.conditional.iter().map(|rule| html!("<code>{}</code>, otherwise ", rule.as_str())).collect();
        Some(html!(
            "<li><a href=\"{}\">{}</a>: {}{} <span class=\"quiet\">because {}</span></li>",
            agent_address(&agent.name),
            agent.name,
            rules,
            words,
            prose(&permission.because)
        ))
    };
    let items: Html = calls.filter_map(item).collect();
    if items.is_empty() {
        html!("<p class=\"quiet\">No agent calls it.</p>")
    } else {
        html!("<ul class=\"plain\">{}</ul>", items)
    }
}
