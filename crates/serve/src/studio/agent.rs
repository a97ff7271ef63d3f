//! The page of an agent: its text with the findings in place, what it may call, and its runs.

use super::callable::{row, show_callables};
use super::edit;
use super::page::{Page, PageError, Section, path_segment, respond};
use super::source::show_source;
use super::view::ProjectView;
use crate::host::{Host, unknown_agent};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::declare::Agent;
use patter::drive::Tally;
use patter::html::{Html, html};
use patter::project::Project;
use patter::store::{SessionState, SessionSummary};
use patter_core::event::Playback;
use patter_core::provider::price::{Cost, Prices};
use std::sync::Arc;

/// How many sessions are looked through for those of an agent.
const MAX_SESSIONS: usize = 500;
/// How many of them are shown.
const MAX_SHOWN: usize = 20;
/// Longer sessions are listed without their cost, which would take long to compute.
const MAX_ENTRIES: u64 = 2000;

/// Shows an agent, by its path.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let view = ProjectView::read(&host, &access).await?;
    let is_shown = view.graph.nodes().iter().any(|node| node.is_agent() && node.name == path);
    let found = find_agent(view.driver.project(), &path).filter(|_| is_shown);
    let (file, agent) = found.ok_or_else(|| unknown_agent(&path))?;
    let is_served = host.agents().iter().any(|(name, _)| *name == path) && access.may_reach(&path);
    let sessions = sessions(&host, &path).await;
    let is_editable = edit::is_allowed(&host, &access);
    let body = body(&view, file, &agent, is_served, is_editable, &sessions);
    Ok(respond(&Page::new(Section::Project, path, body).with_style("agent.css"), &headers))
}

/// Finds an agent by its path, with the index of its file.
fn find_agent(project: &Project, path: &str) -> Option<(usize, Agent)> {
    project.all_agents().find(|(_, agent)| agent.path().to_string() == path)
}

/// A session of the agent, with its tokens and its cost, where they are known.
struct PastSession {
    summary: SessionSummary,
    figures: Option<(u64, Option<Cost>)>,
}

/// Returns the latest sessions of an agent.
async fn sessions(host: &Host, agent: &str) -> Vec<PastSession> {
    let Some(store) = &host.store else { return Vec::new() };
    let all = store.list(MAX_SESSIONS).await.unwrap_or_default();
    let mut sessions = Vec::new();
    for summary in all.into_iter().filter(|session| session.agent == agent).take(MAX_SHOWN) {
        let stored = match summary.entries <= MAX_ENTRIES {
            true => store.read(&summary.id).await.ok(),
            false => None,
        };
        let figures = stored.and_then(|stored| figures(&stored.entries, host.project.config().prices()));
        sessions.push(PastSession { summary, figures });
    }
    sessions
}

/// Returns the tokens of a session, and what they cost at current prices.
fn figures<T: AsRef<str>>(entries: &[T], prices: Prices) -> Option<(u64, Option<Cost>)> {
    let tally = Tally::new(prices);
    let mut playback = Playback::default();
    for entry in entries {
        let events = playback.play(serde_json::from_str(entry.as_ref()).ok()?).ok()?;
        events.iter().for_each(|event| tally.record(event));
    }
    let usage = tally.usage();
    Some((usage.input_tokens + usage.output_tokens, tally.cost()))
}

fn body(
    view: &ProjectView,
    file: usize,
    agent: &Agent,
    is_served: bool,
    is_editable: bool,
    sessions: &[PastSession],
) -> Html {
    let project = view.driver.project();
    let path = agent.path().to_string();
    let Some(source) = project.files().get(file) else { return Html::default() };
    let span = agent.span();
    let inside = |finding: &&patter::project::Finding| {
        let at = finding.diagnostic.span;
        finding.file == file && span.start <= at.start && at.end <= span.end
    };
    let findings: Vec<_> = view.findings.iter().filter(inside).map(|finding| &finding.diagnostic).collect();
    let talk = match is_served {
        true => html!("<a class=\"button primary\" href=\"/studio/talk?agent={}\">Talk</a>", path_segment(&path)),
        false => Html::default(),
    };
    let line = source.tree.line_index().line(span.start);
    let change = match is_editable {
        true => html!("<a class=\"button\" href=\"{}#L{}\">Edit</a>", edit::address(&source.path), line),
        false => Html::default(),
    };
    let callables = show_callables(&view.driver, agent);
    let callables = if callables.is_empty() { html!("<p class=\"quiet\">It calls nothing.</p>") } else { callables };
    html!(
        "<header class=\"top\"><p class=\"kind\"><a href=\"/\">Project</a></p><h1>{}</h1><p>{}</p>\
         <dl class=\"facts\">{}{}{}</dl><div class=\"actions\">{}{}</div></header>\
         <section aria-labelledby=\"text\"><h2 id=\"text\">Text {}</h2>{}</section>\
         <section><h2>Calls</h2>{}</section>{}",
        path,
        &*agent.description().unwrap_or_default(),
        row("Model", &model(agent)),
        row("File", &html!("<code>{}</code>", project.location(file, span))),
        row("Called by", &callers(view, &path)),
        talk,
        change,
        count(&findings),
        show_source(&source.tree, span, &findings),
        callables,
        history(sessions)
    )
}

fn model(agent: &Agent) -> Html {
    match agent.model() {
        Some(Ok(model)) => html!("<code>{}</code>", model.to_string()),
        Some(Err(error)) => html!("<span class=\"bad\">{}</span>", error.to_string()),
        None => html!("<span class=\"bad\">none</span>"),
    }
}

/// Lists the agents that call this one.
fn callers(view: &ProjectView, path: &str) -> Html {
    let graph = &view.graph;
    let is_called = |to: usize| graph.nodes().get(to).is_some_and(|node| node.is_agent() && node.name == path);
    let calling = graph.ends().iter().filter(|(_, to)| is_called(*to)).filter_map(|(from, _)| graph.nodes().get(*from));
    let link =
        |node: &patter::graph::Node| html!("<a href=\"{}\">{}</a> ", super::view::agent_address(&node.name), node.name);
    calling.filter(|node| node.is_agent()).map(link).collect()
}

fn count(findings: &[&patter::gram::Diagnostic]) -> Html {
    let errors = findings.iter().filter(|finding| finding.is_error()).count();
    let warnings = findings.len() - errors;
    let part =
        |count: usize, noun: &str| (count > 0).then(|| format!("{count} {noun}{}", if count == 1 { "" } else { "s" }));
    let parts: Vec<_> = [part(errors, "error"), part(warnings, "warning")].into_iter().flatten().collect();
    let words = if parts.is_empty() { "no problems found".to_owned() } else { parts.join(", ") };
    html!("<i>{}</i>", words)
}

/// Lists the latest conversations with the agent.
fn history(sessions: &[PastSession]) -> Html {
    if sessions.is_empty() {
        return html!("<section><h2>Runs</h2><p class=\"quiet\">No runs are stored.</p></section>");
    }
    let item = |past: &PastSession| {
        let session = &past.summary;
        let state = match session.state {
            SessionState::Idle => Html::default(),
            SessionState::Running => html!(" <span class=\"state running\">running</span>"),
            SessionState::Waiting => html!(" <span class=\"state waiting\">waiting</span>"),
        };
        let title = if session.title.is_empty() { session.id.as_str() } else { &session.title };
        let changed = i64::try_from(session.changed_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let changed = changed.map(|time| time.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default();
        let figures = match past.figures {
            Some((tokens, Some(cost))) => html!(", {} tokens, {}", tokens, cost.to_string()),
            Some((tokens, None)) => html!(", {} tokens, cost unknown", tokens),
            None => Html::default(),
        };
        html!(
            "<li><a href=\"/studio/sessions/{}\">{}</a>{} <span class=\"quiet\">{}{}</span></li>",
            path_segment(session.id.as_str()),
            title,
            state,
            changed,
            figures
        )
    };
    let items: Html = sessions.iter().map(item).collect();
    html!("<section><h2>Runs</h2><ul class=\"plain\">{}</ul></section>", items)
}
