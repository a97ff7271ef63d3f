//! Talking to an agent.

use super::conversation::{Activity, Scene, turns};
use super::markdown;
use super::page::{Page, PageError, Section, path_segment, reachable_agents, respond, respond_part};
use super::transcript::Transcript;
use crate::guard::read_body;
use crate::host::{Host, api_error};
use crate::respond::ErrorResponse;
use crate::token::{Access, Scope};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::drive::now_ms;
use patter::html::{Html, html};
use patter::store::{SessionId, SessionSummary};
use patter_core::run::CallTarget;
use patter_core::serve::{ApiError, ApiErrorKind, Waiting};
use patter_core::session::{AgentSelection, Log};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many turns are shown at first.
const TURNS_SHOWN: usize = 30;

/// The query of the page.
#[derive(Debug, Deserialize)]
pub(super) struct TalkQuery {
    agent: Option<String>,
    /// The first turn to show, by its number.
    from: Option<usize>,
}

/// Shows a new conversation with an agent, or the agents to choose from.
pub(super) async fn choose(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Query(query): Query<TalkQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let agents = reachable_agents(&host, &access);
    let chosen = match (query.agent, agents.as_slice()) {
        (Some(agent), _) => Some(agent),
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
    };
    let Some(agent) = chosen else { return Ok(respond(&choices(&host, &agents), &headers)) };
    let compiled = host.compile_for(&access, &agent)?;
    let id = SessionId::unique(now_ms());
    let hello = html!(
        "<div class=\"hello\"><p>{}</p></div>",
        compiled
            .declaration()
            .description()
            .map_or_else(|| format!("A new conversation with {agent}."), std::borrow::Cow::into_owned)
    );
    let view = TalkView {
        host: &host,
        access: &access,
        agent: &agent,
        id: id.as_str(),
        selection: AgentSelection::default(),
        entries: 0,
        is_new: true,
    };
    Ok(respond(&view.page(&hello), &headers))
}

fn choices(host: &Host, agents: &[String]) -> Page {
    let item = |name: &String| {
        let description = host.compile(name).ok();
        let description = description.as_ref().and_then(|agent| agent.declaration().description());
        html!(
            "<li><a href=\"/studio/talk?agent={}\">{}</a> <span class=\"quiet\">{}</span></li>",
            path_segment(name),
            name,
            description.as_deref().unwrap_or_default()
        )
    };
    let items: Html = agents.iter().map(item).collect();
    let body = html!(
        "<h1>Talk</h1><section><h2>Start a conversation with</h2><ul class=\"plain\">{}</ul></section>\
         <p><a href=\"/studio/sessions\">Or continue an earlier one</a></p>",
        items
    );
    Page::new(Section::Talk, "Talk", body)
}

/// Shows the conversation of a session.
pub(super) async fn show(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<TalkQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let (summary, transcript) = read(&host, &access, &id).await?;
    let part = render(&host, &access, &summary, &transcript, query.from);
    let view = TalkView {
        host: &host,
        access: &access,
        agent: &summary.agent,
        id: summary.id.as_str(),
        selection: transcript.log.selection().cloned().unwrap_or_default(),
        entries: summary.entries,
        is_new: false,
    };
    Ok(respond(&view.page(&part), &headers))
}

/// Returns the turns of a session, to be inserted into its page.
pub(super) async fn show_turns(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Path(id): Path<String>,
    Query(query): Query<TalkQuery>,
    headers: HeaderMap,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let (summary, transcript) = read(&host, &access, &id).await?;
    Ok(respond_part(render(&host, &access, &summary, &transcript, query.from), &headers))
}

/// A text that a module wants as HTML.
#[derive(Deserialize)]
struct MarkdownRequest {
    text: String,
}

/// Renders Markdown while it is streamed.
pub(super) async fn render_markdown(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    access.require(Scope::Read)?;
    let body = read_body(&host, body).await?;
    let request: MarkdownRequest =
        serde_json::from_slice(&body).map_err(|_| ApiError::invalid("text", "is missing"))?;
    Ok(respond_part(markdown::render(&request.text), &headers))
}

/// Reads a session that the reader may see.
pub(super) async fn read(host: &Host, access: &Access, id: &str) -> Result<(SessionSummary, Transcript), ApiError> {
    let (summary, entries) = read_entries(host, access, id).await?;
    let damaged = |error: patter_core::session::LogError| ApiError::new(ApiErrorKind::Server, error.to_string());
    Ok((summary, Transcript::read(&entries).map_err(damaged)?))
}

/// Reads the entries of a session that the reader may see.
pub(super) async fn read_entries(
    host: &Host,
    access: &Access,
    id: &str,
) -> Result<(SessionSummary, Vec<String>), ApiError> {
    let missing = || ApiError::new(ApiErrorKind::NotFound, format!("there is no session `{id}`"));
    let session = SessionId::parse(id).map_err(|_| missing())?;
    let store = host.require_store()?;
    host.find_session(access, &session).await?.ok_or_else(missing)?;
    let stored = store.read(&session).await.map_err(|error| api_error(&error.into()))?;
    Ok((stored.summary, stored.entries))
}

/// Returns whether the last turn of a session runs.
pub(super) fn activity(host: &Host, summary: &SessionSummary, log: &Log) -> Activity {
    match log.open_run() {
        None => Activity::Idle,
        Some(_) if host.active_turn(&summary.id).is_some() => Activity::Running,
        Some(_) if log.is_waiting() => Activity::Waiting,
        Some(_) => Activity::Interrupted,
    }
}

fn render(
    host: &Host,
    access: &Access,
    summary: &SessionSummary,
    transcript: &Transcript,
    from: Option<usize>,
) -> Html {
    let count = transcript.turns.len();
    let from = from.unwrap_or_else(|| count.saturating_sub(TURNS_SHOWN)).min(count);
    let activity = activity(host, summary, &transcript.log);
    let waiting = match activity {
        Activity::Waiting => Waiting::all(&transcript.log).into_iter().filter(Waiting::is_for_people).collect(),
        _ => Vec::new(),
    };
    let bindings = bindings(host, access, transcript);
    let prices = host.project.config().prices();
    let scene =
        Scene { session: summary.id.as_str(), prices: &prices, waiting: &waiting, bindings: &bindings, activity };
    let earlier = if from == 0 {
        Html::default()
    } else {
        let address =
            format!("/studio/talk/{}?from={}", path_segment(summary.id.as_str()), from.saturating_sub(TURNS_SHOWN));
        html!("<p class=\"earlier\"><a href=\"{}\">Show earlier messages</a></p>", address)
    };
    let shown = transcript.turns.get(from..).unwrap_or_default();
    html!(
        "{}<div id=\"turns\" data-activity=\"{}\" data-entries=\"{}\" data-from=\"{}\">{}</div>",
        earlier,
        activity.name(),
        summary.entries,
        from,
        turns(&scene, shown)
    )
}

/// Returns what the tools of the agents of a session are bound to now.
fn bindings(host: &Host, access: &Access, transcript: &Transcript) -> BTreeMap<String, String> {
    let agents: BTreeSet<_> =
        transcript.turns.iter().map(|turn| turn.agent.as_str()).filter(|name| !name.is_empty()).collect();
    let mut bindings = BTreeMap::new();
    let variant = transcript.log.selection().and_then(|selection| selection.variant.as_deref());
    let driver = host.driver_with(variant);
    for agent in agents.into_iter().filter(|agent| access.may_reach(agent)) {
        let Some(Ok(compiled)) = driver.compile_named(agent) else { continue };
        for callable in &compiled.spec().tools {
            let bound = match &callable.target {
                CallTarget::Tool { name, .. } => {
                    let name = name.to_string();
                    let locked = compiled.bindings().tools.iter().find(|tool| tool.name == name);
                    locked.map_or(name.clone(), |tool| {
                        format!("{name} · {} · {} · {}", tool.layer, tool.kind, tool.effect)
                    })
                }
                CallTarget::Agent { name } => format!("the agent {name}"),
                CallTarget::Client => "the client".to_owned(),
                CallTarget::Person => "a person".to_owned(),
            };
            bindings.insert(callable.name.clone(), bound);
        }
    }
    bindings
}

/// The page of a conversation.
struct TalkView<'t> {
    host: &'t Host,
    access: &'t Access,
    agent: &'t str,
    id: &'t str,
    /// What was chosen last.
    selection: AgentSelection,
    entries: u64,
    is_new: bool,
}

impl TalkView<'_> {
    fn page(&self, conversation: &Html) -> Page {
        let agents = reachable_agents(self.host, self.access);
        let option = |name: &String| {
            let selected = if name == self.agent { html!(" selected") } else { Html::default() };
            html!("<option{}>{}</option>", selected, name)
        };
        let options: Html = agents.iter().map(option).collect();
        let models: BTreeSet<String> = agents
            .iter()
            .filter_map(|name| self.host.compile(name).ok())
            .map(|agent| agent.model().to_string())
            .chain(["demo".to_owned()])
            .collect();
        let models: Html = models.iter().map(|model| html!("<option>{}</option>", model)).collect();
        let own = self.host.compile(self.agent).map(|agent| agent.model().to_string()).unwrap_or_default();
        let may_choose = self.access.require(Scope::Admin).is_ok();
        let model = if may_choose {
            html!(
                "<label>Model <input id=\"model\" list=\"models\" value=\"{}\" placeholder=\"{}\"></label><datalist id=\"models\">{}</datalist>",
                self.selection.model.as_deref().unwrap_or_default(),
                own,
                models
            )
        } else {
            Html::default()
        };
        let timeline = if self.is_new {
            Html::default()
        } else {
            html!("<a class=\"button\" href=\"/studio/sessions/{}\">Timeline</a>", path_segment(self.id))
        };
        let body = html!(
            "<div class=\"talk\" id=\"talk\" data-session=\"{}\" data-new=\"{}\" data-entries=\"{}\"><header class=\"head\"><h1>{}</h1>\
             <div class=\"actions\"><label>Agent <select id=\"agent\">{}</select></label>{}{}\
             <button id=\"undo\" hidden>Undo</button><a class=\"button\" id=\"new\" href=\"/studio/talk?agent={}\">New</a>{}</div></header>\
             <div id=\"conversation\">{}</div><div id=\"live\"></div>\
             <form id=\"compose\"><label for=\"message\" class=\"hidden\">Message</label>\
             <textarea id=\"message\" rows=\"2\" placeholder=\"Message\" autocomplete=\"off\"></textarea>\
             <ul id=\"attachments\" class=\"attachments\" aria-label=\"Attachments\"></ul>\
             <input type=\"file\" id=\"files\" multiple hidden>\
             <div class=\"actions\"><button type=\"button\" id=\"attach\">Attach</button><p id=\"status\" role=\"status\" class=\"quiet\"></p>\
             <button type=\"button\" id=\"stop\" hidden>Stop</button><button class=\"primary\" id=\"send\">Send</button></div></form></div>",
            self.id,
            if self.is_new { "yes" } else { "no" },
            self.entries,
            self.agent,
            options,
            model,
            if may_choose { self.variants() } else { Html::default() },
            path_segment(self.agent),
            timeline,
            conversation
        );
        let title = format!("Talk to {}", self.agent);
        Page::new(Section::Talk, title, body).with_style("talk.css").with_module("talk.js")
    }

    /// Returns the tools to choose from, if there are several.
    fn variants(&self) -> Html {
        let chosen = self.selection.variant.as_deref();
        let option = |name: &str| {
            let selected = if chosen == Some(name) { html!(" selected") } else { Html::default() };
            html!("<option{}>{}</option>", selected, name)
        };
        let options: Html = self.host.variants().map(option).collect();
        if options.is_empty() {
            return Html::default();
        }
        html!(
            "<label>Tools <select id=\"variant\"><option value=\"\">of the project</option>{}</select></label>",
            options
        )
    }
}
