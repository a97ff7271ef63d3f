//! The first page: a map of the project, its agents and its problems.

use super::figures::plural;
use super::page::{Page, PageError, Section, path_segment, respond};
use super::source::{severity, show_finding};
use super::view::{ProjectView, agent_address};
use crate::host::Host;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use patter::graph::{Graph, Node, SvgOptions, SvgStyle};
use patter::html::{Html, html};
use patter::permission::Decision;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The maximum number of problems that are listed.
const MAX_PROBLEMS: usize = 100;
/// A list with more agents is folded.
const MAX_OPEN: usize = 200;

/// Shows the project.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let view = ProjectView::read(&host, &access).await?;
    let served: BTreeSet<_> = super::page::reachable_agents(&host, &access).into_iter().collect();
    let body = body(&view, &served, access.may_reach_all());
    let page = Page::new(Section::Project, "Project", body).wide();
    Ok(respond(&page.with_style("graph.css").with_style("map.css").with_module("map.js"), &headers))
}

/// Sends the map as a file.
pub(super) async fn map(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let view = ProjectView::read(&host, &access).await?;
    let options = SvgOptions { title: "Project", style: SvgStyle::Standalone, link: &|_| None };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"project.svg\"")),
        // The drawing has its style in it, and nothing else that could be loaded or run.
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'")),
    ];
    Ok((headers, view.graph.to_svg(&options)).into_response())
}

fn body(view: &ProjectView, served: &BTreeSet<String>, sees_all: bool) -> Html {
    let graph = &view.graph;
    if graph.nodes().is_empty() {
        return html!(
            "<section class=\"empty\"><h1>No agents</h1><p>Declare one in a gram file, and start the studio again.</p></section>"
        );
    }
    html!(
        "<header class=\"top\"><h1>Project</h1><p class=\"quiet\">{}</p></header>{}\
         <div class=\"map\" id=\"map\" role=\"region\" tabindex=\"0\" aria-label=\"Map. Arrow keys move it, plus and minus zoom, 0 shows all of it.\">{}</div>\
         {}{}",
        graph.summary(),
        filters(graph, sees_all),
        Html::from_markup(view.map.clone()),
        agents(graph, served),
        if sees_all { problems(view) } else { Html::default() }
    )
}

/// The controls of the map. They need JavaScript, and are hidden without it.
fn filters(graph: &Graph, can_ask: bool) -> Html {
    let effects: BTreeSet<_> = graph.nodes().iter().filter_map(|node| node.effect.clone()).collect();
    let layers: BTreeSet<_> = graph.nodes().iter().filter_map(|node| node.layer).collect();
    let layers: Vec<_> = layers.into_iter().map(|layer| layer.name().to_owned()).collect();
    let models: BTreeSet<_> = graph.nodes().iter().filter_map(|node| node.model.clone()).collect();
    let permissions = graph.edges().iter().filter_map(|edge| Some(edge.permission.as_ref()?.word().to_owned()));
    let permissions: BTreeSet<_> = permissions.collect();
    html!(
        "<form class=\"filters\" id=\"filters\" role=\"search\" hidden>\
         <label>Search<input type=\"search\" name=\"name\" autocomplete=\"off\" spellcheck=\"false\"></label>{}{}{}{}{}\
         <label class=\"check\"><input type=\"checkbox\" name=\"problems\"> Problems only</label>\
         <button class=\"hidden\" tabindex=\"-1\">Next</button><output id=\"found\" class=\"quiet\"></output>\
         <span class=\"actions\"><button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button>\
         <button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">−</button>\
         <button type=\"button\" data-zoom=\"fit\">Fit</button>\
         <a class=\"button\" href=\"/studio/map.svg\" download>SVG</a></span></form>",
        if can_ask {
            html!(
                "<label class=\"query\">Query<input type=\"search\" name=\"query\" autocomplete=\"off\" spellcheck=\"false\" \
                 maxlength=\"4000\" placeholder=\"(a:Agent)-[:calls]-&gt;(t:Tool)\" aria-describedby=\"found\"></label>"
            )
        } else {
            Html::default()
        },
        choice("Effect", "effect", effects),
        choice("Permission", "permission", permissions),
        choice("Layer", "layer", layers),
        choice("Model", "model", models)
    )
}

/// Returns a list to choose from, if there is something to choose.
fn choice(label: &str, name: &str, values: impl IntoIterator<Item = String>) -> Html {
    let values: Html = values.into_iter().map(|value| html!("<option>{}</option>", value)).collect();
    if values.is_empty() {
        return values;
    }
    html!("<label>{}<select name=\"{}\"><option value=\"\">all</option>{}</select></label>", label, name, values)
}

/// Lists the agents: the map in words.
fn agents(graph: &Graph, served: &BTreeSet<String>) -> Html {
    let mut called = vec![Vec::new(); graph.nodes().len()];
    for (edge, (from, _)) in graph.edges().iter().zip(graph.ends()) {
        let decision = edge.permission.as_ref().map(|permission| permission.decision);
        called.get_mut(*from).into_iter().for_each(|called| called.extend(decision));
    }
    let row = |(node, calls): (&Node, &Vec<Decision>)| {
        let asks = calls.iter().filter(|decision| **decision == Decision::Ask).count();
        let asks = if asks > 0 { html!(", {} ask first", asks) } else { Html::default() };
        let problems = match node.problems.len() {
            0 => Html::default(),
            count => html!("<span class=\"bad\">{}</span>", count),
        };
        let talk = match served.contains(&node.name) {
            true => html!(
                "<a href=\"/studio/talk?agent={}\">Talk<span class=\"hidden\"> to {}</span></a>",
                path_segment(&node.name),
                node.name
            ),
            false => Html::default(),
        };
        html!(
            "<tr><th scope=\"row\"><a href=\"{}\">{}</a></th><td>{}</td><td>{}</td><td>{}{}</td><td>{}</td><td>{}</td></tr>",
            agent_address(&node.name),
            node.name,
            node.description.as_deref().unwrap_or_default(),
            node.model.as_deref().unwrap_or("none"),
            calls.len(),
            asks,
            problems,
            talk
        )
    };
    let rows: Html = graph.nodes().iter().zip(&called).filter(|(node, _)| node.is_agent()).map(row).collect();
    let count = graph.nodes().iter().filter(|node| node.is_agent()).count();
    // A long list is there for those who want it.
    let open = if count <= MAX_OPEN { html!(" open") } else { Html::default() };
    html!(
        "<section><h2 id=\"agents\">Agents</h2><details{}><summary>{} as a list</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"agents\">\
         <table class=\"list\"><thead><tr><th scope=\"col\">Agent</th><th scope=\"col\">Description</th><th scope=\"col\">Model</th>\
         <th scope=\"col\">Calls</th><th scope=\"col\">Problems</th><th scope=\"col\"><span class=\"hidden\">Actions</span></th></tr></thead>\
         <tbody>{}</tbody></table></div></details></section>",
        open,
        plural(u64::try_from(count).unwrap_or(0), "agent"),
        rows
    )
}

/// Lists the findings of the check, errors first.
fn problems(view: &ProjectView) -> Html {
    let project = view.driver.project();
    let mut findings: Vec<_> = view.findings.iter().collect();
    findings.sort_by_key(|finding| severity(&finding.diagnostic));
    if findings.is_empty() {
        return html!("<section><h2>Problems</h2><p class=\"quiet\">No problems found.</p></section>");
    }
    let row = |finding: &&patter::project::Finding| {
        let place = project.location(finding.file, finding.diagnostic.span);
        html!("<li><span class=\"quiet\">{}</span>{}</li>", place, show_finding(&finding.diagnostic))
    };
    let rows: Html = findings.iter().take(MAX_PROBLEMS).map(row).collect();
    let rest = match findings.len().saturating_sub(MAX_PROBLEMS) {
        0 => Html::default(),
        hidden => html!("<p class=\"quiet\">{} more: run `patter check`</p>", hidden),
    };
    html!(
        "<section><h2>Problems <i>{}</i></h2><ul class=\"plain problems\">{}</ul>{}</section>",
        findings.len(),
        rows,
        rest
    )
}
