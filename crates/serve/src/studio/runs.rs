//! The list of sessions.

use super::figures::{count, time};
use super::page::{Page, PageError, Section, path_segment, respond};
use crate::host::{Host, api_error};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::{Html, html};
use patter::store::{SessionState, SessionSummary};
use serde::Deserialize;
use std::sync::Arc;

/// How many sessions are searched.
const MAX_SEARCHED: usize = 5000;
/// How many sessions a page lists.
const PAGE: usize = 50;

/// The query of the list.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ListQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    page: usize,
}

/// Lists sessions, newest first.
pub(super) async fn list(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    Query(query): Query<ListQuery>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let state = match query.state.as_str() {
        "running" => Some(SessionState::Running),
        "waiting" => Some(SessionState::Waiting),
        "idle" => Some(SessionState::Idle),
        _ => None,
    };
    let listed = host.require_store()?.list_in_state(state, MAX_SEARCHED).await;
    let listed = listed.map_err(|error| api_error(&error.into()))?;
    let found: Vec<_> = listed
        .iter()
        .filter(|session| !session.is_experiment() && access.may_reach(&session.agent) && matches(session, &query.q))
        .collect();
    let first = query.page.saturating_mul(PAGE);
    let rows: Html = found.iter().skip(first).take(PAGE).map(|session| row(&host, session)).collect();
    let table = if rows.is_empty() {
        html!(
            "<section class=\"empty\"><p>No sessions{}.</p><p class=\"quiet\">A conversation becomes a session with its first message. <a href=\"/studio/talk\">Start one</a></p></section>",
            if query.q.is_empty() && query.state.is_empty() { "" } else { " match" }
        )
    } else {
        html!(
            "<form action=\"/studio/compare\"><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Sessions\"><table class=\"sessions\"><thead><tr><th scope=\"col\"><span class=\"hidden\">Compare</span></th>\
             <th scope=\"col\">Session</th><th scope=\"col\">Agent</th><th scope=\"col\">State</th><th scope=\"col\" class=\"n\">Entries</th>\
             <th scope=\"col\">Changed</th></tr></thead><tbody>{}</tbody></table></div>\
             <p class=\"actions\"><button>Compare two sessions</button></p></form>{}",
            rows,
            pages(&query, found.len())
        )
    };
    let option = |value: &str, name: &str| {
        let selected = if query.state == value { html!(" selected") } else { Html::default() };
        html!("<option value=\"{}\"{}>{}</option>", value, selected, name)
    };
    let options: Html = [("", "all"), ("idle", "idle"), ("running", "running"), ("waiting", "waiting")]
        .iter()
        .map(|(value, name)| option(value, name))
        .collect();
    let body = html!(
        "<h1>Runs</h1><form class=\"search actions\" role=\"search\"><label>Search <input type=\"search\" name=\"q\" value=\"{}\"></label>\
         <label>State <select name=\"state\">{}</select></label><button>Search</button><p class=\"quiet\">{} sessions</p></form>{}",
        query.q,
        options,
        count(u64::try_from(found.len()).unwrap_or(0)),
        table
    );
    Ok(respond(&Page::new(Section::Runs, "Runs", body).with_style("runs.css"), &headers))
}

/// Returns whether all words of a search are in the title, the agent or the id.
fn matches(session: &SessionSummary, words: &str) -> bool {
    let text = format!("{} {} {}", session.title, session.agent, session.id).to_lowercase();
    words.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

fn row(host: &Host, session: &SessionSummary) -> Html {
    let id = path_segment(session.id.as_str());
    let title = if session.title.is_empty() { session.id.as_str() } else { &session.title };
    let state = match (session.state, host.active_turn(&session.id)) {
        (_, Some(_)) => ("running", "running"),
        (SessionState::Running, None) => ("failed", "interrupted"),
        (SessionState::Waiting, None) => ("waiting", "waiting"),
        _ => ("", "idle"),
    };
    let forked =
        session.forked_from.as_ref().map(|from| html!(" <span class=\"quiet\">forked from {}</span>", from.as_str()));
    html!(
        "<tr><td><input type=\"checkbox\" name=\"session\" value=\"{}\" aria-label=\"Compare {}\"></td>\
         <td><a href=\"/studio/sessions/{}\">{}</a>{}<br><a class=\"quiet\" href=\"/studio/talk/{}\">{}</a></td><td>{}</td>\
         <td><span class=\"state {}\">{}</span></td><td class=\"n\">{}</td><td class=\"when\">{}</td></tr>",
        session.id.as_str(),
        title,
        id,
        title,
        forked.unwrap_or_default(),
        id,
        session.id.as_str(),
        session.agent,
        state.0,
        state.1,
        count(session.entries),
        time(session.changed_ms)
    )
}

fn pages(query: &ListQuery, found: usize) -> Html {
    let address = |page: usize| {
        format!("/studio/sessions?q={}&state={}&page={page}", path_segment(&query.q), path_segment(&query.state))
    };
    let newer = query
        .page
        .checked_sub(1)
        .map(|page| html!("<a class=\"button\" rel=\"prev\" href=\"{}\">Newer</a>", address(page)));
    let has_more = (query.page + 1).saturating_mul(PAGE) < found;
    let older =
        has_more.then(|| html!("<a class=\"button\" rel=\"next\" href=\"{}\">Older</a>", address(query.page + 1)));
    if newer.is_none() && older.is_none() {
        return Html::default();
    }
    html!(
        "<nav class=\"actions\" aria-label=\"Pages\">{}{}</nav>",
        newer.unwrap_or_default(),
        older.unwrap_or_default()
    )
}
