//! The calls of all sessions that wait for an approval, and the questions that wait for an answer.

use super::conversation::approval;
use super::figures::time;
use super::page::{Page, PageError, Section, path_segment, respond};
use crate::host::{Host, api_error};
use crate::token::{Access, Scope};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use patter::html::{Html, html};
use patter::store::{SessionState, SessionSummary};
use patter_core::serve::Waiting;
use std::sync::Arc;

/// How many sessions are listed.
const MAX_SESSIONS: usize = 200;

/// Lists the calls.
pub(super) async fn list(
    State(host): State<Arc<Host>>,
    Extension(access): Extension<Access>,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    access.require(Scope::Read)?;
    let waiting = match &host.store {
        Some(store) => store.list_in_state(Some(SessionState::Waiting), MAX_SESSIONS).await,
        None => Ok(Vec::new()),
    };
    let mut items = Html::default();
    for summary in waiting.map_err(|error| api_error(&error.into()))? {
        if !access.may_reach(&summary.agent) || summary.is_experiment() {
            continue;
        }
        let Ok((_, log)) = host.read_session(&summary.id).await else { continue };
        for call in Waiting::all(&log).into_iter().filter(Waiting::is_for_people) {
            items.push(&item(&summary, &call));
        }
    }
    let list = if items.is_empty() {
        html!(
            "<section class=\"empty\"><p>Nothing waits for you.</p><p class=\"quiet\">Calls that need an approval and questions of workflows appear here, whatever session they are in.</p></section>"
        )
    } else {
        html!("<ul class=\"plain inbox\">{}</ul>", items)
    };
    let body = html!("<h1>Inbox</h1>{}", list);
    let page = Page::new(Section::Inbox, "Inbox", body).with_style("talk.css").with_module("inbox.js");
    Ok(respond(&page, &headers))
}

fn item(summary: &SessionSummary, call: &Waiting) -> Html {
    html!(
        "<li><p><a href=\"/studio/talk/{}\">{}</a> <span class=\"quiet\">{} · {}</span></p>\
         <p class=\"what\"><code>{}</code></p>{}{}</li>",
        path_segment(summary.id.as_str()),
        if summary.title.is_empty() { summary.id.as_str() } else { &summary.title },
        call.agent,
        time(summary.changed_ms),
        call.tool,
        if call.question.is_some() {
            Html::default()
        } else {
            html!("<pre tabindex=\"0\">{}</pre>", format!("{:#}", call.arguments))
        },
        approval(summary.id.as_str(), call)
    )
}
